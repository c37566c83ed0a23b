package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// Dir is the scratch directory of one session. Any number of goroutines may
// use one at once; its operations happen one after the other. A session has
// one Dir: a second one for the same session finds the name taken.
type Dir struct {
	m         *Manager
	session   string
	workspace string // canonical
	config    Config
	place     place
	name      string

	// mu guards what follows; nothing else is locked while it is held.
	mu     sync.Mutex
	made   *made // nil: not on disk, as far as we know
	closed bool
	// warned: the session was told that its marker is gone (trap f).
	warned bool
}

// made are the handles of a directory that exists.
type made struct {
	parent *anchor.Dir
	dir    *anchor.Dir
	info   anchor.Info
	// lock is the marker, opened and locked for as long as we live.
	lock *os.File
}

func (h *made) close() {
	h.lock.Close()
	h.dir.Close()
	h.parent.Close()
}

// Path is the absolute path; it never changes, whatever is on disk.
func (d *Dir) Path() string { return filepath.Join(d.place.parent(), d.name) }

// AutoClean is when the directory is removed.
func (d *Dir) AutoClean() AutoClean { return d.config.AutoClean }

// Parent is the directory that holds this and perhaps other sessions'
// directories.
func (d *Dir) Parent() string { return d.place.parent() }

// Workspace is the canonical workspace beside which it lies.
func (d *Dir) Workspace() string { return d.workspace }

// checkDir is what must hold of an opened scratch directory whatever its
// marker says: ours, and no mount point.
func checkDir(parent, dir *anchor.Dir) (anchor.Info, error) {
	up, err := parent.Stat()
	if err != nil {
		return anchor.Info{}, keep(KeptUnreachable, err, "its parent cannot be looked at")
	}
	info, err := dir.Stat()
	switch {
	case err != nil:
		return info, keep(KeptUnreachable, err, "it cannot be looked at")
	case !info.SameMount(up):
		return info, keep(KeptMount, nil, "it is a mount point")
	case !ownedByUs(info):
		return info, keep(KeptReplaced, nil, "it belongs to uid %d", info.UID)
	}
	return info, nil
}

// Ensure makes the directory, 0700 and marked, or makes sure that the one that
// was made is still there and still ours. It is called before each command,
// since a clean or the command before may have removed it. What lies there
// instead is never followed and never taken over: SCRATCH_IO_ERROR.
func (d *Dir) Ensure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ensure("create")
}

// TempDir makes sure of the directory and of "tmp", 0700, in it, for the
// temporary files of commands, and returns its path.
func (d *Dir) TempDir() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ensure("create"); err != nil {
		return "", err
	}
	path := filepath.Join(d.Path(), tempName)
	t, err := d.made.dir.MkdirAll(tempName, 0o700)
	if err != nil {
		return "", fail(CodeIO, "create", path, err)
	}
	defer t.Close()
	i, err := t.Stat()
	switch {
	case err != nil:
	case !ownedByUs(i):
		err = fmt.Errorf("it belongs to uid %d", i.UID)
	case i.Perm()&0o777 != 0o700:
		err = d.made.dir.Chmod(tempName, 0o700)
	}
	if err != nil {
		return "", fail(CodeIO, "create", path, err)
	}
	return path, nil
}

const tempName = "tmp"

func (d *Dir) ensure(op string) error {
	if d.closed {
		return fail(CodeIO, op, d.Path(), fs.ErrClosed)
	}
	if d.made != nil {
		there, err := d.check()
		if err != nil {
			return fail(CodeIO, op, d.Path(), err)
		}
		if there {
			return nil
		}
		// A command removed it whole, marker and all: begin anew.
		d.forget()
	}
	// The sibling directory may be removed by another session, whose last
	// directory it was, between our opening it and using it.
	var err error
	for range 4 {
		if err = d.make(); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
			return fail(CodeRefused, op, d.Path(), err)
		}
		return fail(CodeIO, op, d.Path(), err)
	}
	return nil
}

// check tells whether the directory lies where it was made. An error: there
// is something else, or it is no longer usable.
func (d *Dir) check() (bool, error) {
	h := d.made
	i, err := h.parent.Lstat(d.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case i.IsSymlink():
		return false, fmt.Errorf("it was replaced by a link: %w", syscall.ELOOP)
	case !i.IsDir() || i.Ino != 0 && (i.Ino != h.info.Ino || !sameBirth(i.Btime, h.info.Btime)):
		return false, errors.New("it was replaced by something else")
	case !ownedByUs(i):
		return false, fmt.Errorf("it belongs to uid %d", i.UID)
	}
	// The handle of the parent goes with the directory, the path does not: a
	// parent that was moved away leaves the path leading elsewhere.
	p, err := anchor.OpenDir(d.place.parent())
	if err != nil {
		return false, fmt.Errorf("its parent was moved: %w", err)
	}
	defer p.Close()
	a, err := p.Stat()
	if err != nil {
		return false, err
	}
	if b, err := h.parent.Stat(); err != nil || !a.SameFile(b) {
		return false, errors.New("its parent was replaced")
	}
	if i.Perm()&0o777 != 0o700 {
		return true, h.parent.Chmod(d.name, 0o700)
	}
	return true, nil
}

func (d *Dir) forget() {
	d.made.close()
	d.made = nil
}
