//go:build !portable

package anchor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

var plain anchor.RemoveOptions

func gone(t *testing.T, p string) {
	t.Helper()
	if _, err := os.Lstat(p); err == nil {
		t.Errorf("%s is still there", p)
	}
}

func there(t *testing.T, ps ...string) {
	t.Helper()
	for _, p := range ps {
		if _, err := os.Lstat(p); err != nil {
			t.Error(err)
		}
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	es, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(es)
}

func TestRemoveTree(t *testing.T) {
	withFallback(t, func(t *testing.T) {
		p, d := tempDir(t)
		out := t.TempDir()
		must(t, os.WriteFile(out+"/precious", []byte("keep"), 0o644))
		must(t, os.MkdirAll(p+"/tree/a/b/c", 0o755))
		must(t, os.WriteFile(p+"/tree/a/one", make([]byte, 1000), 0o644))
		must(t, os.WriteFile(p+"/tree/a/b/two", make([]byte, 24), 0o400))
		must(t, os.Link(p+"/tree/a/one", p+"/tree/twin"))
		must(t, os.WriteFile(p+"/shared", make([]byte, 5000), 0o644))
		must(t, os.Link(p+"/shared", p+"/tree/shared"))
		must(t, os.Symlink(out, p+"/tree/out"))
		must(t, os.Symlink(out+"/precious", p+"/tree/a/out"))
		must(t, os.Symlink("../../..", p+"/tree/a/b/up"))
		must(t, unix.Mkfifo(p+"/tree/fifo", 0o600))
		must(t, os.WriteFile(p+"/beside", nil, 0o644))
		before := openFDs(t)
		files, bytes, err := d.RemoveTree(t.Context(), "tree", plain)
		must(t, err)
		if files != 8 || bytes != 1024 {
			t.Errorf("%d files, %d bytes", files, bytes)
		}
		if after := openFDs(t); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
		gone(t, p+"/tree")
		there(t, out+"/precious", p+"/beside", p+"/shared")
		files, bytes, err = d.RemoveTree(t.Context(), "tree", plain)
		if files != 0 || bytes != 0 || err != nil {
			t.Errorf("absent: %d %d %v", files, bytes, err)
		}
		checkErr(t, "file", third(d.RemoveTree(t.Context(), "beside", plain)), syscall.ENOTDIR)
		there(t, p+"/beside")
	})
}

func TestRemoveTreeLast(t *testing.T) {
	p, d := tempDir(t)
	mk := func() {
		must(t, os.MkdirAll(p+"/tree/a", 0o755))
		must(t, os.WriteFile(p+"/tree/marker", []byte("m"), 0o644))
		must(t, os.WriteFile(p+"/tree/a/marker", []byte("m"), 0o644))
		must(t, os.WriteFile(p+"/tree/zz", []byte("m"), 0o644))
	}
	mk()
	files, _, err := d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Last: "marker"})
	must(t, err)
	if files != 2 {
		t.Errorf("%d files; the last name is not counted", files)
	}
	gone(t, p+"/tree")

	// Cancelled at once: nothing is lost that marks the tree.
	mk()
	for i := range 600 {
		must(t, os.WriteFile(fmt.Sprintf("%s/tree/a/%d", p, i), nil, 0o644))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = d.RemoveTree(ctx, "tree", anchor.RemoveOptions{Last: "marker"})
	checkErr(t, "cancelled", err, context.Canceled)
	there(t, p+"/tree/marker")
	must(t, third(d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Last: "marker"})))
	gone(t, p+"/tree")

	// Something cannot be removed: the last name stays.
	if os.Geteuid() == 0 {
		mk()
		must(t, os.MkdirAll(p+"/tree/m", 0o755))
		must(t, os.MkdirAll(p+"/target/in", 0o755))
		bind(t, p+"/target", p+"/tree/m")
		_, _, err = d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Last: "marker"})
		checkErr(t, "mount inside", err, syscall.EBUSY)
		there(t, p+"/tree/marker", p+"/target/in", p+"/tree/m/in")
		gone(t, p+"/tree/a")
		gone(t, p+"/tree/zz")
	}
}

// bind mounts from on to until the test ends.
func bind(t *testing.T, from, to string) {
	t.Helper()
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skip("SKIP: this root may not mount")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestRemoveTreeNeverCrossesAMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: mounting needs root")
	}
	withFallback(t, func(t *testing.T) {
		p, d := tempDir(t)
		must(t, os.MkdirAll(p+"/precious/sub", 0o755))
		must(t, os.WriteFile(p+"/precious/sub/f", []byte("keep"), 0o644))
		must(t, os.WriteFile(p+"/precious/file", []byte("keep"), 0o644))
		must(t, os.MkdirAll(p+"/tree/a/b", 0o755))
		must(t, os.WriteFile(p+"/tree/a/f", nil, 0o644))
		must(t, os.WriteFile(p+"/tree/bound", nil, 0o644))
		bind(t, p+"/precious", p+"/tree/a/b")        // same file system, same device
		bind(t, p+"/precious/file", p+"/tree/bound") // a file
		if m, err := d.IsMountPoint("tree"); m || err != nil {
			t.Errorf("tree is a mount point: %v %v", m, err)
		}
		a, err := d.Walk("tree/a")
		must(t, err)
		defer a.Close()
		if m, err := a.IsMountPoint("b"); !m || err != nil {
			t.Errorf("b is no mount point: %v %v", m, err)
		}
		checkErr(t, "nested", third(d.RemoveTree(t.Context(), "tree", plain)), syscall.EBUSY)
		checkErr(t, "itself", third(a.RemoveTree(t.Context(), "b", plain)), syscall.EBUSY)
		there(t, p+"/precious/sub/f", p+"/precious/file")
		gone(t, p+"/tree/a/f")
		content(t, p+"/precious/file", "keep")
	})
}

func TestRemoveTreeExpect(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.Mkdir(p+"/tree", 0o755))
	must(t, os.Mkdir(p+"/other", 0))
	must(t, os.WriteFile(p+"/tree/f", nil, 0o644))
	info, err := d.Lstat("tree")
	must(t, err)
	checkErr(t, "another", third(d.RemoveTree(t.Context(), "other", anchor.RemoveOptions{Expect: &info})), syscall.ESTALE)
	if i, _ := d.Lstat("other"); i.Perm() != 0 {
		t.Errorf("another directory was opened up: %o", i.Perm())
	}
	must(t, third(d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Expect: &info})))
	gone(t, p+"/tree")
	must(t, third(d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Expect: &info})))
}

func TestRemoveTreeOpensUpItsOwn(t *testing.T) {
	p, d := tempDir(t)
	out := t.TempDir()
	must(t, os.Chmod(out, 0o555))
	for _, mode := range []os.FileMode{0o555, 0o444, 0o111, 0o000, 0o200} {
		dir := fmt.Sprintf("%s/tree/%o", p, mode)
		must(t, os.MkdirAll(dir+"/sub", 0o755))
		must(t, os.WriteFile(dir+"/f", nil, 0))
		must(t, os.WriteFile(dir+"/sub/f", nil, 0o444))
		must(t, os.Symlink(out, dir+"/out"))
		must(t, os.Chmod(dir+"/sub", mode))
		must(t, os.Chmod(dir, mode))
	}
	must(t, os.Chmod(p+"/tree", 0o000))
	must(t, third(d.RemoveTree(t.Context(), "tree", plain)))
	gone(t, p+"/tree")
	if fi, _ := os.Stat(out); fi.Mode().Perm() != 0o555 {
		t.Errorf("the target of a link is now %v", fi.Mode())
	}
}

// deepTree makes a chain of directories, each with a file.
func deepTree(t testing.TB, p string, depth int) {
	t.Helper()
	must(t, os.Mkdir(p, 0o755))
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, "d", 0o755))
		must(t, unix.Mknodat(fd, "f", unix.S_IFREG|0o600, 0))
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
}

func TestRemoveTreeOfAnyDepth(t *testing.T) {
	p, d := tempDir(t)
	for _, depth := range []int{anchor.MaxHeld - 1, anchor.MaxHeld, anchor.MaxHeld + 1, 2*anchor.MaxHeld + 1, 10_000} {
		deepTree(t, p+"/tree", depth)
		must(t, os.WriteFile(p+"/tree/last", nil, 0o644))
		before := openFDs(t)
		var most atomic.Int64
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
				}
				if es, err := os.ReadDir("/proc/self/fd"); err == nil && int64(len(es)) > most.Load() {
					most.Store(int64(len(es)))
				}
			}
		})
		files, _, err := d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Last: "last"})
		close(done)
		wg.Wait()
		must(t, err)
		if files != int64(depth) {
			t.Errorf("%d of %d files", files, depth)
		}
		gone(t, p+"/tree")
		if n := openFDs(t); n != before {
			t.Errorf("%d descriptors before, %d after", before, n)
		}
		if m := int(most.Load()) - before; m > anchor.MaxHeld+8 {
			t.Errorf("depth %d held %d descriptors", depth, m)
		}
	}
	// Deep and wide, closed at the deep end.
	for _, branch := range []string{"x", "y", "z"} {
		dir := p + "/bushy/" + branch + strings.Repeat("/d", 120)
		must(t, os.MkdirAll(dir+"/e", 0o755))
		must(t, os.WriteFile(dir+"/f", nil, 0o644))
		must(t, os.Chmod(dir+"/e", 0o555))
		for i := dir; i != p+"/bushy"; i = filepath.Dir(i) {
			must(t, os.Chmod(i, 0o555))
		}
	}
	must(t, third(d.RemoveTree(t.Context(), "bushy", plain)))
	gone(t, p+"/bushy")
}

// TestRemoveTreeRace removes trees whose directories are exchanged for links
// to a precious directory all the while.
func TestRemoveTreeRace(t *testing.T) {
	p, d := tempDir(t)
	out := t.TempDir()
	for i := range 50 {
		must(t, os.MkdirAll(fmt.Sprintf("%s/sub%d", out, i), 0o755))
		must(t, os.WriteFile(fmt.Sprintf("%s/sub%d/f", out, i), []byte("keep"), 0o644))
		must(t, os.WriteFile(fmt.Sprintf("%s/%d", out, i), []byte("keep"), 0o644))
	}
	must(t, os.Chmod(out+"/sub1", 0o555))
	t.Cleanup(func() { os.Chmod(out+"/sub1", 0o755) })
	listing := func() string {
		var b strings.Builder
		must(t, filepath.Walk(out, func(p string, i os.FileInfo, err error) error {
			fmt.Fprintln(&b, p, i.Mode(), err)
			return nil
		}))
		return b.String()
	}
	before := listing()
	enough := int64(100_000)
	if testing.Short() {
		enough = 10_000
	}
	var swaps, mixed, rounds int64
	for end := time.Now().Add(30 * time.Second); atomic.LoadInt64(&swaps) < enough && time.Now().Before(end); rounds++ {
		for i := range 20 {
			must(t, os.MkdirAll(fmt.Sprintf("%s/tree/%d/sub1", p, i), 0o755))
			must(t, os.WriteFile(fmt.Sprintf("%s/tree/%d/1", p, i), nil, 0o644))
			must(t, os.Symlink(out, fmt.Sprintf("%s/tree/l%d", p, i)))
		}
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				for i := range 20 {
					a, b := fmt.Sprintf("%s/tree/%d", p, i), fmt.Sprintf("%s/tree/l%d", p, i)
					if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
						atomic.AddInt64(&swaps, 1)
					}
				}
			}
		})
		_, _, err := d.RemoveTree(t.Context(), "tree", plain)
		stop.Store(true)
		wg.Wait()
		if err != nil {
			mixed++
			must(t, third(d.RemoveTree(t.Context(), "tree", plain)))
		}
		gone(t, p+"/tree")
	}
	t.Logf("%d rounds, %d exchanges, %d removals needed a second run", rounds, swaps, mixed)
	if swaps == 0 {
		t.Error("no race")
	}
	if after := listing(); after != before {
		t.Errorf("outside changed:\n%s\n%s", before, after)
	}
}

// A writer that never stops must not keep the removal busy for ever.
func TestRemoveTreeBesideAWriter(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.MkdirAll(p+"/tree/a", 0o755))
	must(t, os.WriteFile(p+"/tree/marker", nil, 0o644))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				os.Mkdir(p+"/tree/a", 0o755)
				os.WriteFile(fmt.Sprintf("%s/tree/a/%d-%d", p, w, i), nil, 0o644)
				os.WriteFile(fmt.Sprintf("%s/tree/%d-%d", p, w, i), nil, 0o644)
			}
		})
	}
	_, _, err := d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Last: "marker"})
	stop.Store(true)
	wg.Wait()
	t.Logf("beside writers: %v", err)
	if err != nil {
		checkErr(t, "remove", err, syscall.ENOTEMPTY)
	}
	must(t, third(d.RemoveTree(t.Context(), "tree", anchor.RemoveOptions{Last: "marker"})))
	gone(t, p+"/tree")
}

// fill makes n files in directories of 1,000.
func fill(t testing.TB, p string, n int) {
	t.Helper()
	for i := range n {
		dir := fmt.Sprintf("%s/%d", p, i/1000)
		if i%1000 == 0 {
			must(t, os.MkdirAll(dir, 0o755))
		}
		must(t, os.WriteFile(fmt.Sprintf("%s/file%d", dir, i), []byte("twenty bytes of text"), 0o644))
	}
}

// BenchmarkRemove100k compares with /bin/rm; the target is at most 1.2 times.
// The two are run in turn on equal trees.
func BenchmarkRemove100k(b *testing.B) {
	const n = 100_000
	rm, err := exec.LookPath("rm")
	if err != nil {
		b.Skip("SKIP-CAPABLE: no rm")
	}
	p, d := tempDir(b)
	var ours, theirs []float64
	for b.Loop() {
		b.StopTimer()
		fill(b, p+"/tree", n)
		unix.Sync()
		b.StartTimer()
		t0 := nanotime()
		files, _, err := d.RemoveTree(b.Context(), "tree", plain)
		ours = append(ours, float64(nanotime()-t0))
		b.StopTimer()
		if err != nil || files != n {
			b.Fatalf("%d %v", files, err)
		}
		fill(b, p+"/tree", n)
		unix.Sync()
		t0 = nanotime()
		must(b, exec.Command(rm, "-rf", p+"/tree").Run())
		theirs = append(theirs, float64(nanotime()-t0))
		b.StartTimer()
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	b.ReportMetric(ours[len(ours)/2]/1e6, "ours-ms")
	b.ReportMetric(theirs[len(theirs)/2]/1e6, "rm-ms")
	b.ReportMetric(ours[len(ours)/2]/theirs[len(theirs)/2], "x-rm")
}

func nanotime() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
