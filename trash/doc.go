// Package trash is the desktop's own trash: it puts things there, lists what is
// there, brings it back, and empties it. What it puts, file managers list and
// restore, and the other way round.
//
// # What it guarantees
//
//   - [Bin.Put] moves a thing by one rename, whatever its size, and only to a
//     trash in the same mount. It never copies unless copyAcross is given, it
//     never deletes, and with any outcome but unknown a failed call leaves the
//     thing where it was.
//   - The record is complete and on the disk before the thing moves, so that
//     at no moment there is data without a record that names it. Death between
//     record and move leaves a record without data: [Bin.List] calls it broken.
//   - No move replaces anything: neither an entry of the trash, recorded or
//     not, nor what lies at the place to restore to. The kernel decides that.
//   - What was moved is compared with what was to be moved, by an open handle;
//     another thing is moved back.
//   - Links are moved, restored and removed themselves and never followed.
//   - A trash directory is used for nothing, neither to put nor to restore,
//     unless it is ours, is no link, and nobody else may write to it.
//
// # What it does not
//
// It decides nothing about who may delete what: that is the fence's task, and
// for restores [RestoreOptions].Allow asks it. It does not look after its own
// safety either: a command that may write to a trash directory can empty it, so
// whoever builds fences closes [Bin.Guard].
//
// A rename cannot be tied to an inode. A process of the same user that swaps
// the thing in the last moment is noticed afterwards, and the swap undone.
// Where the system cannot rename without replacing, an empty placeholder keeps
// the name, and what a process of the same user puts in its place in between is
// replaced.
//
// List, Restore and Empty look at every mount; a dead network mount can keep
// them waiting. Put and Holds touch no mount but those on the way.
//
// The rules are those of the freedesktop Trash specification 1.0; T1 to T26 in
// comments are its rules as numbered in the project's notes on it.
//
// macOS and Windows have their own trash, and take another [backend]: there the
// system moves the thing, by its path, and says where it landed, and what
// Wattle lists, restores and empties is what it has a record of (docs/trash.md).
package trash
