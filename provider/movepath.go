package provider

import (
	"context"
	"errors"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// moving is one try of a movePath, with both ends open and locked.
type moving struct {
	from, to end
	src, dst *anchor.Dir
	p        *pin
	o        MovePathOptions
	out      MovePathOutcome
}

// MovePath implements [Mover]: one rename that cannot replace, or, between file
// systems, a copy and the removal of what was copied.
//
// The fence judges it as a rename of the same names by a command: both names,
// for a directory also what the names may lead to. A directory that comes from
// where less is protected is copied, entry by entry, as a command's mover has
// to do it.
func (l *Local) MovePath(ctx context.Context, f *fence.Fence, from, to string, o MovePathOptions) (MovePathOutcome, error) {
	c, err := l.begin(ctx, f, "movePath", from)
	if err != nil {
		return MovePathOutcome{}, err
	}
	m := moving{o: o}
	err = c.between(from, to, o.Cwd, fence.Rename, fence.Rename, true, func(e ends) error {
		m.from, m.to, m.src, m.dst, m.p = e.from, e.to, e.src, e.dst, e.p
		m.out = MovePathOutcome{Path: e.to.path, Type: kindOf(e.p.Info)}
		return m.try()
	})
	if err != nil {
		return MovePathOutcome{}, err
	}
	return m.out, nil
}

// ends are both ends of a move or a copy, open, and the source pinned.
type ends struct {
	from, to end
	src, dst *anchor.Dir
	p        *pin
}

// between runs try for the entries that two paths name, and again when a path
// changed meanwhile. Fence first: both paths are judged before anything is
// looked at. A copy takes the lock of its destination alone.
func (c *call) between(from, to, cwd string, a, b fence.Access, move bool, try func(ends) error) error {
	fromWay, err := c.wayOf(from, cwd)
	if err != nil {
		return err
	}
	toWay, err := c.wayOf(to, cwd)
	if err != nil {
		return err
	}
	c.shown = fromWay.shown
	err = c.again(func() error {
		var e ends
		if e.from, err = fromWay.end(a); err != nil {
			return err
		}
		if e.to, err = toWay.end(b); err != nil {
			return err
		}
		return e.locked(move, try)
	})
	if err != nil {
		return c.mapped(err)
	}
	return nil
}

func (e ends) locked(move bool, try func(ends) error) error {
	if e.from.path == e.to.path {
		return e.from.fail(CodeSameTarget, "source and destination are the same")
	}
	if err := e.to.usable(); err != nil {
		return err
	}
	keys := []string{e.to.path}
	if move {
		if err := e.from.usable(); err != nil {
			return err
		}
		keys = append(keys, e.from.path)
	}
	release, err := e.from.lockFiles(keys...)
	if err != nil {
		return err
	}
	defer release()
	e.from.at("locked")
	if err := e.from.alive(); err != nil {
		return err
	}
	if e.src, err = e.from.open(); err != nil {
		return err
	}
	defer e.src.Close()
	if e.p, err = e.pin(); err != nil {
		return err
	}
	defer e.p.Close()
	if e.dst, err = e.to.open(); err != nil {
		return err
	}
	defer e.dst.Close()
	e.from.at("found")
	if err := e.from.alive(); err != nil {
		return err
	}
	if e.to.slash && !e.p.Info.IsDir() {
		return e.to.fail(CodeNotDirectory, "the path says that a directory is meant")
	}
	if e.p.Info.IsDir() && fence.PathCovers(e.from.path, e.to.path) {
		return e.to.failed(CodeIOError, "it lies in the directory itself", syscall.EINVAL)
	}
	return try(e)
}

// pin pins the source. The root of the file system has no name: it can be
// neither copied nor moved.
func (e ends) pin() (*pin, error) {
	if e.from.name == "" {
		return nil, e.from.failed(CodeIOError, "it is the root of the file system", syscall.EBUSY)
	}
	p, err := e.from.call.pin(e.src, e.from.name)
	switch {
	case absent(err):
		return nil, e.from.fail(CodeNotFound, "nothing is there")
	case err != nil:
		return nil, e.from.ours(err)
	}
	i := p.Info
	if e.from.slash && !i.IsDir() {
		p.Close()
		return nil, e.from.fail(CodeNotDirectory, "the path says that a directory is meant")
	}
	if !i.IsRegular() && !i.IsDir() && !i.IsSymlink() {
		p.Close()
		return nil, e.from.notRegular()
	}
	return p, nil
}

func kindOf(i anchor.Info) FileType { return described{info: i}.kind() }

func (m *moving) try() error {
	mount, err := m.src.IsMountPoint(m.from.name)
	switch {
	case err != nil:
		return m.from.ours(moved(err))
	case mount:
		return m.from.failed(CodeIOError, "another file system is mounted there", syscall.EBUSY)
	}
	if m.p.Info.IsDir() {
		for _, e := range []end{m.from, m.to} {
			if err := e.mayMoveDir(); err != nil {
				return err
			}
		}
		if m.from.fence.Looser(m.from.path, m.to.path) {
			return m.across()
		}
	}
	p := placing{to: m.to, dir: m.dst, from: m.src, name: m.from.name, fromPath: m.from.path, what: m.p.Info, overwrite: m.o.Overwrite}
	err = p.place()
	if errors.Is(err, syscall.EXDEV) {
		return m.across()
	}
	if err != nil {
		return m.from.ours(err)
	}
	m.done(p)
	syncDir(m.dst)
	if m.from.dir != m.to.dir {
		syncDir(m.src)
	}
	return nil
}

// mayMoveDir asks the fence for a name that a directory leaves or gets: with it
// goes what may be protected or hidden somewhere in it.
func (e end) mayMoveDir() error {
	if d := e.fence.CheckDirectory(e.path, e.shown, fence.Rename); d != nil {
		return e.denied(d)
	}
	return nil
}

func (m *moving) done(p placing) { m.out.Replaced, m.out.Trashed = p.replaced, p.trashed }

// across moves by a copy that is complete and has its name before anything of
// the source goes. What goes is what was copied: an entry that was changed or
// made meanwhile stays, and is an error.
func (m *moving) across() error {
	y := copying{ends: ends{m.from, m.to, m.src, m.dst, m.p}, overwrite: m.o.Overwrite, move: true}
	p, err := y.run()
	if err != nil {
		return err
	}
	m.done(p)
	m.out.Copied, m.out.MetadataLost = true, y.lost.names()
	m.from.at("published")
	if err := y.removeSource(); err != nil {
		return err
	}
	syncDir(m.src)
	return nil
}

// look describes an entry with its identity.
func look(d *anchor.Dir, name string) (anchor.Info, error) { return pinned.Look(d, name) }
