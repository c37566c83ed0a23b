package provider

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// mayHold asks the fence for one entry of the tree: to be read, to be removed
// if the tree moves, and to be made at its new place.
func (y *copying) mayHold(rel string, directory bool) error {
	from, to := filepath.Join(y.from.path, rel), filepath.Join(y.to.path, rel)
	shown := filepath.Join(y.from.shown, rel)
	for _, a := range []fence.Access{fence.Read, fence.Delete} {
		if a == fence.Delete && !y.move {
			continue
		}
		if d := y.from.fence.CheckAs(from, shown, a); d != nil {
			return y.from.below(rel).denied(d)
		}
	}
	access := fence.Create
	if directory {
		access = fence.Mkdir
	}
	if d := y.to.fence.CheckAs(to, filepath.Join(y.to.shown, rel), access); d != nil {
		return y.to.below(rel).denied(d)
	}
	return nil
}

// survey goes through the tree before anything is made: what the fence refuses,
// what cannot be copied and what is too much is refused with nothing done.
func (y *copying) survey() error {
	return y.walk(nil, &surveyor{y})
}

type surveyor struct{ y *copying }

func (s *surveyor) enter(w *walk, l *level) error {
	if l.rel == "" {
		return nil
	}
	return s.y.mayHold(l.rel, true)
}

func (s *surveyor) entry(_ *walk, l *level, e anchor.Entry) (bool, error) {
	rel := filepath.Join(l.rel, e.Name)
	if err := s.y.mayHold(rel, false); err != nil {
		return false, err
	}
	if e.Type != anchor.TypeRegular && e.Type != anchor.TypeSymlink && e.Type != 0 {
		return false, s.y.from.below(rel).notRegular()
	}
	return false, nil
}

func (s *surveyor) leave(*walk, *level, *level) error { return nil }

// walk goes through the source, which must still be what was pinned.
func (y *copying) walk(twin *anchor.Dir, v visitor) error {
	root, err := y.src.Walk(y.from.name)
	if err != nil {
		return y.from.ours(moved(err))
	}
	defer root.Close()
	i, err := root.Stat()
	if err != nil {
		return y.from.ours(err)
	}
	if y.p.Info.Ino != 0 && !i.SameFile(y.p.Info) {
		return errMoved{err: errChanged}
	}
	w := walk{
		c: y.from.call, root: root, twin: twin, mount: i, limit: y.from.listMax,
		room: maxTreePath - max(len(y.from.path), len(y.to.path)),
	}
	return w.run(v)
}

// build fills the tree called name, which is empty and ours.
func (y *copying) build(name string) error {
	top, err := y.dst.Walk(name)
	if err != nil {
		return y.to.ours(err)
	}
	defer top.Close()
	f, err := y.dst.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return y.to.ours(err)
	}
	defer f.Close()
	// What the directory hands down is not what the source has.
	if err := pinned.NoDefaultACL(f); err != nil {
		return y.to.ours(err)
	}
	self, err := anchor.StatFile(f)
	if err != nil {
		return y.to.ours(err)
	}
	if err := y.walk(top, &builder{y: y, top: f, self: self}); err != nil {
		return err
	}
	return y.to.ours(pinned.SyncTree(f))
}

// builder makes in the twin what the walk meets.
type builder struct {
	y    *copying
	top  *os.File
	self anchor.Info // of top
}

func (b *builder) enter(_ *walk, l *level) error {
	if l.rel == "" {
		return nil
	}
	return b.y.mayHold(l.rel, true)
}

// twin makes the directory of a level in that of its parent.
func (b *builder) twin(up, l *level) (*anchor.Dir, error) {
	if l.info.SameFile(b.self) {
		// The destination lies in the source under another name of it.
		return nil, b.y.to.failed(CodeIOError, "it lies in the directory itself", syscall.EINVAL)
	}
	if err := up.twin.Mkdir(l.name, 0o700); err != nil {
		return nil, b.y.to.ours(err)
	}
	d, err := up.twin.Walk(l.name)
	if err != nil {
		return nil, b.y.to.ours(err)
	}
	return d, nil
}

func (b *builder) entry(_ *walk, l *level, e anchor.Entry) (bool, error) {
	rel := filepath.Join(l.rel, e.Name)
	if err := b.y.mayHold(rel, false); err != nil {
		return false, err
	}
	again, err := b.y.entryInto(b.y.from.below(rel), l.dir, e.Name, l.twin)
	if err == nil && !again {
		b.y.from.at("copied")
	}
	return again, err
}

// leave gives a directory its metadata once nothing more is made in it.
func (b *builder) leave(_ *walk, up, l *level) error {
	dir, name := b.y.src, b.y.from.name
	if up != nil {
		dir, name = up.dir, l.name
	}
	c := b.y.from.below(l.rel)
	p, err := c.pin(dir, name)
	if err != nil {
		return c.ours(moved(err))
	}
	defer p.Close()
	if l.info.Ino != 0 && !p.Info.SameFile(l.info) {
		return errMoved{err: errChanged}
	}
	f := b.top
	if up != nil {
		if f, err = up.twin.Open(name, os.O_RDONLY, 0); err != nil {
			return b.y.to.ours(err)
		}
		defer f.Close()
	}
	lost, err := p.Carry(p.Info, f)
	if err != nil {
		return c.ours(err)
	}
	b.y.lost.add(lost)
	if anchor.SetMtime(f, p.Info.Mtime) != nil {
		b.y.lost.add([]string{"mtime"})
	}
	return nil
}
