package sandbox

import (
	"os"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// Keeper puts what commands are about to remove where it can be brought back
// from (the policy's trash_commands). A runner has one or none; the trash is
// one. Any number of commands use one at once.
type Keeper interface {
	// Begin is called when a command is about to remove something for the first
	// time.
	Begin(Removing) Keeping
}

// Removing is a command that is about to remove something.
type Removing struct {
	// ID is that of the Spec, by which somebody will want it all back.
	ID string
	// Workspace is canonical, or "".
	Workspace string
	// Writable tells whether the command could make something at a canonical
	// path. Nothing is safe there.
	Writable func(path string) bool
}

// Keeping is what is kept for one command. Its methods are called one at a
// time, while the command waits for the answer to its call.
//
// The handle f is O_PATH and the one by which the call was judged; it stays the
// caller's. path is the canonical name that is about to go, i what the handle
// says. An error says why the thing is not kept; the removal goes on.
type Keeping interface {
	// File keeps a regular file or a link itself.
	File(f *os.File, path string, i anchor.Info) error
	// Directory keeps what is needed to make an empty directory again. It may
	// turn out not to be empty: then it stays.
	Directory(f *os.File, path string, i anchor.Info) error
	// End is called once, when nothing of the command can remove anything more.
	// That may be a moment after the final state of the command.
	End()
}

// Kept is what became of the things that a command removed, or replaced by a
// rename, where the policy says trash_commands.
type Kept struct {
	// Count is how many removals were kept: files, links, and directories. One
	// that the kernel then refused is among them.
	Count int64 `json:"count"`
	// NotKept is how many were not, and went all the same. Zero means that what
	// the command removed by name can come back whole. What it made itself, and
	// what lay in scratch, in temporary directories and in caches, is not
	// counted in either.
	NotKept int64 `json:"notKept"`
	// Examples are the first of those that were not kept.
	Examples []NotKept `json:"examples,omitzero"`
}

// NotKept is one thing that was removed and not kept, and why.
type NotKept struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// maxNotKept is how many of them a command has on record.
const maxNotKept = 16
