package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/trash/record"
)

// PatchOptions is how hunks are applied to one file.
type PatchOptions struct {
	EditOptions
	// Codex reproduces the results of OpenAI Codex (facts/patch.md section 7).
	Codex bool `json:"-"`
}

// PatchOutcome is the result of patchText.
type PatchOutcome struct {
	EditOutcome
	// InsertedAt has, for each hunk that only adds, the line of the new file,
	// from 1, where its first line stands.
	InsertedAt []int `json:"insertedAt,omitzero"`
}

// CompatCodex is the value of ApplyOptions.Compat for the results of Codex.
const CompatCodex = "codex"

// ApplyOptions is how a patch of several files is applied.
type ApplyOptions struct {
	// Cwd is what relative paths of the patch are relative to; absolute.
	Cwd string `json:"cwd,omitzero"`
	// Atomic: all or nothing. nil is true, without Compat.
	Atomic *bool `json:"atomic,omitzero"`
	// Overwrite lets add and move replace a file that exists.
	Overwrite        bool   `json:"overwrite,omitzero"`
	OverrideReadOnly bool   `json:"overrideReadOnly,omitzero"`
	Compat           string `json:"compat,omitzero"`
	// DryRun decides everything and changes nothing.
	DryRun bool `json:"dryRun,omitzero"`
	// Permanent deletes outright instead of into the trash.
	Permanent bool `json:"permanent,omitzero"`
	// Guards are asked for intents and told of effects; nil for none.
	Guards Guards `json:"-"`
}

// Guards decide the guards of a call and record its effects (fs-contract
// sections 5 and 6). They are called by the goroutine of the call and must not
// block.
type Guards interface {
	// WriteIntent is the guard of a write, move destination or patch add; nil
	// for none.
	WriteIntent(Target) (*WriteIntent, error)
	// EditIntent is the guard of an edit, patch or move source; nil for none.
	EditIntent(Target) (*VersionGuard, error)
	// DeleteIntent is the guard of a delete; nil for none.
	DeleteIntent(Target) (*VersionGuard, error)
	// Observed records what is known of a target after an effect.
	Observed(Target, Observation)
}

// Observation is what an owner knows of a target: a version, or its absence
// when Version is empty.
type Observation struct {
	Version Version `json:"version,omitzero"`
}

// ApplyState tells what became of one operation of a patch.
type ApplyState string

const (
	// ApplyPlanned: nothing stands against it. dryRun stops here; otherwise an
	// operation was refused before anything was done.
	ApplyPlanned ApplyState = "planned"
	ApplyDone    ApplyState = "done"
	// ApplyUndone: it was done and taken back.
	ApplyUndone ApplyState = "undone"
	ApplyFailed ApplyState = "failed"
	// ApplySkipped: it was not reached.
	ApplySkipped ApplyState = "skipped"
	// ApplyLeft: it was done and could not be taken back.
	ApplyLeft ApplyState = "left"
)

// ApplyFailure is why an operation failed.
type ApplyFailure struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Hunk    *patch.Failure `json:"hunk,omitzero"`
}

// ApplyOperation is the report on one operation.
type ApplyOperation struct {
	// Kind is add, update, delete, move or replace.
	Kind string `json:"kind"`
	// Path and Destination are as written in the patch.
	Path        string        `json:"path"`
	Destination string        `json:"destination,omitzero"`
	LineNumber  int           `json:"lineNumber"`
	State       ApplyState    `json:"state"`
	Failure     *ApplyFailure `json:"failure,omitzero"`
	Version     Version       `json:"version,omitzero"`
	// Before and After are LF texts, null where there is none or where it is
	// not below the bound of write bases.
	Before       *string  `json:"before"`
	After        *string  `json:"after"`
	InsertedAt   []int    `json:"insertedAt,omitzero"`
	LinksBroken  int      `json:"linksBroken,omitzero"`
	MetadataLost []string `json:"metadataLost,omitzero"`
	// Trashed is the file that the operation deleted, or overwrote where the
	// policy keeps that.
	Trashed *record.Entry `json:"trashed,omitzero"`
}

// PatchReport is the result of applyPatch.
type PatchReport struct {
	Operations []ApplyOperation `json:"operations"`
	// Stopped: not everything was done (only without Atomic).
	Stopped bool `json:"stopped,omitzero"`
	DryRun  bool `json:"dryRun,omitzero"`
	// Summary is the text of Codex: a header line, then A, M and D lines.
	Summary string `json:"summary"`
}

// Patcher are the patches of the contract.
type Patcher interface {
	// PatchText applies hunks to one text file, all or none, and leaves every
	// byte outside of the changed lines alone. A hunk that does not fit is
	// FS_PATCH_MISMATCH; the message names the line of the patch and the stage,
	// and the cause is a *[patch.Failure]. Hunks that contradict themselves
	// (see [patch.Check]) are FS_PATCH_MISMATCH too. Absent or stale is
	// FS_STALE_VERSION; a NUL anywhere or text that is not UTF-8 is
	// FS_NOT_TEXT; above the limit of edits, before or after, and matching that
	// takes too long is FS_TOO_LARGE. Section 4.4, facts/patch.md.
	//
	// Concurrency: as WriteText; matching happens inside the lock.
	PatchText(ctx context.Context, f *fence.Fence, t Target, hunks []patch.Hunk, o PatchOptions) (PatchOutcome, error)

	// ApplyPatch applies a patch of any number of files. Unless Atomic is
	// false, either all of it happens or nothing: what was done is undone when
	// a later operation fails, and the error's cause is a [*PatchError] with
	// the report. facts/patch.md section 6.
	//
	// Refused are, with nothing changed: a text that is no patch
	// (FS_PATCH_MISMATCH, without a report), more than 1,000 operations, and
	// more bytes than Config.EditMaxBytes, of the files that are read and of
	// the new contents each, all together (FS_TOO_LARGE). A file in the place
	// of a directory, or below a file, of the same patch is refused too.
	//
	// With Atomic false the operations are committed one by one. That one
	// fails is then no error: the report is Stopped, and what was done stays.
	// An error is what is refused before the first: syntax, a path that the
	// fence denies, a guard; and FS_ABORTED.
	//
	// Where the policy keeps what is overwritten, a file that an add or a move
	// writes over is put into the trash, also by a patch that has deleted it
	// before; an update keeps nothing. When the trash refuses one, all is undone.
	//
	// Concurrency: every file is locked, in sorted order, while the patch is
	// committed; other writers see each file old or new.
	ApplyPatch(ctx context.Context, f *fence.Fence, text string, o ApplyOptions) (PatchReport, error)
}

// PatchError is the cause of an error of applyPatch that happened after
// parsing: it has the report on every operation.
type PatchError struct {
	Report PatchReport
	// Cause is that of the operation which failed: a *fence.Denial, an errno, a
	// *patch.Failure; nil when there is none.
	Cause error
}

// Error says which operation failed, and why if that is not told already.
func (e *PatchError) Error() string {
	at := "nothing was changed"
	for i, o := range e.Report.Operations {
		if o.State == ApplyFailed {
			at = fmt.Sprintf("operation %d of %d, line %d of the patch", i+1, len(e.Report.Operations), o.LineNumber)
		}
	}
	if e.Cause == nil {
		return at
	}
	why := e.Cause.Error()
	if strings.HasSuffix(why, at) {
		return why // it came over a wire, as the text of such an error
	}
	return why + "; " + at
}

// Unwrap gives the cause of the operation's failure.
func (e *PatchError) Unwrap() error { return e.Cause }
