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
	ends
	o   MovePathOptions
	out MovePathOutcome
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
		m.ends = e
		m.out = MovePathOutcome{Path: e.to.path, Type: kindOf(e.p.Info)}
		return m.try()
	})
	if err != nil {
		return MovePathOutcome{}, err
	}
	return m.out, nil
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
	y := copying{ends: m.ends, overwrite: m.o.Overwrite, move: true}
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
