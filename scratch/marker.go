package scratch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// MarkerName is the file that makes a directory ours.
const MarkerName = ".wattle-scratch.json"

const (
	markerTemp   = ".wattle-scratch.new"
	markerOwner  = "wattle"
	markerSchema = 1
	// maxMarker bounds what is read of something that may not be a marker.
	maxMarker = 64 << 10
)

// marker is the content of the marker file. It is decoded strictly: unknown or
// repeated fields make it none of ours.
type marker struct {
	Schema    int       `json:"schema"`
	Owner     string    `json:"owner"`
	Workspace string    `json:"workspace"`
	SessionID string    `json:"sessionId"`
	CreatedAt time.Time `json:"createdAt"` // RFC 3339
	owner     `json:",inline"`
	// Dev, Ino and Btime (ns, 0 unknown) are those of the directory itself.
	// The device number changes when an overlay is mounted again, so it is
	// kept for people only.
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Btime int64  `json:"btime,omitzero"`
	// CreatedParent: the sibling directory was made by us. For people: what
	// decides is the journal, which no command can write.
	CreatedParent bool `json:"createdParent,omitzero"`
	// AutoClean is repeated here, so that "off" is respected by a sweep that
	// does not have the journal record.
	AutoClean AutoClean `json:"autoClean"`
}

var (
	errLocked  = errors.New("locked by a living process")
	errNoLocks = errors.New("no locks on this file system")
)

// verdict is a failed check: why a directory is not ours to remove.
type verdict struct {
	reason KeptReason
	msg    string
	err    error
}

func (v *verdict) Error() string {
	if v.err != nil {
		return v.msg + ": " + v.err.Error()
	}
	return v.msg
}

func (v *verdict) Unwrap() error { return v.err }

func keep(reason KeptReason, err error, format string, a ...any) *verdict {
	return &verdict{reason: reason, msg: fmt.Sprintf(format, a...), err: err}
}

// marks tells whether the marker names the directory: its inode, and its birth
// where both are known, since inode numbers are used again.
func (m *marker) marks(dir anchor.Info) bool {
	return m.Ino != 0 && m.Ino == dir.Ino && sameBirth(m.Btime, dir.Btime)
}

func sameBirth(a, b int64) bool { return a == 0 || b == 0 || a == b }

// readMarker opens and reads the marker in d and makes the checks that need
// nothing else: a regular file, not a link, ours, one link, valid schema,
// naming d itself. The open file can be locked; the caller closes it.
func readMarker(d *anchor.Dir) (*os.File, *marker, error) {
	f, err := d.Open(MarkerName, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, keep(KeptNoMarker, nil, "there is no marker in it")
	case err != nil:
		return nil, nil, keep(KeptBadMarker, err, "the marker cannot be opened")
	}
	m, err := checkMarker(d, f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, m, nil
}

func checkMarker(d *anchor.Dir, f *os.File) (*marker, error) {
	i, err := anchor.StatFile(f)
	switch {
	case err != nil:
		return nil, keep(KeptBadMarker, err, "the marker cannot be looked at")
	case !i.IsRegular():
		return nil, keep(KeptBadMarker, nil, "the marker is no regular file")
	case i.Nlink != 1:
		return nil, keep(KeptBadMarker, nil, "the marker has %d links", i.Nlink)
	case !ownedByUs(i):
		return nil, keep(KeptBadMarker, nil, "the marker belongs to uid %d", i.UID)
	case i.Size > maxMarker:
		return nil, keep(KeptBadMarker, nil, "the marker is too large")
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxMarker))
	if err != nil {
		return nil, keep(KeptBadMarker, err, "the marker cannot be read")
	}
	m, err := decodeMarker(b)
	if err != nil {
		return nil, keep(KeptBadMarker, err, "the marker is not one of ours")
	}
	self, err := d.Stat()
	if err != nil {
		return nil, keep(KeptUnreachable, err, "the directory cannot be looked at")
	}
	if !m.marks(self) {
		return nil, keep(KeptMismatch, nil, "the marker names another directory (inode %d, here %d)", m.Ino, self.Ino)
	}
	return m, nil
}

func decodeMarker(b []byte) (*marker, error) {
	m := new(marker)
	if err := json.Unmarshal(b, m, json.RejectUnknownMembers(true)); err != nil {
		return nil, err // and what was decoded so far is dropped
	}
	switch {
	case m.Schema != markerSchema:
		return nil, fmt.Errorf("schema %d", m.Schema)
	case m.Owner != markerOwner:
		return nil, fmt.Errorf("owner %q", m.Owner)
	case m.SessionID == "":
		return nil, errors.New("no session")
	case !filepath.IsAbs(m.Workspace) || filepath.Clean(m.Workspace) != m.Workspace:
		return nil, fmt.Errorf("workspace %q", m.Workspace)
	}
	return m, nil
}

// stillThere tells whether the marker's name still leads to f.
func stillThere(d *anchor.Dir, f *os.File) bool {
	a, err := d.Lstat(MarkerName)
	if err != nil {
		return false
	}
	b, err := anchor.StatFile(f)
	return err == nil && (a.SameFile(b) || a.Ino == 0)
}

// newMarker makes the marker with an exclusive create, locks it before it has
// content, so that nobody can take a whole one for an orphan's, and writes it
// durably.
func newMarker(d *anchor.Dir, name string, m *marker, sync bool) (*os.File, error) {
	f, err := d.Open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := fillMarker(d, f, m, sync); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func fillMarker(d *anchor.Dir, f *os.File, m *marker, sync bool) error {
	// Nobody else locks a marker that cannot be read yet.
	if err := tryLock(f); err != nil && !errors.Is(err, errNoLocks) {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return err
	}
	if !sync {
		return nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return d.Sync()
}

// replaceMarker writes a marker over the one in d, atomically and locked, as a
// new owner of the directory does. The caller holds the old one's lock.
func replaceMarker(d *anchor.Dir, m *marker, sync bool) (*os.File, error) {
	if err := d.Unlink(markerTemp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := newMarker(d, markerTemp, m, sync)
	if err != nil {
		return nil, err
	}
	err = d.Rename(markerTemp, d, MarkerName, anchor.Replace)
	if err == nil && sync {
		err = d.Sync()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
