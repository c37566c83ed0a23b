package trash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// Two mounts of one file system have one device number, and no rename between
// them.
func TestBindMount(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	v := l.Dir + "/V"
	must(t, os.Mkdir(l.Dir+"/real", 0o755))
	bind(t, l.Dir+"/real", v)
	l.write(v+"/sub/f", "x")
	records := 0
	l.bin.SetHook(func(p string) {
		if p == "recorded" {
			records++
		}
	})
	e := l.put(v + "/sub/f")
	if records != 1 {
		t.Errorf("%d trashes were tried", records)
	}
	if e.TrashDir != v+"/.Trash-0" || e.OriginalPath != v+"/sub/f" {
		t.Errorf("entry %+v", e)
	}
	if all := l.list(); len(all) != 1 || all[0].ID != e.ID {
		t.Errorf("list %+v", all)
	}
	l.restore(e.ID)
	is(t, v+"/sub/f", "x")

	// The same directory through a second mount: one trash, one id.
	v2 := l.Dir + "/V2"
	bind(t, l.Dir+"/real", v2)
	e = l.put(v2 + "/sub/f")
	all := l.list()
	if len(all) != 1 || all[0].ID != e.ID {
		t.Errorf("list %+v, id %s", all, e.ID)
	}
	l.restore(e.ID)
	is(t, l.Dir+"/real/sub/f", "x")
}

func TestNestedMounts(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	v := l.Dir + "/V"
	tmpfs(t, v, "")
	tmpfs(t, v+"/a/in ner", "")
	refused := func() {
		t.Helper()
		before := names(t, l.Dir)
		for _, p := range []string{v, v + "/a", v + "/a/in ner"} {
			_, err := put(t.Context(), l.bin, p, true)
			wants(t, err, record.CodeRejected, record.Rejected)
		}
		if after := names(t, l.Dir); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	}
	refused()
	l.write(v+"/a/in ner/d/f", "inner")
	l.write(v+"/a/g", "outer")
	if e := l.put(v + "/a/in ner/d"); e.TrashDir != v+"/a/in ner/.Trash-0" {
		t.Errorf("entry %+v", e)
	}
	if e := l.put(v + "/a/g"); e.TrashDir != v+"/.Trash-0" {
		t.Errorf("entry %+v", e)
	}
	if all := l.list(); len(all) != 2 {
		t.Errorf("list %+v", all)
	}
	refused()
	want := []string{l.T, v + "/.Trash-0", v + "/a/in ner/.Trash-0"}
	got := slices.DeleteFunc(l.bin.Dirs(), func(d string) bool { return !strings.HasPrefix(d, l.Dir) })
	if !slices.Equal(got, want) {
		t.Errorf("dirs %v", got)
	}
}

// An automount point is not looked into: that would mount it, or wait for a
// server that is not there.
func TestAutomountPointIsLeft(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	// Another process group than ours, for which the mount would be triggered.
	c := exec.Command("/proc/self/exe", "tool", "wait")
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	in, err := c.StdinPipe()
	must(t, err)
	must(t, c.Start())
	defer func() { in.Close(); _ = c.Wait() }()
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	v := l.Dir + "/auto"
	must(t, os.Mkdir(v, 0o755))
	data := fmt.Sprintf("fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect", w.Fd(), c.Process.Pid)
	if err := unix.Mount("none", v, "autofs", 0, data); err != nil {
		t.Skipf("SKIP: no autofs: %v", err)
	}
	w.Close()
	defer func() { _ = unix.Unmount(v, unix.MNT_DETACH) }()
	ended := make(chan struct{})
	go func() { // ends when the mount does, which has the other end
		defer close(ended)
		if n, _ := r.Read(make([]byte, 512)); n != 0 {
			// Whoever asked waits for an answer, and no test can end any more.
			panic("the automounter was asked")
		}
	}()
	l.list()
	l.bin.Holds(l.Dir)
	l.bin.Dirs()
	must(t, unix.Unmount(v, unix.MNT_DETACH))
	<-ended
}

// What is mounted inside something in the trash is never entered.
func TestEmptyCrossesNoMount(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	l.write(l.W+"/d/sub/f", "x")
	e := l.put(l.W + "/d")
	out := l.Dir + "/out"
	l.write(out+"/precious", "keep")
	bind(t, out, l.T+"/files/d/sub")
	done, err := l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: []string{e.ID}})
	if err != nil || len(done.Left) != 1 || len(done.Entries) != 0 {
		t.Errorf("emptied %+v %v", done, err)
	}
	is(t, out+"/precious", "keep")
	if all := l.list(); len(all) != 1 || all[0].State != record.OK {
		t.Errorf("list %+v", all)
	}
}

// On an overlay a file from a lower layer is another inode once it was moved,
// and a directory from there cannot be moved at all on many systems.
func TestOverlay(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	dir := l.Dir + "/layers"
	tmpfs(t, dir, "")
	for _, d := range []string{"lower", "upper", "work"} {
		must(t, os.Mkdir(dir+"/"+d, 0o755))
	}
	tmpfs(t, dir+"/lower", "") // layers on two file systems
	l.write(dir+"/lower/f", "lower")
	l.write(dir+"/lower/d/g", "deep")
	v := l.Dir + "/V"
	mount(t, "overlay", v, "overlay", 0, fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", dir, dir, dir))
	l.write(v+"/new/h", "upper")
	for _, name := range []string{"f", "new"} {
		before := shot(t, v+"/"+name)
		e := l.put(v + "/" + name)
		gone(t, v+"/"+name)
		if e.TrashDir != v+"/.Trash-0" {
			t.Errorf("entry %+v", e)
		}
		// The id is made of what the file is now.
		all := l.list()
		if len(all) != 1 || all[0].ID != e.ID {
			t.Fatalf("list %+v, id %s", all, e.ID)
		}
		l.restore(e.ID)
		if after := shot(t, v+"/"+name); after != before {
			t.Errorf("was %s, is %s", before, after)
		}
	}
	e, err := put(t.Context(), l.bin, v+"/d", false)
	if err == nil {
		t.Logf("a lower directory moves here: %+v", e)
	} else {
		wants(t, err, record.CodeUnavailable, record.Failed)
		is(t, v+"/d/g", "deep")
		if e, err = put(t.Context(), l.bin, v+"/d", true); err != nil {
			t.Fatal(err)
		}
	}
	gone(t, v+"/d")
	is(t, e.TrashDir+"/files/d/g", "deep")
}

func TestReadOnlyMount(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	v := l.Dir + "/V"
	tmpfs(t, v, "")
	l.write(v+"/f", "x")
	must(t, unix.Mount("none", v, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	_, err := put(t.Context(), l.bin, v+"/f", true)
	wants(t, err, "FS_PERMISSION_DENIED", record.Failed)
	is(t, v+"/f", "x")
	if m, _ := filepath.Glob(v + "/.Trash*"); m != nil {
		t.Errorf("made %v", m)
	}
}

func TestHolds(t *testing.T) {
	l := newLab(t)
	for _, p := range []string{l.Dir, l.Data, l.W, "/", "relative", ""} {
		if p != "/" && l.bin.Holds(p) {
			t.Errorf("holds %s before there is a trash", p)
		}
	}
	l.put(l.write(l.W+"/f", "x"))
	must(t, os.Symlink(l.T, l.Dir+"/link"))
	for p, want := range map[string]bool{
		l.T: true, l.T + "/files": true, l.T + "/files/f": true, l.T + "/info/f.trashinfo": true, l.T + "/files/none/deeper": true,
		l.Data: true, l.Dir + "/home": true, l.Dir: true, "/": true,
		l.W: false, l.W + "/f": false, l.Dir + "/home2": false, l.T + "2": false, l.Dir + "/link": false,
	} {
		if got := l.bin.Holds(p); got != want {
			t.Errorf("holds %s: %v", p, got)
		}
	}
}

func TestHoldsByIdentity(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	l.put(l.write(l.W+"/f", "x"))
	v := l.Dir + "/V"
	tmpfs(t, v, "")
	l.write(v+"/sub/g", "y")
	l.put(v + "/sub/g")
	must(t, os.MkdirAll(v+"/.Trash-1000/files", 0o700))
	must(t, os.MkdirAll(v+"/sub/.Trash-0", 0o700)) // not at the top
	bind(t, l.Dir+"/home", l.Dir+"/alias")
	bind(t, l.T+"/files", l.Dir+"/half")
	bind(t, v+"/.Trash-0/files", l.Dir+"/side")
	for p, want := range map[string]bool{
		l.Dir + "/alias/.local/share/Trash/files/f": true, l.Dir + "/alias/.local/share": true, l.Dir + "/alias": true,
		l.Dir + "/half/f": true, l.Dir + "/half": true, l.Dir + "/side/g": true,
		v: true, v + "/.Trash-0": true, v + "/.Trash-0/files/g": true, v + "/.Trash-1000": true, v + "/.trash-0": false,
		v + "/sub": false, v + "/sub/.Trash-0": false, l.W: false,
	} {
		if got := l.bin.Holds(p); got != want {
			t.Errorf("holds %s: %v", p, got)
		}
	}
}

func TestMountTable(t *testing.T) {
	table := `22 27 0:21 / /proc rw,relatime - proc proc rw
40 27 0:40 / /a\040b\011c\012d\134e rw master:1 - tmpfs none rw
41 27 0:41 / /auto rw - autofs systemd-1 rw
42 27 0:42 / /auto/real rw shared:2 master:1 - nfs4 h:/x rw
43 27 0:43 / /short
44 27 0:44 / /caf\303 rw - tmpfs none rw
`
	want := []string{"/proc", "/a b\tc\nd\\e", "/auto/real", "/caf\xc3"}
	if got := trash.MountPoints(table); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func FuzzMountTable(f *testing.F) {
	f.Add(`40 27 0:40 / /a\040b rw master:1 - tmpfs none rw`)
	f.Fuzz(func(t *testing.T, s string) { trash.MountPoints(s) })
}
