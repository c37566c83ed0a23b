package trash_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/internal/asuser"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// now is what every lab's clock says.
var now = time.Date(2024, 5, 6, 7, 8, 9, 0, time.Local)

// lab is a workspace and a home of its own, on one file system.
type lab struct {
	t testing.TB
	// Dir holds everything, W is the workspace, Data the data directory, T the
	// home trash, which is not there at first.
	Dir, W, Data, T string
	bin             *trash.Bin
}

func newLab(t testing.TB) *lab {
	t.Helper()
	dir, err := os.MkdirTemp(base, "lab")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	l := &lab{t: t, Dir: dir, W: dir + "/W", Data: dir + "/home/.local/share", T: dir + "/home/.local/share/Trash"}
	must(t, os.MkdirAll(l.W, 0o755))
	must(t, os.Mkdir(dir+"/home", 0o755))
	l.bin = openBin(t, l.Data)
	t.Cleanup(func() {
		l.bin.Close(context.Background())
		_ = filepath.Walk(dir, func(p string, fi fs.FileInfo, err error) error {
			if err == nil && fi.IsDir() {
				_ = os.Chmod(p, 0o755)
			}
			return nil
		})
		must(t, os.RemoveAll(dir))
	})
	return l
}

func openBin(t testing.TB, data string) *trash.Bin {
	t.Helper()
	b, err := trash.New(trash.Config{DataHome: data, UID: os.Geteuid(), Now: func() time.Time { return now }})
	must(t, err)
	return b
}

// put trashes a path as the provider would: its parent canonical, its identity
// taken first.
func put(ctx context.Context, b *trash.Bin, path string, across bool) (record.Entry, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return record.Entry{}, err
	}
	d, err := anchor.OpenDir(parent)
	if err != nil {
		return record.Entry{}, err
	}
	defer d.Close()
	name := filepath.Base(path)
	want, err := d.Lstat(name)
	if err != nil {
		return record.Entry{}, err
	}
	return b.Put(ctx, d, name, filepath.Join(parent, name), want, across)
}

func (l *lab) put(path string) record.Entry {
	l.t.Helper()
	e, err := put(context.Background(), l.bin, path, false)
	if err != nil {
		l.t.Fatalf("trash %s: %v", path, err)
	}
	return e
}

// list gives the entries of the lab's own trash directories, home and below
// Dir: other mounts of the machine may have entries too.
func (l *lab) list() []record.Entry {
	l.t.Helper()
	all, err := l.bin.List(context.Background())
	must(l.t, err)
	var own []record.Entry
	for _, e := range all.Entries {
		if strings.HasPrefix(e.TrashDir, l.Dir+"/") {
			own = append(own, e)
		}
	}
	for _, p := range all.Problems {
		if strings.HasPrefix(p.Path, l.Dir+"/") {
			l.t.Logf("problem: %s: %s", p.Path, p.Detail)
		}
	}
	return own
}

func (l *lab) problems() map[string]string {
	l.t.Helper()
	all, err := l.bin.List(context.Background())
	must(l.t, err)
	m := map[string]string{}
	for _, p := range all.Problems {
		if strings.HasPrefix(p.Path, l.Dir+"/") {
			m[strings.TrimPrefix(p.Path, l.Dir+"/")] = p.Detail
		}
	}
	return m
}

func (l *lab) restore(id string) string {
	l.t.Helper()
	r, err := l.bin.Restore(context.Background(), id, trash.RestoreOptions{})
	if err != nil {
		l.t.Fatalf("restore: %v", err)
	}
	return r.Path
}

// write makes a file with everything that must survive.
func (l *lab) write(path, text string) string {
	l.t.Helper()
	must(l.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(l.t, os.WriteFile(path, []byte(text), 0o644))
	dress(l.t, path, 0o640)
	return path
}

// dress gives a file or directory a mode, old times and an attribute.
func dress(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := unix.Setxattr(path, "user.wattle", []byte("kept\x00value"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	must(t, os.Chmod(path, mode))
	old := time.Date(2011, 12, 13, 14, 15, 16, 171819, time.UTC)
	must(t, os.Chtimes(path, old.Add(time.Hour), old))
}

// shot describes a path and everything beneath it: type, mode, times,
// attributes, content.
func shot(t testing.TB, path string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(path, func(p string, fi fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(path, p)
		fmt.Fprintf(&b, "%q %v %d", rel, fi.Mode(), fi.ModTime().UnixNano())
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			fmt.Fprintf(&b, " -> %q %v", to, err)
		case fi.Mode().IsRegular():
			c, err := os.ReadFile(p)
			fmt.Fprintf(&b, " %d %x %v", len(c), sha256.Sum256(c), err)
		}
		val := make([]byte, 100)
		if n, err := unix.Lgetxattr(p, "user.wattle", val); err == nil {
			fmt.Fprintf(&b, " %q", val[:n])
		}
		b.WriteByte('\n')
		return nil
	})
	must(t, err)
	return b.String()
}

// names lists every path beneath some directories, for "no residue".
func names(t testing.TB, dirs ...string) string {
	t.Helper()
	var all []string
	for _, d := range dirs {
		must(t, filepath.Walk(d, func(p string, fi fs.FileInfo, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			all = append(all, p)
			return err
		}))
	}
	return strings.Join(all, "\n")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func gone(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}

func is(t testing.TB, path, text string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("%s: %q %v, want %q", path, b, err, text)
	}
}

// wants compares an error with code and outcome, and gives its text.
func wants(t testing.TB, err error, code string, o record.Outcome) string {
	t.Helper()
	var e *record.Error
	if !errors.As(err, &e) {
		t.Errorf("error %v, want %s", err, code)
		return ""
	}
	if e.Code != code || e.Outcome != o {
		t.Errorf("error %s %s %v, want %s %s", e.Code, e.Outcome, err, code, o)
	}
	return err.Error()
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIP: mounting needs root")
	}
}

func needUser(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("SKIP: runs as a normal user only; TestAsNormalUser does")
	}
}

// mount mounts something and unmounts it when the test ends.
func mount(t testing.TB, source, at, kind string, flags uintptr, data string) {
	t.Helper()
	must(t, os.MkdirAll(at, 0o755))
	if err := unix.Mount(source, at, kind, flags, data); err != nil {
		t.Skipf("SKIP: cannot mount %s: %v", kind, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

func tmpfs(t testing.TB, at, data string) { t.Helper(); mount(t, "none", at, "tmpfs", 0, data) }

func bind(t testing.TB, from, at string) { t.Helper(); mount(t, from, at, "", unix.MS_BIND, "") }

// answer is what a child prints.
type answer struct {
	Entry   record.Entry
	Code    string
	Outcome record.Outcome
	Text    string
	// Took is how long the order took, without the start of the process.
	Took time.Duration
}

// order is what a child is to do.
type order struct {
	Do, Data, Path, ID string
	Across             bool
	// Kill names the point at which the child kills itself.
	Kill string
	// Plain renames without the kernel's help.
	Plain bool
}

// tool is the small program: it carries out one order, its argument, or waits
// for the end of its input.
func tool(args []string) int {
	if args[0] == "wait" {
		_, _ = os.Stdin.Read(make([]byte, 1))
		return 0
	}
	var o order
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	b, err := trash.New(trash.Config{DataHome: o.Data, UID: os.Geteuid()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if o.Plain {
		b.SetPlainRename()
	}
	if o.Kill != "" {
		b.SetHook(func(p string) {
			if p == o.Kill {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
	}
	ctx := context.Background()
	var a answer
	began := time.Now()
	switch o.Do {
	case "put":
		a.Entry, err = put(ctx, b, o.Path, o.Across)
	case "restore":
		var r trash.Restored
		r, err = b.Restore(ctx, o.ID, trash.RestoreOptions{CopyAcross: o.Across})
		a.Entry = r.Entry
	case "empty":
		var e trash.Emptied
		e, err = b.Empty(ctx, trash.EmptyOptions{IDs: []string{o.ID}})
		for _, l := range e.Left {
			err = errors.Join(err, l.Err)
		}
	}
	a.Took = time.Since(began)
	b.Close(ctx)
	if err != nil {
		a.Text = err.Error()
		if e := (*record.Error)(nil); errors.As(err, &e) {
			a.Code, a.Outcome = e.Code, e.Outcome
		}
	}
	out, err := json.Marshal(a)
	if err != nil {
		return 2
	}
	fmt.Println(string(out))
	return 0
}

// child prepares a child process with an order.
func child(t testing.TB, o order, user bool) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	must(t, err)
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "tool", string(text))
	c.Stderr = os.Stderr
	if user {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: asuser.ID, Gid: asuser.ID}}
	}
	return c
}

// asUser carries out an order as a normal user, from a test that is root.
func asUser(t testing.TB, o order) answer {
	t.Helper()
	out, err := child(t, o, true).Output()
	must(t, err)
	var a answer
	must(t, json.Unmarshal(bytes.TrimSpace(out), &a))
	return a
}
