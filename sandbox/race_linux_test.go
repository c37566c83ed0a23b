package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// TestRacesStayInside: a command that rewrites a path in its memory, or swaps a
// directory for a link, while the supervisor looks, reaches nothing outside:
// Landlock holds what protect "checked" lets go on. (A protected path inside
// can be reached in this way; the report of each start says so, and the test
// says how often.)
func TestRacesStayInside(t *testing.T) {
	l := newLab(t)
	l.repository(l.W)
	tries := 10000
	if soak() {
		tries = 1000000
	}
	config := l.W + "/.git/config"
	original, _ := os.ReadFile(config)
	write(t, l.O+"/f", "outside\n", 0o644)
	before, beside := snapshot(t, l.O), l.host(`ls -A "$W/.."`)
	for _, how := range []string{"memory", "links", "protected"} {
		r := l.run(l.fence(fence.WorkspaceWrite), fmt.Sprintf(`"$TOOL" tool race %s "$W" "$O" %d`, how, tries))
		if r.code() != 0 {
			t.Fatalf("%s: %v", how, r)
		}
		if got := l.host(`ls -A "$W/.."`); got != beside {
			t.Fatalf("%s: names beside the workspace: %s", how, got)
		}
		if after := snapshot(t, l.O); after != before {
			t.Fatalf("%s: outside changed\n%s\n%s", how, before, after)
		}
		for _, d := range r.Denials {
			// A path that was read in the middle of its change may lead anywhere,
			// but not to a place that is allowed.
			if how != "protected" && fence.PathCovers(l.W, d.Path) {
				t.Errorf("%s: denial of %s", how, d.Path)
			}
		}
		t.Logf("%s: %s", how, strings.TrimSpace(r.stdout))
		if err := os.WriteFile(config, original, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func init() {
	// race HOW W O N: N tries to write outside W while what a path means changes.
	tools["race"] = func(a []string) error {
		how, w, o := a[0], a[1], a[2]
		n, err := strconv.Atoi(a[3])
		if err != nil {
			return err
		}
		in, out := w+"/inside", o+"/f"
		if how == "protected" {
			out = w + "/.git/config"
		}
		if how == "links" {
			if err := os.Mkdir(w+"/dir", 0o755); err != nil {
				return err
			}
			if err := os.Symlink(o, w+"/link"); err != nil {
				return err
			}
		}
		// Both spellings have one length: the last bytes differ.
		long := max(len(in), len(out))
		pad := func(p string) []byte {
			dir, name := filepath.Split(p)
			return append([]byte(dir+strings.Repeat("/", long-len(p))+name), 0)
		}
		inside, outside := pad(in), pad(out)
		path := append([]byte(nil), inside...)
		var stop atomic.Bool
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for !stop.Load() {
				if how == "links" {
					_ = unix.Renameat2(unix.AT_FDCWD, w+"/dir", unix.AT_FDCWD, w+"/link", unix.RENAME_EXCHANGE)
					continue
				}
				copy(unsafe.Slice((*byte)(unsafe.Pointer(&path[0])), len(path)), outside)
				copy(unsafe.Slice((*byte)(unsafe.Pointer(&path[0])), len(path)), inside)
			}
		}()
		opened, refused, reached := 0, 0, 0
		for i := range n {
			var fd uintptr
			var e unix.Errno
			if how == "links" {
				var h int
				h, err = unix.Open(fmt.Sprintf("%s/dir/n%d", w, i%10), unix.O_CREAT|unix.O_WRONLY, 0o644)
				fd = uintptr(h)
				e, _ = err.(unix.Errno)
			} else {
				fd, _, e = unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&path[0])), unix.O_WRONLY|unix.O_CREAT, 0o644, 0, 0)
			}
			if e != 0 {
				refused++
				continue
			}
			opened++
			if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && name == out {
				reached++
			}
			_, _ = unix.Write(int(fd), []byte("x"))
			_ = unix.Close(int(fd))
		}
		stop.Store(true)
		<-ended
		fmt.Printf("%d tries, %d opened, %d refused, %d reached what is not allowed\n", n, opened, refused, reached)
		return nil
	}
}

// TestDeadSupervisor: when it ends, notified calls fail and never pass; the
// tree can still be ended.
func TestDeadSupervisor(t *testing.T) {
	l := newLab(t)
	write(t, l.O+"/f", "outside\n", 0o644)
	_ = unix.Mkfifo(l.W+"/go", 0o600)
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `echo ready; read x < go; echo y > in; echo $?; rm -f $O/f; echo $?; chmod 600 $O/f; echo $?; cat $O/f; sleep 1000`))
	eventually(t, "it is ready", func() bool { out, _ := outputOf(p); return out != "" })
	sandbox.StopSupervisor(p)
	f, err := os.OpenFile(l.W+"/go", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "go")
	_ = f.Close()
	eventually(t, "it has tried", func() bool { out, _ := outputOf(p); return strings.Contains(out, "outside") })
	out, errs := outputOf(p)
	if out != "ready\n1\n1\n1\noutside\n" || !strings.Contains(errs, "not implemented") {
		t.Errorf("%q\n%s", out, errs)
	}
	absent(t, l.W+"/in")
	content(t, l.O+"/f", "outside\n")
	p.Kill()
	select {
	case <-p.Over():
	case <-time.After(patience):
		t.Error("the tree was not ended")
	}
	if st, err := p.Wait(context.Background()); err != nil || st.Signal != "SIGKILL" || len(st.Denials) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}
