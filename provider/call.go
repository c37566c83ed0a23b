package provider

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/wattle-dev/wattle/fence"
)

// call is one running operation: what its errors say and what may cancel it.
type call struct {
	*Local
	ctx   context.Context
	fence *fence.Fence
	op    string
	shown string // displayPath
}

// begin refuses a call without a fence and a call that is cancelled already.
func (l *Local) begin(ctx context.Context, f *fence.Fence, op, shown string) (*call, error) {
	c := &call{Local: l, ctx: ctx, fence: f, op: op, shown: shown}
	if err := c.alive(); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, c.fail(CodeSandboxDenied, "no fence was given for this call")
	}
	return c, nil
}

// alive is FS_ABORTED once the call is cancelled.
func (c *call) alive() error {
	if err := c.ctx.Err(); err != nil {
		return &Error{Code: CodeAborted, Op: c.op, Path: c.shown, Cause: err}
	}
	return nil
}

// fail makes an error that no errno stands behind.
func (c *call) fail(code Code, detail string) *Error {
	return &Error{Code: code, Op: c.op, Path: c.shown, Detail: detail}
}

// failed makes an error from one of the operating system's. Only the errno goes
// with it: the paths in such errors are canonical, and messages name the
// displayPath.
func (c *call) failed(code Code, detail string, err error) *Error {
	e := &Error{Code: code, Op: c.op, Path: c.shown, Detail: detail, Errno: errnoName(err), Syscall: syscallOf(err), Cause: bare(err)}
	return e
}

// mapped is failed with the code that the errno has by fs-contract section 2.
// Errors that are ours already stay as they are.
func (c *call) mapped(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: CodeAborted, Op: c.op, Path: c.shown, Cause: err}
	}
	return c.failed(codeOfErrno(err), "", err)
}

// bare is the errno in err, or what is left without the paths around it.
func bare(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	var p *fs.PathError
	for errors.As(err, &p) {
		err = p.Err
	}
	return err
}

// ours keeps an error that asks for another try, and makes any other one name
// this end.
func (c *call) ours(err error) error {
	if err == nil || retries(err) {
		return err
	}
	return c.mapped(err)
}

func retries(err error) bool {
	var m errMoved
	return errors.As(err, &m)
}

// below is the call whose errors name an entry below the path of this one.
func (c *call) below(rel string) *call {
	if rel == "" {
		return c
	}
	d := *c
	d.shown = filepath.Join(c.shown, rel)
	return &d
}

// denied wraps a refusal by the fence.
func (c *call) denied(d *fence.Denial) error {
	return &Error{Code: CodeSandboxDenied, Op: c.op, Path: c.shown, Cause: d}
}

// may asks the fence about a canonical path.
func (c *call) may(canonical string, a fence.Access) error {
	if d := c.fence.CheckAs(canonical, c.shown, a); d != nil {
		return c.denied(d)
	}
	return nil
}

// key gives the canonical path in a target. A key that no resolve can have
// made is not found.
func (c *call) key(t Target) (string, error) {
	k := string(t.TargetKey)
	if !filepath.IsAbs(k) || filepath.Clean(k) != k || strings.IndexByte(k, 0) >= 0 {
		return "", c.fail(CodeNotFound, "the target was not made by this provider")
	}
	return k, nil
}

// errMoved wraps an error that means: the path, or the file at it, changed
// while we worked on it. code is what the call fails with when that does not
// stop; FS_IO_ERROR if empty.
type errMoved struct {
	err  error
	code Code
}

func (e errMoved) Error() string { return "changed while it was used: " + e.err.Error() }
func (e errMoved) Unwrap() error { return e.err }

// again runs one try after the other until one does not end in errMoved.
func (c *call) again(try func() error) error {
	for n := 1; ; n++ {
		if err := c.alive(); err != nil {
			return err
		}
		err := try()
		var moved errMoved
		if !errors.As(err, &moved) {
			return err
		}
		if n < tries {
			c.pause(n)
			continue
		}
		if moved.code == "" {
			moved.code = CodeIOError
		}
		return c.failed(moved.code, "it kept changing while it was used", moved.err)
	}
}

// pause lets whoever is changing the path get on: not at all after the first
// tries, then up to 2 ms.
func (c *call) pause(n int) {
	if n < 4 {
		return
	}
	t := time.NewTimer(min(50*time.Microsecond<<(n-4), 2*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
	}
}
