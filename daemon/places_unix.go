//go:build !windows

package daemon

import (
	"os"
	"syscall"
)

// ownedByUs tells whether a directory is there and is this user's alone.
func ownedByUs(dir string) bool {
	fi, err := os.Lstat(dir)
	if err != nil || !fi.IsDir() {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid() && fi.Mode().Perm()&0o077 == 0
}
