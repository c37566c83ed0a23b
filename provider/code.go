package provider

import "github.com/wattle-dev/wattle/fence"

// Code is the stable name of a failure: the only part of an error that callers
// may branch on (fs-contract section 9).
type Code string

// All codes of the contract. Calls that raise a code which no operation here
// raises yet are those of patches, moves and deletes.
const (
	// CodeNotFound: path, parent or listed directory missing; blank path.
	CodeNotFound Code = "FS_NOT_FOUND"
	// CodeNotDirectory: listing something that is no directory.
	CodeNotDirectory Code = "FS_NOT_DIRECTORY"
	// CodeNotRegularFile: a directory or special file where a file is needed.
	CodeNotRegularFile Code = "FS_NOT_REGULAR_FILE"
	// CodeNotText: invalid UTF-8, or a NUL byte (in the first 8192 bytes for
	// reads, anywhere for edits).
	CodeNotText Code = "FS_NOT_TEXT"
	// CodeTooLarge: content above an explicit cap.
	CodeTooLarge Code = "FS_TOO_LARGE"
	// CodePermissionDenied: the host kernel refused. A wider mode does not help.
	CodePermissionDenied Code = "FS_PERMISSION_DENIED"
	// CodeSandboxDenied: the fence refused. The cause is a *fence.Denial.
	CodeSandboxDenied Code = fence.CodeSandboxDenied
	// CodeIOError: any other failure of the file system.
	CodeIOError Code = "FS_IO_ERROR"
	// CodeStaleVersion: the version differs from the guard, or the target of an
	// edit is missing.
	CodeStaleVersion Code = "FS_STALE_VERSION"
	// CodeNotObserved: createIfAbsent met an existing file, or the observation
	// policy has seen no read.
	CodeNotObserved Code = "FS_NOT_OBSERVED"
	// CodeAmbiguousEdit: more than one match without replaceAll.
	CodeAmbiguousEdit Code = "FS_AMBIGUOUS_EDIT"
	// CodeEditNotFound: empty search text, or no match.
	CodeEditNotFound Code = "FS_EDIT_NOT_FOUND"
	// CodePatchMismatch: a hunk does not fit.
	CodePatchMismatch Code = "FS_PATCH_MISMATCH"
	// CodeSameTarget: source and destination of a move are one file.
	CodeSameTarget Code = "FS_SAME_TARGET"
	// CodeAlreadyExists: a create-only request met an existing target.
	CodeAlreadyExists Code = "FS_ALREADY_EXISTS"
	// CodeAborted: cancelled before the effect.
	CodeAborted Code = "FS_ABORTED"
)

// Codes are all values of [Code].
var Codes = []Code{
	CodeNotFound, CodeNotDirectory, CodeNotRegularFile, CodeNotText, CodeTooLarge,
	CodePermissionDenied, CodeSandboxDenied, CodeIOError, CodeStaleVersion,
	CodeNotObserved, CodeAmbiguousEdit, CodeEditNotFound, CodePatchMismatch,
	CodeSameTarget, CodeAlreadyExists, CodeAborted,
}
