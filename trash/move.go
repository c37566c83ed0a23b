//go:build unix && !darwin

package trash

import (
	"errors"
	"fmt"
	"os"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// move renames without replacing anything: EEXIST when the new name is taken.
func (f *freedesktop) move(from *anchor.Dir, name string, to *anchor.Dir, newName string, isDir bool) error {
	err := f.moveWhole(from, name, to, newName)
	if errors.Is(err, errors.ErrUnsupported) {
		return f.moveOver(from, name, to, newName, isDir)
	}
	return err
}

// moveWhole lets the kernel see to it; errors.ErrUnsupported where it, or the
// file system, cannot.
func (f *freedesktop) moveWhole(from *anchor.Dir, name string, to *anchor.Dir, newName string) error {
	if f.plainRename {
		return errors.ErrUnsupported
	}
	return from.Rename(name, to, newName, anchor.NoReplace)
}

// moveOver makes an empty placeholder exclusively and renames over it.
func (f *freedesktop) moveOver(from *anchor.Dir, name string, to *anchor.Dir, newName string, isDir bool) error {
	held, err := placehold(to, newName, isDir)
	if err != nil {
		return err
	}
	f.at("placeheld")
	if err = from.Rename(name, to, newName, anchor.Replace); err == nil {
		return nil
	}
	if rerr := unhold(to, newName, held); rerr != nil {
		return &moveBroken{err, rerr}
	}
	return err
}

// moveBroken is a move that failed and left its placeholder.
type moveBroken struct{ err, left error }

func (m *moveBroken) Error() string   { return fmt.Sprintf("%v (%v)", m.err, m.left) }
func (m *moveBroken) Unwrap() []error { return []error{m.err, m.left} }

func placehold(d *anchor.Dir, name string, isDir bool) (anchor.Info, error) {
	if isDir {
		if err := d.Mkdir(name, 0o700); err != nil {
			return anchor.Info{}, err
		}
		return d.Lstat(name)
	}
	file, err := d.Open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return anchor.Info{}, err
	}
	defer file.Close()
	return anchor.StatFile(file)
}

// unhold removes a placeholder if it still is one.
func unhold(d *anchor.Dir, name string, held anchor.Info) error {
	now, err := d.Lstat(name)
	switch {
	case err != nil:
		return err
	case !now.SameFile(held) || now.IsRegular() && now.Size != 0:
		return errors.New("the placeholder is another thing now")
	case now.IsDir():
		return d.Rmdir(name)
	}
	return d.Unlink(name)
}
