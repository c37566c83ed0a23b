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
// The lock file must have no other name and nobody may have it open for
// writing: the file would be the configuration afterwards, and still be
// written. Under protect "checked" a command that opens or links it between
// this look and the rename can win; the report says so.
func (s *supervisor) guardedConfig(from, to place, requested string, exchange bool) *verdict {
	if exchange || !from.isReg() || from.path != to.path+".lock" {
		return nil
	}
	d := s.fence.CheckAs(to.path, requested, fence.Rename)
	if d == nil || d.Rule != fence.RuleProtected || !fence.IsGitConfig(to.path) {
		return nil
	}
	next, err := readBounded(from.path, true)
	if err != nil {
		return &verdict{errno: unix.EACCES, denial: d}
	}
	var prev []byte
	if to.exists {
		if prev, err = readBounded(to.path, false); err != nil {
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

// readBounded reads a small regular file; alone: only one that has one name
// and no writer.
func readBounded(path string, alone bool) ([]byte, error) {
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
	if alone {
		if err := nobodyElse(fd); err != nil {
			return nil, err
		}
	}
	b := make([]byte, fi.Size())
	n, err := f.ReadAt(b, 0)
	if n != len(b) {
		return nil, err
	}
	return b, nil
}

// nobodyElse fails when a file has a second name, or when somebody has it open
// for writing or mapped so: a read lease is refused then (fcntl(2), F_SETLEASE).
// Where leases are not supported the second cannot be told.
func nobodyElse(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Nlink != 1 {
		return unix.EMLINK
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err == unix.EAGAIN {
		return err
	}
	if err == nil {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return nil
}
