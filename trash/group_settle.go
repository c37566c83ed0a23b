//go:build unix && !darwin

package trash

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// finish gives the directories that were made what they had, the innermost
// first: to put something into a directory changes its time.
func (c *comeback) finish() {
	c.to.drop()
	slices.SortFunc(c.made, func(a, b madeAgain) int { return cmp.Compare(b.path, a.path) })
	for _, m := range c.made {
		if m.was == nil {
			continue
		}
		if err := dressDir(m.path, m.self, *m.was); err != nil {
			c.r.leave(m.path, failed(opRestoreGroup, m.path, "it is there, but not with the mode and time that it had", err))
		}
	}
	c.made = nil
}

func dressDir(path string, self anchor.Info, was record.RemovedLine) error {
	up, err := anchor.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer up.Close()
	name := filepath.Base(path)
	f, err := up.Open(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	i, err := anchor.StatFile(f)
	if err == nil && !i.SameFile(self) {
		err = stale(up, name)
	}
	if err != nil {
		return err
	}
	// Losing the owner is no failure (T22).
	mode := was.Mode
	if (i.UID != was.UID || i.GID != was.GID) && f.Chown(int(was.UID), int(was.GID)) != nil {
		mode &^= 0o6000
	}
	if err := unix.Fchmod(int(f.Fd()), mode); err != nil {
		return err
	}
	return anchor.SetMtime(f, was.Mtime)
}

// forget takes the entry away when nothing is left in it. What no line names
// stays, and the entry with it.
func (c *comeback) forget() {
	c.from.drop()
	g := c.g
	if remains(g.root) || g.root.Unlink(record.RemovedName) != nil || g.p.files.Rmdir(g.e.name) != nil {
		return
	}
	_ = g.p.info.Unlink(g.e.name + record.InfoSuffix) // left, it says that there is no data
	c.f.sizes.forget(g.p, map[string]bool{g.e.name: true})
	if c.f.sync {
		_ = g.p.files.Sync()
		_ = g.p.info.Sync()
	}
}

// maxTreeDepth bounds the handles held on the way through a group: half the
// longest path, of names of one byte.
const maxTreeDepth = 2048

// remains removes the empty directories beneath the one of a group and tells
// whether there is something else than its list.
func remains(root *anchor.Dir) bool { return prune(root, 0) }

func prune(d *anchor.Dir, depth int) (left bool) {
	es, err := d.ReadDir(0)
	if err != nil || depth > maxTreeDepth {
		return true
	}
	for _, e := range es {
		if depth == 0 && e.Name == record.RemovedName {
			continue
		}
		if !e.IsDir() {
			return true
		}
		sub, err := d.Walk(e.Name)
		if err != nil {
			return true
		}
		inner := prune(sub, depth+1)
		sub.Close()
		if inner || d.Rmdir(e.Name) != nil {
			left = true
		}
	}
	return left
}
