package api

import (
	"path/filepath"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// The trash is the user's, not a session's: a call without a session is the
// user's own, whom no fence holds. With one, the session's fence decides.

// TrashListParams ask what is in the trash. With a session, only what came from
// its workspace, unless All; without one everything.
type TrashListParams struct {
	SessionID string `json:"sessionId,omitzero"`
	All       bool   `json:"all,omitzero"`
}

// TrashRestoreParams name what is to come back: one entry, or all that a
// command removed. Exactly one of ID and ProcessID is set.
type TrashRestoreParams struct {
	// SessionID names the session whose fence must allow it: the place it goes
	// to, and the place it came from.
	SessionID string `json:"sessionId,omitzero"`
	ID        string `json:"id,omitzero"`
	ProcessID string `json:"processId,omitzero"`
	// Destination is where an entry goes instead of where it was; of what a
	// command removed it is a directory that stands for the workspace, and none
	// can be named with a session. With a session a relative one is taken from
	// the workspace; without one it is absolute.
	Destination string `json:"destination,omitzero"`
	// Parents makes the directories that are missing on the way.
	Parents bool `json:"parents,omitzero"`
	// CopyAcross allows a copy where the destination is in another mount.
	CopyAcross bool `json:"copyAcross,omitzero"`
}

// Validate wants one thing to restore, and a place for one thing alone.
func (p *TrashRestoreParams) Validate() error {
	switch {
	case (p.ID == "") == (p.ProcessID == ""):
		return InvalidParams("/id", "exactly one of id and processId is needed")
	case p.ProcessID != "" && p.SessionID != "" && p.Destination != "":
		return InvalidParams("/destination", "with a session, what a command removed goes back to where it was")
	case p.SessionID == "" && p.Destination != "" && !filepath.IsAbs(p.Destination):
		return InvalidParams("/destination", "without a session the path must be absolute")
	}
	return nil
}

// TrashRestoreResult is what came back: one entry, or Group for what a command
// removed, of which something may have to stay. An entry that cannot come back
// is an error instead.
type TrashRestoreResult struct {
	Restored []trash.Restored     `json:"restored"`
	Group    *trash.RestoredGroup `json:"group,omitzero"`
}

// TrashRestoredData says what came back: the entry that is at Path now, or how
// much of what a command removed.
type TrashRestoredData struct {
	Path  string        `json:"path,omitzero"`
	Entry *record.Entry `json:"entry,omitzero"`

	ProcessID   string `json:"processId,omitzero"`
	Files       int    `json:"files,omitzero"`
	Directories int    `json:"directories,omitzero"`
	NotRestored int    `json:"notRestored,omitzero"` // still in the trash
}

// Bounds of trash/empty: every id is looked for in the whole trash, and ages
// are of a person's life.
const (
	maxTrashIDs  = 1024
	maxTrashDays = 36500
)

// TrashEmptyParams choose what is removed for good: the entries with these ids,
// or all that were trashed longer ago than some days; 0 days takes all. Exactly
// one of IDs and OlderThanDays is set: nobody empties a trash by leaving
// something out.
type TrashEmptyParams struct {
	IDs           []string `json:"ids,omitzero"`
	OlderThanDays *int     `json:"olderThanDays,omitzero"`
	// Orphans takes data without a record too. An id takes it in any case.
	Orphans bool `json:"orphans,omitzero"`
}

// Validate wants one choice.
func (p *TrashEmptyParams) Validate() error {
	switch {
	case (p.IDs == nil) == (p.OlderThanDays == nil):
		return InvalidParams("/ids", "exactly one of ids and olderThanDays is needed; olderThanDays 0 takes everything")
	case p.IDs != nil && (len(p.IDs) == 0 || len(p.IDs) > maxTrashIDs):
		return InvalidParams("/ids", "%d ids, 1 to %d can be named", len(p.IDs), maxTrashIDs)
	case p.IDs != nil && p.Orphans:
		return InvalidParams("/orphans", "an id takes an orphan in any case")
	case p.OlderThanDays != nil && (*p.OlderThanDays < 0 || *p.OlderThanDays > maxTrashDays):
		return InvalidParams("/olderThanDays", "%d is not between 0 and %d", *p.OlderThanDays, maxTrashDays)
	}
	return nil
}

// TrashEmptyResult is what was removed. Files are the names that went and were
// no directories, Bytes those of files whose last name went.
type TrashEmptyResult struct {
	Entries []record.Entry `json:"entries"`
	Files   int64          `json:"files"`
	Bytes   int64          `json:"bytes"`
	// Left is what stayed, or not all of which went.
	Left []TrashLeft `json:"left,omitzero"`
}

// TrashLeft is an entry that stayed, and why.
type TrashLeft struct {
	Entry record.Entry `json:"entry"`
	Error *Error       `json:"error"`
}

// TrashEmptiedData says how much was removed from the trash for good.
type TrashEmptiedData struct {
	Entries int   `json:"entries"`
	Files   int64 `json:"files"`
	Bytes   int64 `json:"bytes"`
	Left    int   `json:"left"` // entries that stayed
}
