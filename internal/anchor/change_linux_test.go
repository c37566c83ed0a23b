//go:build !portable

package anchor_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// withFallback runs a test on the preferred system calls and without them.
func withFallback(t *testing.T, f func(t *testing.T)) {
	t.Run("openat2", f)
	t.Run("fallback", func(t *testing.T) {
		anchor.ForceFallback(true)
		defer anchor.ForceFallback(false)
		f(t)
	})
}

func TestWalkFallback(t *testing.T) {
	anchor.ForceFallback(true)
	defer anchor.ForceFallback(false)
	TestOpenDirAndWalkFollowNoLink(t)
}

func TestNoOperationFollowsTheLastName(t *testing.T) {
	withFallback(t, func(t *testing.T) {
		p, d := tempDir(t)
		out := t.TempDir()
		must(t, os.WriteFile(out+"/precious", []byte("keep"), 0o644))
		must(t, os.Symlink(out+"/precious", p+"/file"))
		must(t, os.Symlink(out, p+"/dir"))
		must(t, os.Symlink(out+"/new", p+"/dangling"))
		must(t, os.Symlink("/proc/self/fd/0", p+"/magic"))

		for _, flags := range []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_TRUNC} {
			for _, n := range []string{"file", "dir", "dangling", "magic"} {
				checkErr(t, "open "+n, second(d.Open(n, flags, 0o600)), syscall.ELOOP)
			}
		}
		checkErr(t, "create", second(d.Open("dangling", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)), syscall.EEXIST)
		checkErr(t, "chmod", d.Chmod("file", 0o777), syscall.ELOOP)
		checkErr(t, "chmod", d.Chmod("dir", 0o777), syscall.ELOOP)
		checkErr(t, "mkdir", d.Mkdir("dangling", 0o700), syscall.EEXIST)
		checkErr(t, "mkdirall", second(d.MkdirAll("dir/sub", 0o700)), syscall.ELOOP)
		checkErr(t, "mkdirall", second(d.MkdirAll("dangling/sub", 0o700)), syscall.ELOOP)
		checkErr(t, "mkdirall", second(d.MkdirAll("dangling", 0o700)), syscall.ELOOP)
		checkErr(t, "rmdir", d.Rmdir("dir"), syscall.ENOTDIR)
		checkErr(t, "remove tree", third(d.RemoveTree(t.Context(), "dir", anchor.RemoveOptions{})), syscall.ELOOP)
		if i, err := d.Lstat("file"); err != nil || !i.IsSymlink() {
			t.Errorf("Lstat: %+v %v", i, err)
		}
		if s, err := d.Readlink("file"); err != nil || s != out+"/precious" {
			t.Errorf("Readlink: %q %v", s, err)
		}
		must(t, d.Link("file", d, "hard"))
		must(t, d.Rename("hard", d, "renamed", anchor.NoReplace))
		for _, n := range []string{"file", "dir", "dangling", "magic", "renamed"} {
			must(t, d.Unlink(n))
		}
		fi, err := os.Stat(out + "/precious")
		must(t, err)
		if fi.Mode() != 0o644 || fi.Size() != 4 {
			t.Errorf("precious is %v, %d bytes", fi.Mode(), fi.Size())
		}
		es, _ := os.ReadDir(out)
		if len(es) != 1 {
			t.Errorf("something was made outside: %v", es)
		}
	})
}

func TestOpenOfAFIFODoesNotHang(t *testing.T) {
	p, d := tempDir(t)
	must(t, unix.Mkfifo(p+"/fifo", 0o600))
	f, err := d.Open("fifo", os.O_RDONLY, 0)
	must(t, err)
	defer f.Close()
	i, err := anchor.StatFile(f)
	must(t, err)
	if i.Type() != anchor.TypeFIFO {
		t.Errorf("type %o", i.Type())
	}
	checkErr(t, "write side", second(d.Open("fifo2", os.O_WRONLY, 0)), syscall.ENOENT)
}

func TestStatAgreesWithOs(t *testing.T) {
	withFallback(t, func(t *testing.T) {
		p, d := tempDir(t)
		must(t, os.WriteFile(p+"/f", []byte("hello"), 0o600))
		must(t, os.Chmod(p+"/f", 0o4750))
		must(t, os.Chmod(p+"/f", 0o750|fs.ModeSetuid))
		must(t, os.Link(p+"/f", p+"/g"))
		var st unix.Stat_t
		must(t, unix.Stat(p+"/f", &st))
		i, err := d.Lstat("f")
		must(t, err)
		f, err := d.Open("f", os.O_RDONLY, 0)
		must(t, err)
		defer f.Close()
		j, err := anchor.StatFile(f)
		must(t, err)
		if i != j {
			t.Errorf("by name %+v, by handle %+v", i, j)
		}
		if i.Dev != st.Dev || i.Ino != st.Ino || i.Mode != st.Mode || i.Nlink != 2 || i.UID != st.Uid || i.GID != st.Gid ||
			i.Size != 5 || i.Mtime != st.Mtim.Nano() || i.Ctime != st.Ctim.Nano() || i.MountID == 0 || i.Perm() != 0o4750 {
			t.Errorf("%+v\n%+v", i, st)
		}
		self, err := d.Stat()
		must(t, err)
		if !self.IsDir() || !self.SameMount(i) || self.SameFile(i) {
			t.Errorf("directory %+v", self)
		}
	})
}

func TestRename(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.MkdirAll(p+"/a/sub", 0o755))
	must(t, os.MkdirAll(p+"/b", 0o755))
	a, err := d.Walk("a")
	must(t, err)
	defer a.Close()
	b, err := d.Walk("b")
	must(t, err)
	defer b.Close()
	must(t, os.WriteFile(p+"/a/x", []byte("x"), 0o644))
	must(t, os.WriteFile(p+"/b/y", []byte("y"), 0o644))

	checkErr(t, "noreplace", a.Rename("x", b, "y", anchor.NoReplace), syscall.EEXIST)
	checkErr(t, "exchange", a.Rename("x", b, "none", anchor.Exchange), syscall.ENOENT)
	checkErr(t, "unknown", a.Rename("x", b, "y", anchor.RenameHow(9)), syscall.EINVAL)
	must(t, a.Rename("x", b, "y", anchor.Exchange))
	content(t, p+"/a/x", "y")
	content(t, p+"/b/y", "x")
	must(t, a.Rename("x", b, "y", anchor.Replace))
	content(t, p+"/b/y", "y")
	must(t, b.Rename("y", a, "z", anchor.NoReplace))
	content(t, p+"/a/z", "y")

	sub, err := a.Walk("sub")
	must(t, err)
	defer sub.Close()
	err = d.Rename("a", sub, "a", anchor.NoReplace)
	checkErr(t, "into itself", err, syscall.EINVAL)
	checkErr(t, "into itself", err, errors.ErrUnsupported)
}

func content(t *testing.T, p, want string) {
	t.Helper()
	if b, err := os.ReadFile(p); err != nil || string(b) != want {
		t.Errorf("%s: %q %v, want %q", p, b, err, want)
	}
}

func TestUnnamedFile(t *testing.T) {
	p, d := tempDir(t)
	f, err := d.OpenUnnamed(0o640)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("SKIP: no unnamed files on this file system")
	}
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("whole")
	must(t, err)
	if es, _ := d.ReadDir(0); len(es) != 0 {
		t.Errorf("it has a name: %v", es)
	}
	must(t, d.LinkFile(f, "named"))
	content(t, p+"/named", "whole")
	checkErr(t, "again", d.LinkFile(f, "named"), syscall.EEXIST)

	if os.Geteuid() != 0 {
		return // /proc is not writable for others, and says that first
	}
	proc, err := anchor.OpenDir("/proc")
	must(t, err)
	defer proc.Close()
	if _, err := proc.OpenUnnamed(0o600); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unnamed file in /proc: %v", err)
	}
}

func TestMkdirAllAndChmod(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.WriteFile(p+"/file", nil, 0o600))
	s, err := d.MkdirAll("a/b/c", 0o700)
	must(t, err)
	if s.Path() != p+"/a/b/c" {
		t.Errorf("path %s", s.Path())
	}
	must(t, s.Sync())
	must(t, s.Close())
	must(t, os.Chmod(p+"/a", 0o755))
	s, err = d.MkdirAll("a/b/d", 0o700)
	must(t, err)
	must(t, s.Close())
	if fi, _ := os.Stat(p + "/a"); fi.Mode().Perm() != 0o755 {
		t.Errorf("a is %v", fi.Mode())
	}
	checkErr(t, "file in the way", second(d.MkdirAll("file/x", 0o700)), syscall.ENOTDIR)
	checkErr(t, "dots", second(d.MkdirAll("a/../../x", 0o700)), syscall.EINVAL)
	must(t, d.Chmod("file", 0o2751))
	i, err := d.Lstat("file")
	must(t, err)
	if i.Perm() != 0o2751 {
		t.Errorf("mode %o", i.Perm())
	}
	checkErr(t, "missing", d.Chmod("none", 0o600), syscall.ENOENT)

	must(t, os.Mkdir(p+"/closed", 0))
	closed, err := d.Walk("closed")
	must(t, err)
	defer closed.Close()
	must(t, closed.ChmodSelf(0o711))
	if fi, _ := os.Stat(p + "/closed"); fi.Mode().Perm() != 0o711 {
		t.Errorf("closed is %v", fi.Mode())
	}
	must(t, closed.CanWrite())
	must(t, closed.ChmodSelf(0o511))
	if err := closed.CanWrite(); os.Geteuid() != 0 && !errors.Is(err, syscall.EACCES) {
		t.Errorf("CanWrite: %v", err)
	}

	// Two that make the same path at once both succeed.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := d.MkdirAll("r/a/c/e", 0o700)
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
}

func TestSearchableButUnreadableDirectory(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.MkdirAll(p+"/blind/in", 0o755))
	must(t, os.WriteFile(p+"/blind/in/f", []byte("x"), 0o644))
	must(t, os.Chmod(p+"/blind", 0o311))
	defer os.Chmod(p+"/blind", 0o755)
	s, err := d.Walk("blind/in")
	must(t, err)
	defer s.Close()
	b, err := d.Walk("blind")
	must(t, err)
	defer b.Close()
	must(t, b.Mkdir("new", 0o700))
	if os.Geteuid() != 0 {
		checkErr(t, "list", second(b.ReadDir(0)), syscall.EACCES)
	}
	must(t, os.Chmod(p+"/blind", 0o600))
	if os.Geteuid() != 0 {
		checkErr(t, "walk", second(d.Walk("blind/in")), syscall.EACCES)
	}
}

func TestHandleFollowsTheDirectoryNotThePath(t *testing.T) {
	p, d := tempDir(t)
	out := t.TempDir()
	must(t, os.Mkdir(p+"/dir", 0o755))
	s, err := d.Walk("dir")
	must(t, err)
	defer s.Close()
	must(t, os.Rename(p+"/dir", p+"/moved"))
	must(t, os.Symlink(out, p+"/dir"))
	must(t, s.Mkdir("x", 0o700))
	if es, _ := os.ReadDir(out); len(es) != 0 {
		t.Errorf("made outside: %v", es)
	}
	if _, err := os.Stat(p + "/moved/x"); err != nil {
		t.Error(err)
	}
	f, err := s.File()
	must(t, err)
	defer f.Close()
	if _, err := os.Stat(filepath.Join("/proc/self/fd", "0")); err == nil {
		var st unix.Stat_t
		must(t, unix.Fstatat(int(f.Fd()), "x", &st, 0))
	}
}

// TestExchangeRace swaps a directory and a link to a precious one while walks,
// opens and creations go through the name: whatever they reach must never be
// the precious one.
func TestExchangeRace(t *testing.T) {
	withFallback(t, func(t *testing.T) {
		p, d := tempDir(t)
		out := t.TempDir()
		must(t, os.WriteFile(out+"/secret", []byte("secret"), 0o644))
		must(t, os.Mkdir(out+"/deep", 0o755))
		must(t, os.WriteFile(out+"/deep/secret", []byte("secret"), 0o644))
		must(t, os.MkdirAll(p+"/a/dir/deep", 0o755))
		must(t, os.WriteFile(p+"/a/dir/secret", []byte("inside"), 0o644))
		must(t, os.WriteFile(p+"/a/dir/deep/secret", []byte("inside"), 0o644))
		must(t, os.Symlink(out, p+"/a/link"))
		must(t, os.WriteFile(p+"/a/plain", []byte("inside"), 0o644))
		must(t, os.Symlink(out+"/secret", p+"/a/flink"))

		var stop atomic.Bool
		var swaps atomic.Int64
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop.Store(true)
		wg.Go(func() {
			for !stop.Load() {
				unix.Renameat2(unix.AT_FDCWD, p+"/a/dir", unix.AT_FDCWD, p+"/a/link", unix.RENAME_EXCHANGE)
				unix.Renameat2(unix.AT_FDCWD, p+"/a/plain", unix.AT_FDCWD, p+"/a/flink", unix.RENAME_EXCHANGE)
				swaps.Add(2)
			}
		})
		tries := 50_000 // in each of the two ways
		if testing.Short() {
			tries = 10_000
		}
		reached, refused := 0, 0
		var buf [16]byte
		end := time.Now().Add(30 * time.Second)
		for i := range tries {
			if i%1000 == 0 && time.Now().After(end) {
				tries = i
				break
			}
			rel := []string{"a/dir", "a/dir/deep", "a"}[i%3]
			name := []string{"secret", "secret", "plain"}[i%3]
			s, err := d.Walk(rel)
			if err != nil {
				refused++
				continue
			}
			f, err := s.Open(name, os.O_RDONLY, 0)
			if err == nil {
				n, _ := f.Read(buf[:])
				if string(buf[:n]) != "inside" {
					t.Fatalf("try %d read %q through %s", i, buf[:n], rel)
				}
				f.Close()
				reached++
			} else {
				refused++
			}
			if w, err := s.Open("made", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err == nil {
				w.Close()
			}
			s.Close()
		}
		t.Logf("%d tries: reached %d, refused %d, %d swaps", tries, reached, refused, swaps.Load())
		if reached == 0 || refused == 0 {
			t.Errorf("no race: reached %d, refused %d", reached, refused)
		}
		for _, bad := range []string{"/made", "/deep/made"} {
			if _, err := os.Lstat(out + bad); err == nil {
				t.Errorf("%s was made outside", bad)
			}
		}
	})
}
