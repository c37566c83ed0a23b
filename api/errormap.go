package api

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
)

// ErrorOf is the error as it travels (PROTOCOL section 1), found by type along
// the chain of wrapped errors:
//
//   - an [*Error] is itself;
//   - a [*fence.Denial], also below another error, is FS_SANDBOX_DENIED with
//     the denial as data;
//   - an error of a room below keeps its stable code, and what it knows of
//     path, errno and system call;
//   - a context that ended is CANCELLED;
//   - anything else is INTERNAL_ERROR, and its text stays here: it may hold
//     what a client must not see, and it belongs into the log.
//
// nil is nil.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var denial *fence.Denial
	if errors.As(err, &denial) {
		return deniedError(denial, err)
	}
	var fs *provider.Error
	var box *sandbox.Error
	var sc *scratch.Error
	var pol *fence.PolicyError
	var doc *policies.Error
	switch {
	case errors.As(err, &fs):
		return NewError(string(fs.Code), err.Error(), "op", fs.Op, "path", fs.Path, "errno", fs.Errno, "syscall", fs.Syscall)
	case errors.As(err, &box):
		return NewError(box.Code, err.Error(), "op", box.Op)
	case errors.As(err, &sc):
		return NewError(sc.Code, err.Error(), "op", sc.Op, "path", sc.Path)
	case errors.As(err, &pol):
		return NewError(pol.Code, err.Error(), "path", pol.Path)
	case errors.As(err, &doc):
		return NewError(doc.Code, err.Error(), "name", doc.Name, "line", doc.Line, "column", doc.Column)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return NewError(CodeCancelled, "the call was cancelled")
	}
	return NewError(CodeInternal, "internal error")
}

// deniedError carries the whole denial; the message is that of the outermost
// error, which names the path as the caller knows it.
func deniedError(d *fence.Denial, err error) *Error {
	data, merr := json.Marshal(d, outgoing)
	if merr != nil {
		return NewError(fence.CodeSandboxDenied, err.Error(), "path", d.Path)
	}
	return &Error{Code: numFS, Message: validText(err.Error()), Data: data}
}

// cancelled is the answer to a call that the client cancelled and that then
// failed. Its data is that of the failure, if it says more than "cancelled".
func cancelled(e *Error) *Error {
	if e.Code == numCancelled {
		return e
	}
	if e.Code == numInternal {
		return NewError(CodeCancelled, "the call was cancelled")
	}
	return &Error{Code: numCancelled, Message: "the call was cancelled: " + e.Message, Data: e.Data}
}
