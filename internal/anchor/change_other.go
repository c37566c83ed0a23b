//go:build !linux || portable

package anchor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func (d *Dir) one(op, name string, f func() error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return pathError(op, filepath.Join(d.path, name), f())
}

// Mkdir makes a directory; EEXIST whatever is there already.
func (d *Dir) Mkdir(name string, perm uint32) error {
	return d.one("mkdir", name, func() error { return d.root.Mkdir(name, fs.FileMode(perm&0o777)) })
}

// Unlink removes a name that is no directory (EISDIR); a link itself, never
// its target.
func (d *Dir) Unlink(name string) error {
	return d.one("unlink", name, func() error {
		if fi, err := d.root.Lstat(name); err == nil && fi.IsDir() {
			return syscall.EISDIR
		}
		return d.root.Remove(name)
	})
}

// Rmdir removes an empty directory.
func (d *Dir) Rmdir(name string) error {
	return d.one("rmdir", name, func() error {
		if fi, err := d.root.Lstat(name); err == nil && !fi.IsDir() {
			return syscall.ENOTDIR
		}
		return d.root.Remove(name)
	})
}

// Symlink makes a link called name with any text as target.
func (d *Dir) Symlink(target, name string) error {
	return d.one("symlink", name, func() error { return d.root.Symlink(target, name) })
}

// Readlink returns the text of a link.
func (d *Dir) Readlink(name string) (t string, err error) {
	err = d.one("readlink", name, func() (err error) { t, err = d.root.Readlink(name); return err })
	return t, err
}

// Chmod sets the permission bits of an entry; a link is ELOOP.
func (d *Dir) Chmod(name string, mode uint32) error {
	return d.one("chmod", name, func() error {
		if fi, err := d.root.Lstat(name); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return syscall.ELOOP
		}
		return d.root.Chmod(name, fs.FileMode(mode&0o777))
	})
}

// ChmodSelf sets the permission bits of the directory itself.
func (d *Dir) ChmodSelf(mode uint32) error {
	return pathError("chmod", d.path, d.root.Chmod(".", fs.FileMode(mode&0o777)))
}

// OpenUnnamed is errors.ErrUnsupported: there are no unnamed files here.
func (d *Dir) OpenUnnamed(uint32) (*os.File, error) {
	return nil, &fs.PathError{Op: "open unnamed", Path: d.path, Err: errors.ErrUnsupported}
}

// LinkFile is errors.ErrUnsupported.
func (d *Dir) LinkFile(_ *os.File, name string) error {
	return d.one("link", name, func() error { return errors.ErrUnsupported })
}

// Link gives the entry name a second name in to. It never replaces: EEXIST.
func (d *Dir) Link(name string, to *Dir, newName string) error {
	return d.both("link", name, to, newName, (*os.Root).Link)
}

// Rename moves the entry name to newName in to. Only Replace is possible here,
// the others are errors.ErrUnsupported.
func (d *Dir) Rename(name string, to *Dir, newName string, how RenameHow) error {
	if how != Replace {
		return d.one("rename", name, func() error { return errors.ErrUnsupported })
	}
	return d.both("rename", name, to, newName, (*os.Root).Rename)
}

// both runs f beneath the deepest directory that holds d and to, after making
// sure that d and to are still where they were opened.
func (d *Dir) both(op, name string, to *Dir, newName string, f func(*os.Root, string, string) error) error {
	if err := CheckName(newName); err != nil {
		return err
	}
	return d.one(op, name, func() error {
		if d == to || d.path == to.path {
			return f(d.root, name, newName)
		}
		common := commonDir(d.path, to.path)
		base, err := OpenDir(common)
		if err != nil {
			return err
		}
		defer base.Close()
		from, err := base.relative(d)
		if err != nil {
			return err
		}
		dest, err := base.relative(to)
		if err != nil {
			return err
		}
		return f(base.root, filepath.Join(from, name), filepath.Join(dest, newName))
	})
}

func commonDir(a, b string) string {
	for ; filepath.Dir(a) != a; a = filepath.Dir(a) {
		rel, err := filepath.Rel(a, b)
		if err != nil {
			continue
		}
		if first, _, _ := strings.Cut(filepath.ToSlash(rel), "/"); first != ".." {
			break
		}
	}
	return a
}

// relative is the way from base to o, which must still lie there: ESTALE.
func (d *Dir) relative(o *Dir) (string, error) {
	rel, err := filepath.Rel(d.path, o.path)
	if err != nil {
		return "", err
	}
	there, err := d.Walk(rel)
	if err != nil {
		return "", err
	}
	defer there.Close()
	a, err := there.root.Stat(".")
	if err != nil {
		return "", err
	}
	b, err := o.root.Stat(".")
	if err != nil {
		return "", err
	}
	if !os.SameFile(a, b) {
		return "", errStale
	}
	return rel, nil
}
