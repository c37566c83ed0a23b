package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
)

// TempPrefix begins the name of the hidden file that a replacement needs for a
// moment beside its target. The rest is random. Ignore lists may name it.
const TempPrefix = ".wattle-"

// ResolveOptions is how a path is read.
type ResolveOptions struct {
	// Cwd is what a relative path is relative to; absolute. Empty: the
	// provider's own. It is a default, not a fence.
	Cwd string `json:"cwd,omitzero"`
}

// ReadOptions bounds a read.
type ReadOptions struct {
	// MaxBytes is an inclusive cap on the bytes of the file, 0 for none. Above
	// it: FS_TOO_LARGE, before any content is read when the size is known.
	MaxBytes int64 `json:"maxBytes,omitzero"`
}

// WriteOptions is how a write is done.
type WriteOptions struct {
	// Expected is the guard, nil for none.
	Expected *WriteIntent `json:"expected,omitzero"`
	// OverrideReadOnly replaces a file that is not writable (0444), which is
	// FS_PERMISSION_DENIED otherwise. The mode stays.
	OverrideReadOnly bool `json:"overrideReadOnly,omitzero"`
	// Mode is the exact permission bits (0 to 0777) of a file that this call
	// creates; nil is 0666 narrowed by the umask and the directory's default
	// access list. An existing file keeps its mode.
	Mode *uint32 `json:"mode,omitzero"`
	// DropBOM drops the byte-order mark of the replaced file, which is put
	// back otherwise unless the content brings its own.
	DropBOM bool `json:"dropBom,omitzero"`
}

// EditOptions is how an edit is done.
type EditOptions struct {
	// Expected is the guard, nil for none.
	Expected *VersionGuard `json:"expected,omitzero"`
	// OverrideReadOnly as in WriteOptions.
	OverrideReadOnly bool `json:"overrideReadOnly,omitzero"`
}

// Provider is a file system as the contract has it (fs-contract sections 1 to
// 4). Any number of goroutines may call any methods at once. The fence is the
// policy of that one call and must not be nil: without one everything is
// refused. Every error is an [*Error]; a cancelled call is FS_ABORTED; no call
// has a deadline of its own.
type Provider interface {
	Reader
	Patcher
	Mover
	WatchProvider

	// Resolve gives the identity of a path, which need not exist: links are
	// followed, the key is the same before and after the file and its parents
	// are made. FS_NOT_FOUND for a blank path, for a file used as a directory
	// and for ".." after something missing. Section 3, resolve.
	//
	// Concurrency: looks only, takes no lock; the answer is a snapshot.
	Resolve(ctx context.Context, f *fence.Fence, path string, o ResolveOptions) (Target, error)

	// Stat describes a target, following links; nil when nothing is there.
	// It never opens content. Section 3, stat.
	//
	// Concurrency: takes no lock; may run beside a mutation of the same target
	// and sees the file before or after it. It may wait two clock ticks (about
	// 8 ms) for a file that changed just now, so that the version is one that
	// the next change is sure to differ from.
	Stat(ctx context.Context, f *fence.Fence, t Target) (*Info, error)

	// Lstat describes a path without following a link in the last place, so
	// that a caller can refuse links; nil when nothing is there. Section 3,
	// lstat.
	//
	// Concurrency: as Stat.
	Lstat(ctx context.Context, f *fence.Fence, path string, o ResolveOptions) (*PathInfo, error)

	// ListDir gives the direct entries in byte order of their names. Missing:
	// FS_NOT_FOUND; no directory: FS_NOT_DIRECTORY; a child that may not be
	// looked at fails the whole listing with FS_PERMISSION_DENIED; too many
	// entries for one listing are FS_TOO_LARGE. Section 3, listDir.
	//
	// Concurrency: takes no lock; entries that come or go meanwhile may or may
	// not be in it. Waits as Stat does, at most once.
	ListDir(ctx context.Context, f *fence.Fence, t Target, o ListOptions) ([]DirEntry, error)

	// ReadText gives a whole file that is strict UTF-8 and has no NUL byte in
	// its first 8192 bytes: FS_NOT_TEXT otherwise. It never waits for a FIFO or
	// a device: FS_NOT_REGULAR_FILE. Section 3, reads and readText.
	//
	// Concurrency: takes no lock; reads one file, old or new, also while it is
	// being replaced.
	ReadText(ctx context.Context, f *fence.Fence, t Target, o ReadOptions) (TextContent, error)

	// WriteText makes a file or replaces it whole, byte for byte, and makes
	// missing parents inside the fence. Guards: section 4.2. After publication
	// has begun, cancelling has no effect.
	//
	// Where the policy keeps what is overwritten, the replaced file is in the
	// trash afterwards (WriteOutcome.Trashed). Without a trash the call is
	// TRASH_UNAVAILABLE, with nothing done; when the trash refuses, the file gets
	// its place back and the error is that of the trash. Names that cannot be
	// exchanged: the replaced file gets a second name before, or is copied where
	// there are none. An edit keeps nothing: it makes the new text of the old.
	//
	// Concurrency: mutations of one target run one after the other, first come
	// first served; of two writes guarded by one version one wins and the
	// other is FS_STALE_VERSION.
	WriteText(ctx context.Context, f *fence.Fence, t Target, content string, o WriteOptions) (WriteOutcome, error)

	// EditText replaces literal text in a text file and leaves every other
	// byte alone. Section 4.3 and decision D6.
	//
	// Concurrency: as WriteText; matching happens inside the lock.
	EditText(ctx context.Context, f *fence.Fence, t Target, e EditRequest, o EditOptions) (EditOutcome, error)

	// Contains tells whether child is parent or lies below it, by key.
	// Section 3, contains.
	//
	// Concurrency: pure, no I/O.
	Contains(parent, child Target) bool

	// ProcessPath is the canonical absolute path that a child process can open.
	// Section 3, processPath.
	//
	// Concurrency: pure, no I/O.
	ProcessPath(t Target) string

	// FileURL is the file: URI of the canonical path, percent-encoded.
	// Section 3, fileUrl.
	//
	// Concurrency: pure, no I/O.
	FileURL(t Target) string
}
