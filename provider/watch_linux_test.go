package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/providertest"
)

// What other systems use keeps the contract of the watch too, as far as this
// system can show it.
func TestWatchByPath(t *testing.T) {
	providertest.RunWatch(t, func(t *testing.T) provider.Provider {
		l := newLocal(t)
		l.WatchByPath()
		return l
	})
}

// told is what a watch has told.
type told struct {
	t    *testing.T
	mu   sync.Mutex
	told []provider.Change
	more chan struct{} // capacity 1
}

func newTold(t *testing.T) *told { return &told{t: t, more: make(chan struct{}, 1)} }

func (r *told) receive(c provider.Change) {
	r.mu.Lock()
	r.told = append(r.told, c)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// lines gives the changes from the given one on, as "kind name".
func (r *told) lines(from int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, c := range r.told[from:] {
		out = append(out, strings.TrimSpace(string(c.Kind)+" "+c.Name))
	}
	return out
}

// until waits until a line was told and gives all of them.
func (r *told) until(line string) []string {
	r.t.Helper()
	patience := time.NewTimer(30 * time.Second)
	defer patience.Stop()
	for seen := 0; ; {
		told := r.lines(seen)
		if slices.Contains(told, line) {
			return r.lines(0)
		}
		seen += len(told)
		select {
		case <-r.more:
		case <-patience.C:
			r.t.Fatalf("%q was not told; told were %q", line, r.lines(0))
		}
	}
}

// beyond waits for more than n changes.
func (r *told) beyond(n int) {
	r.t.Helper()
	patience := time.NewTimer(30 * time.Second)
	defer patience.Stop()
	for len(r.lines(0)) <= n {
		select {
		case <-r.more:
		case <-patience.C:
			r.t.Fatalf("no further change was told; told were %q", r.lines(0))
		}
	}
}

func (p *place) watch(name string, changed func(provider.Change)) provider.Watch {
	p.t.Helper()
	w, err := p.l.Watch(p.t.Context(), p.f, p.target(name), changed)
	must(p.t, err)
	p.t.Cleanup(func() { w.Close() })
	return w
}

func (p *place) mark(name string) { p.t.Helper(); must(p.t, os.Symlink("none", p.W+"/"+name)) }

// nothingLeft checks that a Local watches nothing and that the kernel does
// neither.
func nothingLeft(t *testing.T, l *provider.Local) {
	t.Helper()
	if w, d := l.WatchState(); w != 0 || d != 0 {
		t.Errorf("%d watches of %d directories are left", w, d)
	}
}

// instances counts the inotify instances of this process.
func instances(t *testing.T) int {
	t.Helper()
	es, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	n := 0
	for _, e := range es {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// The kernel shows a file without a name as "#" and its number.
func TestWatchUnnamedFile(t *testing.T) {
	for _, how := range []string{"local", "by path"} {
		t.Run(how, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			if how == "by path" {
				p.l.WatchByPath()
			}
			r := newTold(t)
			p.watch(".", r.receive)
			fd, err := unix.Open(p.W, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
			if err != nil {
				t.Skip("SKIP: no unnamed files here")
			}
			var st unix.Stat_t
			must(t, unix.Fstat(fd, &st))
			_, err = unix.Write(fd, []byte("x"))
			must(t, err)
			must(t, unix.Fchmod(fd, 0o640))
			p.mark("between")
			r.until("changed between")
			must(t, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, p.W+"/named", unix.AT_SYMLINK_FOLLOW))
			must(t, unix.Close(fd))
			p.mark("last")
			if got := r.until("changed last"); !slices.Equal(got, []string{"changed between", "changed named", "changed last"}) {
				t.Errorf("told were %q", got)
			}
			// A file that really has such a name.
			own := fmt.Sprintf("#%d", st.Ino)
			p.put(own, "x")
			r.until("changed " + own)
		})
	}
}

func TestWatchOfAWriteWithAMode(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	r := newTold(t)
	p.watch(".", r.receive)
	mode := uint32(0o640)
	_, err := p.l.WriteText(t.Context(), p.f, p.target("new"), "x", provider.WriteOptions{Mode: &mode})
	must(t, err)
	p.mark("last")
	for _, line := range r.until("changed last") {
		if line != "changed new" && line != "changed last" {
			t.Errorf("told was %q", line)
		}
	}
}

// The kernel's queue is made to overflow by keeping its reader from reading.
func TestWatchOverflow(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	var queue int
	_, err = fmt.Sscan(string(b), &queue)
	must(t, err)
	if queue > 1<<16 {
		t.Skipf("SKIP: a queue of %d events is too long to fill", queue)
	}
	p := newPlace(t, "", provider.Config{})
	must(t, os.Mkdir(p.W+"/gone", 0o755))
	dir, file, gone, idle := newTold(t), newTold(t), newTold(t), newTold(t)
	p.watch(".", dir.receive)
	p.watch("f", file.receive)
	p.watch("gone", gone.receive)
	p.watch(p.O, idle.receive)

	release := p.l.HoldWatches()
	p.mark("first")
	// Two names in turn: equal events that follow each other are merged. The
	// reader has taken at most a buffer of 64 KiB.
	p.put("a", "")
	p.put("b", "")
	for i := range queue/2 + 4096 {
		must(t, os.Chmod(p.W+"/a", os.FileMode(0o600+i%2)))
		must(t, os.Chmod(p.W+"/b", os.FileMode(0o600+i%2)))
	}
	p.put("lost", "")
	must(t, os.Mkdir(p.O+"/lost", 0o755))
	// Removed with nobody told.
	must(t, os.Remove(p.W+"/gone"))
	release()

	for _, r := range []*told{dir, file, idle} {
		r.until("overflow")
		told := r.until("changed")
		// Before it at most what the reader had taken.
		if i := slices.Index(told, "overflow"); i+1 == len(told) || told[i+1] != "changed" {
			t.Errorf("after the overflow: %q", told[i:])
		}
	}
	if c := gone.until("error"); len(c) != 1 || provider.CodeOf(gone.told[0].Err) != provider.CodeNotFound {
		t.Errorf("the removed directory: %q", c)
	}
	// It goes on.
	p.mark("after")
	dir.until("changed after")
	n := len(file.lines(0))
	p.put("f", "x")
	file.beyond(n)
}

func TestWatchForgetsNamesWhenThereAreTooMany(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	slow, other := newTold(t), newTold(t)
	enter, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.watch(".", func(c provider.Change) {
		once.Do(func() { close(enter); <-leave })
		slow.receive(c)
	})
	p.mark("first")
	<-enter
	p.watch(".", other.receive)
	for i := range 1025 {
		p.mark(fmt.Sprintf("n%d", i))
	}
	p.mark("last")
	other.until("changed last")
	close(leave)
	if told := slow.until("changed"); !slices.Equal(told, []string{"changed first", "overflow", "changed"}) {
		t.Errorf("told were %q", told)
	}
	p.mark("after")
	slow.until("changed after")
}

// Things change between the watch and the look.
func TestWatchFirstThenLook(t *testing.T) {
	for _, tt := range []struct {
		name, at string
		disk, do func(p *place)
		change   string // made afterwards
		told     string
	}{
		{"the directory was replaced", "d", func(p *place) { must(p.t, os.Mkdir(p.W+"/d", 0o755)) },
			func(p *place) { must(p.t, os.Rename(p.W+"/d", p.W+"/e")); must(p.t, os.Mkdir(p.W+"/d", 0o755)) }, "d/f", "changed f"},
		{"the directory became a link", "d", func(p *place) { must(p.t, os.Mkdir(p.W+"/d", 0o755)) },
			func(p *place) { must(p.t, os.Rename(p.W+"/d", p.W+"/e")); must(p.t, os.Symlink("e", p.W+"/d")) }, "e/f", "changed f"},
		{"the directory became a file", "d", func(p *place) { must(p.t, os.Mkdir(p.W+"/d", 0o755)) },
			func(p *place) { must(p.t, os.Rename(p.W+"/d", p.W+"/e")); p.put("d", "") }, "d", "changed"},
		{"the missing became a directory", "d", func(p *place) {},
			func(p *place) { must(p.t, os.Mkdir(p.W+"/d", 0o755)) }, "d/f", "changed f"},
		{"the parent was replaced", "d/f", func(p *place) { must(p.t, os.Mkdir(p.W+"/d", 0o755)) },
			func(p *place) { must(p.t, os.Rename(p.W+"/d", p.W+"/e")); must(p.t, os.Mkdir(p.W+"/d", 0o755)) }, "d/f", "changed"},
		{"the file became a link", "f", func(p *place) { p.put("f", "") },
			func(p *place) {
				must(p.t, os.Mkdir(p.W+"/e", 0o755))
				must(p.t, os.Rename(p.W+"/f", p.W+"/e/f"))
				must(p.t, os.Symlink("e/f", p.W+"/f"))
			}, "e/f", "changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			tt.disk(p)
			var once sync.Once
			p.l.SetHook(func(point string) {
				if point == "watched" {
					once.Do(func() { tt.do(p) })
				}
			})
			r := newTold(t)
			w := p.watch(tt.at, r.receive)
			before := len(r.lines(0))
			p.put(tt.change, "x")
			r.beyond(before)
			r.until(tt.told)
			must(t, w.Close())
			nothingLeft(t, p.l)
		})
	}
	t.Run("it never stands still", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		must(t, os.Mkdir(p.W+"/d", 0o755))
		n := 0
		p.l.SetHook(func(point string) {
			if point == "watched" {
				n++
				must(t, os.Rename(p.W+"/d", fmt.Sprintf("%s/e%d", p.W, n)))
				must(t, os.Mkdir(p.W+"/d", 0o755))
			}
		})
		_, err := p.l.Watch(t.Context(), p.f, p.target("d"), func(c provider.Change) { t.Errorf("told was %+v", c) })
		code(t, err, provider.CodeIOError)
		nothingLeft(t, p.l)
	})
	t.Run("cancelled between", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		p.l.SetHook(func(point string) {
			if point == "watched" {
				p.mark("f")
				cancel()
			}
		})
		_, err := p.l.Watch(ctx, p.f, p.target("."), func(c provider.Change) { t.Errorf("told was %+v", c) })
		code(t, err, provider.CodeAborted)
		nothingLeft(t, p.l)
		if n := instances(t); n != 0 {
			t.Errorf("%d instances are left", n)
		}
	})
}

// A thousand directories, one instance, and nothing left in the end.
func TestWatchThousand(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := newPlace(t, "", provider.Config{})
	const many = 1000
	rs := make([]*told, many)
	ws := make([]provider.Watch, many)
	for i := range many {
		must(t, os.Mkdir(fmt.Sprintf("%s/d%d", p.W, i), 0o755))
		rs[i] = newTold(t)
		ws[i] = p.watch(fmt.Sprintf("d%d", i), rs[i].receive)
	}
	if n := instances(t); n != 1 {
		t.Errorf("%d inotify instances", n)
	}
	for i := range many {
		p.mark(fmt.Sprintf("d%d/f%d", i, i))
	}
	for i, r := range rs {
		if told := r.until(fmt.Sprintf("changed f%d", i)); len(told) != 1 {
			t.Errorf("watch %d: %q", i, told)
		}
	}
	if w, d := p.l.WatchState(); w != many || d != many {
		t.Errorf("%d watches of %d directories", w, d)
	}
	// Half by hand, half with the provider.
	var wg sync.WaitGroup
	for _, w := range ws[:many/2] {
		wg.Go(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if w, d := p.l.WatchState(); w != many/2 || d != many/2 {
		t.Errorf("%d watches of %d directories", w, d)
	}
	must(t, p.l.Close())
	nothingLeft(t, p.l)
	if n := instances(t); n != 0 {
		t.Errorf("%d instances are left", n)
	}
	_, err := p.l.Watch(t.Context(), p.f, provider.Target{TargetKey: provider.TargetKey(p.W), DisplayPath: p.W}, func(provider.Change) {})
	code(t, err, provider.CodeIOError)
}

// Watches of the same few directories come and go while everything changes.
func TestWatchComeAndGo(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := newPlace(t, "", provider.Config{})
	const dirs = 3
	for i := range dirs {
		must(t, os.Mkdir(fmt.Sprintf("%s/d%d", p.W, i), 0o755))
	}
	rounds := 100
	if os.Getenv("WATTLE_SOAK") == "1" {
		rounds = 1000
	}
	stop := make(chan struct{})
	var noise, wg sync.WaitGroup
	noise.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.WriteFile(fmt.Sprintf("%s/d%d/noise", p.W, i%dirs), []byte("x"), 0o644)
		}
	})
	for g := range 4 {
		wg.Go(func() {
			for i := range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				r := newTold(t)
				dir := fmt.Sprintf("d%d", (g+i)%dirs)
				w, err := p.l.Watch(ctx, p.f, p.target(dir), r.receive)
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				name := fmt.Sprintf("f%d-%d", g, i)
				p.mark(dir + "/" + name)
				r.until("changed " + name)
				if i%2 == 0 {
					cancel()
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	close(stop)
	noise.Wait()
	nothingLeft(t, p.l)
	if n := instances(t); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := newPlace(t, "", provider.Config{})
	other := newTold(t)
	second := p.watch(".", other.receive)
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		r := newTold(t)
		_, err := p.l.Watch(ctx, p.f, p.target("."), r.receive)
		must(t, err)
		p.mark(fmt.Sprintf("a%d", i))
		r.until(fmt.Sprintf("changed a%d", i))
		cancel()
		n := len(r.lines(0))
		p.mark(fmt.Sprintf("b%d", i))
		other.until(fmt.Sprintf("changed b%d", i))
		if told := r.lines(n); len(told) > 0 {
			t.Errorf("told after the context had ended: %q", told)
		}
	}
	must(t, second.Close())
}

func TestWatchCloseWaitsForTheCall(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	p.watch("g", func(provider.Change) {}) // so that Close has nothing else to end
	enter, closed, left := make(chan struct{}), make(chan struct{}), false
	w := p.watch("f", func(provider.Change) {
		close(enter)
		// Detached: Close has ended the watch and has only to wait now.
		for n := 2; n > 1; n, _ = p.l.WatchState() {
			runtime.Gosched()
		}
		for range 1000 {
			runtime.Gosched()
		}
		select {
		case <-closed:
			t.Error("Close did not wait")
		default:
		}
		left = true
	})
	p.mark("f")
	<-enter
	must(t, w.Close())
	close(closed)
	if !left {
		t.Error("Close did not wait")
	}
}

func TestWatchLimit(t *testing.T) {
	p := newPlace(t, "", provider.Config{MaxWatches: 2})
	one := p.watch(".", func(provider.Change) {})
	p.watch("f", func(provider.Change) {})
	_, err := p.l.Watch(t.Context(), p.f, p.target("g"), func(provider.Change) {})
	code(t, err, provider.CodeIOError)
	var e *provider.Error
	if !errors.As(err, &e) || e.Errno != "ENOSPC" || !strings.Contains(e.Detail, "2 watches") {
		t.Errorf("%+v", e)
	}
	must(t, one.Close())
	p.watch("g", func(provider.Change) {})
}

func TestWatchBlind(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	for path, want := range map[string]string{
		p.W: "", p.W + "/f": "", "/proc": "proc:", "/proc/none": "proc:", "/sys": "sysfs:",
	} {
		if _, err := os.Lstat(filepath.Dir(path)); err != nil {
			continue
		}
		w := p.watch(path, func(provider.Change) {})
		if b := w.Blind(); (b == "") != (want == "") || !strings.HasPrefix(b, want) {
			t.Errorf("%s: %q", path, b)
		}
	}
}

// A file that something is mounted on changes without its directory.
func TestWatchOfAMountedFile(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	p.put("f", "below")
	must(t, os.WriteFile(p.O+"/other", nil, 0o644))
	if err := unix.Mount(p.O+"/other", p.W+"/f", "", unix.MS_BIND, ""); err != nil {
		t.Skip("SKIP: may not mount")
	}
	defer func() { must(t, unix.Unmount(p.W+"/f", unix.MNT_DETACH)) }()
	if b := p.watch("f", func(provider.Change) {}).Blind(); !strings.HasPrefix(b, "mount:") {
		t.Errorf("%q", b)
	}
	if b := p.watch("g", func(provider.Change) {}).Blind(); b != "" {
		t.Errorf("beside it: %q", b)
	}
}

// The file system goes away under a watch.
func TestWatchUnmounted(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	must(t, os.Mkdir(p.W+"/m", 0o755))
	if err := unix.Mount("watch", p.W+"/m", "tmpfs", 0, ""); err != nil {
		t.Skip("SKIP: may not mount")
	}
	mounted := true
	defer func() {
		if mounted {
			unix.Unmount(p.W+"/m", unix.MNT_DETACH)
		}
	}()
	r := newTold(t)
	p.watch("m", r.receive)
	must(t, unix.Unmount(p.W+"/m", 0))
	mounted = false
	r.until("error")
	if err := r.told[0].Err; provider.CodeOf(err) != provider.CodeNotFound {
		t.Error(err)
	}
}

// BenchmarkWatchTold is the time from the end of a change to the call.
func BenchmarkWatchTold(b *testing.B) {
	l, f, dir := benchLocal(b)
	path := dir + "/f"
	must(b, os.WriteFile(path, nil, 0o644))
	told := make(chan struct{}, 1)
	w, err := l.Watch(b.Context(), f, benchTarget(b, l, f, path), func(provider.Change) { told <- struct{}{} })
	must(b, err)
	defer w.Close()
	for i := 0; b.Loop(); i++ {
		must(b, os.Chmod(path, os.FileMode(0o600+i%2)))
		<-told
	}
}

// BenchmarkWatchBegin is a watch begun and ended, beside another one.
func BenchmarkWatchBegin(b *testing.B) {
	l, f, dir := benchLocal(b)
	none := func(provider.Change) {}
	w, err := l.Watch(b.Context(), f, benchTarget(b, l, f, dir), none)
	must(b, err)
	defer w.Close()
	must(b, os.Mkdir(dir+"/d", 0o755))
	t := benchTarget(b, l, f, dir+"/d")
	for b.Loop() {
		w, err := l.Watch(b.Context(), f, t, none)
		must(b, err)
		must(b, w.Close())
	}
}
