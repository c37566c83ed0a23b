//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

func (f *freedesktop) restoreGroup(ctx context.Context, id string, o RestoreOptions) (RestoredGroup, error) {
	r := RestoredGroup{Entries: []record.Entry{}}
	parts, err := f.findGroup(ctx, id)
	if err != nil {
		return r, failed(opRestoreGroup, "", "", err)
	}
	defer func() {
		for _, g := range parts {
			g.close()
		}
	}()
	if len(parts) == 0 {
		return r, failure(record.CodeNotFound, record.ReasonOperationFailed, opRestoreGroup, "", "nothing in the trash was removed by "+id, nil)
	}
	r.Ended = true
	for _, g := range parts {
		r.Entries = append(r.Entries, g.e.entry(g.p, nil))
		if err := f.restorePart(ctx, g, o, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// comeback is the restoring of one part.
type comeback struct {
	f   *freedesktop
	ctx context.Context
	o   RestoreOptions
	g   *groupPart
	r   *RestoredGroup
	// base is where the things go that the list names relative to it; all of
	// them when there is a destination.
	base  string
	dirs  map[string]record.RemovedLine // what a directory was, by path
	files []record.RemovedLine
	gone  []string // directories that were removed
	// named are positions in files, by path. A directory that was removed after a
	// file of its name does not come back before it.
	named map[string][]int
	made  []madeAgain
	// last are the directories used last: to put into, and to take from.
	to, from heldDir
}

// madeAgain is a directory that was made and gets its mode and time at the end.
type madeAgain struct {
	path string
	self anchor.Info
	was  *record.RemovedLine // nil of one that the group does not know
}

type heldDir struct {
	path string
	dir  *anchor.Dir
}

func (h *heldDir) set(path string, d *anchor.Dir) *anchor.Dir {
	h.drop()
	h.path, h.dir = path, d
	return d
}

func (h *heldDir) drop() {
	if h.dir != nil {
		h.dir.Close()
		h.dir = nil
	}
}

func (f *freedesktop) restorePart(ctx context.Context, g *groupPart, o RestoreOptions, r *RestoredGroup) error {
	c := &comeback{f: f, ctx: ctx, o: o, g: g, r: r, base: filepath.Dir(g.e.original), dirs: map[string]record.RemovedLine{}, named: map[string][]int{}}
	defer c.to.drop()
	defer c.from.drop()
	if err := c.aim(); err != nil {
		return err
	}
	if err := c.plan(); err != nil {
		return failed(opRestoreGroup, g.p.dir.Path()+"/files/"+g.e.name, "its list cannot be read", err)
	}
	before := r.NotRestored
	err := c.all()
	c.finish()
	if err != nil {
		return failed(opRestoreGroup, "", "", err)
	}
	if r.NotRestored == before {
		c.forget()
	}
	return nil
}

// aim makes the place canonical to which everything goes.
func (c *comeback) aim() error {
	if c.o.Destination == "" && c.base == "/" {
		return nil
	}
	// As for one thing, of which the name would be the place.
	e := &found{name: c.g.e.name, hasData: true, hasRecord: true, original: c.base}
	o := c.o
	if o.Destination == "" {
		o.Destination = c.base
	}
	path, err := c.f.destination(e, o)
	if err == nil {
		c.base = path
	}
	return err
}

// plan reads the list.
func (c *comeback) plan() error {
	ended, lost, named := false, int64(0), int64(0)
	n := 0
	_, err := c.g.read(func(l record.RemovedLine) error {
		if n++; n%1024 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		switch l.Kind {
		case record.RemovedFile:
			path := c.path(l.Path)
			c.named[path] = append(c.named[path], len(c.files))
			c.files = append(c.files, l)
		case record.RemovedSeen, record.RemovedDir:
			path := c.path(l.Path)
			if slices.ContainsFunc(c.named[path], func(n int) bool { return c.has(c.files[n]) }) {
				if l.Kind == record.RemovedDir {
					c.r.leave(path, c.plain(path, fs.ErrExist))
				}
				break
			}
			if was, ok := c.dirs[path]; !ok || was.Kind == record.RemovedDir && l.Kind == record.RemovedSeen {
				c.dirs[path] = l
			}
			if l.Kind == record.RemovedDir {
				c.gone = append(c.gone, path)
			}
		case record.RemovedLost:
			named++
		case record.RemovedEnd:
			ended, lost = true, l.Lost
		}
		return nil
	})
	c.r.Ended = c.r.Ended && ended
	// The end of every part has the number of the whole group.
	c.r.NotKept = max(c.r.NotKept, lost, named)
	return err
}

// has tells whether a file is in the group.
func (c *comeback) has(l record.RemovedLine) bool {
	at := inTree(l.Path, l.Tree)
	d, err := c.g.root.Walk(filepath.Dir(at))
	if err != nil {
		return false
	}
	defer d.Close()
	_, err = d.Lstat(filepath.Base(at))
	return err == nil
}

// path is where a thing goes.
func (c *comeback) path(rel string) string {
	if !strings.HasPrefix(rel, "/") {
		return filepath.Join(c.base, rel)
	}
	if c.o.Destination == "" {
		return rel
	}
	return filepath.Join(c.base, inTree(rel, 1))
}

func (c *comeback) all() error {
	slices.Sort(c.gone) // what holds another comes before it
	for _, path := range slices.Compact(c.gone) {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if _, err := c.open(path); err != nil {
			c.r.leave(path, c.plain(path, err))
		}
	}
	for _, l := range c.files {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		path := c.path(l.Path)
		if err := c.file(l, path); err != nil {
			c.r.leave(path, c.plain(path, err))
		}
	}
	return nil
}

// plain gives an error the form that all errors of this room have.
func (c *comeback) plain(path string, err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return failure(codeExists, record.ReasonOperationFailed, opRestoreGroup, path, "something is there; it is never replaced", err)
	}
	if e := (*record.Error)(nil); errors.As(err, &e) {
		return err
	}
	if errors.Is(err, errRefused) {
		return errors.Unwrap(err)
	}
	return failed(opRestoreGroup, path, "", err)
}

var errRefused = errors.New("refused")

// refused is what Allow said.
type refused struct{ err error }

func (r refused) Error() string        { return r.err.Error() }
func (r refused) Unwrap() error        { return r.err }
func (r refused) Is(target error) bool { return target == errRefused }

func (c *comeback) allow(path string, what anchor.Info) error {
	if c.o.Allow != nil {
		if err := c.o.Allow(record.Entry{OriginalPath: path, Type: typeOf(what)}, path); err != nil {
			return refused{err}
		}
	}
	return nil
}

// open opens a directory to put things into. What is missing is made when the
// group knows it, or when it was asked for.
func (c *comeback) open(path string) (*anchor.Dir, error) {
	if c.to.dir != nil && c.to.path == path {
		return c.to.dir, nil
	}
	d, err := anchor.OpenDir(path)
	if err == nil {
		return c.to.set(path, d), nil
	}
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return nil, err
	}
	was, known := c.dirs[path]
	if !known && !c.o.Parents && (c.o.Destination == "" || path != c.base) && !c.holdsKnown(path) {
		return nil, failure(codeNotFound, record.ReasonOperationFailed, opRestoreGroup, path, "this directory is missing (parents makes it)", err)
	}
	up, err := c.open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := c.allow(path, anchor.Info{Mode: anchor.TypeDir}); err != nil {
		return nil, err
	}
	name, mode := filepath.Base(path), uint32(0o777)
	if known {
		mode = 0o700
	}
	if err := up.Mkdir(name, mode); err != nil {
		return nil, err
	}
	c.r.Directories++
	if d, err = up.Walk(name); err != nil {
		return nil, err
	}
	m := madeAgain{path: path}
	if m.self, err = d.Stat(); err != nil {
		d.Close()
		return nil, err
	}
	if known {
		m.was = &was
	}
	c.made = append(c.made, m)
	return c.to.set(path, d), nil
}

// holdsKnown: beneath a destination everything is made that is needed.
func (c *comeback) holdsKnown(path string) bool {
	return c.o.Destination != "" && within(path, c.base)
}

// file moves one file back, by a rename that replaces nothing. One that is not
// in the group has come back before, or was never there.
func (c *comeback) file(l record.RemovedLine, path string) error {
	at := inTree(l.Path, l.Tree)
	dir, name := filepath.Dir(at), filepath.Base(at)
	if c.from.dir == nil || c.from.path != dir {
		d, err := c.g.root.Walk(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		c.from.set(dir, d)
	}
	have, err := c.from.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	to, err := c.open(filepath.Dir(path))
	if err != nil {
		return err
	}
	if now, err := to.Lstat(filepath.Base(path)); err == nil && now.SameFile(have) {
		// It was never removed: the kernel refused, or this was killed before.
		return c.from.dir.Unlink(name)
	}
	if err := c.allow(path, have); err != nil {
		return err
	}
	if err := c.f.move(c.from.dir, name, to, filepath.Base(path), false); err != nil {
		if errors.Is(err, syscall.EXDEV) {
			return failure(record.CodeUnavailable, record.ReasonBackend, opRestoreGroup, path, "it is in another mount than the trash; choose another destination", err)
		}
		return err
	}
	c.r.Files++
	return nil
}
