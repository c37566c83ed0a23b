package provider

import (
	"errors"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// spot is one name in an opened directory. name is empty for the root of the
// file system, which has no parent: dir is then the root itself.
type spot struct {
	dir  *anchor.Dir
	name string
	path string // canonical
}

// lstat describes what is at the spot, a link itself.
func (s spot) lstat() (anchor.Info, error) {
	if s.name == "" {
		return s.dir.Stat()
	}
	return s.dir.Lstat(s.name)
}

// reach opens the parent of a key that is to be looked at and hands it to use.
// The path of a key holds no link when it was made; when one is found on the
// way now, the path is resolved again and the fence is asked again. use may
// return errMoved to have that done for the last name too.
func (c *call) reach(key string, use func(spot) error) error {
	path, stale := key, false
	return c.again(func() error {
		if stale {
			r, err := c.fence.Resolve(key)
			if err != nil {
				return err
			}
			path = r.Path
		}
		stale = true
		if err := c.may(path, fence.Read); err != nil {
			return err
		}
		parent := filepath.Dir(path)
		dir, err := anchor.OpenDir(parent)
		if errors.Is(err, syscall.ELOOP) {
			return errMoved{err: err}
		}
		if err != nil {
			return err
		}
		defer dir.Close()
		s := spot{dir: dir, path: path}
		if parent != path {
			s.name = filepath.Base(path)
		}
		return use(s)
	})
}

// leadsNowhere tells whether the link at a canonical path has no target now.
func (c *call) leadsNowhere(path string) bool {
	r, err := fence.Canonical(path)
	return err == nil && !r.Exists || err != nil && nowhere(err)
}
