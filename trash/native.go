package trash

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// native is the trash of macOS and of Windows. The system itself moves a thing
// there and says where it landed; neither system tells later where a thing came
// from. So there is a record of our own, and list, restore and empty go by the
// records: what others put into the trash is not in them, and stays.
//
// The system is given a path, which cannot be tied to a handle. Who swaps the
// thing, or a directory above it, after the last look is noticed by the
// identity of what landed.
type native struct {
	sys system
	// home is the directory in which the records are (see recordsPath).
	home string
	uid  uint32
	now  func() time.Time
	sync bool
	// limit is how long the system may take.
	limit time.Duration
	// turns bounds the calls to the system that are under way, also those whose
	// limit is over. A goroutine holds its place until the system has answered.
	turns chan struct{}
	// closing is held by the one close that collects turns.
	closing chan struct{}
}

// system is what the operating system does. Any number of goroutines use one at
// once.
type system interface {
	// refuse says before anything was touched why the system would not keep a
	// thing; nil means that it may be asked. The error is returned as it is.
	refuse(ctx context.Context, t *subject) *record.Error
	// trash has the system move what is at an absolute path, and gives the path
	// at which it landed; "" when the system does not say. It follows no link.
	// There is no context: a call that has begun may have any effect.
	trash(path string) (landing string, err error)
	// names are those of the system's trash directories, in lower case.
	names() []string
	// companion is the name of a file that the system keeps beside what landed
	// under a name, and that has no use without it; "" for none.
	companion(landed string) string
	// owners tells whether owner and mode of a directory say who may write.
	owners() bool
}

// subject is a thing that the system is about to be asked to trash.
type subject struct {
	dir  *anchor.Dir
	name string
	// path is what it is called by, in the record and in errors. at is where it
	// is: another path only while it lies under a hidden name beside its place.
	path, at string
	info     anchor.Info
}

const (
	// nativeLimit is how long the system may take for one thing. After it the
	// outcome is unknown, and nothing is tried again.
	nativeLimit = 10 * time.Second
	// maxAsked is how many calls to the system may be under way.
	maxAsked = 4
)

func newNative(c Config, s system) *native {
	return &native{
		sys: s, home: c.DataHome, uid: uint32(c.UID), now: c.Now, sync: !c.NoSync,
		limit: nativeLimit, turns: make(chan struct{}, maxAsked), closing: make(chan struct{}, 1),
	}
}

// close waits until the system has answered every call, at the latest until ctx
// ends; what it answers after that is still written down as long as the process
// lives.
func (n *native) close(ctx context.Context) {
	select {
	case n.closing <- struct{}{}:
		defer func() { <-n.closing }()
	case <-ctx.Done():
		return
	}
	held := 0
	for held < cap(n.turns) {
		select {
		case n.turns <- struct{}{}:
			held++
			continue
		case <-ctx.Done():
		}
		break
	}
	for range held {
		<-n.turns
	}
}

func (n *native) holds(path string) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return false
	}
	for _, part := range parts(path) {
		if n.trashName(part) {
			return true
		}
	}
	own := n.recordsReal()
	if covers(path, own) || covers(own, path) {
		return true
	}
	for _, name := range n.sys.names() {
		if fi, err := os.Lstat(filepath.Join(path, name)); err == nil && fi.IsDir() {
			return true
		}
	}
	return false
}

func (n *native) trashName(name string) bool {
	for _, t := range n.sys.names() {
		if strings.EqualFold(name, t) {
			return true
		}
	}
	return false
}

// dirs are the directory of the records, and those in which something landed.
func (n *native) dirs() []string {
	r, err := n.openRecords(false)
	if err != nil {
		return nil
	}
	defer r.close()
	all := []string{r.dir.Path()}
	seen := map[string]bool{}
	// What cannot be read names no directory.
	_ = r.each(context.Background(), func(id string) error {
		k, err := r.read(id)
		if err != nil || k.landing == "" {
			return nil
		}
		at := filepath.Dir(k.landing)
		if fi, err := os.Lstat(at); !seen[at] && err == nil && fi.IsDir() {
			all = append(all, at)
		}
		seen[at] = true
		return nil
	})
	return all
}

// guard adds the directory of the records where it is not there yet. Trash
// directories in which nothing of ours is are the system's own to protect.
func (n *native) guard([]string) []string {
	own := n.recordsReal()
	all := n.dirs()
	if !slices.Contains(all, own) {
		all = append(all, own)
	}
	return all
}

// parts are the names in a path.
func parts(path string) []string {
	return strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool {
		return r < 0x80 && os.IsPathSeparator(uint8(r))
	})
}

// covers tells whether path is dir or lies in it; both clean. Without regard to
// case, as these systems compare names: what is taken for the same too often is
// refused, and stays.
func covers(dir, path string) bool {
	d, p := parts(dir), parts(path)
	if !strings.EqualFold(filepath.VolumeName(dir), filepath.VolumeName(path)) || len(d) > len(p) {
		return false
	}
	for i := range d {
		if !strings.EqualFold(d[i], p[i]) {
			return false
		}
	}
	return true
}

// lookAt describes an entry with its identity, following nothing. Windows gives
// an identity to what is opened only; a link there has none.
func lookAt(dir *anchor.Dir, name string) (anchor.Info, error) {
	i, err := dir.Lstat(name)
	if err != nil || i.Ino != 0 {
		return i, err
	}
	// What cannot be opened is compared without identity.
	switch {
	case i.IsDir():
		if sub, err := dir.Walk(name); err == nil {
			defer sub.Close()
			return sub.Stat()
		}
	case i.IsRegular():
		if f, err := dir.Open(name, os.O_RDONLY, 0); err == nil {
			defer f.Close()
			return anchor.StatFile(f)
		}
	}
	return i, nil
}

// sameThing compares identities; where one of the two has none, what else a
// move leaves as it is.
func sameThing(a, b anchor.Info) bool {
	if a.Ino != 0 && b.Ino != 0 {
		return a.SameFile(b)
	}
	return a.Type() == b.Type() && a.Mtime == b.Mtime && (!a.IsRegular() || a.Size == b.Size)
}
