// Package provider is the file system contract of Wattle and its local
// implementation.
//
// # What it guarantees
//
//   - Every call that acts takes the fence that holds for it. The checks run in
//     one order: cancelled, fence, type of the target, guard, content. What the
//     fence refuses is [CodeSandboxDenied] and touches nothing; what the kernel
//     refuses is [CodePermissionDenied]. The two are never mixed.
//   - Every operation runs on a handle of the parent directory, reached along
//     the canonical path without following any link. A link that is swapped in
//     meanwhile leads to another try or to an error, never elsewhere.
//   - A file is its old content or its new content, whole. A file is published
//     by linking or exchanging a finished, synced one, and a call that fails
//     leaves nothing behind. (One exception: when somebody moves a refused
//     content away in the moment in which it is taken back, the file that it
//     took the place of is kept under a hidden name, which the error tells.)
//   - Between the check of a guard and the publication no change of somebody
//     else is lost, where the file system can exchange two names: the file that
//     came out is compared with the one that was expected, and put back.
//   - Bytes that an edit does not change stay: line endings, byte-order mark,
//     missing final newline.
//   - Memory is bounded by the limits in [Config] and by the caps of a call.
//
// # What it does not
//
// A program that keeps the old file open and goes on writing into it after the
// exchange is not seen. A content that is refused only after the exchange can
// be read for the moment until it is taken back. A daemon that is killed in the middle of a replacement
// may leave one hidden file whose name begins with [TempPrefix]. The directory
// itself is not held in place: a handle goes with a directory that its owner
// moves.
//
// On systems without exchange the guard is compared again right before the
// rename, which leaves a moment in which a change can be lost. Extended
// attributes and access lists are carried over on Linux only.
package provider
