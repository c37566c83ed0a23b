package scratch

import "fmt"

// The stable codes of this room. They never change.
const (
	// CodeReadOnly: the session is read-only and the policy does not open
	// scratch in that mode.
	CodeReadOnly = "SCRATCH_READ_ONLY"
	// CodeNoWorkspace: without a workspace there is no place beside it.
	CodeNoWorkspace = "SCRATCH_NO_WORKSPACE"
	// CodeNameInvalid: a name that is not relative, clean and free of links,
	// or that is the marker's.
	CodeNameInvalid = "SCRATCH_NAME_INVALID"
	// CodeRefused: there is no place that may be used (workspace is "/", the
	// parent cannot be written, a link lies in the way); the error says why.
	CodeRefused = "SCRATCH_REFUSED"
	// CodeCleanFailed: the directory, or a part of it, is still there.
	CodeCleanFailed = "SCRATCH_CLEAN_FAILED"
	// CodeIO: the system refused an operation, or the session's directory is
	// not the one that was made.
	CodeIO = "SCRATCH_IO_ERROR"
	// CodeConfigInvalid: a configuration value outside its range.
	CodeConfigInvalid = "SCRATCH_CONFIG_INVALID"
)

// Error is what every operation of this room fails with.
type Error struct {
	// Code is one of the constants above.
	Code string
	// Op is the action: create, write, list, clean, …
	Op string
	// Path is the scratch directory, the offending name or "".
	Path string
	// Err is the cause; it may wrap an errno. Never nil.
	Err error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("scratch %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("scratch %s %s: %v", e.Op, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func fail(code, op, path string, err error) *Error {
	return &Error{Code: code, Op: op, Path: path, Err: err}
}

func failf(code, op, path, format string, a ...any) *Error {
	return fail(code, op, path, fmt.Errorf(format, a...))
}
