// Package anchor opens files and directories from handles, never from strings
// that somebody else can redirect. It is the one place of Wattle where files
// are opened.
//
// # What it guarantees
//
//   - [OpenDir] and [Dir.Walk] follow no symbolic link and no magic link at
//     any component, and leave the starting directory through no "..". A link
//     is an error (ELOOP), also one that is swapped in while they run.
//   - Every other call takes the name of one entry of an opened directory,
//     refuses anything that is not one name, and does not follow the entry if
//     it is a link. Once a [Dir] is open, renaming or replacing what leads to
//     it cannot move an operation somewhere else.
//   - [Dir.RemoveTree] stays on the mount it began on and needs a bounded
//     number of descriptors and no recursion, however deep the tree is.
//   - Errors are *fs.PathError with the name of the operation here; the errno
//     can be read with errors.Is and errors.As.
//
// # What it does not
//
// It decides nothing about what may be opened: that is the fence's task. It
// does not stop a process of the same user from moving an opened directory:
// the handle then goes with the directory. Paths in errors are the ones that
// were used to open a handle and may be out of date.
//
// On systems other than Linux it works on os.Root (see dir_other.go), which
// has no unnamed files, no exchange and no mount identities.
package anchor
