package provider

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// CopyPath implements [Mover]. A copy keeps mode, times of modification,
// extended attributes and access lists, and owner and group where that is
// permitted; a link is copied as its text. Hard links in a tree become files of
// their own. A directory is built under one hidden name beside the destination
// and gets its name when it is complete and durable.
func (l *Local) CopyPath(ctx context.Context, f *fence.Fence, from, to string, o CopyPathOptions) (CopyPathOutcome, error) {
	c, err := l.begin(ctx, f, "copyPath", from)
	if err != nil {
		return CopyPathOutcome{}, err
	}
	var out CopyPathOutcome
	err = c.between(from, to, o.Cwd, fence.Read, fence.Create, false, func(e ends) error {
		if e.p.Info.IsDir() && !o.Recursive {
			return e.from.fail(CodeNotRegularFile, "it is a directory; copying one must be asked for with recursive")
		}
		y := copying{ends: e, overwrite: o.Overwrite}
		p, err := y.run()
		out = CopyPathOutcome{
			Path: e.to.path, Type: kindOf(e.p.Info), Files: y.files, Bytes: y.bytes,
			Replaced: p.replaced, Trashed: p.trashed, MetadataLost: y.lost.names(),
		}
		return err
	})
	if err != nil {
		return CopyPathOutcome{}, err
	}
	return out, nil
}

// lostNames collects what could not be carried over, each name once.
type lostNames []string

// maxLost bounds the list: attributes can have any name.
const maxLost = 64

func (n *lostNames) add(names []string) {
	for _, s := range names {
		if len(*n) < maxLost && !slices.Contains(*n, s) {
			*n = append(*n, s)
		}
	}
}

func (n lostNames) names() []string {
	slices.Sort(n)
	return n
}

// copying makes one copy of the source and gives it the name of the
// destination.
type copying struct {
	ends
	overwrite bool
	// move: the source is to be removed afterwards, so the fence is asked for
	// that too, before anything is made.
	move bool

	files int // that are no directories
	bytes int64
	lost  lostNames
}

// run copies and publishes. Whatever the error is, nothing is left of the copy
// and the destination is as it was.
func (y *copying) run() (placing, error) {
	p := placing{to: y.to, dir: y.dst, from: y.dst, what: anchor.Info{}, overwrite: y.overwrite}
	p.what.Mode = y.p.Info.Mode
	if y.p.Info.IsDir() {
		if err := y.to.mayMoveDir(); err != nil {
			return p, err
		}
	}
	there, err := p.fits()
	if err != nil {
		return p, err
	}
	switch i := y.p.Info; {
	case i.IsDir():
		err = y.dir(&p)
	case i.IsSymlink():
		err = y.link(&p)
	default:
		err = y.file(&p, there == nil)
	}
	if err != nil && CodeOf(err) == "" {
		err = moved(err)
	}
	if err != nil {
		return p, y.from.ours(err)
	}
	syncDir(y.dst)
	return p, nil
}

// file copies one file. As long as nothing is there it has no name before it is
// complete.
func (y *copying) file(p *placing, absent bool) error {
	for _, unnamed := range []bool{true, false} {
		if unnamed && !absent {
			continue
		}
		s, err := y.to.stage(y.dst, 0o600, unnamed)
		if unnamed && noUnnamed(err) {
			continue
		}
		if err != nil {
			return y.to.ours(moved(err))
		}
		err = y.publishFile(p, s)
		s.discard()
		if err == nil {
			y.files = 1
			return nil
		}
		if !unnamed || retries(err) || CodeOf(err) != "" || final(err) {
			return err
		}
	}
	panic("unreachable: the second round always returns")
}

func (y *copying) publishFile(p *placing, s *staged) error {
	n, err := y.fileInto(y.from.call, y.p, s.f)
	if err != nil {
		return err
	}
	s.size, y.bytes = n, n
	if err := s.finish(); err != nil {
		return y.to.ours(err)
	}
	y.from.at("staged")
	if s.name == "" {
		if err := p.last(); err != nil {
			return err
		}
		err := s.dir.LinkFile(s.f, y.to.name)
		if errors.Is(err, syscall.EEXIST) {
			if p.overwrite {
				return errMoved{err: err}
			}
			return p.exists("")
		}
		return err
	}
	p.name, p.what = s.name, s.info
	err = p.place()
	if now, lerr := look(y.dst, s.name); err == nil || lerr == nil && p.what.Ino != 0 && !now.SameFile(p.what) {
		// It has its own name now; or what it replaced could not be put back,
		// and is not ours to remove.
		s.name = ""
	}
	return err
}

// link copies the text of a link.
func (y *copying) link(p *placing) error {
	p.name = hiddenName()
	if err := y.linkInto(y.src, y.from.name, y.p.Info, y.dst, p.name); err != nil {
		return err
	}
	var err error
	if p.what, err = look(y.dst, p.name); err == nil {
		y.from.at("staged")
		err = p.place()
	}
	if err != nil {
		if now, lerr := look(y.dst, p.name); lerr == nil && (p.what.Ino == 0 || now.SameFile(p.what)) {
			_ = y.dst.Unlink(p.name)
		}
		return err
	}
	y.files = 1
	return nil
}

// linkInto makes a link with the text of another.
func (y *copying) linkInto(src *anchor.Dir, name string, info anchor.Info, dst *anchor.Dir, as string) error {
	text, err := src.Readlink(name)
	if errors.Is(err, syscall.EINVAL) {
		return errMoved{err: errChanged}
	}
	if err != nil {
		return moved(err)
	}
	if err := dst.Symlink(text, as); err != nil {
		return err
	}
	y.lost.add(dst.CarryLink(as, info))
	return nil
}

// dir builds a tree and publishes it with one rename.
func (y *copying) dir(p *placing) error {
	if err := y.survey(); err != nil {
		return err
	}
	y.from.at("surveyed")
	if err := y.from.alive(); err != nil {
		return err
	}
	p.name = hiddenName()
	if err := y.dst.Mkdir(p.name, 0o700); err != nil {
		return y.to.ours(moved(err))
	}
	var err error
	if p.what, err = look(y.dst, p.name); err == nil {
		err = y.build(p.name)
	}
	if err == nil {
		y.from.at("staged")
		err = p.place()
	}
	if err != nil {
		y.discard(p)
	}
	return err
}

// discard removes a tree that was not published. Its context is its own: what
// was cancelled must not stay.
func (y *copying) discard(p *placing) {
	o := anchor.RemoveOptions{}
	if p.what.Ino != 0 {
		o.Expect = &p.what
	}
	_, _, _ = y.dst.RemoveTree(context.WithoutCancel(y.from.ctx), p.name, o)
}
