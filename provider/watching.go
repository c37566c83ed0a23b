package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
)

// ChangeKind is what a watch has seen. It invalidates; it does not describe.
type ChangeKind string

const (
	// Changed: the target, or the entry Name of a watched directory, may be
	// another one than before.
	Changed ChangeKind = "changed"
	// Overflowed: changes were lost; look at everything again.
	Overflowed ChangeKind = "overflow"
	// WatchFailed: the watch may miss changes from now on; Err says why.
	WatchFailed ChangeKind = "error"
)

// Change is one call of a watch.
type Change struct {
	Kind ChangeKind
	// Path is the displayPath of what changed.
	Path string
	// Name is the entry of a watched directory, empty for the target itself.
	Name string
	Err  error
}

// Watch is an active watch.
type Watch interface {
	// Blind says why this watch cannot deliver the changes that others make
	// (a network file system, FUSE), or "".
	Blind() string
	// Close ends it; no call of changed begins after it has returned. More
	// than once is allowed.
	Close() error
}

// WatchProvider is the watch of the contract.
type WatchProvider interface {
	// Watch calls changed when a target may have changed: a file, a missing
	// path, or the direct entries of a directory. It returns once the watch is
	// active, so that every change from then on is told. Our own temporary
	// files never are. It ends with ctx or Close. Section 3, watch.
	//
	// Concurrency: changed is called by one goroutine at a time and should not
	// block: while it does, changes are collected, and told once for each
	// name.
	Watch(ctx context.Context, f *fence.Fence, t Target, changed func(Change)) (Watch, error)
}
