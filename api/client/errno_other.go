//go:build !unix

package client

import "io/fs"

// errnoOf is what a name means on every system, nil for the others.
func errnoOf(name string) error {
	switch name {
	case "ENOENT":
		return fs.ErrNotExist
	case "EACCES", "EPERM":
		return fs.ErrPermission
	case "EEXIST":
		return fs.ErrExist
	}
	return nil
}
