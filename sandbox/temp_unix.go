//go:build !windows

package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// tempPrefix marks private temporary directories of read-only commands.
const tempPrefix = "cmd-"

// Temp is a private temporary directory: of one command in read-only, or of a
// session that can have no scratch. It is locked while it lives, so that a
// sweep by another process leaves it alone; what a dead process left is removed
// by the next [NewRunner] with the same root.
type Temp struct {
	root, name, path string
	lock             *os.File
}

// MakeTemp makes a directory 0700 below root, which exists, and locks it.
func MakeTemp(root string) (*Temp, error) {
	dir, err := anchor.OpenDir(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for range 8 {
		t := &Temp{root: root, name: tempPrefix + strings.ToLower(rand.Text()[:16])}
		t.path = filepath.Join(root, t.name)
		if err := dir.Mkdir(t.name, 0o700); err != nil {
			return nil, err
		}
		if t.lock, err = lockTemp(dir, t.name); err == nil {
			return t, nil
		}
		// A sweep has taken it for an orphan before it was locked: again.
	}
	return nil, err
}

// lockTemp opens and locks a directory; it fails when another process holds it
// or when it is gone.
func lockTemp(dir *anchor.Dir, name string) (*os.File, error) {
	f, err := dir.Open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Nlink == 0 {
		_ = f.Close()
		return nil, errors.New("the directory was removed")
	}
	return f, nil
}

// Path is where it is, canonical if root was.
func (t *Temp) Path() string { return t.path }

// Remove deletes the directory and what is in it. Call it once.
func (t *Temp) Remove() {
	dir, err := anchor.OpenDir(t.root)
	if err == nil {
		_, _, _ = dir.RemoveTree(context.Background(), t.name, anchor.RemoveOptions{})
		_ = dir.Close()
	}
	_ = t.lock.Close()
}

// sweepTemp removes what commands of dead processes have left in root: what
// nobody holds a lock on. It never looks at anything without our prefix.
func sweepTemp(root string) {
	dir, err := anchor.OpenDir(root)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		lock, err := lockTemp(dir, e.Name())
		if err != nil {
			continue
		}
		_, _, _ = dir.RemoveTree(context.Background(), e.Name(), anchor.RemoveOptions{})
		_ = lock.Close()
	}
}
