package client

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// failure is the data of an error of a file call.
type failure struct {
	Op      string                `json:"op"`
	Path    string                `json:"path"`
	Errno   string                `json:"errno"`
	Syscall string                `json:"syscall"`
	Outcome record.Outcome        `json:"outcome"`
	Reason  record.Reason         `json:"reason"`
	Entry   *record.Entry         `json:"entry"`
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
		return &provider.Error{Code: malformed(code, data.Member), Op: op, Path: shown, Cause: e}
	}
	out := &provider.Error{Code: provider.Code(code), Op: op, Path: shown, Errno: data.Errno, Syscall: data.Syscall,
		Outcome: data.Outcome, Reason: data.Reason}
	if data.Op != "" {
		out.Op = data.Op
	}
	denial := e.Denial()
	if data.Path != "" && denial == nil { // a denial's path is canonical
		out.Path = data.Path
	}
	text := withoutPrefix(e.Message, out)
	switch {
	case denial != nil:
		out.Cause = denial
	case out.Code == provider.CodeAborted:
		out.Cause = context.Canceled
		if ctx.Err() != nil {
			out.Cause = context.Cause(ctx)
		}
	default:
		out.Detail = text
		if errno := errnoOf(data.Errno); errno != nil {
			out.Detail = strings.TrimSuffix(strings.TrimSuffix(text, errno.Error()), ": ")
			out.Cause = errno
		}
	}
	if data.Entry != nil {
		out.Cause = &record.Error{Code: code, Outcome: data.Outcome, Reason: data.Reason, Op: out.Op, Path: out.Path,
			Errno: data.Errno, Syscall: data.Syscall, Entry: data.Entry, Cause: out.Cause}
	}
	if data.Report != nil {
		cause := out.Cause
		if cause == nil {
			cause = &provider.Error{Code: out.Code, Op: out.Op, Path: out.Path, Detail: out.Detail}
			out.Detail = ""
		}
		out.Cause = &provider.PatchError{Report: *data.Report, Cause: cause}
	}
	return out
}

// malformed is what a provider says of a value that no provider has made; the
// daemon refuses some of those as parameters.
func malformed(code, member string) provider.Code {
	switch {
	case code != api.CodeInvalidParams:
	case strings.HasSuffix(member, "/targetKey"):
		return provider.CodeNotFound
	case strings.HasPrefix(member, "/expected") && strings.HasSuffix(member, "/version"):
		return provider.CodeStaleVersion
	}
	return provider.CodeIOError
}

// withoutPrefix is the part of a message behind operation and path, which the
// error writes itself.
func withoutPrefix(message string, e *provider.Error) string {
	rest, ok := strings.CutPrefix(message, e.Op)
	if !ok {
		return message
	}
	rest = strings.TrimPrefix(rest, " "+e.Path)
	return strings.TrimPrefix(rest, ": ")
}
