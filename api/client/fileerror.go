package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/trash/record"
)

// failure is the data of an error of a file call.
type failure struct {
	Op      string                `json:"op"`
	Path    string                `json:"path"`
	Shown   string                `json:"displayPath"` // with a denial, whose path is canonical
	Errno   string                `json:"errno"`
	Syscall string                `json:"syscall"`
	Outcome record.Outcome        `json:"outcome"`
	Reason  record.Reason         `json:"reason"`
	Entry   *record.Entry         `json:"entry"`
	Hunk    *patch.Failure        `json:"hunk"`
	Report  *provider.PatchReport `json:"report"`
	Member  string                `json:"member"` // with INVALID_PARAMS
}

// fileError makes of what a call failed with the error that a local provider
// would have given.
func fileError(ctx context.Context, op, shown string, err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		code := provider.CodeIOError
		if ctx.Err() != nil && !errors.Is(err, api.ErrClosed) {
			code = provider.CodeAborted
		}
		return &provider.Error{Code: code, Op: op, Path: shown, Cause: err}
	}
	code := e.Stable()
	if code == api.CodeCancelled {
		code = string(provider.CodeAborted)
	}
	var data failure
	_ = json.Unmarshal(e.Data, &data) // what cannot be read is not known
	if !strings.HasPrefix(code, "FS_") && !strings.HasPrefix(code, "TRASH_") {
		return refused(op, shown, e, data.Member)
	}
	out := &provider.Error{Code: provider.Code(code), Op: op, Path: shown, Errno: data.Errno, Syscall: data.Syscall,
		Outcome: data.Outcome, Reason: data.Reason}
	if data.Op != "" {
		out.Op = data.Op
	}
	denial := e.Denial()
	switch {
	case denial != nil && data.Shown != "":
		out.Path = data.Shown
	case denial == nil && data.Path != "":
		out.Path = data.Path
	}
	out.Detail = withoutPrefix(e.Message, out)
	errno := errnoOf(data.Errno)
	switch {
	case denial != nil:
		out.Cause = denial
	case out.Code == provider.CodeAborted:
		out.Detail, out.Cause = "", context.Canceled
		if ctx.Err() != nil {
			out.Cause = context.Cause(ctx)
		}
	case errno != nil:
		out.Cause = errno
	case data.Hunk != nil:
		out.Cause = data.Hunk
	}
	switch {
	case data.Report != nil:
		out.Cause = &provider.PatchError{Report: *data.Report, Cause: out.Cause}
	case data.Entry != nil:
		// The trash's own operation and path are the first words of the rest.
		did, why, _ := strings.Cut(out.Detail, ": ")
		if out.Cause != nil {
			why = strings.TrimSuffix(strings.TrimSuffix(why, out.Cause.Error()), ": ")
		}
		out.Cause = &record.Error{Code: code, Outcome: data.Outcome, Reason: data.Reason, Op: did, Detail: why,
			Errno: data.Errno, Syscall: data.Syscall, Entry: data.Entry, Cause: out.Cause}
	}
	// What the error says of its cause is in the message already.
	if out.Cause != nil {
		said := out.Cause.Error()
		if denial != nil {
			said = strings.TrimPrefix((&provider.Error{Cause: denial}).Error(), ": ")
		}
		out.Detail = strings.TrimSuffix(strings.TrimSuffix(out.Detail, said), ": ")
	}
	return out
}

// refused is an error that is not of the file system: of the session, or of
// parameters. A provider would have refused most of those itself (EINVAL), and
// has codes for names that nobody has made.
func refused(op, shown string, e *api.Error, member string) error {
	out := &provider.Error{Code: provider.CodeIOError, Op: op, Path: shown, Cause: e}
	if e.Stable() != api.CodeInvalidParams {
		return out
	}
	switch {
	case strings.HasSuffix(member, "/targetKey"):
		out.Code = provider.CodeNotFound
	case strings.HasPrefix(member, "/expected") && strings.HasSuffix(member, "/version"):
		out.Code = provider.CodeStaleVersion
	default:
		out.Errno, out.Cause = "EINVAL", fmt.Errorf("%w (%w)", e, syscall.EINVAL)
	}
	if op == "deleteFile" || op == "deletePath" {
		out.Outcome, out.Reason = record.Rejected, record.ReasonInvalidPath
	}
	return out
}

// withoutPrefix is the part of a message behind operation and path, which the
// error writes itself.
func withoutPrefix(message string, e *provider.Error) string {
	prefix := e.Op
	if e.Path != "" {
		prefix += " " + e.Path
	}
	return strings.TrimPrefix(message, prefix+": ")
}
