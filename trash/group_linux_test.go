package trash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// remove keeps a thing in a group and removes it, as a command would.
func (l *lab) remove(g *trash.Group, path string) error {
	l.t.Helper()
	if err := keep(g, path, path); err != nil {
		return err
	}
	return os.Remove(path)
}

// keep keeps the thing at one path under the name of another.
func keep(g *trash.Group, at, path string) error {
	f, err := os.OpenFile(at, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	i, err := anchor.StatFile(f)
	if err != nil {
		return err
	}
	if i.IsDir() {
		return g.Directory(f, path, i)
	}
	return g.File(f, path, i)
}

func (l *lab) group(id string) *trash.Group {
	return l.bin.Group(trash.GroupOptions{ID: id, Base: l.W})
}

func (l *lab) back(id string, o trash.RestoreOptions) trash.RestoredGroup {
	l.t.Helper()
	r, err := l.bin.RestoreGroup(context.Background(), id, o)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l *lab) removeAll(g *trash.Group, paths ...string) {
	l.t.Helper()
	for _, p := range paths {
		must(l.t, l.remove(g, p))
	}
}

// TestGroup: one group is one entry that other programs understand, and comes
// back as it was.
func TestGroup(t *testing.T) {
	l := newLab(t)
	l.write(l.W+"/d/e/f", "f")
	l.write(l.W+"/d/g", "g")
	must(t, os.Symlink("nowhere", l.W+"/d/e/l"))
	must(t, os.Mkdir(l.W+"/d/none", 0o711))
	dress(t, l.W+"/d/e", 0o2750)
	must(t, unix.Removexattr(l.W+"/d/e", "user.wattle")) // of a directory it is not kept
	before := shot(t, l.W+"/d")
	g := l.group("id 1/x")
	l.removeAll(g, l.W+"/d/e/f", l.W+"/d/e/l", l.W+"/d/e", l.W+"/d/g", l.W+"/d/none", l.W+"/d")
	g.End()
	gone(t, l.W+"/d")
	es := l.list()
	if len(es) != 1 || es[0].Name != "rm-id_1_x" || es[0].OriginalPath != l.W+"/rm-id_1_x" || es[0].Type != "directory" || es[0].State != record.OK {
		t.Errorf("%+v", es)
	}
	is(t, l.T+"/files/rm-id_1_x/d/e/f", "f")
	r := l.back("id 1/x", trash.RestoreOptions{})
	if !r.Complete() || r.Files != 3 || r.Directories != 3 || len(r.Entries) != 1 || r.Entries[0].ID != es[0].ID {
		t.Errorf("%+v", r)
	}
	if after := shot(t, l.W+"/d"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if left := names(t, l.T+"/files", l.T+"/info"); left != l.T+"/files\n"+l.T+"/info" {
		t.Error(left)
	}
	_, err := l.bin.RestoreGroup(context.Background(), "id 1/x", trash.RestoreOptions{})
	wants(t, err, record.CodeNotFound, record.Failed)
}

// TestGroupRestore: what a restore does when things are in the way.
func TestGroupRestore(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(l *lab)
		o       func(l *lab) trash.RestoreOptions
		files   int
		left    []string // below W, with the code
		check   func(l *lab)
	}{
		{name: "something is there", prepare: func(l *lab) { l.write(l.W+"/d/a", "new") }, files: 2, left: []string{"d/a " + exists},
			check: func(l *lab) { is(l.t, l.W+"/d/a", "new"); is(l.t, l.W+"/d/e/b", "b") }},
		{name: "a file where a directory was", prepare: func(l *lab) { l.write(l.W+"/d", "new") }, files: 1, left: []string{"d " + exists, "d/e " + exists, "d/a " + exists, "d/e/b " + exists},
			check: func(l *lab) { is(l.t, l.W+"/d", "new"); is(l.t, l.W+"/c", "c") }},
		{name: "a link where a directory was", prepare: func(l *lab) { must(l.t, os.Mkdir(l.Dir+"/o", 0o755)); must(l.t, os.Symlink(l.Dir+"/o", l.W+"/d")) }, files: 1,
			left: []string{"d " + exists, "d/e " + exists, "d/a " + exists, "d/e/b " + exists}, check: func(l *lab) { gone(l.t, l.Dir+"/o/a"); gone(l.t, l.Dir+"/o/e") }},
		{name: "refused", o: func(l *lab) trash.RestoreOptions {
			return trash.RestoreOptions{Allow: func(_ record.Entry, p string) error {
				if strings.HasPrefix(p, l.W+"/d/e") {
					return errors.New("denied")
				}
				return nil
			}}
		}, files: 2, left: []string{"d/e FS_PERMISSION_DENIED", "d/e/b FS_PERMISSION_DENIED"}, check: func(l *lab) { gone(l.t, l.W+"/d/e"); is(l.t, l.W+"/d/a", "a") }},
		{name: "elsewhere", o: func(l *lab) trash.RestoreOptions { return trash.RestoreOptions{Destination: l.Dir + "/to"} }, files: 3,
			check: func(l *lab) { is(l.t, l.Dir+"/to/d/e/b", "b"); is(l.t, l.Dir+"/to/c", "c"); gone(l.t, l.W+"/c") }},
		{name: "without the workspace", prepare: func(l *lab) { must(l.t, os.Remove(l.W)) }, files: 3, check: func(l *lab) { is(l.t, l.W+"/d/e/b", "b") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.W+"/d/a", "a")
			l.write(l.W+"/d/e/b", "b")
			l.write(l.W+"/c", "c")
			g := l.group("x")
			l.removeAll(g, l.W+"/d/a", l.W+"/d/e/b", l.W+"/d/e", l.W+"/d", l.W+"/c")
			g.End()
			if c.prepare != nil {
				c.prepare(l)
			}
			var o trash.RestoreOptions
			if c.o != nil {
				o = c.o(l)
			}
			r := l.back("x", o)
			var left []string
			for _, p := range r.Left {
				rel, _ := filepath.Rel(l.W, p.Path)
				left = append(left, rel+" "+p.Code)
			}
			slices.Sort(left)
			slices.Sort(c.left)
			if r.Files != c.files || !slices.Equal(left, c.left) || r.NotRestored != len(c.left) || r.Complete() != (len(c.left) == 0) {
				t.Errorf("%+v\nwant %v", r, c.left)
			}
			c.check(l)
			if n := len(l.list()); (n == 0) != (len(c.left) == 0) {
				t.Errorf("%d entries", n)
			}
			if len(c.left) == 0 {
				return
			}
			// The way made free, another call brings the rest.
			must(t, os.RemoveAll(l.W+"/d"))
			if r := l.back("x", trash.RestoreOptions{}); !r.Complete() {
				t.Errorf("%+v", r)
			}
			for _, p := range c.left {
				if rel, _, _ := strings.Cut(p, " "); strings.HasSuffix(rel, "a") || strings.HasSuffix(rel, "b") {
					is(t, l.W+"/"+rel, filepath.Base(rel))
				}
			}
			if n := len(l.list()); n != 0 {
				t.Errorf("%d entries", n)
			}
		})
	}
}

const exists = "FS_ALREADY_EXISTS"

// TestGroupHandle: what is kept is the thing of the handle, wherever its name
// leads by then.
func TestGroupHandle(t *testing.T) {
	l := newLab(t)
	meant, secret := l.write(l.W+"/d/f", "meant"), l.write(l.Dir+"/o/f", "secret")
	g := l.group("x")
	l.removeAll(g, l.write(l.W+"/first", "x"))
	must(t, os.Rename(l.W+"/d", l.W+"/moved"))
	must(t, os.Symlink(l.Dir+"/o", l.W+"/d"))
	must(t, keep(g, l.W+"/moved/f", meant))
	g.End()
	is(t, l.T+"/files/rm-x/d/f", "meant")
	is(t, secret, "secret")
}

// TestGroupNames: a name that is removed twice, also as another kind.
func TestGroupNames(t *testing.T) {
	l := newLab(t)
	g := l.group("x")
	for _, text := range []string{"1", "2", "3"} {
		l.removeAll(g, l.write(l.W+"/a", text))
	}
	l.write(l.W+"/a/b", "4")
	l.removeAll(g, l.W+"/a/b", l.W+"/a")
	l.removeAll(g, l.write(l.W+"/"+record.RemovedName, "5"), l.write(l.W+"/~2/a", "6"), l.W+"/~2")
	g.End()
	want := []string{"1", "2", "3", "4"}
	for i, text := range want {
		r := l.back("x", trash.RestoreOptions{})
		p := l.W + "/a"
		if text == "4" {
			p += "/b"
		}
		is(t, p, text)
		if r.Complete() != (i == len(want)-1) {
			t.Errorf("%s: %+v", text, r)
		}
		must(t, os.RemoveAll(l.W+"/a"))
	}
	is(t, l.W+"/"+record.RemovedName, "5")
	is(t, l.W+"/~2/a", "6")
	if n := len(l.list()); n != 0 {
		t.Errorf("%d entries", n)
	}
}

// TestGroupEmptied: whoever empties the trash while the command runs takes what
// is there; the rest is kept in another entry.
func TestGroupEmptied(t *testing.T) {
	l := newLab(t)
	l.write(l.W+"/d/a", "a")
	l.write(l.W+"/d/b", "b")
	l.write(l.W+"/d/c", "c")
	g := l.group("x")
	l.removeAll(g, l.W+"/d/a")
	e, err := l.bin.Empty(context.Background(), trash.EmptyOptions{IDs: []string{l.list()[0].ID}})
	if err != nil || len(e.Left) > 0 {
		t.Fatal(err, e)
	}
	l.removeAll(g, l.W+"/d/b", l.W+"/d/c", l.W+"/d")
	g.End()
	l.back("x", trash.RestoreOptions{})
	gone(t, l.W+"/d/a")
	is(t, l.W+"/d/b", "b")
	is(t, l.W+"/d/c", "c")
}

// TestGroupLatest: of two groups with one name the later one comes back.
func TestGroupLatest(t *testing.T) {
	l := newLab(t)
	tick := func(d int) *trash.Bin {
		b, err := trash.New(trash.Config{DataHome: l.Data, UID: os.Geteuid(), Now: func() time.Time { return now.Add(time.Duration(d)) }})
		must(t, err)
		return b
	}
	for i, text := range []string{"old", "new"} {
		g := tick(i).Group(trash.GroupOptions{ID: "x", Base: l.W})
		l.removeAll(g, l.write(l.W+"/f", text))
		g.End()
	}
	l.back("x", trash.RestoreOptions{})
	is(t, l.W+"/f", "new")
	must(t, os.Remove(l.W+"/f"))
	l.back("x", trash.RestoreOptions{})
	is(t, l.W+"/f", "old")
}

// TestGroupLimit: beyond the limit things go without being kept, and the group
// says how many.
func TestGroupLimit(t *testing.T) {
	l := newLab(t)
	g := l.group("x")
	g.SetMax(2)
	for i := range 5 {
		p := l.write(fmt.Sprint(l.W, "/f", i), "x")
		if err := l.remove(g, p); (err == nil) != (i < 2) {
			t.Errorf("%d: %v", i, err)
		}
	}
	g.End()
	r := l.back("x", trash.RestoreOptions{})
	if r.Files != 2 || r.NotKept != 3 || !r.Ended || r.Complete() {
		t.Errorf("%+v", r)
	}
}

// TestGroupRefuses: nothing is kept where the command may write, nor what lies
// in a trash; and a group that kept nothing leaves nothing.
func TestGroupRefuses(t *testing.T) {
	l := newLab(t)
	g := l.bin.Group(trash.GroupOptions{ID: "x", Base: l.W, Writable: func(string) bool { return true }})
	if err := l.remove(g, l.write(l.W+"/f", "x")); err == nil || !strings.Contains(err.Error(), "the command may write to it") {
		t.Error(err)
	}
	g.End()
	e := l.put(l.write(l.W+"/g", "x"))
	g = l.group("x")
	if err := l.remove(g, l.T+"/files/"+e.Name); err == nil {
		t.Error("kept out of the trash")
	}
	g.End()
	if es := l.list(); len(es) != 1 || es[0].ID != e.ID {
		t.Errorf("%+v", es)
	}
	_, err := l.bin.RestoreGroup(context.Background(), "x", trash.RestoreOptions{})
	wants(t, err, record.CodeNotFound, record.Failed)
}

// TestGroupFullDisk: on a full disk nothing is half kept, and nobody is kept
// from removing.
func TestGroupFullDisk(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	tmpfs(t, l.W+"/m", "size=64k,nr_inodes=24")
	for i := range 8 {
		l.write(fmt.Sprint(l.W, "/m/f", i), "x")
	}
	g := l.group("x")
	kept := []string{}
	for i := range 8 {
		p := fmt.Sprint(l.W, "/m/f", i)
		if i == 4 { // no inode is left, and no page
			for n := 0; ; n++ {
				if err := os.WriteFile(fmt.Sprint(l.W, "/m/fill", n), make([]byte, 4096), 0o644); err != nil {
					break
				}
			}
		}
		switch err := keep(g, p, p); {
		case err == nil:
			kept = append(kept, p)
		case i < 4:
			t.Error(err)
		}
		must(t, os.Remove(p))
	}
	g.End()
	t.Logf("kept %d of 8", len(kept))
	r := l.back("x", trash.RestoreOptions{})
	if r.Files != len(kept) || r.NotRestored != 0 {
		t.Errorf("%+v", r)
	}
	for _, p := range kept {
		is(t, p, "x")
	}
}

// TestInteropGroup: gio lists a group and brings it back as a directory.
func TestInteropGroup(t *testing.T) {
	l := newLab(t)
	f := gio(t, l)
	g := l.group("x")
	l.removeAll(g, l.write(l.W+"/d/e/f", "f"), l.W+"/d/e", l.W+"/d")
	g.End()
	f.restore(l.W + "/rm-x")
	is(t, l.W+"/rm-x/d/e/f", "f")
	if n := len(l.list()); n != 0 {
		t.Errorf("%d entries", n)
	}
}
