package provider

import "github.com/wattle-dev/wattle/fence"

// outright tells whether a delete of a canonical path is done at once instead
// of going through the trash (trash.md section 6): it was asked for, the trash
// is off, or the path is temporary.
//
// Temporary is what lies below one of Config.TempDirs, unless a root that was
// made further down covers it: a workspace below the temporary directory keeps
// its safety net. A root that is a temporary directory itself, or contains one
// (compat_tmp), says nothing about what lies in it; the workspace always does.
// The session's own scratch is temporary wherever the temporary directory is.
func (c *call) outright(path string, permanent bool) bool {
	if permanent || c.trashOff {
		return true
	}
	for _, temp := range c.tempDirs {
		if path != temp && fence.PathCovers(temp, path) && !c.rootBelow(temp, path) {
			return true
		}
	}
	return false
}

// rootBelow tells whether path lies in the workspace, or in a writable root
// that lies in temp.
func (c *call) rootBelow(temp, path string) bool {
	if w := c.fence.Workspace(); w != "" && fence.PathCovers(w, path) {
		return true
	}
	scratch := c.fence.Policy().Scratch
	for _, root := range c.fence.WritableRoots() {
		if root != scratch && root != temp && fence.PathCovers(temp, root) && fence.PathCovers(root, path) {
			return true
		}
	}
	return false
}
