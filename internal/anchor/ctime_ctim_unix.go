//go:build (linux && portable) || openbsd || dragonfly || solaris || illumos || aix

package anchor

import "syscall"

// changed is the time of the last change of the inode, in nanoseconds.
func changed(st *syscall.Stat_t) int64 { return syscall.TimespecToNsec(syscall.Timespec(st.Ctim)) }
