package scratch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive advisory lock without waiting, flock(2). The
// kernel drops it with the last descriptor, so also when the process is
// killed. errLocked: somebody has it; errNoLocks: this file system has none.
func tryLock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		for {
			inner = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
			if !errors.Is(inner, unix.EINTR) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return err
	case errors.Is(inner, unix.EWOULDBLOCK):
		return errLocked
	case errors.Is(inner, unix.ENOLCK), errors.Is(inner, unix.ENOSYS), errors.Is(inner, unix.EOPNOTSUPP), errors.Is(inner, unix.EINVAL):
		return errNoLocks
	}
	return inner
}
