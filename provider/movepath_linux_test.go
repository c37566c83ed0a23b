package provider_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// whole lists a tree: every name with type, mode, content or text, time, owner
// and attributes.
func whole(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(p string, de os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		fi, err := os.Lstat(p)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		what := ""
		switch {
		case fi.Mode()&os.ModeSymlink != 0:
			what, _ = os.Readlink(p)
		case fi.Mode().IsRegular():
			c, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			what = fmt.Sprintf("%q", c)
		}
		var x [4096]byte
		attrs := ""
		if n, err := unix.Lgetxattr(p, "user.test", x[:]); err == nil {
			attrs = string(x[:n])
		}
		if n, err := unix.Lgetxattr(p, "system.posix_acl_default", x[:]); err == nil {
			attrs += fmt.Sprintf(" %x", x[:n])
		}
		fmt.Fprintf(&b, "%s %v %d %d:%d %s %s\n", rel, fi.Mode(), fi.ModTime().UnixNano(), st.Uid, st.Gid, what, attrs)
		return nil
	})
	must(t, err)
	return b.String()
}

// grove makes a tree with everything that a copy has to keep.
func (p *place) grove(at string) {
	p.t.Helper()
	must(p.t, os.MkdirAll(p.W+"/"+at+"/sub/deep", 0o755))
	must(p.t, os.Mkdir(p.W+"/"+at+"/empty", 0o711))
	p.put(at+"/a", "one")
	p.put(at+"/sub/b", strings.Repeat("two", 70_000))
	p.put(at+"/sub/deep/c", "")
	must(p.t, os.Symlink("../a", p.W+"/"+at+"/sub/l"))
	must(p.t, os.Symlink(p.O, p.W+"/"+at+"/out"))
	must(p.t, unix.Setxattr(p.W+"/"+at+"/a", "user.test", []byte("attr"), 0))
	must(p.t, unix.Setxattr(p.W+"/"+at+"/sub", "user.test", []byte("dir"), 0))
	must(p.t, os.Chmod(p.W+"/"+at+"/a", 0o751|os.ModeSetuid))
	must(p.t, os.Chmod(p.W+"/"+at+"/sub", 0o750|os.ModeSticky))
	if os.Geteuid() == 0 {
		must(p.t, os.Lchown(p.W+"/"+at+"/sub/b", 12, 34))
		must(p.t, os.Lchown(p.W+"/"+at+"/sub/l", 12, 34))
		must(p.t, os.Lchown(p.W+"/"+at+"/sub", 12, 34))
	}
	for i, n := range []string{"/a", "/sub/b", "/sub/deep/c", "/sub/l", "/sub/deep", "/empty", "/sub", ""} {
		ts := []unix.Timespec{{Sec: 1_500_000_000}, {Sec: 1_500_000_000 + int64(i), Nsec: 123456789}}
		must(p.t, unix.UtimesNanoAt(unix.AT_FDCWD, p.W+"/"+at+n, ts, unix.AT_SYMLINK_NOFOLLOW))
	}
}

func (p *place) move(from, to string, overwrite bool) (provider.MovePathOutcome, error) {
	return p.l.MovePath(p.t.Context(), p.f, from, to, provider.MovePathOptions{Overwrite: overwrite})
}

func (p *place) copy(from, to string, overwrite bool) (provider.CopyPathOutcome, error) {
	return p.l.CopyPath(p.t.Context(), p.f, from, to, provider.CopyPathOptions{Overwrite: overwrite, Recursive: true})
}

// memory mounts a file system in memory at a new directory of the workspace.
func (p *place) memory(name, options string) string {
	p.t.Helper()
	if os.Geteuid() != 0 {
		p.t.Skip("SKIP: needs root to mount")
	}
	d := p.W + "/" + name
	must(p.t, os.Mkdir(d, 0o755))
	if err := unix.Mount("none", d, "tmpfs", 0, options); err != nil {
		p.t.Skipf("SKIP: cannot mount a tmpfs: %v", err)
	}
	p.t.Cleanup(func() { unix.Unmount(d, unix.MNT_DETACH) })
	return d
}

// act calls do once, when an operation comes to a point.
func (p *place) act(point string, do func()) {
	acted := false
	p.l.SetHook(func(at string) {
		if at == point && !acted {
			acted = true
			do()
		}
	})
}

func TestMoveAcrossFileSystems(t *testing.T) {
	t.Run("tree", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		p.memory("m", "")
		p.grove("d")
		want := whole(t, p.W+"/d")
		o, err := p.move("d", "m/d", false)
		must(t, err)
		if !o.Copied || o.MetadataLost != nil || o.Type != provider.TypeDirectory {
			t.Errorf("%+v", o)
		}
		if got := whole(t, p.W+"/m/d"); got != want {
			t.Errorf("moved:\n%s\nwant:\n%s", got, want)
		}
		p.only("m")
	})
	for name, make := range map[string]func(p *place){
		"file": func(p *place) { p.put("d", "content") },
		"link": func(p *place) { must(p.t, os.Symlink("nowhere", p.W+"/d")) },
	} {
		for _, over := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/over=", over), func(t *testing.T) {
				p := newPlace(t, "", provider.Config{})
				p.memory("m", "")
				make(p)
				want := whole(t, p.W+"/d")
				if over {
					p.put("m/d", "old")
				}
				_, err := p.move("d", "m/d", false)
				if over {
					code(t, err, provider.CodeAlreadyExists)
					var o provider.MovePathOutcome
					o, err = p.move("d", "m/d", true)
					if o.Replaced != record.Deleted || !o.Copied {
						t.Errorf("%+v", o)
					}
				}
				must(t, err)
				if got := whole(t, p.W+"/m/d"); got != want {
					t.Errorf("%s\nwant %s", got, want)
				}
				p.only("m")
				if es, _ := os.ReadDir(p.W + "/m"); len(es) != 1 {
					t.Errorf("left: %v", es)
				}
			})
		}
	}
	// What the copy does not have is never removed.
	for name, change := range map[string]func(p *place){
		"changed":  func(p *place) { p.put("d/sub/b", "changed") },
		"new":      func(p *place) { p.put("d/new", "new") },
		"new dir":  func(p *place) { must(p.t, os.Mkdir(p.W+"/d/newdir", 0o755)) },
		"replaced": func(p *place) { must(p.t, os.Remove(p.W+"/d/a")); p.put("d/a", "two") },
	} {
		t.Run("source "+name+" meanwhile", func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			p.memory("m", "")
			p.grove("d")
			want := whole(t, p.W+"/d")
			p.act("published", func() { change(p) })
			_, err := p.move("d", "m/d", false)
			if err == nil || !strings.Contains(err.Error(), "the copy is complete at "+p.W+"/m/d") {
				t.Errorf("%v", err)
			}
			if got := whole(t, p.W+"/m/d"); got != want {
				t.Errorf("the copy is not whole:\n%s", got)
			}
			left := map[string]string{"changed": "d/sub/b", "new": "d/new", "new dir": "d/newdir", "replaced": "d/a"}[name]
			if _, err := os.Lstat(p.W + "/" + left); err != nil {
				t.Errorf("removed: %v", err)
			}
			if _, err := os.Lstat(p.W + "/d/sub/deep"); err == nil {
				t.Error("what was copied is still there")
			}
		})
	}
	t.Run("source file changed meanwhile", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		p.memory("m", "")
		p.put("f", "old")
		p.act("published", func() { p.put("f", "changed") })
		_, err := p.move("f", "m/f", false)
		code(t, err, provider.CodeIOError)
		if p.get("f") != "changed" || p.get("m/f") != "old" {
			t.Errorf("%q, %q", p.get("f"), p.get("m/f"))
		}
	})
	t.Run("full", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		d := p.memory("m", "size=128k")
		p.grove("d")
		p.put("big", strings.Repeat("x", 300_000))
		want := whole(t, p.W+"/d")
		for _, n := range []string{"d", "big"} {
			_, err := p.move(n, "m/x", false)
			code(t, err, provider.CodeIOError)
			var e *provider.Error
			if !errors.As(err, &e) || e.Errno != "ENOSPC" {
				t.Errorf("%v", err)
			}
			_, err = p.copy(n, "m/x", false)
			code(t, err, provider.CodeIOError)
		}
		if es, _ := os.ReadDir(d); len(es) != 0 {
			t.Errorf("left: %v", es)
		}
		if whole(t, p.W+"/d") != want {
			t.Error("the source was changed")
		}
	})
}

func TestMountsAreNotCrossed(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	must(t, os.Mkdir(p.W+"/d", 0o755))
	p.put("d/f", "f")
	d := p.memory("d/m", "")
	must(t, os.WriteFile(d+"/inside", nil, 0o644))
	_, err := p.move("d/m", "x", false)
	code(t, err, provider.CodeIOError)
	if !errors.Is(err, unix.EBUSY) {
		t.Errorf("%v", err)
	}
	_, err = p.copy("d", "x", false)
	code(t, err, provider.CodeIOError)
	if err == nil || !strings.Contains(err.Error(), p.W+"/d/m") {
		t.Errorf("the mount is not named: %v", err)
	}
	// A file that is mounted over another.
	must(t, os.Mkdir(p.W+"/e", 0o755))
	p.put("e/f", "under")
	must(t, unix.Mount(d+"/inside", p.W+"/e/f", "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(p.W+"/e/f", unix.MNT_DETACH) })
	_, err = p.copy("e", "x", false)
	code(t, err, provider.CodeIOError)
	// The directory itself may be a mount: it is copied, and not moved.
	_, err = p.copy("d/m", "x", false)
	must(t, err)
	p.only("d", "e", "x")
	_, err = p.move("x", "d/m", true)
	code(t, err, provider.CodeIOError)
}

// A destination that lies in the source by another name of it.
func TestCopyIntoItselfByBindMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to mount")
	}
	p := newPlace(t, "", provider.Config{})
	must(t, os.MkdirAll(p.W+"/d/sub", 0o755))
	p.put("d/f", "f")
	must(t, os.Mkdir(p.W+"/alias", 0o755))
	if err := unix.Mount(p.W+"/d/sub", p.W+"/alias", "", unix.MS_BIND, ""); err != nil {
		t.Skipf("SKIP: cannot bind: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(p.W+"/alias", unix.MNT_DETACH) })
	_, err := p.copy("d", "alias/x", false)
	code(t, err, provider.CodeIOError)
	if es, _ := os.ReadDir(p.W + "/d/sub"); len(es) != 0 {
		t.Errorf("left: %v", es)
	}
}

// Somebody acts in the middle of a move.
func TestForeignChangeDuringMove(t *testing.T) {
	t.Run("destination appears", func(t *testing.T) {
		for _, over := range []bool{false, true} {
			for _, kind := range []string{"file", "directory"} {
				p := newPlace(t, "", provider.Config{})
				p.put("f", kind)
				if kind == "directory" {
					must(t, os.Remove(p.W+"/f"))
					must(t, os.Mkdir(p.W+"/f", 0o700))
				}
				p.act("checked", func() { p.put("g", "theirs") })
				_, err := p.move("f", "g", over)
				switch {
				case !over:
					code(t, err, provider.CodeAlreadyExists)
				case kind == "directory":
					code(t, err, provider.CodeNotDirectory)
				default:
					must(t, err)
				}
				if want := map[bool]string{true: "file", false: "theirs"}[over && kind == "file"]; p.get("g") != want {
					t.Errorf("%q, want %q", p.get("g"), want)
				}
			}
		}
	})
	for _, over := range []bool{false, true} {
		for _, kind := range []string{"other file", "link out", "directory", "nothing"} {
			t.Run(fmt.Sprintf("source is exchanged for %s, over=%v", kind, over), func(t *testing.T) {
				p := newPlace(t, "", provider.Config{})
				p.put("f", "mine")
				if over {
					p.put("g", "old")
				}
				p.act("checked", func() {
					must(t, os.Rename(p.W+"/f", p.O+"/f"))
					switch kind {
					case "other file":
						p.put("f", "theirs")
					case "link out":
						must(t, os.Symlink(p.O+"/f", p.W+"/f"))
					case "directory":
						must(t, os.Mkdir(p.W+"/f", 0o755))
					}
				})
				_, err := p.move("f", "g", over)
				want := provider.CodeStaleVersion
				if kind == "nothing" {
					want = provider.CodeNotFound
				}
				code(t, err, want)
				if b, err := os.ReadFile(p.O + "/f"); err != nil || string(b) != "mine" {
					t.Errorf("%q, %v", b, err)
				}
				if got := p.get("g"); over && got != "old" || !over && !strings.HasPrefix(got, "error") {
					t.Errorf("g: %q", got)
				}
				if _, err := os.Lstat(p.W + "/f"); (err == nil) != (kind != "nothing") {
					t.Errorf("what came is not back: %v", err)
				}
			})
		}
	}
	t.Run("a file takes the name of the source after the exchange", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		p.put("f", "mine")
		p.put("g", "old")
		p.act("exchanged", func() { must(t, os.Rename(p.put("n", "new"), p.W+"/f")) })
		_, err := p.move("f", "g", true)
		must(t, err)
		if p.get("g") != "mine" {
			t.Errorf("%q", p.get("g"))
		}
	})
	t.Run("the destination fills up", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		must(t, os.MkdirAll(p.W+"/d/sub", 0o755))
		must(t, os.Mkdir(p.W+"/e", 0o755))
		p.act("checked", func() { p.put("e/theirs", "x") })
		_, err := p.move("d", "e", true)
		code(t, err, provider.CodeAlreadyExists)
		if p.get("e/theirs") != "x" {
			t.Error("it is gone")
		}
		p.only("d", "e")
	})
}

// Where any directory may be one that holds a protected name, a copy is judged
// as a rename is: the tree gets its name by one.
func TestDirectoriesThatMayHoldProtectedNames(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	var err error
	p.f, err = fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: p.W,
		Protected: []fence.Protection{{Match: "**/.git/modules/*/**/hooks", Source: "preset:git"}}})
	must(t, err)
	must(t, os.MkdirAll(p.W+"/.git/modules/m/x", 0o755))
	must(t, os.MkdirAll(p.W+"/d/sub", 0o755))
	p.put("f", "f")
	_, err = p.copy("d", ".git/modules/m/new", false)
	code(t, err, provider.CodeSandboxDenied)
	_, err = p.move("d", ".git/modules/m/new", false)
	code(t, err, provider.CodeSandboxDenied)
	_, err = p.move(".git/modules/m/x", "x", false)
	code(t, err, provider.CodeSandboxDenied)
	_, err = p.move("f", ".git/modules/m/f", false)
	must(t, err)
	p.only(".git", "d")
}

// Moves in opposite directions wait for each other and for nothing else.
func TestMovesInBothDirections(t *testing.T) {
	p := newPlace(t, fastDir(t), provider.Config{})
	p.put("a", "a")
	p.put("b", "b")
	var wg sync.WaitGroup
	var got tally
	for i := range 4 {
		wg.Go(func() {
			for range 200 {
				from, to := "a", "b"
				if i%2 == 1 {
					from, to = to, from
				}
				_, err := p.move(from, to, true)
				got.add(err)
				if c := provider.CodeOf(err); err != nil && c != provider.CodeNotFound {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if es, _ := os.ReadDir(p.W); len(es) != 1 || got.count("done") == 0 {
		t.Errorf("%v; %v", es, &got)
	}
}
