package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal of that size. The child's side is
// opened through the master (TIOCGPTPEER, ioctl_tty(2)), not by its name in
// /dev/pts, which another mount may have covered.
func openTerminal(size TTY) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("open /dev/ptmx", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		_ = unix.Close(fd)
		return nil, nil, os.NewSyscallError("unlock terminal", err)
	}
	if err := setSize(fd, size); err != nil {
		_ = unix.Close(fd)
		return nil, nil, os.NewSyscallError("set terminal size", err)
	}
	peer, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if e != 0 {
		_ = unix.Close(fd)
		return nil, nil, os.NewSyscallError("open terminal", e)
	}
	return os.NewFile(uintptr(fd), "/dev/ptmx"), os.NewFile(peer, "terminal"), nil
}

func setSize(fd int, size TTY) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
}
