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
