package trash_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Guard names the home trash before it is there, the trash of the mount in
// which a root lies, of one that is mounted in it, and of any other that has
// one; and a mount that has none and no root is left alone.
func TestGuard(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	l := newLab(t)
	own := ".Trash-" + strconv.Itoa(os.Geteuid())
	mount := func(at string) string {
		must(t, os.MkdirAll(at, 0o755))
		must(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
		t.Cleanup(func() { must(t, unix.Unmount(at, unix.MNT_DETACH)) })
		return at
	}
	v := mount(l.Dir + "/V")
	in := mount(v + "/in it")
	used, unused := mount(l.Dir+"/used"), mount(l.Dir+"/unused")
	must(t, os.Mkdir(used+"/"+own, 0o700))
	must(t, os.Symlink("/etc", unused+"/.Trash"))
	must(t, os.Mkdir(v+"/ws", 0o755))
	for _, tt := range []struct {
		name      string
		roots     []string
		has, lack []string
	}{
		{"no root", nil, []string{l.T, used + "/" + own}, []string{v + "/" + own, used + "/.Trash", unused + "/.Trash", unused + "/" + own}},
		{"at the top", []string{v}, []string{v + "/" + own, v + "/.Trash", in + "/" + own, in + "/.Trash"}, []string{unused + "/.Trash"}},
		{"below the top", []string{v + "/ws"}, []string{v + "/" + own, v + "/.Trash"}, []string{in + "/" + own}},
		{"two", []string{v + "/ws", unused}, []string{v + "/" + own, unused + "/" + own, unused + "/.Trash"}, nil},
	} {
		got := l.bin.Guard(tt.roots...)
		for _, p := range tt.has {
			if !slices.Contains(got, p) {
				t.Errorf("%s: %s is not in %q", tt.name, p, got)
			}
		}
		for _, p := range tt.lack {
			if slices.Contains(got, p) {
				t.Errorf("%s: %s is in %q", tt.name, p, got)
			}
		}
	}
	if _, err := os.Lstat(l.T); err == nil {
		t.Error("a look made the home trash")
	}
	// A linked home trash is guarded where it leads.
	must(t, os.MkdirAll(l.Dir+"/elsewhere", 0o700))
	must(t, os.MkdirAll(filepath.Dir(l.T), 0o755))
	must(t, os.Symlink(l.Dir+"/elsewhere", l.T))
	if got := l.bin.Guard(); !slices.Contains(got, l.Dir+"/elsewhere") {
		t.Errorf("%q", got)
	}
}
