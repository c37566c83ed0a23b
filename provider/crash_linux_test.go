package provider_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

const crashEnv = "WATTLE_TEST_CRASH_DIR"

func crashContent(n int) string { return strings.Repeat(fmt.Sprintf("%07d\n", n%10_000_000), 4096) }

// TestCrashChild is no test: it is the process that TestKilledWriter kills. It
// tells a number when the content of that number is published.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashEnv)
	if dir == "" {
		return
	}
	p := newPlace(t, dir, provider.Config{})
	fmt.Println("ready")
	for n := 1; ; n++ {
		_, err := p.l.WriteText(context.Background(), p.f, p.target("f"), crashContent(n), provider.WriteOptions{})
		must(t, err)
		fmt.Println(n)
	}
}

// A file is its old content or its new content, whole, whatever dies when. What
// was told to be written is there; at most one hidden file is left.
func TestKilledWriter(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	leftovers := 0
	for round := range rounds {
		base := fastDir(t)
		c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestCrashChild$")
		c.Env = append(os.Environ(), crashEnv+"="+base)
		out, err := c.StdoutPipe()
		must(t, err)
		must(t, c.Start())
		lines := bufio.NewScanner(out)
		told := 0
		for lines.Scan() {
			if lines.Text() == "ready" {
				continue
			}
			if _, err := fmt.Sscan(lines.Text(), &told); err != nil {
				break
			}
			if told >= 3+round*7%50 {
				must(t, c.Process.Signal(syscall.SIGKILL))
			}
		}
		c.Wait()
		if told == 0 {
			t.Fatal("the child wrote nothing")
		}
		b, err := os.ReadFile(base + "/ws/f")
		must(t, err)
		var n int
		if _, err := fmt.Sscanf(string(b[:min(8, len(b))]), "%d", &n); err != nil || string(b) != crashContent(n) || n < told || n > told+1 {
			t.Errorf("round %d: %d bytes, content %d, told %d, %v", round, len(b), n, told, err)
		}
		es, err := os.ReadDir(base + "/ws")
		must(t, err)
		for _, e := range es {
			if e.Name() == "f" {
				continue
			}
			if leftovers++; !strings.Contains(e.Name(), provider.TempPrefix) || len(es) > 2 {
				t.Errorf("round %d: left %v", round, es)
			}
		}
	}
	t.Logf("%d kills, %d hidden files left", rounds, leftovers)
}

// E11: a new file shows no other name to a watcher; a replacement shows one
// hidden name at most, with the documented prefix, and no directory.
//
// The kernel itself reports writing to a file without a name under "#" and its
// inode number, which is no name that anybody could open.
func TestWatchersSeeLittle(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, p.W, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE)
	must(t, err)
	names := func() map[string]bool {
		out := map[string]bool{}
		buf := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil || n <= 0 {
				return out
			}
			for off := 0; off < n; {
				ev := (*unix.InotifyEvent)(unsafe.Pointer(&buf[off]))
				name := buf[off+unix.SizeofInotifyEvent : off+unix.SizeofInotifyEvent+int(ev.Len)]
				shown := strings.TrimRight(string(name), "\x00")
				if rest, unnamed := strings.CutPrefix(shown, "#"); !unnamed || strings.Trim(rest, "0123456789") != "" || ev.Mask&^unix.IN_CLOSE_WRITE != 0 {
					out[shown] = true
				}
				if ev.Mask&unix.IN_ISDIR != 0 {
					t.Errorf("a directory: %q", name)
				}
				off += unix.SizeofInotifyEvent + int(ev.Len)
			}
		}
	}
	_, err = p.l.WriteText(t.Context(), p.f, p.target("new.txt"), "x", provider.WriteOptions{})
	must(t, err)
	if got := names(); len(got) != 1 || !got["new.txt"] {
		t.Errorf("a create showed %v", got)
	}
	for what, do := range map[string]func() error{
		"write": func() error {
			_, err := p.l.WriteText(t.Context(), p.f, p.target("new.txt"), "y", provider.WriteOptions{})
			return err
		},
		"edit": func() error {
			_, err := p.l.EditText(t.Context(), p.f, p.target("new.txt"), provider.EditRequest{OldString: "", NewString: ""}, provider.EditOptions{})
			if provider.CodeOf(err) != provider.CodeEditNotFound {
				return err
			}
			_, err = p.l.EditText(t.Context(), p.f, p.target("new.txt"), provider.EditRequest{OldString: p.get("new.txt"), NewString: "z"}, provider.EditOptions{})
			return err
		},
	} {
		must(t, do())
		got := names()
		delete(got, "new.txt")
		for n := range got {
			if rest, ok := strings.CutPrefix(n, provider.TempPrefix); !ok || len(rest) != 16 || len(got) != 1 {
				t.Errorf("%s showed %v", what, got)
			}
		}
	}
}
