package api

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
	"github.com/wattle-dev/wattle/trash/record"
)

// ErrorOf is the error as it travels (PROTOCOL section 1), found by type along
// the chain of wrapped errors:
//
//   - an [*Error] is itself;
//   - a [*fence.Denial], also below another error, is FS_SANDBOX_DENIED with
//     the denial as data, and beside it `op` and `displayPath` of a file call;
//   - an error of a room below keeps its stable code, and what it knows of
//     path, errno and system call;
//   - where it concerns a patch, the hunk that did not fit goes along as `hunk`
//     and the report as `report`; of a delete `outcome`, `reason` and, if known,
//     `entry`;
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
		return deniedError(denial, err).with(callOf(err)).with(trashOf(err)).with(patchOf(err))
	}
	var fs *provider.Error
	var tr *record.Error
	var box *sandbox.Error
	var sc *scratch.Error
	var pol *fence.PolicyError
	var doc *policies.Error
	switch {
	case errors.As(err, &fs):
		return NewError(string(fs.Code), err.Error(), "op", fs.Op, "path", fs.Path, "errno", fs.Errno, "syscall", fs.Syscall).
			with(trashOf(err)).with(patchOf(err))
	case errors.As(err, &tr):
		return NewError(tr.Code, err.Error(), "op", tr.Op, "path", tr.Path, "errno", tr.Errno, "syscall", tr.Syscall).with(trashOf(err))
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

// with adds members to the data of an error that was just made.
func (e *Error) with(members []byte) *Error {
	if len(members) > 0 {
		e.Data = append(append(e.Data[:len(e.Data)-1:len(e.Data)-1], members...), '}')
	}
	return e
}

// callOf is what a denial does not say of the file call that met it, as
// members: its path is canonical.
func callOf(err error) []byte {
	var fs *provider.Error
	if !errors.As(err, &fs) {
		return nil
	}
	return members("op", fs.Op, "displayPath", fs.Path)
}

// patchOf is what is known of a patch that failed, as members.
func patchOf(err error) []byte {
	var out []byte
	var hunk *patch.Failure
	if errors.As(err, &hunk) {
		out = members("hunk", hunk)
	}
	var p *provider.PatchError
	if errors.As(err, &p) {
		out = append(out, members("report", p.Report)...)
	}
	return out
}

// trashOf is what became of a delete that failed, as members.
func trashOf(err error) []byte {
	var outcome record.Outcome
	var reason record.Reason
	var fs *provider.Error
	if errors.As(err, &fs) {
		outcome, reason = fs.Outcome, fs.Reason
	}
	var entry *record.Entry
	var tr *record.Error
	if errors.As(err, &tr) {
		if outcome == "" {
			outcome, reason = tr.Outcome, tr.Reason
		}
		entry = tr.Entry
	}
	out := members("outcome", string(outcome), "reason", string(reason))
	if entry != nil {
		out = append(out, members("entry", entry)...)
	}
	return out
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
