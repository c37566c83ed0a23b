package provider

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/dirwatch"
)

// hub shares one source of events among all watches of a Local. The source
// begins with the first watch and ends with the last.
type hub struct {
	max  int
	open func(tell func(dirwatch.Event)) (dirwatch.Source, error)

	// gate keeps the removal of a directory's last watch apart from the adding
	// of a new one to it. Adding holds it for reading: one dead network mount
	// must not keep others from watching. Lock order: gate, then mu.
	gate sync.RWMutex

	mu     sync.Mutex
	feed   *feed // nil without watches
	count  int   // watches, and those that are being made
	closed bool
}

// feed is one source and who listens. It is guarded by the hub's mu, which is
// never held during a call of the source: the source may wait for its receiver.
type feed struct {
	src dirwatch.Source
	// places are the watched directories, empty those of them that no watch
	// needs any more and that the source still has.
	places map[dirwatch.ID]map[*watch]struct{}
	empty  map[dirwatch.ID]struct{}
	broken bool
}

// errWatches: the provider's own limit.
var errWatches = errors.New("too many watches")

// attach makes w a listener for events of dir. It may get some before attach
// has returned.
func (h *hub) attach(w *watch, dir *anchor.Dir) error {
	h.gate.RLock()
	err := h.add(w, dir)
	h.gate.RUnlock()
	h.sweep()
	return err
}

func (h *hub) add(w *watch, dir *anchor.Dir) error {
	f, err := h.reserve()
	if err != nil {
		return err
	}
	id, err := f.src.Add(dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && (f.broken || h.closed) {
		err = fs.ErrClosed
	}
	if err != nil {
		h.count--
		return err
	}
	// What came since Add was of a watch that nobody has yet.
	if f.places[id] == nil {
		f.places[id] = map[*watch]struct{}{}
	}
	f.places[id][w] = struct{}{}
	delete(f.empty, id)
	w.feed, w.place = f, id
	return nil
}

// reserve counts a watch and gives the source for it.
func (h *hub) reserve() (*feed, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fs.ErrClosed
	}
	// The second: while somebody adds without end, nothing can be swept.
	if h.count >= h.max || h.feed != nil && len(h.feed.empty) > h.max {
		return nil, errWatches
	}
	if h.feed == nil {
		f := &feed{places: map[dirwatch.ID]map[*watch]struct{}{}, empty: map[dirwatch.ID]struct{}{}}
		src, err := h.open(func(e dirwatch.Event) { h.event(f, e) })
		if err != nil {
			return nil, err
		}
		f.src = src
		h.feed = f
	}
	h.count++
	return h.feed, nil
}

// detach ends what attach did. More than once is harmless.
func (h *hub) detach(w *watch) {
	h.mu.Lock()
	if w.feed != nil {
		ws := w.feed.places[w.place]
		delete(ws, w)
		if len(ws) == 0 {
			w.feed.empty[w.place] = struct{}{}
		}
		w.feed = nil
		h.count--
	}
	h.mu.Unlock()
	h.sweep()
}

// sweep gives back to the system what no watch needs. When somebody is adding
// it does nothing: adding ends with another look.
func (h *hub) sweep() {
	for h.litter() && h.gate.TryLock() {
		h.clean()
		h.gate.Unlock()
	}
}

// litter tells whether there is anything to sweep.
func (h *hub) litter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.feed != nil && (h.count == 0 || len(h.feed.empty) > 0)
}

// clean runs with the gate locked: nobody adds.
func (h *hub) clean() {
	h.mu.Lock()
	f := h.feed
	last := f != nil && h.count == 0
	var empty map[dirwatch.ID]struct{}
	switch {
	case last:
		h.feed = nil
	case f != nil:
		empty, f.empty = f.empty, map[dirwatch.ID]struct{}{}
		for id := range empty {
			delete(f.places, id)
		}
	}
	h.mu.Unlock()
	if last {
		f.src.Close()
	}
	for id := range empty {
		f.src.Remove(id)
	}
}

// event is the receiver of a source. It never waits for a watch.
func (h *hub) event(f *feed, e dirwatch.Event) {
	h.mu.Lock()
	switch e.Kind {
	case dirwatch.Lost, dirwatch.Broken:
		for _, ws := range f.places {
			for w := range ws {
				w.note(e)
			}
		}
	default:
		for w := range f.places[e.ID] {
			w.note(e)
		}
	}
	broken := e.Kind == dirwatch.Broken
	if broken {
		f.broken = true
		if h.feed == f {
			h.feed = nil
		}
	}
	h.mu.Unlock()
	if broken {
		f.src.Close()
	}
}

// close ends all watches, waits for their calls that run, and for the source.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	f := h.feed
	h.feed = nil
	var all []*watch
	if f != nil {
		for _, ws := range f.places {
			for w := range ws {
				all = append(all, w)
			}
		}
	}
	h.mu.Unlock()
	for _, w := range all {
		w.Close()
	}
	if f != nil {
		f.src.Close()
		<-f.src.Done()
	}
}

// explainWatch gives the error of a watch that could not be made, and names the
// limit that the system's administrator can raise.
func (c *call) explainWatch(err error) error {
	switch {
	case errors.Is(err, errWatches):
		return c.failed(CodeIOError, fmt.Sprintf("there are %d watches already, as many as this provider may have", c.watches.max), syscall.ENOSPC)
	case errors.Is(err, syscall.ENOSPC):
		return c.failed(CodeIOError, "the limit of watched directories is reached (sysctl fs.inotify.max_user_watches)", err)
	case errors.Is(err, syscall.EMFILE):
		return c.failed(CodeIOError, "the limit of watching programs (sysctl fs.inotify.max_user_instances) or of open files is reached", err)
	case errors.Is(err, dirwatch.ErrNoProc):
		return c.failed(CodeIOError, "watching needs /proc", err)
	}
	return err
}
