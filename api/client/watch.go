package client

import (
	"context"
	"errors"
	"sync"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
)

const (
	// maxPending is how many changes a watch keeps while its callback runs;
	// beyond, it overflows.
	maxPending = 1024
	// maxEarly is how many events of watches that nobody knows yet are kept
	// while a watch starts.
	maxEarly = 256
)

// watches are the watches of a connection; guarded by Client.mu, except turn.
type watches struct {
	// turn is held while the subscription begins or ends. Taken before
	// Client.mu.
	turn sync.Mutex

	byID      map[string]*watch
	listening bool // the connection's subscription is ours
	starting  int  // watches whose id is not known yet
	early     []api.Event
	lost      bool // early did not hold all
}

// watch is a watch of [Files].
type watch struct {
	f         *Files
	id, blind string
	shown     string // displayPath of what is watched
	changed   func(provider.Change)
	unctx     func() bool
	wake      chan struct{} // capacity 1
	gone      chan struct{} // closed by Close

	mu       sync.Mutex
	pending  []provider.Change
	overflow bool
	closed   bool
}

// watchEvents are what a connection must be sent for its watches.
var watchEvents = []string{api.EventWatchChanged.Name, api.EventWatchOverflow.Name, api.EventWatchError.Name}

// Watch calls changed when a target may have changed; see
// [provider.WatchProvider]. The events come through the connection's
// subscription: where there is none, the first watch makes one and the last
// one ends it; one that is there must let the watch events of the session
// through. What a gap covers is an overflow, and when the connection is lost
// the watch fails.
func (f *Files) Watch(ctx context.Context, t provider.Target, changed func(provider.Change)) (provider.Watch, error) {
	c := f.c
	if err := c.listen(ctx); err != nil {
		return nil, fileError(ctx, "watch", t.DisplayPath, err)
	}
	r, err := file(ctx, f, api.FSWatch, t.DisplayPath, f.at(t))
	w := &watch{f: f, id: r.WatchID, blind: r.Blind, shown: t.DisplayPath, changed: changed, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	started := c.started(w, err)
	if err != nil {
		c.unlisten()
		return nil, err
	}
	if !started {
		return nil, fileError(ctx, "watch", t.DisplayPath, c.Err())
	}
	w.unctx = context.AfterFunc(ctx, w.end)
	return w, nil
}

// listen makes sure that events come, and keeps those of watches until
// [Client.started].
func (c *Client) listen(ctx context.Context) error {
	c.watches.turn.Lock()
	defer c.watches.turn.Unlock()
	c.mu.Lock()
	c.watches.starting++
	need := c.sub == nil && !c.watches.listening
	if need {
		c.watches.listening = true
	}
	c.mu.Unlock()
	if !need {
		return nil
	}
	_, err := Do(ctx, c, api.EventsSubscribe, api.EventsSubscribeParams{Types: watchEvents})
	if err != nil {
		c.mu.Lock()
		c.watches.starting--
		c.watches.listening = false
		c.mu.Unlock()
	}
	return err
}

// unlisten ends the subscription when no watch is left that needs it.
func (c *Client) unlisten() {
	c.watches.turn.Lock()
	defer c.watches.turn.Unlock()
	c.mu.Lock()
	over := c.watches.listening && len(c.watches.byID) == 0 && c.watches.starting == 0
	c.mu.Unlock()
	if !over {
		return
	}
	_, _ = Do(context.Background(), c, api.EventsUnsubscribe, api.Empty{}) // the connection's error is kept elsewhere
	c.mu.Lock()
	c.watches.listening = false
	c.mu.Unlock()
}

// started makes a watch known, with what came for it meanwhile. It returns
// false when the connection is over.
func (c *Client) started(w *watch, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.watches
	s.starting--
	if err == nil && c.err == nil {
		if s.byID == nil {
			s.byID = map[string]*watch{}
		}
		s.byID[w.id] = w
		for _, e := range s.early {
			if id, ch, ok := changeOf(e); ok && id == w.id {
				w.add(ch)
			}
		}
		if s.lost {
			w.add(provider.Change{Kind: provider.Overflowed})
		}
		c.wg.Add(1) // under the lock: Close waits only after err is set
		go w.run()
	}
	if s.starting == 0 {
		s.early, s.lost = nil, false
	}
	return err == nil && c.err == nil
}

// watched gives an event to the watch that it is for. It runs on the reader
// and never waits.
func (c *Client) watched(e api.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.watches
	if len(s.byID) == 0 && s.starting == 0 {
		return
	}
	if e.Type == api.EventGap.Name {
		s.lost = s.starting > 0
		for _, w := range s.byID {
			w.add(provider.Change{Kind: provider.Overflowed})
		}
		return
	}
	id, ch, ok := changeOf(e)
	if !ok {
		return
	}
	if w := s.byID[id]; w != nil {
		w.add(ch)
	} else if s.starting > 0 {
		if len(s.early) < maxEarly {
			s.early = append(s.early, e)
		} else {
			s.lost = true
		}
	}
}

// changeOf reads an event of a watch.
func changeOf(e api.Event) (id string, ch provider.Change, ok bool) {
	switch e.Type {
	case api.EventWatchChanged.Name:
		d, err := api.EventWatchChanged.Decode(e)
		return d.WatchID, provider.Change{Kind: provider.Changed, Path: d.Path, Name: d.Name}, err == nil
	case api.EventWatchOverflow.Name:
		d, err := api.EventWatchOverflow.Decode(e)
		return d.WatchID, provider.Change{Kind: provider.Overflowed}, err == nil
	case api.EventWatchError.Name:
		d, err := api.EventWatchError.Decode(e)
		return d.WatchID, provider.Change{Kind: provider.WatchFailed,
			Err: &provider.Error{Code: provider.Code(d.Code), Op: "watch", Detail: d.Message}}, err == nil
	}
	return "", provider.Change{}, false
}

// add keeps a change until the callback is free, once for each name. Called
// with Client.mu held.
func (w *watch) add(ch provider.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return
	case ch.Kind == provider.Overflowed || len(w.pending) >= maxPending:
		w.overflow, w.pending = true, nil
	default:
		for _, p := range w.pending {
			if p.Kind == ch.Kind && p.Path == ch.Path && p.Name == ch.Name {
				return
			}
		}
		w.pending = append(w.pending, ch)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take is the next change to tell.
func (w *watch) take() (provider.Change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return provider.Change{}, false
	case w.overflow:
		w.overflow = false
		return provider.Change{Kind: provider.Overflowed, Path: w.shown}, true
	case len(w.pending) > 0:
		ch := w.pending[0]
		w.pending = w.pending[1:]
		if ch.Kind == provider.WatchFailed {
			ch.Path = w.shown
		}
		return ch, true
	}
	return provider.Change{}, false
}

// run calls back. It ends with the watch or, after a last word, with the
// connection.
func (w *watch) run() {
	defer w.f.c.wg.Done()
	for {
		for ch, ok := w.take(); ok; ch, ok = w.take() {
			w.changed(ch)
		}
		select {
		case <-w.wake:
		case <-w.gone:
			return
		case <-w.f.c.done:
			w.mu.Lock()
			closed := w.closed
			w.mu.Unlock()
			if err := w.f.c.Err(); !closed && !errors.Is(err, api.ErrClosed) {
				w.changed(provider.Change{Kind: provider.WatchFailed, Path: w.shown, Err: fileError(context.Background(), "watch", w.shown, err)})
			}
			return
		}
	}
}

// Blind implements [provider.Watch].
func (w *watch) Blind() string { return w.blind }

// Close implements [provider.Watch].
func (w *watch) Close() error {
	w.unctx()
	w.end()
	return nil
}

func (w *watch) end() {
	w.mu.Lock()
	again := w.closed
	w.closed, w.pending, w.overflow = true, nil, false
	w.mu.Unlock()
	if again {
		return
	}
	close(w.gone)
	c := w.f.c
	c.mu.Lock()
	delete(c.watches.byID, w.id)
	c.mu.Unlock()
	_, _ = Do(context.Background(), c, api.FSUnwatch, api.FSUnwatchParams{SessionID: w.f.session, WatchID: w.id})
	c.unlisten()
}
