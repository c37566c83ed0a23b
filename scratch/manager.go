package scratch

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// Options configure a [Manager].
type Options struct {
	// StateDir is the daemon's state directory, absolute. Its last component
	// must not be a link, nobody else may write to it; it is made 0700 when
	// missing. The journal lives in "scratch" below it.
	StateDir string
	// Home is the user's home directory, which is never removed, or "".
	Home string
	// Roots are the configured roots, in which a sweep looks as well.
	Roots []string
	// NoSync leaves flushing to the kernel: everything survives the death of
	// the process, not a power failure. For commands that live a moment.
	NoSync bool
}

// Manager makes scratch directories and sweeps orphans. Any number of
// goroutines may use one at once, and several processes one state directory.
type Manager struct {
	home    string
	roots   []string
	sync    bool
	journal journal
}

// NewManager opens the journal. Errors are *Error with SCRATCH_IO_ERROR, or
// SCRATCH_REFUSED when the state directory is a link, or somebody else's.
func NewManager(o Options) (*Manager, error) {
	d, err := openState(o.StateDir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	j, err := d.MkdirAll("scratch", 0o700)
	if err != nil {
		return nil, fail(CodeIO, "open journal", o.StateDir, err)
	}
	m := &Manager{sync: !o.NoSync, journal: journal{dir: j, sync: !o.NoSync}}
	if o.Home != "" {
		if m.home, err = canonicalDir(o.Home); err != nil {
			// A home that does not exist cannot be removed by anybody.
			m.home = filepath.Clean(o.Home)
		}
	}
	for _, r := range o.Roots {
		if c, err := canonicalDir(r); err == nil {
			m.roots = append(m.roots, c)
		}
	}
	return m, nil
}

func openState(path string) (*anchor.Dir, error) {
	if !filepath.IsAbs(path) {
		return nil, failf(CodeRefused, "open journal", path, "the state directory must be an absolute path")
	}
	path = filepath.Clean(path)
	// Links above are the user's own layout (/home may be one). The directory
	// itself is ours and never a link.
	up, err := fence.Canonical(filepath.Dir(path))
	if err != nil {
		return nil, fail(CodeIO, "open journal", path, err)
	}
	root, err := anchor.OpenDir(rootOf(up.Path))
	if err != nil {
		return nil, fail(CodeIO, "open journal", path, err)
	}
	defer root.Close()
	path = filepath.Join(up.Path, filepath.Base(path))
	d, err := root.MkdirAll(strings.TrimPrefix(path, rootOf(path)), 0o700)
	if err != nil {
		return nil, fail(CodeRefused, "open journal", path, err)
	}
	i, err := d.Stat()
	if err == nil && (!ownedByUs(i) || i.Perm()&0o022 != 0) {
		err = fmt.Errorf("the state directory must be ours and writable by us alone (uid %d, mode %04o)", i.UID, i.Perm())
	}
	if err != nil {
		d.Close()
		return nil, fail(CodeRefused, "open journal", path, err)
	}
	return d, nil
}

func rootOf(path string) string {
	return filepath.VolumeName(path) + string(filepath.Separator)
}

func canonicalDir(path string) (string, error) {
	r, err := fence.Canonical(path)
	if err != nil {
		return "", err
	}
	d, err := anchor.OpenDir(r.Path)
	if err != nil {
		return "", err
	}
	return r.Path, d.Close()
}

// Close releases the journal. Directories that are still held keep working,
// except that they cannot be made again.
func (m *Manager) Close() error { return m.journal.dir.Close() }

// New decides where the scratch directory of a session is. It makes nothing on
// disk: [Dir.Ensure] and the actions do. A directory that this session left
// behind earlier (same workspace, same id, matching marker, no living owner)
// is taken up again.
//
// Errors: SCRATCH_NO_WORKSPACE for an empty workspace, SCRATCH_CONFIG_INVALID,
// SCRATCH_REFUSED with the reason when there is no usable place (the workspace
// is "/", its parent cannot be written, a link lies in the way), and
// SCRATCH_IO_ERROR.
func (m *Manager) New(session, workspace string, c Config) (*Dir, error) {
	const op = "open"
	if workspace == "" {
		return nil, failf(CodeNoWorkspace, op, "", "the session has no workspace")
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if session == "" || !utf8.ValidString(session) {
		return nil, failf(CodeIO, op, "", "the session id is empty or not UTF-8")
	}
	ws, err := canonicalDir(workspace)
	if err != nil {
		return nil, fail(CodeRefused, op, workspace, err)
	}
	if !utf8.ValidString(ws) {
		// It could not be told in a marker or to a client.
		return nil, failf(CodeRefused, op, strings.ToValidUTF8(ws, "\ufffd"), "the workspace's path is not valid UTF-8")
	}
	p, err := findPlace(ws, c)
	if err != nil {
		var known *Error
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, fail(CodeRefused, op, ws, err)
	}
	d := &Dir{m: m, session: session, workspace: ws, config: c, place: p}
	if err := d.choose(); err != nil {
		return nil, err
	}
	return d, nil
}

// now is the time of markers and records, in whole seconds and UTC.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
