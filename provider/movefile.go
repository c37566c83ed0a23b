package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// movingFile is one moveFile. The call is that of the source; dst is the
// destination, which is written as by writeText.
type movingFile struct {
	*call
	dst writing
	o   MoveOptions
}

// MoveFile implements [Mover].
func (l *Local) MoveFile(ctx context.Context, f *fence.Fence, from, to Target, o MoveOptions) (MoveOutcome, error) {
	c, err := l.begin(ctx, f, "moveFile", from.DisplayPath)
	if err != nil {
		return MoveOutcome{}, err
	}
	there := *c
	there.shown = to.DisplayPath
	m := movingFile{call: c, o: o}
	m.dst = writing{call: &there, o: WriteOptions{Expected: o.ExpectedDestination, OverrideReadOnly: o.OverrideReadOnly}}
	if err := m.dst.check(); err != nil {
		return MoveOutcome{}, err
	}
	var out MoveOutcome
	err = c.again(func() (err error) {
		out, err = m.aimed(from, to)
		return err
	})
	if err != nil {
		return MoveOutcome{}, c.mapped(err)
	}
	return out, nil
}

// aimed asks the fence about both ends before it looks at either.
func (m *movingFile) aimed(from, to Target) (MoveOutcome, error) {
	src, err := m.aim(from)
	if err == nil {
		err = m.may(src.path, fence.Delete)
	}
	if err != nil {
		return MoveOutcome{}, err
	}
	dst, err := m.dst.aim(to)
	if err != nil {
		return MoveOutcome{}, err
	}
	if src.path == dst.path {
		return MoveOutcome{}, m.fail(CodeSameTarget, "source and destination are one file")
	}
	release, err := m.lockFiles(src.path, dst.path)
	if err != nil {
		return MoveOutcome{}, err
	}
	defer release()
	m.at("locked")
	if err := m.alive(); err != nil {
		return MoveOutcome{}, err
	}
	return m.try(src, dst)
}

// try is one attempt, with both locks held: type, guards, content, effects.
func (m *movingFile) try(src, dst aim) (MoveOutcome, error) {
	switch {
	case src.name == "":
		return MoveOutcome{}, m.notRegular()
	case src.link, len(src.missing) > 0:
		return MoveOutcome{}, m.stale(saysGone)
	case dst.name == "":
		return MoveOutcome{}, m.dst.notRegular()
	case dst.link:
		return MoveOutcome{}, m.dst.refuseLink()
	}
	dir, err := m.openAim(src.dir)
	if err != nil {
		return MoveOutcome{}, err
	}
	defer dir.Close()
	p, err := m.pinSource(dir, src.name)
	if err != nil {
		return MoveOutcome{}, err
	}
	defer p.Close()
	to, err := m.lookAt(dst)
	if err != nil {
		return MoveOutcome{}, err
	}
	defer to.close()
	cg, err := m.cargo(p)
	if err != nil {
		return MoveOutcome{}, err
	}
	cg.dir, cg.a = dir, src
	if err := m.judgeDestination(to, cg); err != nil {
		return MoveOutcome{}, err
	}
	m.at("prepared")
	if err := m.alive(); err != nil {
		return MoveOutcome{}, err
	}
	// From here on both effects are completed (section 4.6).
	sure := *m.call
	sure.ctx = context.WithoutCancel(m.ctx)
	m.call = &sure
	there := *m.dst.call
	there.ctx = sure.ctx
	m.dst.call = &there
	return m.effects(cg, to)
}

// destination is the place that the file moves to. dir is nil while parents are
// missing, p when nothing is there.
type destination struct {
	a      aim
	dir    *anchor.Dir
	p      *pin
	want   expected
	before *string
}

func (d *destination) close() {
	if d.p != nil {
		d.p.Close()
	}
	if d.dir != nil {
		d.dir.Close()
	}
}

// lookAt is what writeText finds out before its guard.
func (m *movingFile) lookAt(a aim) (*destination, error) {
	d := &destination{a: a}
	if len(a.missing) > 0 {
		return d, nil
	}
	var err error
	if d.dir, err = m.dst.openAim(a.dir); err != nil {
		return nil, m.dst.ours(err)
	}
	d.p, err = m.dst.pin(d.dir, a.name)
	switch {
	case absent(err):
		m.at("absent")
		return d, nil
	case err != nil:
		err = m.dst.ours(err)
	case d.p.Info.IsSymlink() && m.fence.Mode() != fence.FullAccess:
		err = errMoved{err: errBecameLink}
	case d.p.Info.IsSymlink():
		err = m.dst.refuseLink()
	case !d.p.Info.IsRegular():
		err = m.dst.notRegular()
	default:
		return d, nil
	}
	d.close()
	return nil, err
}

// judgeDestination compares the destination with the intent of the call, and
// keeps its text.
func (m *movingFile) judgeDestination(d *destination, cg *cargo) error {
	w := &m.dst
	switch {
	case d.p == nil && w.replaces():
		return w.stale(saysGone)
	case d.p == nil:
		return nil
	case w.creates():
		return w.fail(CodeNotObserved, "it exists and has not been read")
	}
	want, old, err := w.judged(d.p, w.guard(), w.replaces(), cg.size())
	if err != nil {
		return w.ours(err)
	}
	want.dressed = true
	d.want, d.before = want, old.before
	if err := w.writable(d.p, m.o.OverrideReadOnly); err != nil {
		return err
	}
	if cg.parts == nil && d.p.Info.SameFile(cg.p.Info) {
		return nil // another name of the source: nothing is lost
	}
	d.want.kept, err = w.keepsOverwritten(d.a.path)
	return err
}
