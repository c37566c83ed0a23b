//go:build darwin || freebsd || netbsd

package anchor

import "syscall"

// changed is the time of the last change of the inode, in nanoseconds.
func changed(st *syscall.Stat_t) int64 { return syscall.TimespecToNsec(st.Ctimespec) }
