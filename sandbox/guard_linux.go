package sandbox

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// maxConfig bounds what is read of a git configuration: a real one is a few
// kilobytes.
const maxConfig = 1 << 20

// guardedConfig judges the one way in which git changes its configuration: a
// lock file renamed over it. nil: this is no such rename, the ordinary checks
// apply. The new content may change harmless keys only (fence.GuardGitConfig).
//
// Under protect "checked" a command that writes the lock file between this
// look and the rename can win; the report says so.
func (s *supervisor) guardedConfig(from, to place, requested string, exchange bool) *verdict {
	if exchange || !from.isReg() || from.path != to.path+".lock" {
		return nil
	}
	d := s.fence.CheckAs(to.path, requested, fence.Rename)
	if d == nil || d.Rule != fence.RuleProtected || !fence.IsGitConfig(to.path) {
		return nil
	}
	next, err := readBounded(from.path)
	if err != nil {
		return &verdict{errno: unix.EACCES, denial: d}
	}
	var prev []byte
	if to.exists {
		if prev, err = readBounded(to.path); err != nil {
			return &verdict{errno: unix.EACCES, denial: d}
		}
	}
	if refused := fence.GuardGitConfig(prev, next); len(refused) > 0 {
		d.Hint = "git configuration may change, but not these keys, which run programs or lead elsewhere: " + strings.Join(refused, ", ")
		return &verdict{errno: unix.EACCES, denial: d}
	}
	v := goOn
	return &v
}

func readBounded(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxConfig {
		return nil, unix.EINVAL
	}
	b := make([]byte, fi.Size())
	n, err := f.ReadAt(b, 0)
	if n != len(b) {
		return nil, err
	}
	return b, nil
}
