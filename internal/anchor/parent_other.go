//go:build !linux || portable

package anchor

import "path/filepath"

// Parent opens the directory that holds this one now; of the root itself that
// is the root. Here it goes by the path, and is ESTALE when this directory does
// not lie there any more.
func (d *Dir) Parent() (*Dir, error) {
	up, err := OpenDir(filepath.Dir(d.path))
	if err != nil {
		return nil, err
	}
	if _, err := up.relative(d); err != nil {
		up.Close()
		return nil, pathError("walk", d.path, err)
	}
	return up, nil
}
