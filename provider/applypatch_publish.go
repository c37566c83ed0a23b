package provider

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// parent opens the directory of a file, and makes the missing ones.
func (t *transaction) parent(f *file) (*parents, error) {
	path := filepath.Dir(f.a.path)
	if p := t.dirs[path]; p != nil {
		return p, nil
	}
	p, err := f.c.openParents(f.a)
	if err != nil {
		return nil, err
	}
	t.dirs[path] = p
	t.made = append(t.made, p)
	return p, nil
}

// stageFile makes the new file, complete and with its metadata, beside its
// target.
func (t *transaction) stageFile(f *file) error {
	p, err := t.parent(f)
	if err != nil {
		return err
	}
	f.dir = p.dir
	f.commit.s, err = f.stage(f.p == nil)
	return moved(err)
}

// stage makes the file. unnamed asks for one without a name, where there are
// such files.
func (f *file) stage(unnamed bool) (*staged, error) {
	var mode *uint32
	if f.c.mode != 0 {
		mode = &f.c.mode
	}
	var dress func(*os.File) error
	like := f.now.like
	if like == nil && f.p != nil {
		like = f
	}
	if like != nil {
		dress = func(to *os.File) (err error) {
			f.commit.r.lost, err = like.p.Carry(like.p.Info, to)
			return err
		}
	}
	s, err := f.c.stageNew(f.dir, mode, unnamed, dress, f.now.mark, f.now.text)
	if unnamed && noUnnamed(err) {
		s, err = f.c.stageNew(f.dir, mode, false, dress, f.now.mark, f.now.text)
	}
	if err == nil {
		s.keep = true
	}
	return s, err
}

// recheck asks the guard once more and looks whether the file is still what the
// patch was made for.
func (t *transaction) recheck(f *file) error {
	if err := t.guard(f); err != nil {
		return err
	}
	switch {
	case f.p != nil:
		return f.c.unchanged(f.dir, f.a.name, f.expected())
	case f.dir == nil: // in the end nothing is there either
		return nil
	}
	if _, err := pinned.Look(f.dir, f.a.name); !absent(err) {
		return errMoved{err: errors.Join(errChanged, err)}
	}
	return nil
}

func (f *file) expected() expected {
	e := expected{p: f.p, info: f.p.Info, sum: f.sum, hashed: f.hashed, strict: true}
	e.dressed = f.now != nil && f.now.like != nil && f.now.like != f
	return e
}

// publishFile gives the staged file its name.
func (t *transaction) publishFile(f *file) error {
	k := &f.commit
	if f.p == nil {
		return t.publishCreated(f)
	}
	t.relinked(f)
	lost := k.r.lost
	held, err := f.c.publish(f.dir, f.a, k.s, f.expected(), nil, &k.r)
	if err != nil {
		return err
	}
	held.Close()
	if k.r.lost == nil {
		k.r.lost = lost
	}
	k.r.version = f.c.published(k.s, f.a.path)
	return nil
}

func (t *transaction) publishCreated(f *file) error {
	k := &f.commit
	if err := f.c.alive(); err != nil {
		return err
	}
	err := f.c.giveName(k.s, f.a.name)
	if err != nil && k.s.name == "" && !final(err) {
		// A file without a name that cannot be linked: with a hidden one then.
		k.s.discard()
		if k.s, err = f.stage(false); err != nil {
			return err
		}
		err = f.c.giveName(k.s, f.a.name)
	}
	switch {
	case errors.Is(err, syscall.EEXIST) && !t.overwrite:
		return errMoved{err: err, code: CodeAlreadyExists}
	case errors.Is(err, syscall.EEXIST):
		return errMoved{err: err, code: CodeStaleVersion}
	case err != nil:
		return moved(err)
	}
	k.created = true
	k.r.version = f.c.published(k.s, f.a.path)
	return nil
}

// relinked: when another name of the same file was replaced or removed by this
// patch, that changed the file's ctime, and nobody else may have done anything.
func (t *transaction) relinked(f *file) {
	for _, g := range t.done {
		if g.p != nil && g.p.Info.SameFile(f.p.Info) {
			if now, err := f.p.Stat(); err == nil && now.Size == f.p.Info.Size && now.Mtime == f.p.Info.Mtime {
				f.p.Info.Ctime = now.Ctime
			}
			return
		}
	}
}

// stillThere looks at a file that is to be removed.
func (t *transaction) stillThere(f *file) error {
	t.relinked(f)
	return f.c.unchanged(f.dir, f.a.name, f.expected())
}

// takeFile takes away a file that was moved, or deleted outright.
func (t *transaction) takeFile(f *file) (err error) {
	t.relinked(f)
	f.commit.hidden, err = f.c.takeAway(f.dir, f.a, f.expected())
	return err
}

// trashFile puts a file that goes into the trash.
func (t *transaction) trashFile(f *file, last bool) error {
	unlock, err := f.c.lockedDir(f.dir, f.a.path)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.stillThere(f); err != nil {
		return err
	}
	f.c.at("checked")
	if err := f.c.alive(); err != nil {
		return err
	}
	return t.intoTrash(f, f.dir, f.a.name, f.p.Info, last)
}

// trashReplaced puts the file that a published one has replaced into the trash.
func (t *transaction) trashReplaced(f *file, last bool) error {
	t.failing = f.overwritten
	unlock, err := f.c.lockedDir(f.dir, f.a.path)
	if err != nil {
		return err
	}
	defer unlock()
	s := f.commit.s
	err = t.intoTrash(f, s.dir, s.name, s.old, last)
	if err == nil {
		s.name, f.commit.spare = f.commit.spare, ""
	}
	return err
}

// intoTrash puts an entry of a directory into the trash. All but the last get a
// second name first, so that they can be brought back when a later one is
// refused.
func (t *transaction) intoTrash(f *file, dir *anchor.Dir, name string, what anchor.Info, last bool) error {
	spare := ""
	if !last {
		spare = hiddenName()
		if dir.Link(name, dir, spare) != nil {
			spare = ""
		}
	}
	e, err := f.c.trash.Put(f.c.ctx, dir, name, f.a.path, what, false)
	if err != nil {
		if spare != "" {
			_ = dir.Unlink(spare)
		}
		if f.overwritten != nil {
			return f.c.unkept(err)
		}
		return f.c.untrashed(err)
	}
	f.commit.entry, f.commit.spare = &e, spare
	return nil
}
