package provider

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/trash/record"
)

// Error is every failure of a provider. Code is what callers branch on; the
// rest is for people. With CodeSandboxDenied errors.As also finds the
// *fence.Denial; with a refusal or failure of the kernel it finds the errno.
type Error struct {
	Code Code `json:"code"`
	// Op is the wire name of the operation: writeText, listDir, ….
	Op string `json:"op,omitzero"`
	// Path is the displayPath of the target, never its key.
	Path string `json:"path,omitzero"`
	// Errno is the symbolic name (EACCES) and Syscall the call that failed,
	// when the kernel said no.
	Errno   string `json:"errno,omitzero"`
	Syscall string `json:"syscall,omitzero"`
	// Outcome and Reason are those of a delete that did not happen.
	Outcome record.Outcome `json:"outcome,omitzero"`
	Reason  record.Reason  `json:"reason,omitzero"`
	// Detail says in words what is the matter; may be empty.
	Detail string `json:"-"`
	Cause  error  `json:"-"`
}

// Error gives operation, displayed path and reason.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Path != "" {
		b.WriteString(" " + e.Path)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	var d *fence.Denial
	switch {
	case errors.As(e.Cause, &d):
		// Not the denial's own text: that names the canonical path.
		b.WriteString(": denied in " + string(d.Mode) + " (" + d.RuleText() + "); " + d.Hint)
	case e.Cause != nil:
		b.WriteString(": " + e.Cause.Error())
	case e.Detail == "":
		b.WriteString(": " + string(e.Code))
	}
	return b.String()
}

// Unwrap gives the denial, the errno or the context's error.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, &Error{Code: c}) compare codes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Op == "" && t.Path == "" && t.Cause == nil
}

// CodeOf gives the code of an error made here, "" for nil and for others.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// codeOfErrno is the mapping of fs-contract section 2. ENXIO is what opening a
// socket, and some device nodes, gives.
func codeOfErrno(err error) Code {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return CodeNotFound
	case errors.Is(err, fs.ErrPermission):
		return CodePermissionDenied
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENXIO):
		return CodeNotRegularFile
	}
	return CodeIOError
}

// absent tells whether an errno means that there is nothing at the path.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// syscallOf names the system call behind an error of the path package or of
// os, whose Op is a word of their own; "" when unknown.
func syscallOf(err error) string {
	var p *fs.PathError
	if !errors.As(err, &p) {
		var s interface{ SyscallName() string }
		if errors.As(err, &s) {
			return s.SyscallName()
		}
		return ""
	}
	if n, ok := syscallNames[p.Op]; ok {
		return n
	}
	if strings.ContainsRune(p.Op, ' ') {
		return ""
	}
	return p.Op
}

var syscallNames = map[string]string{
	"open directory": "openat2", "walk": "openat2", "open": "openat", "open unnamed": "openat",
	"read directory": "getdents64", "stat": "statx", "mkdir": "mkdirat", "rmdir": "unlinkat",
	"unlink": "unlinkat", "link": "linkat", "rename": "renameat2", "sync": "fsync",
	"lstat": "lstat", "readlink": "readlink", "chmod": "fchmod", "chown": "fchown",
}
