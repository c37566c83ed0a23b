package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
)

// ChangeKind is what a watch has seen. It invalidates; it does not describe.
type ChangeKind string

const (
	// Changed: the target, or the entry Name of a watched directory, may be
	// another one than before: made, written to, replaced, renamed, removed, or
	// its attributes changed.
	Changed ChangeKind = "changed"
	// Overflowed: changes were lost. One Changed without a name follows: look at
	// everything again. The watch goes on.
	Overflowed ChangeKind = "overflow"
	// WatchFailed: the watch has ended and nothing more is told; Err says why.
	// FS_NOT_FOUND: the watched directory, or the parent of a watched file, was
	// removed or moved. One that is made there later is not watched.
	WatchFailed ChangeKind = "error"
)

// Change is one call of a watch.
type Change struct {
	Kind ChangeKind
	// Path is the displayPath of what changed.
	Path string
	// Name is the entry of a watched directory, empty for the target itself.
	Name string
	// Err is an *[Error], of WatchFailed only.
	Err error
}

// Watch is an active watch. Any goroutine may use it.
type Watch interface {
	// Blind says why this watch cannot deliver every change (a network file
	// system, FUSE, a file system that the kernel makes up), or "". What can be
	// told is told nevertheless.
	Blind() string
	// Close ends the watch and waits for a call of changed that runs: none
	// runs or begins after it has returned. So changed must not call it, nor
	// wait for who does; it may cancel the context instead. More than once is
	// allowed; the error is always nil for a local watch.
	Close() error
}

// WatchProvider is the watch of the contract.
type WatchProvider interface {
	// Watch calls changed, which must not be nil, when a target may have
	// changed: a file, a missing path, or the direct entries of a directory. A
	// link that leads to nothing is watched itself. It returns once the watch
	// is active, so that every change from then on is told; there is no call
	// for the state at the beginning. It ends with ctx or Close. Section 3,
	// watch.
	//
	// A directory that is the target is watched; otherwise the parent, where
	// only that name counts, so that a file that is replaced, or removed and
	// made again, is told. Never told are our own temporary files (TempPrefix),
	// hidden entries, and what the kernel does not tell: changes through
	// another name of the file in another directory. A directory that was
	// removed is told as such when the last process has left it.
	//
	// Errors, which are only returned: FS_SANDBOX_DENIED as for a read,
	// FS_NOT_FOUND for a missing parent, FS_PERMISSION_DENIED for a directory
	// that may not be read, FS_ABORTED when ctx has ended, FS_IO_ERROR beyond
	// the limits of the provider or the system (sysctl fs.inotify).
	//
	// Concurrency: changed is called by one goroutine at a time, maybe before
	// Watch has returned, and should not block: while it does, changes are
	// collected, and told once for each name, in the order in which they
	// happened first. When they become too many: Overflowed.
	Watch(ctx context.Context, f *fence.Fence, t Target, changed func(Change)) (Watch, error)
}
