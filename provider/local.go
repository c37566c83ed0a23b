package provider

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/dirwatch"
)

// Config is how a [Local] behaves. The zero Config is usable.
type Config struct {
	// Cwd is the default for relative paths; absolute. Empty: the process's
	// directory when the provider is made.
	Cwd string
	// DiffBasisMaxBytes: a write gives the previous text when previous and new
	// content are both below this. 0 is 10 MiB.
	DiffBasisMaxBytes int64
	// EditMaxBytes bounds the file that is edited, and the result. 0 is 64 MiB.
	EditMaxBytes int64
	// ListMaxEntries bounds a listing, and a directory that is copied with all
	// that is in it; above it FS_TOO_LARGE. 0 is 1,000,000.
	ListMaxEntries int
	// NewFileMode is the mode of new files, exact, such as 0600. 0 lets the
	// kernel make it: 0666 narrowed by the umask and the directory's default
	// access list.
	NewFileMode uint32
	// Window are the caps of readLines; members that are 0 are the defaults of
	// fs-contract section 8.
	Window WindowLimits
	// Trash takes what is deleted. Without one a delete that is not asked to
	// be permanent is refused with TRASH_UNAVAILABLE.
	Trash Trash
	// TrashOff makes every delete one that is permanent.
	TrashOff bool
	// TempDirs are canonical paths of the system's temporary directories: what
	// is deleted below them, and outside every writable root of the fence, is
	// deleted outright.
	TempDirs []string
	// MaxWatches is how many watches there may be at once; 0 is 8192.
	MaxWatches int
	// Home is the user's home directory; it and what contains it is never
	// deleted. Empty: what the environment says.
	Home string
	// Clock replaces the file system's clock, for tests.
	Clock Clock
}

// Local is the provider of the host's own files. Its locks and its table of
// hashes are shared by all that use it, so one process needs one Local.
type Local struct {
	cwd      string
	basisMax int64
	editMax  int64
	listMax  int
	mode     uint32
	clock    Clock
	window   WindowLimits
	trash    Trash
	trashOff bool
	tempDirs []string
	home     string // canonical; empty when unknown

	// root is the root directory, opened once; nil where there is more than
	// one (Windows).
	root *anchor.Dir

	known hashes
	// Lock order: files, then dirs, then the directory's lock across processes.
	files turns // by target key
	dirs  turns // by path of the parent, around a replacement

	watches hub

	// hook is called at named points, in tests only; nil otherwise.
	hook func(point string)
	// lacks are features of file systems that tests take away.
	lacks features
}

var _ Provider = (*Local)(nil)

// NewLocal checks the configuration: limits must not be negative, Cwd must be
// absolute, NewFileMode at most 0777.
func NewLocal(c Config) (*Local, error) {
	l := &Local{
		cwd: c.Cwd, basisMax: c.DiffBasisMaxBytes, editMax: c.EditMaxBytes,
		listMax: c.ListMaxEntries, mode: c.NewFileMode, clock: c.Clock,
		trash: c.Trash, trashOff: c.TrashOff, tempDirs: c.TempDirs,
	}
	l.watches.max, l.watches.open = c.MaxWatches, dirwatch.Open
	if l.cwd == "" {
		wd, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("new provider: %w", err)
		}
		l.cwd = wd
	}
	if !filepath.IsAbs(l.cwd) {
		return nil, errors.New("new provider: cwd must be an absolute path")
	}
	if l.basisMax < 0 || l.editMax < 0 || l.listMax < 0 || l.watches.max < 0 {
		return nil, errors.New("new provider: limits must be positive")
	}
	if l.mode > 0o777 {
		return nil, errors.New("new provider: the mode of new files must be at most 0777")
	}
	var err error
	if l.window, err = c.Window.whole(); err != nil {
		return nil, fmt.Errorf("new provider: %w", err)
	}
	if l.basisMax == 0 {
		l.basisMax = 10 << 20
	}
	if l.editMax == 0 {
		l.editMax = 64 << 20
	}
	if l.listMax == 0 {
		l.listMax = 1_000_000
	}
	if l.watches.max == 0 {
		l.watches.max = 8192
	}
	if l.clock == nil {
		l.clock = newSystemClock()
	}
	home := c.Home
	if home == "" {
		home, _ = os.UserHomeDir() // an error: there is none to be kept
	}
	if r, err := fence.Canonical(home); home != "" && err == nil {
		l.home = r.Path
	}
	if filepath.VolumeName(l.cwd) == "" {
		root, err := anchor.OpenDir(string(filepath.Separator))
		if err != nil {
			return nil, fmt.Errorf("new provider: %w", bare(err))
		}
		l.root = root
	}
	return l, nil
}

// Close ends all watches, waits for their calls that run, and gives the root
// directory's handle back. Calls that begin later fail with FS_IO_ERROR.
func (l *Local) Close() error {
	l.watches.close()
	if l.root == nil {
		return nil
	}
	return l.root.Close()
}

// openDir opens the directory at a canonical path, from the root's handle and
// without following any link: ELOOP when there is one.
func (l *Local) openDir(path string) (*anchor.Dir, error) {
	if l.root == nil {
		return anchor.OpenDir(path)
	}
	rel, err := filepath.Rel(string(filepath.Separator), path)
	if err != nil {
		return nil, err
	}
	return l.root.Walk(rel)
}

// tries bounds how often a call begins anew because its path changed under it.
const tries = 16

// lockPatience is how long a replacement waits for another process to finish
// one in the same directory. That takes well under a millisecond; the time is
// for machines that stand still for seconds, and after it the lock is held by
// somebody who is no Wattle.
const lockPatience = 10 * time.Second

// features that not every file system has.
type features struct{ unnamed, noReplace, exchange bool }

func (l *Local) at(point string) {
	if l.hook != nil {
		l.hook(point)
	}
}
