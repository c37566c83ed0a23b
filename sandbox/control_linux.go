package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Signal sends a signal by its name, with or without SIG, to the command's
// process group, or to the command alone when it shares the caller's terminal.
// CodeInvalid: no such signal. CodeNotRunning: the command has exited.
func (p *Process) Signal(name string) error {
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "SIG") {
		full = "SIG" + full
	}
	sig := unix.SignalNum(full)
	if sig == 0 {
		return &Error{Code: CodeInvalid, Op: "signal command", Err: fmt.Errorf("%q is no signal", name)}
	}
	if err := p.tree.signal(sig, p.spec.Inherit == nil); err != nil {
		return &Error{Code: CodeNotRunning, Op: "signal command", Err: err}
	}
	return nil
}

// Resize changes the size of the command's terminal; the kernel tells the
// command (SIGWINCH). CodeInvalid: it has none, or the size is 0.
func (p *Process) Resize(size TTY) error {
	if p.master == nil {
		return &Error{Code: CodeInvalid, Op: "resize terminal", Err: errors.New("the command has no terminal of its own")}
	}
	if size.Cols == 0 || size.Rows == 0 {
		return &Error{Code: CodeInvalid, Op: "resize terminal", Err: errors.New("a terminal needs at least one column and one row")}
	}
	c, err := p.master.SyscallConn()
	if err == nil {
		var inner error
		if err = c.Control(func(fd uintptr) { inner = setSize(int(fd), size) }); err == nil {
			err = inner
		}
	}
	if err != nil {
		return &Error{Code: CodeNotRunning, Op: "resize terminal", Err: err}
	}
	return nil
}
