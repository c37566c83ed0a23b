package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/trash/record"
)

// Trash is where deleted things go.
type Trash interface {
	// Put moves the entry called name of dir into the trash by one rename.
	// path is its canonical path, where it is restored to; name is another one
	// when the thing was overwritten and lies beside its place under a hidden
	// name. want is the identity, taken by handle, that it must still have. copyAcross allows a copy where no trash can take it
	// by rename. Errors are [*record.Error]; with outcome unknown the thing
	// may be anywhere, otherwise it is in place.
	Put(ctx context.Context, dir *anchor.Dir, name, path string, want anchor.Info, copyAcross bool) (record.Entry, error)
	// Holds tells whether a canonical path is a trash directory, lies in one,
	// or contains one: such a thing is never deleted.
	Holds(path string) bool
}

// DeleteOptions is how a file is deleted.
type DeleteOptions struct {
	// Expected is the guard, nil for none.
	Expected *VersionGuard `json:"expected,omitzero"`
	// Permanent deletes outright. Otherwise the file goes to the trash, and a
	// refusal of the trash leaves it.
	Permanent        bool `json:"permanent,omitzero"`
	OverrideReadOnly bool `json:"overrideReadOnly,omitzero"`
}

// DeletePathOptions is how a path is deleted.
type DeletePathOptions struct {
	// Cwd is what a relative path is relative to; absolute.
	Cwd string `json:"cwd,omitzero"`
	// Expected is a guard on a regular file, nil for none.
	Expected  *VersionGuard `json:"expected,omitzero"`
	Permanent bool          `json:"permanent,omitzero"`
	// Recursive must be asked for to delete a directory that is not empty
	// outright. The trash takes a directory whole without it.
	Recursive bool `json:"recursive,omitzero"`
	// CopyAcross allows a copy into the home trash where no trash of the same
	// file system can take it.
	CopyAcross bool `json:"copyAcross,omitzero"`
	// Links "reject" refuses symbolic links; otherwise a link is deleted itself.
	Links string `json:"links,omitzero"`
}

// LinksReject is a value of DeletePathOptions.Links.
const LinksReject = "reject"

// DeleteOutcome is the result of a delete: trashed, already_absent (of
// deletePath alone) or deleted.
type DeleteOutcome struct {
	Outcome record.Outcome `json:"outcome"`
	// Before is the text of a deleted regular file, bounded as that of a write;
	// null otherwise.
	Before  *string       `json:"before"`
	Trashed *record.Entry `json:"trashed,omitzero"`
	// Type is what was deleted, and Entries how many names went with it when it
	// was deleted outright, itself included.
	Type    FileType `json:"type,omitzero"`
	Entries int      `json:"entries,omitzero"`
}

// MoveOptions is how a file is moved.
type MoveOptions struct {
	// Hunks are applied to the text on the way.
	Hunks               []patch.Hunk  `json:"hunks,omitzero"`
	ExpectedSource      *VersionGuard `json:"expectedSource,omitzero"`
	ExpectedDestination *WriteIntent  `json:"expectedDestination,omitzero"`
	OverrideReadOnly    bool          `json:"overrideReadOnly,omitzero"`
	// Codex is for applyPatch alone.
	Codex bool `json:"-"`
}

// SourceFailure is why the source of a move is still there.
type SourceFailure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// MoveOutcome is the result of moveFile. A destination that was published with
// a source left behind is a result, not an error.
//
// Without hunks the text of the destination is that of the source:
// Destination.After is empty where SourceBefore is null.
type MoveOutcome struct {
	SourceBefore  *string        `json:"sourceBefore"`
	Destination   WriteOutcome   `json:"destination"`
	SourceDeleted bool           `json:"sourceDeleted"`
	SourceFailure *SourceFailure `json:"sourceFailure,omitzero"`
}

// MovePathOptions is how a path is moved.
type MovePathOptions struct {
	Cwd string `json:"cwd,omitzero"`
	// Overwrite replaces a destination that exists: a file by a file, an empty
	// directory by a directory.
	Overwrite bool `json:"overwrite,omitzero"`
}

// MovePathOutcome is the result of movePath.
type MovePathOutcome struct {
	// Path is the canonical destination.
	Path string   `json:"path"`
	Type FileType `json:"type"`
	// Replaced is what became of a destination that was overwritten: deleted,
	// or trashed when overwritten things are kept.
	Replaced record.Outcome `json:"replaced,omitzero"`
	Trashed  *record.Entry  `json:"trashed,omitzero"`
	// Copied: the move went across file systems, by copy and removal.
	Copied       bool     `json:"copied,omitzero"`
	MetadataLost []string `json:"metadataLost,omitzero"`
}

// CopyPathOptions is how a path is copied.
type CopyPathOptions struct {
	Cwd       string `json:"cwd,omitzero"`
	Overwrite bool   `json:"overwrite,omitzero"`
	// Recursive must be asked for to copy a directory.
	Recursive bool `json:"recursive,omitzero"`
}

// CopyPathOutcome is the result of copyPath.
type CopyPathOutcome struct {
	Path         string         `json:"path"`
	Type         FileType       `json:"type"`
	Files        int            `json:"files"`
	Bytes        int64          `json:"bytes"`
	Replaced     record.Outcome `json:"replaced,omitzero"`
	Trashed      *record.Entry  `json:"trashed,omitzero"`
	MetadataLost []string       `json:"metadataLost,omitzero"`
}

// MakeDirOptions is how a directory is made.
type MakeDirOptions struct {
	Cwd string `json:"cwd,omitzero"`
	// Parents makes missing parents, and accepts a directory that is there.
	Parents bool `json:"parents,omitzero"`
}

// MakeDirOutcome is the result of makeDir.
type MakeDirOutcome struct {
	Path string `json:"path"`
	// Made are the directories that were made, outermost first; canonical.
	Made []string `json:"made"`
}

// Mover are the primitives that remove, move and make.
type Mover interface {
	// DeleteFile removes a regular file: into the trash, or outright. The
	// target was resolved, so the real file goes, not a link to it. Absent or
	// stale is FS_STALE_VERSION, also without a guard. A file that could not be
	// written, as one of mode 0444, is FS_PERMISSION_DENIED unless overridden.
	// Without a trash TRASH_UNAVAILABLE; what the trash says is passed on with
	// its code, outcome and reason. Every error has an outcome. Section 4.5.
	//
	// Outright, the file gets a hidden name first and is looked at there: one
	// that was changed or replaced meanwhile comes back. Where its name has
	// been taken by then it is kept under the hidden one, which the error
	// names (FS_IO_ERROR, outcome unknown).
	//
	// Concurrency: as WriteText.
	DeleteFile(ctx context.Context, f *fence.Fence, t Target, o DeleteOptions) (DeleteOutcome, error)

	// DeletePath removes a file, a directory or a link itself. Nothing there
	// is already_absent. The workspace root and its ancestors, home, mount
	// points, trash directories and special files are refused with outcome
	// rejected: TRASH_REJECTED, special files FS_NOT_REGULAR_FILE. In a tree
	// special files go along; what the fence keeps from being deleted in it, a
	// mount, or a directory that cannot be looked into keeps the whole.
	//
	// The mode of a file does not matter, as for rm -f. A directory that is not
	// empty is not deleted outright without Recursive: FS_IO_ERROR, ENOTEMPTY.
	// Once the removal of a tree has begun, nothing cancels it; one that ends
	// half-way is an error with outcome unknown.
	//
	// Concurrency: takes the lock of the path; entries that come into a
	// directory meanwhile go with it into the trash, and make an outright
	// delete fail.
	DeletePath(ctx context.Context, f *fence.Fence, path string, o DeletePathOptions) (DeleteOutcome, error)

	// MoveFile publishes a file at another target and removes it at the first.
	// Section 4.6.
	//
	// Without hunks the file itself moves, with its metadata and content of any
	// kind; across file systems, where it cannot have two names, and where the
	// source's directory cannot be written, it is copied. Both ends are
	// read-only files as for DeleteFile. Once anything is staged, nothing
	// cancels it. A destination that is overwritten is kept as by WriteText; when
	// the trash refuses it, the source stays.
	//
	// Concurrency: takes both locks, in sorted order.
	MoveFile(ctx context.Context, f *fence.Fence, from, to Target, o MoveOptions) (MoveOutcome, error)

	// MovePath moves a file, a directory or a link itself. A destination that
	// exists is FS_ALREADY_EXISTS without Overwrite, decided by the kernel; with
	// it also when it is a directory that is not empty. Nothing at the source is
	// FS_NOT_FOUND; both the same, FS_SAME_TARGET; a directory into itself
	// FS_IO_ERROR with EINVAL; the workspace, what it lies in, and mount points
	// FS_IO_ERROR with EBUSY; a source that was exchanged meanwhile is moved
	// back, FS_STALE_VERSION. A read-only file is not replaced. Between file
	// systems it is a copy, and then the removal of what was copied: when
	// something has to stay, the error says so and the copy is complete.
	// Section 4.6.
	//
	// The fence judges it as a command's rename of the same names.
	//
	// Concurrency: takes both locks, in sorted order. A directory is moved as it
	// is at that moment; calls for entries in it take other locks and end in the
	// directory, wherever it is then.
	MovePath(ctx context.Context, f *fence.Fence, from, to string, o MovePathOptions) (MovePathOutcome, error)

	// CopyPath copies a file, a link itself, or with Recursive a directory.
	// A copy of a file is published whole; one of a directory is complete
	// before it gets its name. What the fence hides or protects in it is
	// refused, not left out, and so are special files and other mounts, before
	// anything is made. Mode, time of modification, attributes, owner and group
	// are kept where permitted; hard links become files of their own; holes stay
	// holes. Errors as of MovePath, and FS_TOO_LARGE for a tree of more than
	// Config.ListMaxEntries entries or of paths longer than a path can be.
	//
	// Concurrency: takes the lock of the destination; a source that changes
	// meanwhile is copied as it was at some moment, file by file.
	CopyPath(ctx context.Context, f *fence.Fence, from, to string, o CopyPathOptions) (CopyPathOutcome, error)

	// MakeDir makes a directory with mode 0777 narrowed by the umask.
	// FS_ALREADY_EXISTS when something is there, FS_NOT_FOUND when a parent is
	// missing; Parents makes both right when it is a directory.
	//
	// Concurrency: takes no lock; of two that make one directory one wins.
	MakeDir(ctx context.Context, f *fence.Fence, path string, o MakeDirOptions) (MakeDirOutcome, error)
}
