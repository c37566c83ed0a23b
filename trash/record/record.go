// Package record is what is written down about a thing in the trash, and the
// words for what became of a delete. It does no I/O: trash/ acts, provider/ and
// api/ pass these types on.
package record

import "time"

// State of an entry.
type State string

const (
	// OK: data and a readable record.
	OK State = "ok"
	// Orphan: data without a record. Where it came from is not known.
	Orphan State = "orphan"
	// Broken: a record without data, or one that cannot be read.
	Broken State = "broken"
)

// Entry is one thing in the trash (PROTOCOL section 2, TrashEntry).
type Entry struct {
	// ID stands for trash directory, name, and identity of the data. It is
	// opaque, and the same in every process.
	ID string `json:"id"`
	// OriginalPath is absolute; empty for an orphan. Bytes that are no UTF-8
	// travel as U+FFFD; restore goes by the id.
	OriginalPath string `json:"originalPath,omitzero"`
	// DeletionDate is local time as the record has it, RFC 3339 without zone
	// (trash.md T17).
	DeletionDate string `json:"deletionDate,omitzero"`
	// TrashDir is the trash directory; Name the name in its files directory.
	TrashDir string `json:"trashDir"`
	Name     string `json:"name"`
	// Size in bytes: of a file, or of a directory when directorysizes knows it.
	Size *int64 `json:"size,omitzero"`
	// Type is file, directory, symlink or other.
	Type  string `json:"type"`
	State State  `json:"state"`
}

// Outcome is what became of a delete (trash.md section 5).
type Outcome string

const (
	Trashed       Outcome = "trashed"
	AlreadyAbsent Outcome = "already_absent"
	Deleted       Outcome = "deleted"
	// The rest are those of errors.
	Rejected Outcome = "rejected"
	Failed   Outcome = "failed"
	Unknown  Outcome = "unknown"
)

// Reason says why, in the vocabulary of trash.md section 5.
type Reason string

const (
	ReasonInvalidPath      Reason = "invalid_path"
	ReasonRoot             Reason = "root_delete_forbidden"
	ReasonProtected        Reason = "protected_target" // home, mount points, the trash itself
	ReasonSymlink          Reason = "symlink_unsupported"
	ReasonUnsupportedType  Reason = "unsupported_file_type"
	ReasonInspection       Reason = "path_inspection_failed"
	ReasonBackend          Reason = "trash_backend_unavailable"
	ReasonTimeout          Reason = "trash_operation_timeout"
	ReasonOperationUnknown Reason = "trash_operation_unknown"
	ReasonOperationFailed  Reason = "trash_operation_failed"
)

// Stable codes of this room's errors. What the kernel refused is
// FS_PERMISSION_DENIED, a wrong identity FS_STALE_VERSION, as elsewhere.
const (
	CodeUnavailable = "TRASH_UNAVAILABLE" // no trash can take it
	CodeRejected    = "TRASH_REJECTED"    // this is never trashed nor deleted
	CodeFailed      = "TRASH_FAILED"      // tried, and the thing is still in place
	CodeUnknown     = "TRASH_UNKNOWN"     // look at path and trash before trying again
	CodeNotFound    = "TRASH_NOT_FOUND"   // no such entry
	CodeBroken      = "TRASH_BROKEN"      // the entry cannot be restored as it is
)

// Error is a failure of the trash. Cause is the operating system's error, if
// there is one.
type Error struct {
	Code    string
	Outcome Outcome
	Reason  Reason
	Op      string
	Path    string
	Detail  string
	Errno   string
	Syscall string
	// Entry is where the data is, when Outcome is Unknown and that is known.
	Entry *Entry
	Cause error
}

func (e *Error) Error() string {
	s := e.Op
	if e.Path != "" {
		s += " " + e.Path
	}
	switch {
	case e.Detail != "":
		s += ": " + e.Detail
	case e.Cause == nil:
		s += ": " + e.Code
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// DateForm is the form of Entry.DeletionDate.
const DateForm = "2006-01-02T15:04:05"

// Date writes a time as records have it.
func Date(t time.Time) string { return t.Local().Format(DateForm) }
