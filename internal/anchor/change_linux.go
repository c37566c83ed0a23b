//go:build !portable

package anchor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// one runs f for one checked name.
func (d *Dir) one(op, name string, f func(fd int) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return d.use(op, name, func(fd int) error {
		_, err := retry(func() (int, error) { return 0, f(fd) })
		return err
	})
}

// Mkdir makes a directory, mkdirat(2); EEXIST whatever is there already. perm
// is narrowed by the umask.
func (d *Dir) Mkdir(name string, perm uint32) error {
	return d.one("mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, perm) })
}

// Unlink removes a name that is no directory (EISDIR); a link itself, never
// its target. unlinkat(2).
func (d *Dir) Unlink(name string) error {
	return d.one("unlink", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) })
}

// Rmdir removes an empty directory, ENOTEMPTY otherwise.
func (d *Dir) Rmdir(name string) error {
	return d.one("rmdir", name, func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) })
}

// Symlink makes a link called name with any text as target. EEXIST when the
// name is taken.
func (d *Dir) Symlink(target, name string) error {
	return d.one("symlink", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

// Readlink returns the text of a link; EINVAL when it is none.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n := 0
	err := d.one("readlink", name, func(fd int) (err error) {
		n, err = unix.Readlinkat(fd, name, buf)
		return err
	})
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Chmod sets the permission bits 07777 of an entry; a link is ELOOP.
func (d *Dir) Chmod(name string, mode uint32) error {
	return d.one("chmod", name, func(fd int) error { return chmodAt(fd, name, mode) })
}

// ChmodSelf sets the permission bits 07777 of the directory itself, also of one
// that cannot be searched.
func (d *Dir) ChmodSelf(mode uint32) error {
	return d.use("chmod", ".", func(fd int) error { return chmodPinned(fd, mode) })
}

// chmodAt pins the file first, so that a link is seen and nothing else can be
// changed in its place.
func chmodAt(fd int, name string, mode uint32) error {
	n, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(n)
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil {
		return err
	}
	if st.Mode&TypeMask == TypeSymlink {
		return unix.ELOOP
	}
	return chmodPinned(n, mode)
}

// chmodPinned changes the file of an O_PATH descriptor. Before Linux 6.6 there
// is no fchmodat2 (EOPNOTSUPP from x/sys, EPERM from old filters); /proc/self/fd
// leads to the pinned file and nowhere else.
func chmodPinned(fd int, mode uint32) error {
	err := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		return unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), mode, 0)
	}
	return err
}

// OpenUnnamed makes a file without a name in this directory's file system,
// opened for reading and writing; [Dir.LinkFile] gives it one. errors.ErrUnsupported
// where the file system has none (O_TMPFILE, open(2)).
func (d *Dir) OpenUnnamed(perm uint32) (*os.File, error) {
	n := -1
	err := d.use("open unnamed", ".", func(fd int) (err error) {
		n, err = retry(func() (int, error) {
			return unix.Openat(fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, perm)
		})
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
			// What kernels and file systems say that do not know the flag.
			err = unsupported{err}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(n), d.path), nil
}

// LinkFile gives an open file, usually one of [Dir.OpenUnnamed], a name here.
// It never replaces: EEXIST. EXDEV on another mount. linkat(2).
func (d *Dir) LinkFile(f *os.File, name string) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return d.one("link", name, func(fd int) error {
		var inner error
		err := conn.Control(func(src uintptr) {
			// Without CAP_DAC_READ_SEARCH the empty path is ENOENT (older
			// kernels); linkat(2) names /proc/self/fd as the way then.
			inner = unix.Linkat(int(src), "", fd, name, unix.AT_EMPTY_PATH)
			if errors.Is(inner, unix.ENOENT) || errors.Is(inner, unix.EPERM) {
				inner = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", src), fd, name, unix.AT_SYMLINK_FOLLOW)
			}
		})
		return errors.Join(err, inner)
	})
}

// Link gives the entry name a second name in to; a link is linked itself, not
// its target. It never replaces: EEXIST.
func (d *Dir) Link(name string, to *Dir, newName string) error {
	if err := CheckName(newName); err != nil {
		return err
	}
	return d.one("link", name, func(fd int) error {
		return to.use("link", newName, func(tfd int) error { return unix.Linkat(fd, name, tfd, newName, 0) })
	})
}

// Rename moves the entry name to newName in to, atomically. EEXIST with
// NoReplace when the new name is taken, ENOENT with Exchange when it is not.
// Where system or file system cannot do NoReplace or Exchange the error is
// errors.ErrUnsupported; such file systems say EINVAL, which is also the
// answer for moving a directory into itself, so that case reads as unsupported
// too and still as EINVAL.
func (d *Dir) Rename(name string, to *Dir, newName string, how RenameHow) error {
	if err := CheckName(newName); err != nil {
		return err
	}
	var flags uint
	switch how {
	case Replace:
	case NoReplace:
		flags = unix.RENAME_NOREPLACE
	case Exchange:
		flags = unix.RENAME_EXCHANGE
	default:
		return d.one("rename", name, func(int) error { return unix.EINVAL })
	}
	return d.one("rename", name, func(fd int) error {
		return to.use("rename", newName, func(tfd int) error {
			if flags == 0 {
				return unix.Renameat(fd, name, tfd, newName)
			}
			err := unix.Renameat2(fd, name, tfd, newName, flags)
			if errors.Is(err, unix.EINVAL) {
				return unsupported{err}
			}
			return err
		})
	})
}

// unsupported is an errno that means errors.ErrUnsupported in its place.
type unsupported struct{ errno error }

func (u unsupported) Error() string        { return "not supported here: " + u.errno.Error() }
func (u unsupported) Unwrap() error        { return u.errno }
func (u unsupported) Is(target error) bool { return target == errors.ErrUnsupported }
