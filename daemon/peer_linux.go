package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errFenced: the peer is a command of ours, or may be one.
var errFenced = errors.New("it descends from a command in a fence")

// checkPeer tells whether the process at the other end of a unix socket may
// connect: its user must be ours, and it must not be this process or descend
// from it. All children of this process are commands, and it is their
// subreaper, so descent cannot be shed.
//
// With SO_PEERPIDFD (Linux 6.5) the process is the one that connected; before,
// its number may have been taken by another, and who cannot be resolved is
// refused.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("identify peer: %w", err)
	}
	var cred *unix.Ucred
	pidfd := -1
	var credErr, fdErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		pidfd, fdErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	if err = errors.Join(err, credErr); err != nil {
		return fmt.Errorf("identify peer: %w", err)
	}
	if int(cred.Uid) != os.Getuid() {
		return fmt.Errorf("its user id is %d", cred.Uid)
	}
	pid := int(cred.Pid)
	switch {
	case fdErr == nil:
		pid, err = pidOf(pidfd)
		_ = unix.Close(pidfd)
		if err != nil {
			return err
		}
	case errors.Is(fdErr, unix.ENOPROTOOPT): // before Linux 6.5
	default: // EINVAL: the process is gone already
		return fmt.Errorf("identify peer: %w", fdErr)
	}
	if pid == 0 {
		// It lives in a pid namespace that we cannot see. Those of our
		// descendants we can, so it is none.
		return nil
	}
	return notDescended(pid)
}

// pidOf reads the process number of a pidfd: 0 when it is outside our pid
// namespace, an error when the process is gone (Pid: -1, proc_pid_fdinfo(5)).
func pidOf(fd int) (int, error) {
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0, fmt.Errorf("identify peer: %w", err)
	}
	_, rest, ok := bytes.Cut(b, []byte("Pid:"))
	if !ok {
		return 0, errors.New("identify peer: the kernel does not tell its number")
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(strings.TrimSpace(string(line)))
	if err != nil || n < 0 {
		return 0, errors.New("identify peer: the process is gone")
	}
	return n, nil
}

// notDescended walks from a process to the root of its tree.
func notDescended(pid int) error {
	self := os.Getpid()
	for range 4096 { // deeper than any tree, and an end if one changes under us
		if pid == self {
			return errFenced
		}
		if pid <= 1 {
			return nil
		}
		parent, ok := parentOf(pid)
		if !ok {
			// It ended while we looked: its children went to somebody we can no
			// longer learn of.
			return errFenced
		}
		pid = parent
	}
	return errFenced
}

func parentOf(pid int) (int, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 2 {
		return 0, false
	}
	n, err := strconv.Atoi(f[1])
	return n, err == nil
}
