//go:build !windows

package cli

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// fromTerminal tells whether a SIGINT or SIGQUIT that came now may be the
// terminal's: those go to all of its foreground process group
// (termios(3), ISIG). Go does not tell who sent a signal.
func fromTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // no controlling terminal
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// signalName is the name as in signal(7).
func signalName(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		return unix.SignalName(n)
	}
	return ""
}

// signalNumber is the number of a name, also of one without a name of its own
// (SIG34); 0 for what is none.
func signalNumber(name string) int {
	if n := unix.SignalNum(name); n != 0 {
		return int(n)
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name, "SIG"))
	if err != nil || n < 0 || n > 127 {
		return 0
	}
	return n
}
