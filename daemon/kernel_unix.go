//go:build !windows

package daemon

import "golang.org/x/sys/unix"

// kernelRelease is what uname(2) says.
func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
