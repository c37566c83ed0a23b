package provider

import (
	"errors"
	"io/fs"
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

// reach opens the parent of a path that is to be looked at or read and hands it
// to use. The path of a key holds no link when it was made; when one is found
// on the way now, or use returns errMoved, anew gives the path as it leads now,
// and the fence is asked again.
func (c *call) reach(path string, anew func() (string, error), use func(spot) error) error {
	first := true
	return c.again(func() (err error) {
		if !first {
			if path, err = anew(); err != nil {
				return err
			}
		}
		first = false
		if err := c.may(path, fence.Read); err != nil {
			return err
		}
		parent := filepath.Dir(path)
		dir, err := c.openDir(parent)
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

// followed resolves all of a path, a link in the last place too.
func (c *call) followed(path string) func() (string, error) {
	return func() (string, error) {
		r, err := c.fence.Resolve(path)
		return r.Path, err
	}
}

// unfollowed resolves a path but for its last name: to the canonical parent and
// that name. A path that ends in a slash or in dots names a directory, and a
// link there is followed, as the kernel does.
func (c *call) unfollowed(way string) func() (string, error) {
	return func() (string, error) {
		dir, name := filepath.Split(way)
		if name == "" || name == "." || name == ".." {
			dir, name = way, ""
		}
		r, err := c.fence.Resolve(dir)
		if err != nil {
			// A refusal first, so that the error tells nothing about hidden
			// paths.
			if denied := c.may(filepath.Clean(way), fence.Read); denied != nil {
				return "", denied
			}
			return "", err
		}
		if r.Dangling != "" {
			return "", fs.ErrNotExist
		}
		return filepath.Join(r.Path, name), nil
	}
}

// leadsNowhere tells whether the link at a canonical path has no target now.
func (c *call) leadsNowhere(path string) bool {
	r, err := fence.Canonical(path)
	return err == nil && !r.Exists || err != nil && nowhere(err)
}
