//go:build !portable

package pinned

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// CopyRange copies up to n bytes from a place of the file to the same place of
// to, in the kernel (copy_file_range(2)), where file systems may share them. It
// returns how many, 0 at the end; errors.ErrUnsupported where it cannot be done
// for this pair of files. [File.Open] comes first.
func (p *File) CopyRange(to *os.File, off int64, n int) (done int, err error) {
	err = control(to, func(dst int) error {
		done, err = retry(func() (int, error) {
			from, at := off, off
			return unix.CopyFileRange(p.read, &from, dst, &at, n, 0)
		})
		return err
	})
	if err == nil {
		return done, nil
	}
	for _, e := range []error{unix.EXDEV, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.ETXTBSY} {
		if errors.Is(err, e) {
			return 0, errors.ErrUnsupported
		}
	}
	return 0, &fs.PathError{Op: "copy_file_range", Path: p.name, Err: err}
}

// Data gives the first part at or after off that holds data; it begins at the
// size or behind it when only a hole is left (lseek(2), SEEK_DATA). Where holes
// are not known all of the rest is data. [File.Open] comes first.
func (p *File) Data(off int64) (from, to int64) {
	rest := max(off, p.Info.Size)
	from, err := unix.Seek(p.read, off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return rest, rest
	}
	if err != nil {
		return off, rest
	}
	if to, err = unix.Seek(p.read, from, unix.SEEK_HOLE); err != nil || to <= from {
		return from, max(from, rest)
	}
	return from, to
}

// NoDefaultACL takes away the access list that a directory hands down to what
// is made in it (acl(5)).
func NoDefaultACL(f *os.File) error {
	err := control(f, func(fd int) error { return unix.Fremovexattr(fd, "system.posix_acl_default") })
	if err == nil || errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return &fs.PathError{Op: "fremovexattr", Path: f.Name(), Err: err}
}

// SyncTree makes everything durable that was written in the tree of an open
// directory. Here that is the whole file system, syncfs(2): one call for any
// number of files.
func SyncTree(dir *os.File) error {
	err := control(dir, func(fd int) error { return unix.Syncfs(fd) })
	if err != nil {
		return &fs.PathError{Op: "syncfs", Path: dir.Name(), Err: err}
	}
	return nil
}

// SyncAlone makes one file of a tree durable where [SyncTree] does not.
func SyncAlone(*os.File) error { return nil }
