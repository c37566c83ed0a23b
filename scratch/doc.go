// Package scratch gives each session one temporary directory beside its
// workspace, never in it, and removes it again.
//
// # What it guarantees
//
//   - Nothing is removed but a directory that carries our marker, whose marker
//     names this very directory (inode and birth), and whose owner asks for it
//     or is dead. Age is no criterion. What fails a check is left and reported.
//   - Removal descends by handles, follows no link and crosses no mount; the
//     marker goes last, so that an interrupted removal can be resumed.
//   - A directory is named in the journal before it is made. [Manager.Sweep]
//     finds what a killed process left, and only that.
//   - Every name that a model gives is walked on handles below the scratch
//     directory; a link in it is refused.
//
// # What it does not
//
// It is a place and a rule, no fence: inside the workspace files can still be
// made. A process of the same user outside any fence can tamper with marker
// and directory; the checks make that harmless, not impossible. A killed
// process leaves its directory until the next sweep.
package scratch
