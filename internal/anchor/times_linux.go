//go:build !portable

package anchor

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// SetMtime sets the time of modification of an open file or directory, in
// nanoseconds since 1970; the time of the last access stays. utimensat(2) on the
// file itself, by /proc/self/fd before Linux 5.8.
func SetMtime(f *os.File, mtime int64) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		times := onlyMtime(mtime)
		inner = unix.UtimesNanoAt(int(fd), "", times, unix.AT_EMPTY_PATH)
		if inner != nil {
			inner = unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), times, 0)
		}
	})
	if err == nil {
		err = inner
	}
	if err != nil {
		return &fs.PathError{Op: "utimensat", Path: f.Name(), Err: err}
	}
	return nil
}

func onlyMtime(ns int64) []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(ns)}
}

// CarryLink gives to the link called name owner, group and time of modification
// of from. What could not be set is named: "owner" or "mtime". It follows
// nothing.
func (d *Dir) CarryLink(name string, from Info) (lost []string) {
	now, err := d.Lstat(name)
	if err != nil || now.UID != from.UID || now.GID != from.GID {
		err = d.one("chown", name, func(fd int) error {
			return unix.Fchownat(fd, name, int(from.UID), int(from.GID), unix.AT_SYMLINK_NOFOLLOW)
		})
		if err != nil {
			lost = append(lost, "owner")
		}
	}
	err = d.one("utimensat", name, func(fd int) error {
		return unix.UtimesNanoAt(fd, name, onlyMtime(from.Mtime), unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		lost = append(lost, "mtime")
	}
	return lost
}
