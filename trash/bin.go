package trash

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// Config says where the trash is. The caller reads the environment.
type Config struct {
	// DataHome is $XDG_DATA_HOME, or ~/.local/share where that is unset, empty
	// or relative (T1); absolute. The home trash is the directory Trash in it. On
	// macOS and Windows it is where programs keep their data of the user; the
	// records are in wattle/trash in it.
	DataHome string
	// UID is the user whose trash this is: that of the process; 0 on Windows,
	// where users have no numbers.
	UID int
	// Now is the clock, nil for time.Now.
	Now func() time.Time
	// NoSync leaves flushing to the kernel: everything survives the death of
	// the process, not a power failure.
	NoSync bool
}

// Bin is the trash of one user. Any number of goroutines may use one at once,
// and any number of processes, of any make, one trash.
type Bin struct {
	b backend
}

// New makes a Bin. It touches nothing: directories are made when something is
// put. The caller closes it.
func New(c Config) (*Bin, error) {
	if !filepath.IsAbs(c.DataHome) {
		return nil, fmt.Errorf("trash: the data directory %q is not absolute", c.DataHome)
	}
	if c.UID < 0 {
		return nil, fmt.Errorf("trash: no user %d", c.UID)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.DataHome = filepath.Clean(c.DataHome)
	return &Bin{b: newBackend(c)}, nil
}

// Close waits for what is still being measured in the background until ctx
// ends, and then breaks it off; nothing is lost by that but a size. Calls after
// it work, and measure nothing.
func (b *Bin) Close(ctx context.Context) { b.b.close(ctx) }

// Put moves the entry called name of dir into the trash by one rename and
// returns the entry of the trash. path is its canonical path, which is what the
// record says and the trash calls it by; name is another one only while a thing
// whose place was taken lies under a hidden name beside it. want is the
// identity, taken by handle, that it must still have. copyAcross allows a copy
// into the home trash where no trash can take it by rename.
//
// Errors are *record.Error. Codes: TRASH_REJECTED (a mount point, what holds
// one, the trash, a special file), TRASH_UNAVAILABLE (no trash can take it; the
// text names the ways forward), FS_PERMISSION_DENIED, FS_STALE_VERSION (it is
// another thing than want), FS_NOT_FOUND, FS_ABORTED, TRASH_FAILED,
// TRASH_UNKNOWN. With outcome unknown the thing may be anywhere, otherwise it is
// in place.
//
// How much of the disk a directory takes is measured in the background, after
// Put has returned, and written down where other programs look for it; that may
// fail, and nothing depends on it.
func (b *Bin) Put(ctx context.Context, dir *anchor.Dir, name, path string, want anchor.Info, copyAcross bool) (record.Entry, error) {
	return b.b.put(ctx, dir, name, path, want, copyAcross)
}

// Holds tells whether a canonical path is a trash directory, lies in one, or
// contains one: such a thing is never deleted. It changes nothing and touches
// only what lies on the way to the path, and trash directories beneath it.
func (b *Bin) Holds(path string) bool { return b.b.holds(path) }

// Dirs are the canonical paths of the trash directories that exist now, of this
// user, in every mount.
func (b *Bin) Dirs() []string { return b.b.dirs() }

// Guard are the canonical paths that no fence may open to a command: the home
// trash, and the trash directories of this user at the top of mounts. Those
// that are not there yet are named where Put would make them for a thing in one
// of roots, which are canonical: the home trash, and the top of every mount in
// which a root lies or which lies in a root. It makes nothing, and does not
// touch mounts of other machines that have nothing to do with roots.
func (b *Bin) Guard(roots ...string) []string { return b.b.guard(roots) }

// MaxListed is how many entries [Bin.List] returns at most.
const MaxListed = 100_000

// Listing is what is in the trash.
type Listing struct {
	Entries []record.Entry `json:"entries"`
	// Problems are trash directories that were not used, and why entries are
	// broken.
	Problems []Problem `json:"problems,omitzero"`
	// Truncated: there are more than [MaxListed].
	Truncated bool `json:"truncated,omitzero"`
}

// Problem is something in or about a trash directory that is not as it should
// be.
type Problem struct {
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// List shows the home trash and that of every mount. It makes nothing and
// follows no link. Entries that come or go meanwhile may or may not be in it.
func (b *Bin) List(ctx context.Context) (Listing, error) { return b.b.list(ctx) }

// RestoreOptions say where a thing goes.
type RestoreOptions struct {
	// Destination is an absolute path; empty is where the thing was.
	Destination string
	// Parents makes the directories that are missing on the way.
	Parents bool
	// Allow is asked with the entry and the canonical destination before
	// anything is made or moved. Its error is returned as it is. nil allows
	// everything.
	Allow func(e record.Entry, path string) error
	// CopyAcross allows a copy where the destination is in another mount.
	CopyAcross bool
}

// Restored is what came back.
type Restored struct {
	// Path is where it is now, canonical.
	Path string `json:"path"`
	// Entry is what it was in the trash.
	Entry record.Entry `json:"entry"`
	// Made are the directories that were made for it, outermost first.
	Made []string `json:"made,omitzero"`
	// Copied: it went across mounts, by a copy. MetadataLost names what the
	// copy does not have.
	Copied       bool     `json:"copied,omitzero"`
	MetadataLost []string `json:"metadataLost,omitzero"`
}

// Restore moves a thing out of the trash. It never replaces anything.
//
// Errors are *record.Error, or what Allow said. Codes: TRASH_NOT_FOUND,
// TRASH_BROKEN (no data; or no record that says where it was, and no
// destination), FS_STALE_VERSION (another thing has that name now),
// FS_ALREADY_EXISTS, FS_NOT_FOUND (a parent is missing), TRASH_REJECTED (the
// destination lies in a trash), TRASH_UNAVAILABLE (another mount),
// FS_PERMISSION_DENIED, TRASH_FAILED, TRASH_UNKNOWN.
func (b *Bin) Restore(ctx context.Context, id string, o RestoreOptions) (Restored, error) {
	return b.b.restore(ctx, id, o)
}

// EmptyOptions choose what is removed for good: the entries with these ids; or
// all, or of all those that are older.
type EmptyOptions struct {
	IDs []string
	// OlderThan takes the entries that were trashed longer ago; 0 takes all.
	// An entry without a date is as old as its record, or its data.
	OlderThan time.Duration
	// Orphans takes data without a record too. An id takes it in any case.
	Orphans bool
}

// Emptied is what was removed.
type Emptied struct {
	Entries []record.Entry `json:"entries"`
	// Files are the names that went and were no directories; Bytes those of
	// regular files whose last name went.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Left is what could not be removed, or not wholly.
	Left []Left `json:"left,omitzero"`
}

// Left is an entry that stayed, and why.
type Left struct {
	Entry record.Entry
	Err   error
}

// Empty removes for good, the data first and then the record. It enters no
// other mount and goes on after failures, which are in Left. An id that is not
// there is TRASH_NOT_FOUND, one that is another thing now FS_STALE_VERSION, both
// in Left.
func (b *Bin) Empty(ctx context.Context, o EmptyOptions) (Emptied, error) { return b.b.empty(ctx, o) }
