package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// Files are the files of one session. The methods are those of
// [provider.Provider] without the fence, which is the session's; they promise
// the same, and every error is a [*provider.Error]. What [provider.Provider]
// computes without a context is asked of the daemon here, which alone knows
// its world.
//
// Names and texts must be UTF-8: others are FS_NOT_TEXT before anything is
// sent, and so is FS_TOO_LARGE what fits into no message. A failure of the
// connection, or of the session, is FS_IO_ERROR with the cause.
//
// Any number of goroutines may use one at once.
type Files struct {
	c       *Client
	session string
}

// NewFiles are the files of a session that this connection holds.
func NewFiles(c *Client, sessionID string) *Files { return &Files{c: c, session: sessionID} }

// envelope is what JSON-RPC puts around parameters, generously.
const envelope = 1 << 10

// file makes one call. shown is the path for messages.
func file[P, R any](ctx context.Context, f *Files, m api.Method[P, R], shown string, p P) (R, error) {
	var none, r R
	op := strings.TrimPrefix(m.Name, "fs/")
	if err := ctx.Err(); err != nil {
		return none, &provider.Error{Code: provider.CodeAborted, Op: op, Path: shown, Cause: context.Cause(ctx)}
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return none, &provider.Error{Code: provider.CodeNotText, Op: op, Path: shown, Detail: "it cannot travel", Cause: err}
	}
	f.c.mu.Lock()
	most := f.c.limits.MaxFrameBytes
	f.c.mu.Unlock()
	if int64(len(raw))+envelope > most {
		return none, &provider.Error{Code: provider.CodeTooLarge, Op: op, Path: shown,
			Detail: fmt.Sprintf("%d bytes do not fit into a message of the daemon (%d)", len(raw), most)}
	}
	if err := f.c.call(ctx, m.Name, raw, &r, true); err != nil {
		return none, fileError(ctx, op, shown, err)
	}
	return r, nil
}

func (f *Files) at(t provider.Target) api.FileRef {
	return api.FileRef{SessionID: f.session, Target: &t}
}

func (f *Files) path(path, cwd string) api.FileRef {
	return api.FileRef{SessionID: f.session, Path: path, Cwd: cwd}
}

// Resolve gives the identity of a path.
func (f *Files) Resolve(ctx context.Context, path string, o provider.ResolveOptions) (provider.Target, error) {
	return file(ctx, f, api.FSResolve, path, api.FSResolveParams{SessionID: f.session, Path: path, Cwd: o.Cwd})
}

// ProcessPath is the canonical path that a command can open.
func (f *Files) ProcessPath(ctx context.Context, t provider.Target) (string, error) {
	r, err := file(ctx, f, api.FSProcessPath, t.DisplayPath, f.at(t))
	return r.Path, err
}

// ProcessPathFromHostPath maps a path of the host; false when there is none.
func (f *Files) ProcessPathFromHostPath(ctx context.Context, host string) (string, bool, error) {
	r, err := file(ctx, f, api.FSProcessPathFromHostPath, host, api.FSHostPathParams{SessionID: f.session, Path: host})
	if err != nil || r.Path == nil {
		return "", false, err
	}
	return *r.Path, true, nil
}

// FileURL is the file: URI of a file.
func (f *Files) FileURL(ctx context.Context, t provider.Target) (string, error) {
	r, err := file(ctx, f, api.FSFileURL, t.DisplayPath, f.at(t))
	return r.URL, err
}

// Contains tells whether child is parent or lies below it.
func (f *Files) Contains(ctx context.Context, parent, child provider.Target) (bool, error) {
	r, err := file(ctx, f, api.FSContains, child.DisplayPath, api.FSContainsParams{SessionID: f.session, Parent: parent, Child: child})
	return r.Contains, err
}

// Stat describes a file, following links; nil when nothing is there.
func (f *Files) Stat(ctx context.Context, t provider.Target) (*provider.Info, error) {
	return file(ctx, f, api.FSStat, t.DisplayPath, f.at(t))
}

// Lstat describes a path without following a link in the last place.
func (f *Files) Lstat(ctx context.Context, path string, o provider.ResolveOptions) (*provider.PathInfo, error) {
	return file(ctx, f, api.FSLstat, path, f.path(path, o.Cwd))
}

// ListDir lists a directory, or a page of it.
func (f *Files) ListDir(ctx context.Context, t provider.Target, o provider.ListOptions) ([]provider.DirEntry, error) {
	o.After = api.PageAfter(o.After)
	r, err := file(ctx, f, api.FSListDir, t.DisplayPath, api.FSListDirParams{FileRef: f.at(t), ListOptions: o})
	return r.Entries, err
}

// ReadText reads a whole text file.
func (f *Files) ReadText(ctx context.Context, t provider.Target, o provider.ReadOptions) (provider.TextContent, error) {
	return file(ctx, f, api.FSReadText, t.DisplayPath, api.FSReadTextParams{FileRef: f.at(t), ReadOptions: o})
}

// ReadBytes reads a whole file as it is.
func (f *Files) ReadBytes(ctx context.Context, t provider.Target, maxBytes int64) (provider.ByteContent, error) {
	return file(ctx, f, api.FSReadBytes, t.DisplayPath, api.FSReadBytesParams{FileRef: f.at(t), MaxBytes: maxBytes})
}

// ReadByteRange reads a part of a file.
func (f *Files) ReadByteRange(ctx context.Context, t provider.Target, r provider.ByteRange) (provider.ByteContent, error) {
	return file(ctx, f, api.FSReadByteRange, t.DisplayPath, api.FSReadByteRangeParams{FileRef: f.at(t), ByteRange: r})
}

// ReadLines reads a window of a text file.
func (f *Files) ReadLines(ctx context.Context, t provider.Target, w provider.LineWindow) (provider.ReadOutcome, error) {
	return file(ctx, f, api.FSReadLines, t.DisplayPath, api.FSReadLinesParams{FileRef: f.at(t), LineWindow: w})
}

// WriteText makes a file or replaces it whole.
func (f *Files) WriteText(ctx context.Context, t provider.Target, content string, o provider.WriteOptions) (provider.WriteOutcome, error) {
	return file(ctx, f, api.FSWriteText, t.DisplayPath, api.FSWriteTextParams{FileRef: f.at(t), Content: content, WriteOptions: o})
}

// EditText replaces literal text in a file.
func (f *Files) EditText(ctx context.Context, t provider.Target, e provider.EditRequest, o provider.EditOptions) (provider.EditOutcome, error) {
	return file(ctx, f, api.FSEditText, t.DisplayPath, api.FSEditTextParams{FileRef: f.at(t), Edit: e, EditOptions: o})
}

// PatchText applies hunks to one file. The results of Codex are had with
// ApplyPatch only.
func (f *Files) PatchText(ctx context.Context, t provider.Target, hunks []patch.Hunk, o provider.PatchOptions) (provider.PatchOutcome, error) {
	return file(ctx, f, api.FSPatchText, t.DisplayPath, api.FSPatchTextParams{FileRef: f.at(t), Hunks: plain(hunks), EditOptions: o.EditOptions})
}

// plain gives hunks lists where they have none: on the wire they must be there.
func plain(hunks []patch.Hunk) []patch.Hunk {
	if hunks == nil {
		return nil
	}
	out := make([]patch.Hunk, len(hunks))
	for i, h := range hunks {
		if h.OldLines == nil {
			h.OldLines = []string{}
		}
		if h.NewLines == nil {
			h.NewLines = []string{}
		}
		out[i] = h
	}
	return out
}

// ApplyPatch applies a patch of any number of files. Guards do not travel: a
// session with observation has its own.
func (f *Files) ApplyPatch(ctx context.Context, text string, o provider.ApplyOptions) (provider.PatchReport, error) {
	return file(ctx, f, api.FSApplyPatch, "", api.FSApplyPatchParams{SessionID: f.session, Patch: text, ApplyOptions: o})
}

// DeleteFile removes a regular file.
func (f *Files) DeleteFile(ctx context.Context, t provider.Target, o provider.DeleteOptions) (provider.DeleteOutcome, error) {
	return file(ctx, f, api.FSDeleteFile, t.DisplayPath, api.FSDeleteFileParams{FileRef: f.at(t), DeleteOptions: o})
}

// DeletePath removes a file, a directory or a link itself.
func (f *Files) DeletePath(ctx context.Context, path string, o provider.DeletePathOptions) (provider.DeleteOutcome, error) {
	return file(ctx, f, api.FSDeletePath, path, api.FSDeletePathParams{FileRef: f.path(path, o.Cwd), Expected: o.Expected,
		Permanent: o.Permanent, Recursive: o.Recursive, CopyAcross: o.CopyAcross, Links: o.Links})
}

// MoveFile publishes a file at another target and removes it at the first.
func (f *Files) MoveFile(ctx context.Context, from, to provider.Target, o provider.MoveOptions) (provider.MoveOutcome, error) {
	return file(ctx, f, api.FSMoveFile, from.DisplayPath, api.FSMoveFileParams{FileRef: f.at(from), Destination: api.Destination{Target: &to},
		Hunks: plain(o.Hunks), ExpectedSource: o.ExpectedSource, ExpectedDestination: o.ExpectedDestination, OverrideReadOnly: o.OverrideReadOnly})
}

// MovePath moves a file, a directory or a link itself.
func (f *Files) MovePath(ctx context.Context, from, to string, o provider.MovePathOptions) (provider.MovePathOutcome, error) {
	return file(ctx, f, api.FSMovePath, from, api.FSMovePathParams{FileRef: f.path(from, o.Cwd), Destination: to, Overwrite: o.Overwrite})
}

// CopyPath copies a file, a link itself, or a directory.
func (f *Files) CopyPath(ctx context.Context, from, to string, o provider.CopyPathOptions) (provider.CopyPathOutcome, error) {
	return file(ctx, f, api.FSCopyPath, from, api.FSCopyPathParams{FileRef: f.path(from, o.Cwd), Destination: to, Overwrite: o.Overwrite, Recursive: o.Recursive})
}

// MakeDir makes a directory.
func (f *Files) MakeDir(ctx context.Context, path string, o provider.MakeDirOptions) (provider.MakeDirOutcome, error) {
	return file(ctx, f, api.FSMakeDir, path, api.FSMakeDirParams{FileRef: f.path(path, o.Cwd), Parents: o.Parents})
}

// Observed is what the session knows of a file.
func (f *Files) Observed(ctx context.Context, t provider.Target) (provider.ObservationState, provider.Version, error) {
	r, err := file(ctx, f, api.FSObserved, t.DisplayPath, f.at(t))
	return r.State, r.Version, err
}
