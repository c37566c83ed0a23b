//go:build unix

package trash

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// errnoName gives the symbolic name of the errno in err, or "".
func errnoName(err error) string {
	var e syscall.Errno
	if errors.As(err, &e) {
		return unix.ErrnoName(e)
	}
	return ""
}

// errOtherVolume: a rename cannot lead to another file system.
const errOtherVolume = unix.EXDEV
