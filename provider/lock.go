package provider

import (
	"path/filepath"
	"slices"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/dirlock"
)

// lockFiles takes the locks of keys in sorted order, each once, so that two
// calls about the same files do not wait for each other. Nothing is held after
// an error.
func (c *call) lockFiles(keys ...string) (release func(), err error) {
	slices.Sort(keys)
	var held []func()
	release = func() {
		for _, free := range slices.Backward(held) {
			free()
		}
	}
	for _, key := range slices.Compact(keys) {
		free, err := c.files.lock(c.ctx, key)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, free)
	}
	return release, nil
}

// lockDir makes the exchange of names in the directory of a path, the look at
// what came out and the exchange back one step among all Wattle processes.
// Inside this one the calls line up, so that only one at a time has to try for
// the directory's lock.
//
// The handle is for the sync, which others need not wait for.
func (c *call) lockDir(dir *anchor.Dir, path string) (held *dirlock.Held, unlock func(), err error) {
	inner, err := c.dirs.lock(c.ctx, filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	held, err = dirlock.Lock(c.ctx, dir, lockPatience)
	if err != nil {
		inner()
		return nil, nil, err
	}
	return held, func() { held.Unlock(); inner() }, nil
}

// lockedDir is lockDir where nothing has to be synced.
func (c *call) lockedDir(dir *anchor.Dir, path string) (unlock func(), err error) {
	held, release, err := c.lockDir(dir, path)
	if err != nil {
		return nil, err
	}
	return func() { release(); held.Close() }, nil
}

// lockedDirs is lockedDir for the directories of two paths, in sorted order.
func (c *call) lockedDirs(dir *anchor.Dir, path string, other *anchor.Dir, otherPath string) (unlock func(), err error) {
	switch a, b := filepath.Dir(path), filepath.Dir(otherPath); {
	case a == b:
		return c.lockedDir(dir, path)
	case b < a:
		dir, path, other, otherPath = other, otherPath, dir, path
	}
	first, err := c.lockedDir(dir, path)
	if err != nil {
		return nil, err
	}
	second, err := c.lockedDir(other, otherPath)
	if err != nil {
		first()
		return nil, err
	}
	return func() { second(); first() }, nil
}
