package provider

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// ListDir implements [Provider].
func (l *Local) ListDir(ctx context.Context, f *fence.Fence, t Target, o ListOptions) ([]DirEntry, error) {
	c, err := l.begin(ctx, f, "listDir", t.DisplayPath)
	if err != nil {
		return nil, err
	}
	if o.Limit < 0 {
		return nil, c.failed(CodeIOError, "limit must not be negative", syscall.EINVAL)
	}
	key, err := c.key(t)
	if err != nil {
		return nil, err
	}
	var out []DirEntry
	err = c.reach(key, c.followed(key), func(s spot) error {
		info, err := s.lstat()
		switch {
		case err != nil:
			return err
		case info.IsSymlink() && c.leadsNowhere(s.path):
			return c.fail(CodeNotFound, "no such directory")
		case info.IsSymlink():
			return errMoved{err: errBecameLink}
		case !info.IsDir():
			return c.fail(CodeNotDirectory, "not a directory")
		}
		dir := s.dir
		if s.name != "" {
			dir, err = s.dir.Walk(s.name)
			if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
				return errMoved{err: err}
			}
			if err != nil {
				return err
			}
			defer dir.Close()
		}
		out, err = c.list(dir, s.path, o)
		return err
	})
	if aborted := c.alive(); aborted != nil {
		return nil, aborted
	}
	if err != nil {
		return nil, c.mapped(err)
	}
	return out, nil
}

func (c *call) list(dir *anchor.Dir, path string, o ListOptions) ([]DirEntry, error) {
	names, err := c.names(dir, o)
	if err != nil {
		return nil, err
	}
	shown := c.shown
	if !strings.HasSuffix(shown, string(filepath.Separator)) {
		shown += string(filepath.Separator)
	}
	out := make([]DirEntry, len(names))
	var unsettled []child
	var youngest stamp
	for i, name := range names {
		if err := c.alive(); err != nil {
			return nil, err
		}
		ch := child{at: i, place: filepath.Join(path, name), look: func() (anchor.Info, error) { return dir.Lstat(name) }}
		d, err := c.lookAt(&ch)
		if err != nil {
			return nil, err
		}
		out[i] = ch.entry(name, shown+name, d)
		if d != nil && d.waitable() {
			unsettled = append(unsettled, ch)
			youngest.mtime = max(youngest.mtime, d.token.mtime)
			youngest.ctime = max(youngest.ctime, d.token.ctime)
		}
	}
	if len(unsettled) == 0 {
		return out, nil
	}
	// As describe does for one file, but once for all of them.
	if err := c.settle(youngest); err != nil {
		return nil, err
	}
	for _, ch := range unsettled {
		d, err := c.lookAt(&ch)
		if err != nil {
			return nil, err
		}
		out[ch.at] = ch.entry(out[ch.at].Name, out[ch.at].Target.DisplayPath, d)
	}
	return out, nil
}

// names gives the names of a directory in byte order, those of one page if the
// listing has a limit.
func (c *call) names(dir *anchor.Dir, o ListOptions) ([]string, error) {
	s, err := dir.Stream()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	// One more than may be tells that there are too many.
	pg := page{after: o.After, most: c.listMax + 1}
	if o.Limit > 0 {
		pg.most = min(o.Limit, pg.most)
	}
	for {
		if err := c.alive(); err != nil {
			return nil, err
		}
		es, err := s.Next(1024)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, e := range es {
			pg.add(e.Name)
		}
		if pg.most > c.listMax && len(pg.names) > c.listMax {
			return nil, c.fail(CodeTooLarge, "the directory has too many entries to list")
		}
	}
	return pg.sorted(), nil
}

// page keeps the first names behind one, in byte order. It holds fewer than
// twice as many as it gives.
type page struct {
	after string
	most  int
	names []string
	// last, once there are enough: names behind it are not on the page.
	last string
	full bool
}

func (p *page) add(name string) {
	if name <= p.after || p.full && name > p.last {
		return
	}
	p.names = append(p.names, name)
	if len(p.names) >= 2*p.most {
		p.sorted()
	}
}

func (p *page) sorted() []string {
	slices.Sort(p.names)
	if len(p.names) >= p.most {
		p.names = p.names[:p.most]
		p.last, p.full = p.names[p.most-1], true
	}
	return p.names
}

// child is one entry of a listing while it is looked at.
type child struct {
	at    int    // index in the listing
	place string // its own canonical path
	real  string // the path of what it leads to; "" for its own
	look  func() (anchor.Info, error)
}

// lookAt describes a child, following a link. nil: it is gone, leads nowhere,
// or is hidden, and has no metadata then.
func (c *call) lookAt(ch *child) (*described, error) {
	ch.real = ""
	if c.fence.Check(ch.place, fence.Read) != nil {
		return nil, nil
	}
	d, err := c.glance(ch.look)
	if err == nil && d.info.IsSymlink() {
		d, err = c.lookThrough(ch)
	}
	switch {
	case err == nil && d.info.Mode == 0:
		return nil, nil
	case err == nil:
		return &d, nil
	case nowhere(err):
		return nil, nil
	}
	return nil, c.mapped(err)
}

// lookThrough describes what a link leads to. An empty description: nothing,
// or something hidden.
func (c *call) lookThrough(ch *child) (described, error) {
	r, err := c.fence.Resolve(ch.place)
	if err != nil || !r.Exists || c.fence.Check(r.Path, fence.Read) != nil {
		return described{}, err
	}
	parent := filepath.Dir(r.Path)
	dir, err := c.openDir(parent)
	if err != nil {
		return described{}, err
	}
	defer dir.Close()
	s := spot{dir: dir, path: r.Path}
	if parent != r.Path {
		s.name = filepath.Base(r.Path)
	}
	d, err := c.glance(s.lstat)
	if err != nil || d.info.IsSymlink() { // exchanged meanwhile
		return described{}, err
	}
	ch.real = r.Path
	return d, nil
}

// nowhere: the errors of a child that vanished or of a link that leads nowhere.
func nowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG)
}

func (ch *child) entry(name, shown string, d *described) DirEntry {
	e := DirEntry{Name: name, Type: TypeOther, Target: Target{TargetKey: TargetKey(ch.place), DisplayPath: shown}}
	if ch.real != "" {
		e.Target.TargetKey = TargetKey(ch.real)
	}
	if d == nil {
		return e
	}
	e.Type, e.Version = d.kind(), d.token.version()
	if e.Type == TypeFile {
		e.Size = d.size()
	}
	return e
}
