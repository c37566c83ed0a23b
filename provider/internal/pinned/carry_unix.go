//go:build unix && (!linux || portable)

package pinned

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

const nonblock = syscall.O_NONBLOCK

func carry(from anchor.Info, to *os.File) (lost []string, err error) {
	now, err := anchor.StatFile(to)
	if err != nil {
		return nil, err
	}
	perm := from.Perm()
	if now.UID != from.UID || now.GID != from.GID {
		if to.Chown(int(from.UID), int(from.GID)) != nil {
			lost = append(lost, "owner", "group")
			perm &= 0o1777
		}
	}
	mode := fs.FileMode(perm & 0o777)
	if perm&0o4000 != 0 {
		mode |= fs.ModeSetuid
	}
	if perm&0o2000 != 0 {
		mode |= fs.ModeSetgid
	}
	if perm&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return lost, to.Chmod(mode)
}
