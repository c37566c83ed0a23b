package trash_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/asuser"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// The names are those of cases/trash.md.

func TestC1DanglingLinkIsNotSkipped(t *testing.T) {
	l := newLab(t)
	must(t, os.Symlink("nope", l.W+"/l"))
	e := l.put(l.W + "/l")
	if to, err := os.Readlink(l.T + "/files/l"); err != nil || to != "nope" || e.Type != "symlink" {
		t.Errorf("%q %v %+v", to, err, e)
	}
	if all := l.list(); len(all) != 1 || all[0].State != record.OK {
		t.Errorf("list %+v", all)
	}
	l.restore(e.ID)
	if to, err := os.Readlink(l.W + "/l"); err != nil || to != "nope" {
		t.Errorf("%q %v", to, err)
	}
	l.write(l.W+"/dir/f", "stays")
	must(t, os.Symlink(l.W+"/dir", l.W+"/ld"))
	l.put(l.W + "/ld")
	is(t, l.W+"/dir/f", "stays")
	if to, err := os.Readlink(l.T + "/files/ld"); err != nil || to != l.W+"/dir" {
		t.Errorf("%q %v", to, err)
	}
}

func TestC2HomeIsALinkToAnotherFilesystem(t *testing.T) {
	needRoot(t)
	for _, linked := range []bool{false, true} {
		t.Run(fmt.Sprint("linked=", linked), func(t *testing.T) {
			l := newLab(t)
			d := l.Dir + "/D"
			tmpfs(t, d, "")
			must(t, os.Mkdir(d+"/h", 0o755))
			must(t, os.Symlink(d+"/h", l.Dir+"/H"))
			l.bin = openBin(t, l.Dir+"/H/.local/share")
			path := d + "/h/f"
			if linked {
				path = l.Dir + "/H/f"
			}
			must(t, os.WriteFile(d+"/h/f", []byte("x"), 0o644))
			e := l.put(path)
			if e.TrashDir != d+"/h/.local/share/Trash" || e.OriginalPath != d+"/h/f" {
				t.Errorf("entry %+v", e)
			}
			is(t, d+"/h/.local/share/Trash/files/f", "x")
			if m, _ := filepath.Glob(d + "/.Trash*"); m != nil {
				t.Errorf("made %v", m)
			}
			l.restore(e.ID)
			is(t, d+"/h/f", "x")
		})
	}
}

func TestC3FileInAReadOnlyDirectory(t *testing.T) {
	needUser(t)
	l := newLab(t)
	l.write(l.W+"/d/f", "x")
	must(t, os.Chmod(l.W+"/d", 0o555))
	l.write(l.W+"/e/sub/g", "y")
	must(t, os.Chmod(l.W+"/e/sub", 0o555))
	before := names(t, l.Dir)
	for _, c := range []struct{ path, names string }{{l.W + "/d/f", l.W + "/d"}, {l.W + "/e/sub", l.W + "/e/sub"}} {
		_, err := put(t.Context(), l.bin, c.path, true)
		if s := wants(t, err, "FS_PERMISSION_DENIED", record.Failed); !strings.Contains(s, "the directory "+c.names+" is not writable") {
			t.Errorf("says %s", s)
		}
	}
	if after := names(t, l.Dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	is(t, l.W+"/d/f", "x")
}

// FAT cannot be mounted everywhere: what it lacks is taken away instead. chmod
// and link are not used at all.
func TestC4VolumeWithoutRenameNoReplace(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	v := l.Dir + "/V"
	tmpfs(t, v, "")
	l.bin.SetPlainRename()
	for _, n := range []string{"a", "b", "c"} {
		l.write(v+"/"+n, n)
		if e := l.put(v + "/" + n); e.TrashDir != v+"/.Trash-0" || e.OriginalPath != v+"/"+n {
			t.Errorf("entry %+v", e)
		}
	}
	all := l.list()
	if len(all) != 3 {
		t.Fatalf("list %+v", all)
	}
	for _, e := range all {
		l.restore(e.ID)
		is(t, v+"/"+e.Name, e.Name)
	}
}

func TestC5ForeignTopDirectory(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	v := l.Dir + "/V"
	tmpfs(t, v, "mode=755")
	must(t, os.Mkdir(v+"/u", 0o755))
	data := l.Dir + "/userhome"
	must(t, os.Mkdir(data, 0o755))
	must(t, os.Chown(data, asuser.ID, asuser.ID))
	big := make([]byte, 50<<20)
	_, _ = rand.Read(big)
	must(t, os.WriteFile(v+"/u/big", big, 0o644))
	dress(t, v+"/u/big", 0o640)
	must(t, os.Chown(v+"/u/big", asuser.ID, asuser.ID))
	must(t, os.Chown(v+"/u", asuser.ID, asuser.ID))
	shape := shot(t, v+"/u/big")
	before := names(t, v, data)
	a := asUser(t, order{Do: "put", Data: data, Path: v + "/u/big"})
	if a.Code != record.CodeUnavailable || a.Outcome != record.Failed || a.Took > time.Second {
		t.Errorf("%+v", a)
	}
	for _, s := range []string{v, "permanently", "copyAcross"} {
		if !strings.Contains(a.Text, s) {
			t.Errorf("does not say %s: %s", s, a.Text)
		}
	}
	home := data + "/Trash" // the user's own is made, as the specification wants it
	if after := strings.ReplaceAll(names(t, v, data), "\n"+home+"/files\n"+home+"/info", ""); strings.TrimSuffix(after, "\n"+home) != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if shot(t, v+"/u/big") != shape {
		t.Error("the file changed")
	}
	a = asUser(t, order{Do: "put", Data: data, Path: v + "/u/big", Across: true})
	if a.Code != "" || a.Entry.TrashDir != home || a.Entry.State != record.OK {
		t.Fatalf("copy across: %+v", a)
	}
	gone(t, v+"/u/big")
	if after := shot(t, home+"/files/big"); after != shape {
		t.Errorf("was %s, is %s", shape, after)
	}
	// And back, by a copy again.
	if b := asUser(t, order{Do: "restore", Data: data, ID: a.Entry.ID}); b.Code != record.CodeUnavailable {
		t.Errorf("restore across mounts: %+v", b)
	}
	if b := asUser(t, order{Do: "restore", Data: data, ID: a.Entry.ID, Across: true}); b.Code != "" {
		t.Errorf("restore by copy: %+v", b)
	}
	if after := shot(t, v+"/u/big"); after != shape {
		t.Errorf("was %s, is %s", shape, after)
	}
}

func TestC6WhateverTakesIsListed(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	v, w2 := l.Dir+"/V", l.Dir+"/W2"
	tmpfs(t, v, "")
	must(t, os.Mkdir(w2, 0o755))
	kinds := map[string]string{v: "a"}
	if path, err := exec.LookPath("bindfs"); err != nil {
		t.Log("no bindfs: without FUSE")
	} else if out, err := exec.Command(path, w2, w2).CombinedOutput(); err != nil {
		t.Logf("bindfs: %v %s", err, out)
	} else {
		t.Cleanup(func() { _ = unix.Unmount(w2, unix.MNT_DETACH) })
		kinds[w2] = "b"
	}
	for top, name := range kinds {
		l.write(top+"/"+name, name)
		if e := l.put(top + "/" + name); e.TrashDir != top+"/.Trash-0" {
			t.Errorf("entry %+v", e)
		}
	}
	must(t, os.Symlink(v, l.Dir+"/L"))
	l.write(v+"/c", "c")
	if e := l.put(l.Dir + "/L/c"); e.TrashDir != v+"/.Trash-0" || e.OriginalPath != v+"/c" {
		t.Errorf("entry %+v", e)
	}
	all := l.list()
	if len(all) != len(kinds)+1 {
		t.Fatalf("list %+v", all)
	}
	var ids []string
	for _, e := range all {
		if e.State != record.OK {
			t.Errorf("entry %+v", e)
		}
		l.restore(e.ID)
		is(t, e.OriginalPath, e.Name)
		ids = append(ids, l.put(e.OriginalPath).ID)
	}
	done, err := l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: ids})
	if err != nil || len(done.Entries) != len(ids) || len(done.Left) != 0 || done.Files != int64(len(ids)) {
		t.Errorf("emptied %+v %v", done, err)
	}
	if all := l.list(); len(all) != 0 {
		t.Errorf("list %+v", all)
	}
}

func TestC7RestoreFromSharedTrash(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	v := l.Dir + "/V"
	tmpfs(t, v, "")
	must(t, os.Mkdir(v+"/.Trash", 0o777))
	must(t, unix.Chmod(v+"/.Trash", 0o1777))
	l.write(v+"/sub/f", "x")
	e := l.put(v + "/sub/f")
	if e.TrashDir != v+"/.Trash/0" || e.OriginalPath != v+"/sub/f" {
		t.Errorf("entry %+v", e)
	}
	if b, err := os.ReadFile(v + "/.Trash/0/info/f.trashinfo"); err != nil || !bytes.Contains(b, []byte("\nPath=sub/f\n")) {
		t.Errorf("record %q %v", b, err)
	}
	if fi, err := os.Stat(v + "/.Trash/0"); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	if got := l.restore(e.ID); got != v+"/sub/f" {
		t.Errorf("restored to %s", got)
	}
	is(t, v+"/sub/f", "x")
	gone(t, v+"/.Trash/sub")
}

func TestC8ListingMakesNothing(t *testing.T) {
	b := openBin(t, base+"/none/.local/share")
	all, err := b.List(t.Context())
	must(t, err)
	for _, p := range all.Problems {
		t.Errorf("problem %+v", p)
	}
	gone(t, base+"/none")
}

// T5, T6, T7: an unfit .Trash is used for nothing, and named.
func TestUnfitSharedTrash(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		what   string
		make   func(v string)
		detail string
	}{
		{"not sticky", func(v string) {
			must(t, os.MkdirAll(v+"/.Trash/0/files", 0o700))
			must(t, os.MkdirAll(v+"/.Trash/0/info", 0o700))
			must(t, os.Chmod(v+"/.Trash", 0o777))
		}, "it is not sticky"},
		{"link", func(v string) {
			must(t, os.MkdirAll(v+"/real/0/files", 0o700))
			must(t, os.MkdirAll(v+"/real/0/info", 0o700))
			must(t, unix.Chmod(v+"/real", 0o1777))
			must(t, os.Symlink("real", v+"/.Trash"))
		}, "it is a link: walk"},
		{"ours is a link", func(v string) {
			must(t, os.MkdirAll(v+"/.Trash", 0o700))
			must(t, unix.Chmod(v+"/.Trash", 0o1777))
			must(t, os.Mkdir(v+"/mine", 0o700))
			must(t, os.Symlink("../mine", v+"/.Trash/0"))
		}, "it is a link"},
		{"ours is another's", func(v string) {
			must(t, os.MkdirAll(v+"/.Trash/0", 0o700))
			must(t, unix.Chmod(v+"/.Trash", 0o1777))
			must(t, os.Chown(v+"/.Trash/0", asuser.ID, asuser.ID))
		}, "it belongs to user 65534"},
		{"others may write", func(v string) {
			must(t, os.MkdirAll(v+"/.Trash/0", 0o700))
			must(t, unix.Chmod(v+"/.Trash", 0o1777))
			must(t, os.Chmod(v+"/.Trash/0", 0o777))
		}, "others may write to it (mode 0777)"},
		{"a half is a link", func(v string) {
			must(t, os.MkdirAll(v+"/.Trash/0/info", 0o700))
			must(t, unix.Chmod(v+"/.Trash", 0o1777))
			must(t, os.Mkdir(v+"/mine", 0o700))
			must(t, os.Symlink("../../mine", v+"/.Trash/0/files"))
		}, "it is a link"},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLab(t)
			v := l.Dir + "/V"
			tmpfs(t, v, "")
			c.make(v)
			before := names(t, v)
			found := false
			for path, detail := range l.problems() {
				if found = strings.HasPrefix(detail, c.detail); !found {
					t.Errorf("problem %s: %s", path, detail)
				}
			}
			if !found {
				t.Error("no problem is named")
			}
			if after := names(t, v); after != before {
				t.Errorf("made: %s", after)
			}
			l.write(v+"/f", "x")
			if e := l.put(v + "/f"); e.TrashDir != v+"/.Trash-0" {
				t.Errorf("entry %+v", e)
			}
		})
	}
}
