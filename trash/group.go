package trash

import (
	"context"
	"errors"
	"os"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// MaxGroup is how many things one group keeps; what comes after them is not
// kept.
const MaxGroup = 200_000

// Group keeps what one command is about to remove, so that all of it can be
// brought back together, by [Bin.RestoreGroup]. Its methods are called one at a
// time.
//
// A group is one entry of the trash for every mount from which something was
// removed: a directory with the things beneath it, each where it was below the
// workspace, so that other programs can list, restore and empty it as a
// directory. A file in it, [record.RemovedName], says what belongs where.
//
// Files and links are linked into it, not copied: they keep inode, content,
// mode, owner, times, attributes and the other names that they have, and the
// disk space that they take is not free before the trash is emptied. A
// directory cannot be linked; its mode, owner and time are written down, its
// extended attributes and access lists are not.
//
// What is to be removed is on record before it is removed. The record is left
// to the kernel to flush until the group ends: it survives the death of this
// process, not a power failure. After that the files are in the entry all the
// same, under their names.
type Group struct{ g keeping }

// keeping is a group of a back end.
type keeping interface {
	keep(f *os.File, path string, i anchor.Info) error
	end()
}

// grouper is a back end that has groups.
type grouper interface {
	group(GroupOptions) keeping
	restoreGroup(ctx context.Context, id string, o RestoreOptions) (RestoredGroup, error)
}

// GroupOptions say whose group it is.
type GroupOptions struct {
	// ID is that of the command; [Bin.RestoreGroup] asks for it.
	ID string
	// Base is the canonical directory beneath which most of the things lie, or
	// "".
	Base string
	// Writable tells whether the command could make something at a canonical
	// path. A trash there is not used: the command could change what the group
	// says, and a restore would believe it. nil is nowhere.
	Writable func(path string) bool
}

// Group makes a group. Nothing is made on the disk before the first thing is
// kept.
func (b *Bin) Group(o GroupOptions) *Group {
	if g, ok := b.b.(grouper); ok {
		return &Group{g.group(o)}
	}
	return &Group{noGroup{}}
}

// File keeps a regular file or a link that is about to lose the name path. f is
// a handle of it, i what the handle says; path is canonical. With an error
// nothing is kept.
func (g *Group) File(f *os.File, path string, i anchor.Info) error { return g.g.keep(f, path, i) }

// Directory keeps what is needed to make a directory again that is about to be
// removed, empty.
func (g *Group) Directory(f *os.File, path string, i anchor.Info) error { return g.g.keep(f, path, i) }

// End makes the group durable. The group keeps nothing afterwards. Not calling
// it leaves a group that can be restored all the same.
func (g *Group) End() { g.g.end() }

// maxLeft is how many things of a group that did not come back are named.
const maxLeft = 256

// RestoredGroup is what came back of a group.
type RestoredGroup struct {
	// Files are files and links that are where they were; Directories are those
	// that were made again.
	Files       int `json:"files"`
	Directories int `json:"directories"`
	// NotRestored is how many things are still in the trash, because something
	// has their name now, or because of an error; Left names the first of them.
	NotRestored int         `json:"notRestored"`
	Left        []GroupLeft `json:"left,omitzero"`
	// NotKept is how many things went without being kept when they were removed.
	NotKept int64 `json:"notKept"`
	// Ended: the command had ended, so that NotKept is the whole number.
	Ended bool `json:"ended"`
	// Entries are the entries of the trash that the group was. One from which
	// everything came back is there no longer.
	Entries []record.Entry `json:"entries"`
}

// Complete tells whether all that the command removed has come back.
func (r RestoredGroup) Complete() bool { return r.Ended && r.NotRestored == 0 && r.NotKept == 0 }

func (r *RestoredGroup) leave(path string, err error) {
	r.NotRestored++
	if len(r.Left) < maxLeft {
		r.Left = append(r.Left, GroupLeft{Path: path, Code: codeOf(err), Why: err.Error()})
	}
}

// GroupLeft is a thing that did not come back, and why.
type GroupLeft struct {
	Path string `json:"path"`
	Code string `json:"code"`
	Why  string `json:"why"`
}

// RestoreGroup puts everything back that a group has, the latest of that name.
// It never replaces anything: what cannot be put back stays in the trash and is
// in Left, and another call goes on from there. Of several things that had one
// name the one that was removed first comes back.
//
// Destination is a directory, which may be missing, that stands for the group's
// own. Directories that the group knows are made as they were; with Parents
// others are made too. Allow is asked about every path that is made, with an entry of
// which only OriginalPath, the same path, and Type are set; what it
// refuses is in Left. CopyAcross means nothing here: what belongs into another
// mount than its entry is in Left.
//
// Errors are *record.Error: TRASH_NOT_FOUND when there is no such group,
// TRASH_REJECTED (the destination lies in a trash), FS_ABORTED, TRASH_FAILED.
func (b *Bin) RestoreGroup(ctx context.Context, id string, o RestoreOptions) (RestoredGroup, error) {
	if g, ok := b.b.(grouper); ok {
		return g.restoreGroup(ctx, id, o)
	}
	return RestoredGroup{}, failure(record.CodeNotFound, record.ReasonBackend, opRestoreGroup, "", notHere, nil)
}

// codeOf is the code of an error, of the fence's too.
func codeOf(err error) string {
	if e := (*record.Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return codeDenied
}

// noGroup keeps nothing.
type noGroup struct{}

func (noGroup) keep(_ *os.File, path string, _ anchor.Info) error {
	return failure(record.CodeUnavailable, record.ReasonBackend, opKeep, path, notHere, nil)
}
func (noGroup) end() {}

const (
	opKeep         = "keep"
	opRestoreGroup = "restore what a command removed"
	notHere        = "what commands remove is not kept on this system"
)
