//go:build !portable

package anchor_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

func TestParent(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.MkdirAll(p+"/a/b", 0o755))
	b, err := d.Walk("a/b")
	must(t, err)
	defer b.Close()
	up, err := b.Parent()
	must(t, err)
	defer up.Close()
	var st unix.Stat_t
	must(t, unix.Stat(p+"/a", &st))
	if i, err := up.Stat(); err != nil || i.Ino != st.Ino || up.Path() != p+"/a" {
		t.Errorf("%+v %v %s", i, err, up.Path())
	}
	// The directory that holds it now, wherever that is.
	must(t, os.Mkdir(p+"/c", 0o755))
	must(t, os.Rename(p+"/a/b", p+"/c/b"))
	now, err := b.Parent()
	must(t, err)
	defer now.Close()
	must(t, unix.Stat(p+"/c", &st))
	if i, err := now.Stat(); err != nil || i.Ino != st.Ino {
		t.Errorf("%+v %v", i, err)
	}
	root := openDir(t, "/")
	top, err := root.Parent()
	must(t, err)
	defer top.Close()
	x, _ := root.Stat()
	if y, err := top.Stat(); err != nil || !x.SameFile(y) {
		t.Errorf("parent of the root: %+v %v", y, err)
	}
}

func TestUsage(t *testing.T) {
	p, d := tempDir(t)
	must(t, os.MkdirAll(p+"/a/b", 0o755))
	must(t, os.WriteFile(p+"/a/b/f", make([]byte, 100_000), 0o644))
	must(t, os.WriteFile(p+"/a/g", []byte("x"), 0o644))
	must(t, os.Symlink("/", p+"/a/root"))
	var want int64
	for _, n := range []string{"a", "a/b", "a/b/f", "a/g", "a/root"} {
		var st unix.Stat_t
		must(t, unix.Lstat(p+"/"+n, &st))
		want += st.Blocks * 512
	}
	got, err := d.Usage(t.Context(), "a")
	if err != nil || got != want || got < 100_000 {
		t.Errorf("%d %v, want %d", got, err, want)
	}
	if _, err := d.Usage(t.Context(), "none"); err == nil {
		t.Error("of nothing")
	}
	deepTree(t, p+"/deep", 300)
	if _, err := d.Usage(t.Context(), "deep"); err == nil {
		t.Error("of a tree that is too deep")
	}
	must(t, third(d.RemoveTree(t.Context(), "deep", anchor.RemoveOptions{})))
}
