package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// choose finds a name: free, or an own directory to take up again.
func (d *Dir) choose() error {
	for _, digits := range shortIDs {
		d.name = dirName(filepath.Base(d.workspace), d.session, digits)
		parent, err := anchor.OpenDir(d.place.parent())
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fail(CodeRefused, "open", d.place.parent(), err)
		}
		_, err = parent.Lstat(d.name)
		if errors.Is(err, fs.ErrNotExist) {
			parent.Close()
			return nil
		}
		if err == nil && d.adopt(parent) == nil {
			return nil
		}
		parent.Close()
	}
	return failf(CodeRefused, "open", d.Path(), "every name for this session is taken")
}

// adopt takes up a directory of this session. It owns parent on success. Any
// failure means: not ours, another name is used.
func (d *Dir) adopt(parent *anchor.Dir) error {
	dir, err := parent.Walk(d.name)
	if err != nil {
		return err
	}
	h, err := d.takeOver(parent, dir)
	if err != nil {
		dir.Close()
		return err
	}
	d.made = h
	return nil
}

func (d *Dir) takeOver(parent, dir *anchor.Dir) (*made, error) {
	info, err := checkDir(parent, dir)
	if err != nil {
		return nil, err
	}
	up, err := parent.Stat()
	if err != nil {
		return nil, err
	}
	old, m, err := readMarker(dir)
	if err != nil {
		return nil, err
	}
	defer old.Close() // after the new marker is locked
	if m.Workspace != d.workspace || m.SessionID != d.session {
		return nil, keep(KeptMismatch, nil, "the marker is another session's")
	}
	switch err := tryLock(old); {
	case errors.Is(err, errNoLocks) && m.owner.state() == dead:
	case err != nil:
		return nil, err
	}
	if !stillThere(dir, old) || m.owner.state() == alive && m.owner != self() {
		return nil, errLocked
	}
	if err := d.m.journal.put(d.record(up.Dev)); err != nil {
		return nil, err
	}
	lock, err := replaceMarker(dir, d.marker(info, m.CreatedParent), d.m.sync)
	if err != nil {
		return nil, err
	}
	return &made{parent: parent, dir: dir, info: info, lock: lock}, nil
}

// make makes the directory: sibling, journal record, directory, marker, in
// this order, so that a crash leaves nothing that is not named.
func (d *Dir) make() error {
	parent, sibling, err := d.openParent()
	if err != nil {
		return err
	}
	h, err := d.makeIn(parent, sibling)
	if err != nil {
		parent.Close()
		return err
	}
	d.made = h
	return nil
}

// makeIn makes the directory in its parent; sibling is the parent's record when
// we made that.
func (d *Dir) makeIn(parent *anchor.Dir, sibling *record) (*made, error) {
	if _, err := parent.Lstat(d.name); err == nil {
		return nil, fmt.Errorf("something else lies there: %w", fs.ErrExist)
	}
	i, err := parent.Stat()
	if err != nil {
		return nil, err
	}
	rec := d.record(i.Dev)
	if err := d.m.journal.put(rec); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	h, err := d.mark(parent, sibling != nil)
	if err != nil {
		return nil, err
	}
	// Another process that swept or cleaned in the moment before the directory
	// was there may have dropped a record as naming nothing.
	for _, r := range []*record{rec, sibling} {
		if r == nil || d.m.journal.has(r.Kind, r.Path) {
			continue
		}
		if err := d.m.journal.put(r); err != nil {
			h.lock.Close()
			h.dir.Close()
			return nil, fmt.Errorf("journal: %w", err)
		}
	}
	return h, nil
}

func (d *Dir) mark(parent *anchor.Dir, created bool) (*made, error) {
	if err := parent.Mkdir(d.name, 0o700); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			_ = d.m.journal.drop(recordScratch, d.Path()) // nothing was made; a sweep sees that too
		}
		return nil, err
	}
	h, err := d.markIn(parent, created)
	if err == nil && d.m.sync {
		if err = parent.Sync(); err != nil {
			h.lock.Close()
			h.dir.Close()
		}
	}
	if err != nil {
		d.undo(parent)
		return nil, err
	}
	return h, nil
}

func (d *Dir) markIn(parent *anchor.Dir, created bool) (*made, error) {
	dir, err := parent.Walk(d.name)
	if err != nil {
		return nil, err
	}
	info, err := checkDir(parent, dir)
	var lock *os.File
	if err == nil {
		lock, err = newMarker(dir, MarkerName, d.marker(info, created), d.m.sync)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return &made{parent: parent, dir: dir, info: info, lock: lock}, nil
}

// undo takes back a directory that we made a moment ago and could not mark (a
// full disk): the marker, then the directory if it is empty.
func (d *Dir) undo(parent *anchor.Dir) {
	if dir, err := parent.Walk(d.name); err == nil {
		_ = dir.Unlink(MarkerName)
		dir.Close()
	}
	if parent.Rmdir(d.name) == nil {
		_ = d.m.journal.drop(recordScratch, d.Path())
	}
}

// openParent opens the directory that holds scratch directories and makes it
// when it is missing. The record is nil when it is not one that we made.
func (d *Dir) openParent() (*anchor.Dir, *record, error) {
	base, err := anchor.OpenDir(d.place.base)
	if err != nil || d.place.sibling == "" {
		return base, nil, err
	}
	defer base.Close()
	parent, err := base.Walk(d.place.sibling)
	if errors.Is(err, fs.ErrNotExist) {
		parent, err = d.makeParent(base)
	}
	if err != nil {
		return nil, nil, err
	}
	i, err := parent.Stat()
	if err != nil {
		parent.Close()
		return nil, nil, err
	}
	r, err := d.m.journal.get(recordParent, d.place.parent())
	if err != nil || !r.madeAs(i) {
		r = nil
	}
	return parent, r, nil
}

// siblingMode is that of a sibling directory which we make. The sticky bit is
// our signature: mkdir(2) sets it in the same step, so that one that was made
// in the moment before a crash is told apart from somebody else's.
const siblingMode = 0o1755

// makeParent makes the sibling directory. It is journaled before, and again
// with its identity after.
func (d *Dir) makeParent(base *anchor.Dir) (*anchor.Dir, error) {
	r := &record{Kind: recordParent, Path: d.place.parent(), CreatedAt: now(), owner: self()}
	if err := d.m.journal.put(r); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := base.Mkdir(d.place.sibling, siblingMode); err != nil && !errors.Is(err, fs.ErrExist) {
		_ = d.m.journal.drop(recordParent, r.Path) // nothing was made; a sweep sees that too
		return nil, err
	}
	parent, err := base.Walk(d.place.sibling)
	if err != nil {
		return nil, err
	}
	i, err := parent.Stat()
	if err == nil && r.madeAs(i) { // or another process of ours made it meanwhile
		r.Ino, r.Btime = i.Ino, i.Btime
		err = d.m.journal.put(r)
	}
	if err == nil && d.m.sync {
		err = base.Sync()
	}
	if err != nil {
		parent.Close()
		return nil, err
	}
	return parent, nil
}

// madeAs tells whether a directory is the one that the record of a sibling
// means: by identity, or, when we died before that was known, by signature,
// owner and birth.
func (r *record) madeAs(i anchor.Info) bool {
	switch {
	case !i.IsDir() || !ownedByUs(i):
		return false
	case r.Ino != 0:
		return i.Ino == r.Ino && sameBirth(i.Btime, r.Btime)
	}
	// File times are up to a tick older than the clock; the record's time is
	// in whole seconds.
	born := i.Btime == 0 || i.Btime >= r.CreatedAt.Add(-time.Second).UnixNano()
	return i.Perm()&0o1000 != 0 && born
}

func (d *Dir) record(dev uint64) *record {
	return &record{
		Kind: recordScratch, Path: d.Path(), Workspace: d.workspace, SessionID: d.session,
		CreatedAt: now(), owner: self(), AutoClean: d.config.AutoClean, Dev: dev,
	}
}

func (d *Dir) marker(info anchor.Info, created bool) *marker {
	return &marker{
		Schema: markerSchema, Owner: markerOwner, Workspace: d.workspace, SessionID: d.session,
		CreatedAt: now(), owner: self(), Dev: info.Dev, Ino: info.Ino, Btime: info.Btime,
		CreatedParent: created, AutoClean: d.config.AutoClean,
	}
}
