//go:build !portable

package anchor

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Parent opens the directory that holds this one now; of the root itself that
// is the root. Its path is what the path of this one says, which is wrong when
// the directory was moved since it was opened.
func (d *Dir) Parent() (*Dir, error) {
	up := -1
	err := d.use("walk", "..", func(fd int) (err error) {
		up, err = retry(func() (int, error) { return unix.Openat(fd, "..", dirFlags, 0) })
		return err
	})
	if err != nil {
		return nil, err
	}
	return newDir(up, filepath.Dir(d.path))
}
