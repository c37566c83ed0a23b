package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// subject is a directory that passed the checks which a removal needs and that
// do not depend on who asks.
type subject struct {
	parent *anchor.Dir // the caller's
	name   string
	dir    *anchor.Dir
	info   anchor.Info
	file   *os.File // the marker, not locked
	marker *marker
}

func (s *subject) close() {
	s.file.Close()
	s.dir.Close()
}

// inspect opens name in parent and makes these checks. fs.ErrNotExist when
// nothing is there, a *verdict when it must be left.
func inspect(parent *anchor.Dir, name, path, home string) (*subject, error) {
	dir, err := parent.Walk(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		return nil, keep(KeptReplaced, err, "something else lies there")
	case err != nil:
		return nil, keep(KeptUnreachable, err, "it cannot be opened")
	}
	info, err := checkDir(parent, dir)
	if err != nil {
		dir.Close()
		return nil, err
	}
	if info.Perm()&0o700 != 0o700 {
		// A command closed it; without search permission the marker cannot be
		// read. It lies where we make directories and is ours.
		if err := dir.ChmodSelf(info.Perm() | 0o700); err != nil {
			dir.Close()
			return nil, keep(KeptUnreachable, err, "it cannot be opened up")
		}
	}
	s := &subject{parent: parent, name: name, dir: dir, info: info}
	if s.file, s.marker, err = readMarker(dir); err != nil {
		dir.Close()
		return nil, err
	}
	if err := protectedPlace(path, info, s.marker.Workspace, home); err != nil {
		s.close()
		return nil, keep(KeptPlace, err, "it must not be removed")
	}
	return s, nil
}

// remove removes the directory, the marker last. When new files appeared after
// the marker went, the marker is written again, so that the rest is still ours.
func (s *subject) remove(ctx context.Context, sync bool) (files, bytes int64, lock *os.File, err error) {
	files, bytes, err = s.parent.RemoveTree(ctx, s.name, anchor.RemoveOptions{Last: MarkerName, Expect: &s.info})
	if err == nil {
		return files, bytes, nil, nil
	}
	if _, lerr := s.dir.Lstat(MarkerName); errors.Is(lerr, fs.ErrNotExist) {
		again, merr := newMarker(s.dir, MarkerName, s.marker, sync)
		if merr != nil && !errors.Is(merr, fs.ErrNotExist) { // the directory itself is gone after all
			err = errors.Join(err, fmt.Errorf("write the marker again: %w", merr))
		}
		lock = again
	}
	return files, bytes, lock, err
}

// Clean removes the directory now, whatever autoClean says. Nothing there is
// success. What fails a check is left: SCRATCH_CLEAN_FAILED with the reason.
// Processes that still write into it can make it fail; end them first. A
// cleaned directory is made again when it is needed.
func (d *Dir) Clean(ctx context.Context, c Caller) (Cleaned, error) {
	if err := d.permit("clean", c); err != nil {
		return Cleaned{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clean(ctx)
}

// EndTurn cleans when autoClean is turn. It is called at the end of every
// turn, however that ended. nil means that there was nothing to remove. An
// error is a warning for the user, never a failure of the turn; that the
// marker is gone is said once only.
func (d *Dir) EndTurn(ctx context.Context) (*Cleaned, error) {
	if d == nil {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.config.AutoClean != CleanTurn {
		return nil, nil
	}
	return d.autoClean(ctx)
}

// Close ends the session's use: it cleans unless autoClean is off, and lets go
// of the directory, so that what could not be cleaned is left to a sweep.
// Later calls do nothing. Result and error as of [Dir.EndTurn].
func (d *Dir) Close(ctx context.Context) (*Cleaned, error) {
	if d == nil {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil
	}
	d.closed = true
	var c *Cleaned
	var err error
	if d.config.AutoClean != CleanOff {
		c, err = d.autoClean(ctx)
	}
	if d.made != nil {
		d.forget()
	}
	return c, err
}

func (d *Dir) autoClean(ctx context.Context) (*Cleaned, error) {
	if d.made == nil {
		return nil, nil
	}
	c, err := d.clean(ctx)
	var v *verdict
	if errors.As(err, &v) && v.reason == KeptNoMarker {
		if d.warned {
			return nil, nil
		}
		d.warned = true
	}
	if err != nil && c.Files == 0 {
		return nil, err
	}
	return &c, err
}

// clean works from the daemon's own record of the place: neither TMPDIR nor
// anything that a command can change says what is removed (trap h).
func (d *Dir) clean(ctx context.Context) (Cleaned, error) {
	c := Cleaned{Path: d.Path()}
	h := d.made
	if h == nil {
		return c, nil
	}
	s, err := inspect(h.parent, d.name, c.Path, d.m.home)
	if errors.Is(err, fs.ErrNotExist) {
		d.cleaned()
		return c, nil
	}
	if err != nil {
		return c, fail(CodeCleanFailed, "clean", c.Path, err)
	}
	defer s.close()
	if err := d.ours(s); err != nil {
		return c, fail(CodeCleanFailed, "clean", c.Path, err)
	}
	var lock *os.File
	c.Files, c.Bytes, lock, err = s.remove(ctx, d.m.sync)
	if lock != nil {
		h.lock.Close()
		h.lock = lock
	}
	if err != nil {
		return c, fail(CodeCleanFailed, "clean", c.Path, err)
	}
	d.cleaned()
	return c, nil
}

// ours compares with what we made, in memory, and with the session.
func (d *Dir) ours(s *subject) error {
	switch {
	case s.info.Ino != d.made.info.Ino || !sameBirth(s.info.Btime, d.made.info.Btime):
		return keep(KeptReplaced, nil, "another directory lies there")
	case s.marker.Workspace != d.workspace || s.marker.SessionID != d.session:
		return keep(KeptMismatch, nil, "its marker names another session")
	}
	// By the workspace that we know, too, not only by the one in the marker.
	if err := protectedPlace(d.Path(), s.info, d.workspace, d.m.home); err != nil {
		return keep(KeptPlace, err, "it must not be removed")
	}
	return nil
}

// cleaned lets go of a directory that is gone. A record that cannot be dropped
// names nothing, which the next sweep sees.
func (d *Dir) cleaned() {
	d.forget()
	d.warned = false
	_ = d.m.journal.drop(recordScratch, d.Path())
	d.m.dropParent(d.place.parent())
}

// dropParent removes a sibling directory if we made it, it is that very
// directory, and it is empty; never recursively. It is forgotten when it is
// gone or another one. A living process that is making it right now finds it
// gone and makes it again.
func (m *Manager) dropParent(path string) {
	r, err := m.journal.get(recordParent, path)
	if err != nil {
		return
	}
	base, err := anchor.OpenDir(filepath.Dir(path))
	if err != nil {
		return
	}
	defer base.Close()
	name := filepath.Base(path)
	i, err := base.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return
	case r.madeAs(i):
		if err := base.Rmdir(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // not empty: somebody still needs it
		}
	}
	_ = m.journal.drop(recordParent, path)
}
