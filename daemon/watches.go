package daemon

import (
	"context"
	"sync"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// maxWatches is how many watches one session may have.
const maxWatches = 256

// watch is a watch of a session. It ends with fs/unwatch and with the session,
// not with a turn.
type watch struct {
	id      string
	session *Session
	watch   provider.Watch // guarded by Session.mu; nil until it is active

	mu sync.Mutex // before Session.mu
	// early are changes that came before the watch was known to be active.
	early []provider.Change
	state watchState
}

type watchState int

const (
	watchStarting watchState = iota
	watchActive
	watchOver
)

// maxEarly is how many changes are kept while a watch starts.
const maxEarly = 64

func (s *Server) watchHandlers() {
	onFile(s, api.FSWatch, refSession, func(ctx context.Context, x *Session, p *api.FileRef) (api.FSWatchResult, error) {
		return x.Watch(ctx, p)
	})
	onFile(s, api.FSUnwatch, func(p *api.FSUnwatchParams) string { return p.SessionID },
		func(_ context.Context, x *Session, p *api.FSUnwatchParams) (api.Empty, error) {
			return api.Empty{}, x.Unwatch(p.WatchID)
		})
}

// Watch watches a file, a missing path or the entries of a directory; what it
// sees becomes events. WATCH_LIMIT: the session has too many.
func (s *Session) Watch(ctx context.Context, ref *api.FileRef) (api.FSWatchResult, error) {
	w := &watch{id: newID(), session: s}
	if err := s.addWatch(w); err != nil {
		return api.FSWatchResult{}, err
	}
	life, cancel := context.WithCancel(s.life)
	held := context.AfterFunc(ctx, cancel)
	_, active, err := onTarget(ctx, s, nil, ref, func(f *fence.Fence, t provider.Target) (provider.Watch, error) {
		w.restart()
		return s.host.files.Watch(life, f, t, w.changed)
	})
	if !held() && err == nil {
		_ = active.Close()
		err = &provider.Error{Code: provider.CodeAborted, Op: "watch", Path: ref.Path, Cause: context.Cause(ctx)}
	}
	if err != nil {
		cancel()
		s.dropWatch(w)
		return api.FSWatchResult{}, err
	}
	s.mu.Lock()
	closed := s.closed
	w.watch = stopping{active, cancel}
	s.mu.Unlock()
	if closed { // nobody else ends it any more
		s.dropWatch(w)
		return api.FSWatchResult{}, s.alive()
	}
	w.begin()
	return api.FSWatchResult{WatchID: w.id, Blind: active.Blind()}, nil
}

// stopping is a watch whose context ends with it.
type stopping struct {
	provider.Watch
	cancel context.CancelFunc
}

func (s stopping) Close() error {
	defer s.cancel()
	return s.Watch.Close()
}

// Unwatch ends a watch. WATCH_NOT_FOUND: the session has none of that name.
func (s *Session) Unwatch(id string) error {
	s.mu.Lock()
	w := s.watches[id]
	if w != nil && w.watch == nil {
		w = nil // still starting: nobody knows its name
	}
	s.mu.Unlock()
	if w == nil {
		return api.NewError(api.CodeWatchNotFound, "unwatch: there is no watch "+clip(id)+" in this session", "watchId", clip(id))
	}
	s.dropWatch(w)
	return nil
}

func (s *Session) addWatch(w *watch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return api.NewError(api.CodeSessionNotFound, "the session is closed")
	case len(s.watches) >= maxWatches:
		return api.NewError(api.CodeWatchLimit, "watch: the session has too many watches", "limit", maxWatches)
	case s.watches == nil:
		s.watches = map[string]*watch{}
	}
	s.watches[w.id] = w
	return nil
}

// dropWatch ends a watch; no event of it comes after this.
func (s *Session) dropWatch(w *watch) {
	s.mu.Lock()
	delete(s.watches, w.id)
	active := w.watch
	s.mu.Unlock()
	w.mu.Lock()
	w.state, w.early = watchOver, nil
	w.mu.Unlock()
	if active != nil {
		_ = active.Close()
	}
}

// endWatches ends all watches of a session that is closed.
func (s *Session) endWatches() {
	s.mu.Lock()
	all := make([]*watch, 0, len(s.watches))
	for _, w := range s.watches {
		all = append(all, w)
	}
	s.mu.Unlock()
	for _, w := range all {
		s.dropWatch(w)
	}
}

// restart forgets what a start that was refused has said.
func (w *watch) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.early = nil
}

// begin tells what has come meanwhile, and everything from now on.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != watchStarting {
		return
	}
	w.state = watchActive
	for _, c := range w.early {
		w.tell(c)
	}
	w.early = nil
}

// changed is called by the provider.
func (w *watch) changed(c provider.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state == watchActive:
		w.tell(c)
	case w.state == watchOver:
	case len(w.early) < maxEarly:
		w.early = append(w.early, c)
	default:
		w.early = append(w.early[:0], provider.Change{Kind: provider.Overflowed})
	}
}

// tell publishes a change. Called with mu held, so that they stay in order.
func (w *watch) tell(c provider.Change) {
	s := w.session
	turn := s.currentTurn()
	switch c.Kind {
	case provider.Changed:
		emit(s, turn, api.EventWatchChanged, api.WatchChangedData{WatchID: w.id, Path: c.Path, Name: c.Name})
	case provider.Overflowed:
		emit(s, turn, api.EventWatchOverflow, api.WatchOverflowData{WatchID: w.id})
	case provider.WatchFailed:
		d := api.WatchErrorData{WatchID: w.id, Code: string(provider.CodeIOError), Message: "the watch may miss changes"}
		if c.Err != nil {
			e := api.ErrorOf(c.Err)
			d.Code, d.Message = e.Stable(), e.Message
		}
		emit(s, turn, api.EventWatchError, d)
	}
}
