package provider

import (
	"errors"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// end is one end of a move or a copy: the entry that a path names, a link
// itself. Its call is the operation, and its errors name this end.
type end struct {
	*call
	path string // canonical parent and name
	dir  string // the canonical parent
	name string // empty for the root of the file system
	// orphan: the parent does not exist.
	orphan bool
	// asDir: the spelling says that a directory is meant.
	asDir bool
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
	e := end{call: w.call, path: a.path, dir: filepath.Dir(a.path), name: a.name, orphan: len(a.missing) > 0, asDir: a.slash}
	return e, e.may(e.path, access)
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
	if e.orphan {
		return nil, e.fail(CodeNotFound, "the directory does not exist")
	}
	d, err := e.openAim(e.dir)
	if err != nil {
		return nil, e.ours(err)
	}
	return d, nil
}

// ours keeps an error that asks for another try, and makes any other one name
// this end.
func (c *call) ours(err error) error {
	if err == nil || retries(err) {
		return err
	}
	return c.mapped(err)
}

func retries(err error) bool {
	var m errMoved
	return errors.As(err, &m)
}

// below is the call whose errors name an entry below the path of this one.
func (c *call) below(rel string) *call {
	if rel == "" {
		return c
	}
	d := *c
	d.shown = filepath.Join(c.shown, rel)
	return &d
}
