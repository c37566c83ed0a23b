package anchor_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// tempDir is a canonical temporary directory and a handle on it.
func tempDir(t testing.TB) (string, *anchor.Dir) {
	t.Helper()
	p, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p, openDir(t, p)
}

func openDir(t testing.TB, p string) *anchor.Dir {
	t.Helper()
	d, err := anchor.OpenDir(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenDirAndWalkFollowNoLink(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.MkdirAll(p+"/a/b/c", 0o755))
	must(t, os.WriteFile(p+"/a/file", nil, 0o644))
	must(t, os.Symlink("b", p+"/a/rel"))
	must(t, os.Symlink(p+"/a/b", p+"/a/abs"))
	must(t, os.Symlink("nowhere", p+"/a/dangling"))
	must(t, os.Symlink("loop", p+"/a/loop"))
	for _, c := range []struct {
		rel string
		err error
	}{
		{"a", nil}, {"a/b/c", nil}, {".", nil},
		{"a/rel", syscall.ELOOP}, {"a/rel/c", syscall.ELOOP}, {"a/abs", syscall.ELOOP},
		{"a/abs/c", syscall.ELOOP}, {"a/dangling", syscall.ELOOP}, {"a/loop/x", syscall.ELOOP},
		{"a/file", syscall.ENOTDIR}, {"a/file/x", syscall.ENOTDIR},
		{"a/none", syscall.ENOENT}, {"none/none", syscall.ENOENT},
		{"", syscall.EINVAL}, {"/", syscall.EINVAL}, {"/a", syscall.EINVAL}, {"a/", syscall.EINVAL},
		{"..", syscall.EINVAL}, {"a/../a", syscall.EINVAL}, {"a//b", syscall.EINVAL}, {"./a", syscall.EINVAL}, {"a\x00b", syscall.EINVAL},
	} {
		s, err := d.Walk(c.rel)
		checkErr(t, "walk "+c.rel, err, c.err)
		if err == nil {
			s.Close()
		}
		if c.rel == "" || c.rel[0] == '/' {
			continue
		}
		s, err = anchor.OpenDir(p + "/" + c.rel)
		if c.rel == "." {
			checkErr(t, "open unclean", err, syscall.EINVAL)
			continue
		}
		checkErr(t, "open "+c.rel, err, c.err)
		if err == nil {
			s.Close()
		}
	}
	for _, bad := range []string{"", "relative", "/a/../b", "/a/", "/proc/self/cwd", "/proc/self/root/etc"} {
		if s, err := anchor.OpenDir(bad); err == nil {
			s.Close()
			t.Errorf("OpenDir(%q) succeeded", bad)
		}
	}
	must(t, openDir(t, "/").Close())
}

func checkErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil && got != nil) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
	var pe *fs.PathError
	if got != nil && !errors.As(got, &pe) {
		t.Errorf("%s: %T is no *fs.PathError", what, got)
	}
}

func TestEveryNameIsChecked(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.WriteFile(p+"/f", []byte("x"), 0o644))
	f, err := os.Open(p + "/f")
	must(t, err)
	defer f.Close()
	for _, name := range []string{"", ".", "..", "a/b", "/", "/etc", "a\x00", "../x", "f/"} {
		for op, err := range map[string]error{
			"open":     second(d.Open(name, os.O_RDONLY, 0)),
			"create":   second(d.Open(name, os.O_CREATE|os.O_WRONLY, 0o600)),
			"lstat":    second(d.Lstat(name)),
			"mkdir":    d.Mkdir(name, 0o700),
			"unlink":   d.Unlink(name),
			"rmdir":    d.Rmdir(name),
			"symlink":  d.Symlink("x", name),
			"readlink": second(d.Readlink(name)),
			"chmod":    d.Chmod(name, 0o600),
			"linkfile": d.LinkFile(f, name),
			"link1":    d.Link(name, d, "new"),
			"link2":    d.Link("f", d, name),
			"rename1":  d.Rename(name, d, "new", anchor.Replace),
			"rename2":  d.Rename("f", d, name, anchor.Replace),
			"mount":    second(d.IsMountPoint(name)),
			"remove":   third(d.RemoveTree(context.Background(), name, anchor.RemoveOptions{})),
			"last":     third(d.RemoveTree(context.Background(), "none", anchor.RemoveOptions{Last: name + "/"})),
		} {
			checkErr(t, op+" "+name, err, syscall.EINVAL)
		}
	}
	es, err := os.ReadDir(p)
	must(t, err)
	if len(es) != 1 {
		t.Errorf("something was made: %v", es)
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

func TestReadDir(t *testing.T) {
	p, d := tempDir(t)
	want := []string{"dir", "link"}
	must(t, os.Mkdir(p+"/dir", 0o755))
	must(t, os.Symlink("dir", p+"/link"))
	for i := range 3000 {
		n := "f" + strings.Repeat("x", i%200) + string(rune('a'+i%26)) + string(rune('0'+i/300)) + string(rune('A'+i/60))
		must(t, os.WriteFile(p+"/"+n, nil, 0o644))
		want = append(want, n)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	all, err := d.ReadDir(0)
	must(t, err)
	var got []string
	for _, e := range all {
		got = append(got, e.Name)
		fi, err := os.Lstat(p + "/" + e.Name)
		must(t, err)
		isDir, isLink := e.Type == anchor.TypeDir, e.Type == anchor.TypeSymlink
		if isDir != fi.IsDir() || isLink != (fi.Mode()&fs.ModeSymlink != 0) {
			t.Errorf("%s: type %o", e.Name, e.Type)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %d names, want %d", len(got), len(want))
	}
	some, err := d.ReadDir(5)
	must(t, err)
	if len(some) != 5 {
		t.Errorf("ReadDir(5) gave %d", len(some))
	}
	s, err := d.Stream()
	must(t, err)
	s.Close()
	if _, err := s.Next(1); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Next after Close: %v", err)
	}
}

func TestUseAfterClose(t *testing.T) {
	_, d := tempDir(t)
	must(t, d.Close())
	checkErr(t, "walk", second(d.Walk("a")), fs.ErrClosed)
	checkErr(t, "open", second(d.Open("a", os.O_RDONLY, 0)), fs.ErrClosed)
	checkErr(t, "stat", second(d.Stat()), fs.ErrClosed)
	checkErr(t, "remove", third(d.RemoveTree(context.Background(), "a", anchor.RemoveOptions{})), fs.ErrClosed)
}
