package provider

import (
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// end is one end of a move or a copy: the entry that a path names, a link
// itself. Its call is the operation, and its errors name this end.
type end struct {
	*call
	aim
}

// way is a path as it is to be resolved, and the call whose errors name it.
type way struct {
	*call
	text string
}

// wayOf makes a path absolute. The call that is given stays as it is.
func (c *call) wayOf(path, cwd string) (way, error) {
	named := *c
	named.shown = path
	text, shown, err := named.absolute(path, ResolveOptions{Cwd: cwd})
	if err != nil {
		return way{}, err
	}
	named.shown = shown
	return way{&named, text}, nil
}

// end decides which entry the path names now, and asks the fence.
func (w way) end(access fence.Access) (end, error) {
	a, err := w.aimAt(w.text, access)
	if err != nil {
		return end{}, err
	}
	return end{w.call, a}, w.may(a.path, access)
}

// usable refuses what can be neither moved nor replaced: the root of the file
// system, the workspace, and what that lies in.
func (e end) usable() error {
	if e.name == "" || e.fence.Workspace() != "" && fence.PathCovers(e.path, e.fence.Workspace()) {
		return e.failed(CodeIOError, "it is the workspace, or holds it", syscall.EBUSY)
	}
	return nil
}

// open opens the parent.
func (e end) open() (*anchor.Dir, error) {
	if len(e.missing) > 0 {
		return nil, e.fail(CodeNotFound, "the directory does not exist")
	}
	d, err := e.openAim(e.dir)
	if err != nil {
		return nil, e.ours(err)
	}
	return d, nil
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
