package trash

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// carry gives the copy dst what src is: extended attributes and access lists,
// owner, mode, times. lost names what it could not have. An error means that
// the mode or the times could not be set.
//
// The order matters: chown(2) clears set-id bits and capabilities, an access
// list rewrites the group bits, and everything changes the times.
func carry(src, dst *os.File, i anchor.Info) (lost []string, err error) {
	s, d := int(src.Fd()), int(dst.Fd())
	perm := i.Perm()
	if now, err := anchor.StatFile(dst); err != nil || now.UID != i.UID || now.GID != i.GID {
		if unix.Fchown(d, int(i.UID), int(i.GID)) != nil {
			// Losing the owner is no failure (T22); set-id bits of one owner must
			// not pass to another.
			lost = append(lost, "owner")
			if i.IsRegular() {
				perm &^= 0o6000
			}
		}
	}
	attrs, err := copyAttrs(s, d)
	if err != nil {
		return lost, err
	}
	lost = append(lost, attrs...)
	if err := unix.Fchmod(d, perm); err != nil {
		return lost, &fs.PathError{Op: "chmod", Path: dst.Name(), Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(s, &st); err != nil {
		return lost, &fs.PathError{Op: "stat", Path: src.Name(), Err: err}
	}
	return lost, setTimes(d, "", st.Atim, i.Mtime, dst.Name())
}

// setTimes sets the times of fd itself, or of a name in it without following.
func setTimes(fd int, name string, atime unix.Timespec, mtime int64, shown string) error {
	ts := []unix.Timespec{atime, unix.NsecToTimespec(mtime)}
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	if err := unix.UtimesNanoAt(fd, name, ts, flags); err != nil {
		return &fs.PathError{Op: "utimensat", Path: shown, Err: err}
	}
	return nil
}

// carryLink gives a link owner and time. It has no mode of its own, and no
// attributes that a user can set.
func carryLink(d *anchor.Dir, name string, i anchor.Info) (lost []string) {
	file, err := d.File()
	if err != nil {
		return []string{"owner", "times"}
	}
	defer file.Close()
	fd := int(file.Fd())
	if now, err := d.Lstat(name); err != nil || now.UID != i.UID || now.GID != i.GID {
		if unix.Fchownat(fd, name, int(i.UID), int(i.GID), unix.AT_SYMLINK_NOFOLLOW) != nil {
			lost = append(lost, "owner")
		}
	}
	if setTimes(fd, name, unix.NsecToTimespec(i.Mtime), i.Mtime, name) != nil {
		lost = append(lost, "times")
	}
	return lost
}

func copyAttrs(src, dst int) (lost []string, err error) {
	names, err := attr(func(b []byte) (int, error) { return unix.Flistxattr(src, b) })
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return []string{"attributes"}, nil
	}
	var have []string
	for n := range bytes.SplitSeq(names, []byte{0}) {
		name := string(n)
		if name == "" {
			continue
		}
		have = append(have, name)
		val, err := attr(func(b []byte) (int, error) { return unix.Fgetxattr(src, name, b) })
		if err == nil {
			there, terr := attr(func(b []byte) (int, error) { return unix.Fgetxattr(dst, name, b) })
			if terr == nil && bytes.Equal(there, val) {
				continue // labels are often right from the start, and not ours to set
			}
			err = unix.Fsetxattr(dst, name, val, 0)
		}
		if err != nil {
			lost = append(lost, name)
		}
	}
	// A list that the new directory hands down lets in whom the source did not.
	for _, acl := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
		if slices.Contains(have, acl) {
			continue
		}
		err := unix.Fremovexattr(dst, acl)
		if err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.EINVAL) {
			return lost, &fs.PathError{Op: "fremovexattr", Path: acl, Err: err}
		}
	}
	return lost, nil
}

// attr asks for the size first, which may change in between (ERANGE).
func attr(call func([]byte) (int, error)) ([]byte, error) {
	for try := 0; ; try++ {
		n, err := call(nil)
		if err != nil || n == 0 {
			return nil, err
		}
		b := make([]byte, n)
		n, err = call(b)
		if errors.Is(err, unix.ERANGE) && try < 4 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return b[:n], nil
	}
}

// flush makes a copy durable with everything in it: syncfs(2), one call for a
// tree of any size.
func flush(d *anchor.Dir, name string, i anchor.Info) error {
	flags := os.O_RDONLY
	if i.IsSymlink() {
		return d.Sync()
	}
	file, err := d.Open(name, flags, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if i.IsRegular() {
		return file.Sync()
	}
	if err := unix.Syncfs(int(file.Fd())); err != nil {
		return &fs.PathError{Op: "syncfs", Path: file.Name(), Err: err}
	}
	return nil
}
