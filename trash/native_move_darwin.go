package trash

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// moveNoReplace renames without replacing anything, renameatx_np(2): fs.ErrExist
// when the new name is taken, errors.ErrUnsupported where the file system
// cannot. It follows no link.
func moveNoReplace(from *anchor.Dir, name string, to *anchor.Dir, newName string) error {
	for _, n := range []string{name, newName} {
		if err := anchor.CheckName(n); err != nil {
			return err
		}
	}
	a, err := from.File()
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := to.File()
	if err != nil {
		return err
	}
	defer b.Close()
	if err := unix.RenameatxNp(int(a.Fd()), name, int(b.Fd()), newName, unix.RENAME_EXCL); err != nil {
		return &fs.PathError{Op: "rename", Path: filepath.Join(from.Path(), name), Err: err}
	}
	return nil
}
