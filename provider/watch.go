package provider

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/dirwatch"
)

// watch is one active watch. One goroutine, run, calls the receiver; it ends
// when the watch does.
type watch struct {
	*call
	changed func(Change)
	path    string      // canonical: the watched directory
	info    anchor.Info // of it
	only    string      // the one entry that is watched, empty for all
	blind   string

	// Guarded by the hub's mu: where the events come from; nil when detached.
	feed  *feed
	place dirwatch.ID

	wake chan struct{} // capacity 1: there is something in pending, or ended

	// Lock order: the hub's mu, then this.
	mu      sync.Mutex
	pending pending
	ended   bool
	// calling is closed when the call of changed that runs has returned; nil
	// when none runs.
	calling chan struct{}
	// unhook takes the watch off its context.
	unhook func() bool
}

// Watch implements [WatchProvider].
func (l *Local) Watch(ctx context.Context, f *fence.Fence, t Target, changed func(Change)) (Watch, error) {
	c, err := l.begin(ctx, f, "watch", t.DisplayPath)
	if err != nil {
		return nil, err
	}
	key, err := c.key(t)
	if err != nil {
		return nil, err
	}
	var w *watch
	err = c.reach(key, c.followed(key), func(s spot) error {
		if w, err = c.watchAt(s, changed); err != nil {
			return c.explainWatch(err)
		}
		return nil
	})
	if aborted := c.alive(); aborted != nil {
		if w != nil {
			c.watches.detach(w)
		}
		return nil, aborted
	}
	if err != nil {
		return nil, c.mapped(err)
	}
	w.start()
	return w, nil
}

// watchAt watches first and looks then, so that the state which the caller
// finds afterwards is one whose every change is told.
func (c *call) watchAt(s spot, changed func(Change)) (*watch, error) {
	whole, err := c.isDirectory(s)
	if err != nil {
		return nil, err
	}
	w := &watch{call: c, changed: changed, path: s.path, wake: make(chan struct{}, 1)}
	dir := s.dir
	switch {
	case !whole:
		w.path, w.only = filepath.Dir(s.path), s.name
	case s.name != "":
		dir, err = s.dir.Walk(s.name)
		if changedPath(err) {
			return nil, errMoved{err: err}
		}
		if err != nil {
			return nil, err
		}
		defer dir.Close()
	}
	if w.info, err = dir.Stat(); err != nil {
		return nil, err
	}
	if err := c.watches.attach(w, dir); changedPath(err) {
		return nil, errMoved{err: err}
	} else if err != nil {
		return nil, err
	}
	c.at("watched")
	if err := w.settle(s, dir, whole); err != nil {
		c.watches.detach(w)
		return nil, err
	}
	return w, nil
}

// settle looks whether what is watched now is what the path leads to.
func (w *watch) settle(s spot, dir *anchor.Dir, whole bool) error {
	now, gone := w.find()
	if gone {
		return errMoved{err: errChanged}
	}
	if now != nil {
		now.Close()
	}
	if !whole {
		again, err := w.isDirectory(s)
		if err != nil {
			return err
		}
		if again {
			return errMoved{err: errChanged}
		}
	}
	w.blind = dirwatch.Blind(dir)
	if info, err := s.lstat(); !whole && err == nil && w.blind == "" && !info.SameMount(w.info) {
		w.blind = "mount: something else is mounted at this name, and its changes are not told in the directory"
	}
	return nil
}

// isDirectory tells whether the entries of what is at the spot are to be
// watched; otherwise it is the name in its parent. A link that leads to nothing
// is such a name; another one is to be followed.
func (c *call) isDirectory(s spot) (bool, error) {
	info, err := s.lstat()
	switch {
	case absent(err):
		return false, nil
	case err != nil:
		return false, err
	case info.IsSymlink() && !c.leadsNowhere(s.path):
		return false, errMoved{err: errBecameLink}
	}
	return info.IsDir(), nil
}

// find opens the watched directory by its path. gone: the path does not lead to
// it any more, since it or a directory above it was moved or removed. What
// cannot be told (no permission on the way) is neither.
//
// While it is watched the kernel keeps the inode, so its number means no other
// directory.
func (w *watch) find() (dir *anchor.Dir, gone bool) {
	dir, err := w.openDir(w.path)
	if err != nil {
		return nil, changedPath(err)
	}
	info, err := dir.Stat()
	if err == nil && info.Ino != 0 && !info.SameFile(w.info) {
		dir.Close()
		return nil, true
	}
	return dir, false
}

// start lets the calls begin.
func (w *watch) start() {
	w.mu.Lock()
	w.unhook = context.AfterFunc(w.ctx, w.end)
	w.mu.Unlock()
	go w.run()
}

func (w *watch) run() {
	for range w.wake {
		for {
			w.mu.Lock()
			it, ok := w.pending.take()
			over := w.over()
			w.mu.Unlock()
			if over {
				return
			}
			if !ok {
				break
			}
			ch, ok := w.judge(it)
			if !ok {
				continue
			}
			w.tell(ch)
			if ch.Kind == WatchFailed {
				w.end()
				return
			}
		}
	}
}

// judge makes an item into what is told; ok is false when it is not to be. The
// names are told only while the path still leads to the directory: they are
// judged by the fence as names in that place.
func (w *watch) judge(it item) (ch Change, ok bool) {
	if it.kind == WatchFailed {
		if it.gone {
			return w.lostPlace(), true
		}
		return w.failure(w.failed(CodeIOError, "the system has ended all watches", it.broken)), true
	}
	dir, gone := w.find()
	if dir != nil {
		defer dir.Close()
	}
	switch {
	case gone:
		return w.lostPlace(), true
	case it.kind == "":
		return Change{}, false
	}
	if it.unsure && dir != nil {
		name := it.name
		if w.only != "" {
			name = w.only
		}
		// A file without a name. If it is one that had the name until now,
		// its removal is told.
		if _, err := dir.Lstat(name); absent(err) {
			return Change{}, false
		}
	}
	ch = Change{Kind: it.kind, Path: w.shown, Name: it.name}
	if it.name != "" {
		if !strings.HasSuffix(ch.Path, string(filepath.Separator)) {
			ch.Path += string(filepath.Separator)
		}
		ch.Path += it.name
		if w.fence.CheckAs(filepath.Join(w.path, it.name), ch.Path, fence.Read) != nil {
			return Change{}, false
		}
	}
	return ch, true
}

func (w *watch) lostPlace() Change {
	return w.failure(w.fail(CodeNotFound, "the watched directory was removed or moved, or its file system unmounted"))
}

func (w *watch) failure(err error) Change {
	return Change{Kind: WatchFailed, Path: w.shown, Err: err}
}

// tell calls the receiver unless the watch has ended.
func (w *watch) tell(ch Change) {
	done := make(chan struct{})
	w.mu.Lock()
	if w.over() {
		w.mu.Unlock()
		return
	}
	w.calling = done
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.calling = nil
		w.mu.Unlock()
		close(done)
	}()
	w.changed(ch)
}

// over tells whether nothing may be told any more: also when the context has
// just ended and its goroutine has not come to it. Called with mu held.
func (w *watch) over() bool { return w.ended || w.ctx.Err() != nil }

// end ends the watch and does not wait for a call that runs.
func (w *watch) end() {
	w.mu.Lock()
	first := !w.ended
	w.ended = true
	unhook := w.unhook
	w.mu.Unlock()
	if !first {
		return
	}
	if unhook != nil {
		unhook()
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	w.watches.detach(w)
}

// Blind implements [Watch].
func (w *watch) Blind() string { return w.blind }

// Close implements [Watch].
func (w *watch) Close() error {
	w.end()
	w.mu.Lock()
	calling := w.calling
	w.mu.Unlock()
	if calling != nil {
		<-calling
	}
	return nil
}
