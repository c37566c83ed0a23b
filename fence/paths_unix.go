//go:build !windows

package fence

import (
	"errors"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// foldPaths: names of roots compare case-folded where the system's usual file
// system does. On Linux names are bytes.
const foldPaths = runtime.GOOS == "darwin"

func absolutePath(p string) bool { return strings.HasPrefix(p, "/") }

func isSeparator(c byte) bool { return c == '/' }

func splitOS(p string) []string { return strings.Split(p, "/") }

// errnoName gives the symbolic name of the errno in err, or def.
func errnoName(err error, def string) string {
	var e syscall.Errno
	if errors.As(err, &e) {
		if n := unix.ErrnoName(e); n != "" {
			return n
		}
	}
	return def
}

func reason(err error, def string) string {
	var e syscall.Errno
	if errors.As(err, &e) {
		return "cannot be used: " + e.Error()
	}
	return def
}
