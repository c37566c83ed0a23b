package anchor

import (
	"os"
	"syscall"
)

// SetMtime sets the time of modification of an open file or directory, in
// nanoseconds since 1970, in steps of 100.
func SetMtime(f *os.File, mtime int64) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		t := syscall.NsecToFiletime(mtime)
		inner = syscall.SetFileTime(syscall.Handle(fd), nil, nil, &t)
	})
	if err == nil {
		err = inner
	}
	return pathError("set file time", f.Name(), err)
}

// CarryLink does nothing here: a link that is made anew is its text, and that
// is not called a loss.
func (d *Dir) CarryLink(string, Info) (lost []string) { return nil }
