package trash

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/wattle-dev/wattle/trash/record"
)

// Codes of the provider's contract that fit here too.
const (
	codeDenied   = "FS_PERMISSION_DENIED"
	codeStale    = "FS_STALE_VERSION"
	codeExists   = "FS_ALREADY_EXISTS"
	codeNotFound = "FS_NOT_FOUND"
	codeAborted  = "FS_ABORTED"
)

// What an error says was tried.
const (
	opPut     = "trash"
	opRestore = "restore"
	opEmpty   = "empty the trash"
)

// wayForward ends the text of every refusal for want of a trash.
const wayForward = "; delete it permanently, or allow a copy into the home trash (copyAcross)"

// failure is an error that leaves everything in place.
func failure(code string, reason record.Reason, op, path, detail string, cause error) *record.Error {
	e := &record.Error{
		Code: code, Outcome: record.Failed, Reason: reason, Op: op, Path: path, Detail: detail,
		Cause: cause, Errno: errnoName(cause), Syscall: syscallName(cause),
	}
	if code == record.CodeRejected {
		e.Outcome = record.Rejected
	}
	return e
}

// failed is an error of the system, its code chosen by the errno.
func failed(op, path, detail string, cause error) *record.Error {
	code := record.CodeFailed
	switch {
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		code = codeAborted
	case errors.Is(cause, fs.ErrPermission), errors.Is(cause, syscall.EROFS):
		code = codeDenied
	case errors.Is(cause, fs.ErrNotExist), errors.Is(cause, syscall.ENOTDIR):
		code = codeNotFound
	}
	return failure(code, record.ReasonOperationFailed, op, path, detail, cause)
}

// unknown is an error after which the thing may be anywhere.
func unknown(op, path, detail string, at *record.Entry, cause error) *record.Error {
	e := failure(record.CodeUnknown, record.ReasonOperationUnknown, op, path, detail, cause)
	e.Outcome, e.Entry = record.Unknown, at
	return e
}

func syscallName(err error) string {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return ""
	}
	return map[string]string{
		"open directory": "openat2", "walk": "openat2", "open": "openat", "read directory": "getdents64",
		"stat": "statx", "mkdir": "mkdirat", "rmdir": "unlinkat", "unlink": "unlinkat", "remove tree": "unlinkat",
		"rename": "renameat2", "sync": "fsync", "write": "write", "write to": "faccessat2", "read": "read",
		"symlink": "symlinkat", "readlink": "readlinkat",
	}[p.Op]
}
