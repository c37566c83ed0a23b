package dirwatch

import (
	"errors"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// ID names a watched directory within its Source. The same directory has the
// same one, however often it was added.
type ID int

// Kind is what an event is about.
type Kind int

const (
	// Entry: the entry Name was made, removed or renamed.
	Entry Kind = iota
	// Content: what Name stands for was written to, or its attributes changed.
	// Name may be the kernel's own for a file that has none: "#" and the inode
	// number (d_tmpfile in fs/dcache.c).
	Content
	// Self: the attributes of the directory itself changed.
	Self
	// Moved: the directory has another name or another parent now. Its events
	// go on.
	Moved
	// Gone: the directory was removed or its file system unmounted. Its events
	// have ended. It may be told more than once.
	Gone
	// Lost: the queue was full and events of any directory are missing.
	Lost
	// Broken: no event of any directory comes any more; Err says why.
	Broken
)

// Event is one change. ID and Name are empty where the kind needs none.
type Event struct {
	ID   ID
	Kind Kind
	Name string
	Err  error
}

// Source is one queue. Any number of goroutines may use it at once, but Remove
// of a directory must not run beside Add of the same one.
type Source interface {
	// Add watches a directory. When it has returned every change is told; it
	// keeps no handle. Events may come before it has returned.
	Add(*anchor.Dir) (ID, error)
	// Remove ends the watch of a directory, however often it was added. Events
	// that are queued already may still come. Not to be called by the receiver
	// of events.
	Remove(ID)
	// Close ends all of it. It does not wait for the receiver.
	Close()
	// Done is closed when the receiver is called no more.
	Done() <-chan struct{}
}

// ErrNoProc: the kernel takes directories by path only, and the path of a
// handle needs /proc.
var ErrNoProc = errors.New("/proc is not mounted")
