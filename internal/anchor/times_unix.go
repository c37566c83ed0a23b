//go:build unix && (!linux || portable)

package anchor

import (
	"os"
	"syscall"
	"time"
)

// SetMtime sets the time of modification of an open file or directory, in
// nanoseconds since 1970, cut to the microsecond. The time of the last access
// becomes now.
func SetMtime(f *os.File, mtime int64) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		inner = syscall.Futimes(int(fd), []syscall.Timeval{
			syscall.NsecToTimeval(time.Now().UnixNano()), syscall.NsecToTimeval(mtime - mtime%1000),
		})
	})
	if err == nil {
		err = inner
	}
	return pathError("futimes", f.Name(), err)
}

// CarryLink does nothing here: a link that is made anew is its text, and that
// is not called a loss.
func (d *Dir) CarryLink(string, Info) (lost []string) { return nil }
