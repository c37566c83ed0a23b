package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// A watch tells through the events of its session, lives through a turn's end,
// and is silent once it is over.
func TestWatchOnTheWire(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{Types: []string{"watch.changed", "watch.overflow", "watch.error", "turn.ended", "fs.changed", "session.closed"}})
	if err != nil {
		t.Fatal(err)
	}
	next := func() api.Event {
		t.Helper()
		e, err := sub.Next(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	s := h.open(c, fence.WorkspaceWrite)
	turn := do(h, c, api.TurnBegin, api.SessionRef{SessionID: s.SessionID})
	w := do(h, c, api.FSWatch, api.FileRef{SessionID: s.SessionID, Path: "."})
	changed := func(name string) {
		t.Helper()
		for {
			e := next()
			if e.Type != api.EventWatchChanged.Name {
				continue
			}
			d, err := api.EventWatchChanged.Decode(e)
			if err != nil || d.WatchID != w.WatchID || e.SessionID != s.SessionID || e.Seq == 0 {
				t.Fatalf("%+v, %v", e, err)
			}
			if d.Name == name {
				return
			}
		}
	}
	if err := os.WriteFile(filepath.Join(h.ws, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	changed("a")
	do(h, c, api.TurnEnd, api.TurnEndParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, TurnID: turn.TurnID, Outcome: api.TurnCompleted})
	do(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "b"}, Content: "x"})
	changed("b")

	// After unwatch nothing of it comes; the write at the end marks the place.
	do(h, c, api.FSUnwatch, api.FSUnwatchParams{SessionID: s.SessionID, WatchID: w.WatchID})
	if err := os.WriteFile(filepath.Join(h.ws, "c"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	do(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "d"}, Content: "x"})
	for e := next(); ; e = next() {
		if d, err := api.EventWatchChanged.Decode(e); err == nil && (d.Name == "c" || d.Name == "d") {
			t.Errorf("told after unwatch: %+v", d)
		}
		if d, err := api.EventFSChanged.Decode(e); err == nil && filepath.Base(d.Path) == "d" {
			break
		}
	}
	refused(h, c, api.FSUnwatch, api.FSUnwatchParams{SessionID: s.SessionID, WatchID: w.WatchID}, api.CodeWatchNotFound)

	// Another session's watch is not mine to end, and the end of a session is
	// its last event.
	w = do(h, c, api.FSWatch, api.FileRef{SessionID: s.SessionID, Path: "a"})
	other := h.open(c, fence.WorkspaceWrite)
	refused(h, c, api.FSUnwatch, api.FSUnwatchParams{SessionID: other.SessionID, WatchID: w.WatchID}, api.CodeWatchNotFound)
	do(h, c, api.SessionClose, api.SessionRef{SessionID: s.SessionID})
	for e := next(); e.Type != api.EventSessionClosed.Name; e = next() {
	}
	do(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: other.SessionID, Path: "a"}, Content: "x"})
	for e := next(); ; e = next() {
		if e.SessionID == s.SessionID {
			t.Errorf("after the end of its session: %+v", e)
		}
		if e.Type == api.EventFSChanged.Name {
			break
		}
	}
}

// What is hidden cannot be watched, and a session has a limit.
func TestWatchesAreRefused(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	ref := func(path string) api.FileRef { return api.FileRef{SessionID: s.SessionID, Path: path} }
	refused(h, c, api.FSWatch, ref(filepath.Join(h.home, ".ssh", "id_ed25519")), fence.CodeSandboxDenied)
	var last api.FSWatchResult
	for range 256 {
		last = do(h, c, api.FSWatch, ref("."))
	}
	refused(h, c, api.FSWatch, ref("."), api.CodeWatchLimit)
	do(h, c, api.FSUnwatch, api.FSUnwatchParams{SessionID: s.SessionID, WatchID: last.WatchID})
	do(h, c, api.FSWatch, ref("."))
	do(h, c, api.SessionClose, api.SessionRef{SessionID: s.SessionID})
}

// The client's watches need no subscription of the application, keep to their
// own files, and tell when the connection is lost.
func TestClientWatches(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	files := client.NewFiles(c, s.SessionID)
	watch := func(name string) (provider.Watch, chan provider.Change) {
		t.Helper()
		told := make(chan provider.Change, 1000)
		w, err := files.Watch(h.ctx(), h.target(c, s.SessionID, name), func(ch provider.Change) { told <- ch })
		if err != nil {
			t.Fatal(err)
		}
		return w, told
	}
	w1, a := watch("a")
	_, b := watch("b")
	if _, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{}); !errors.Is(err, client.ErrWatching) {
		t.Errorf("%v", err)
	}
	for name, told := range map[string]chan provider.Change{"a": a, "b": b} {
		if err := os.WriteFile(filepath.Join(h.ws, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		select {
		case ch := <-told:
			if ch.Kind != provider.Changed || filepath.Base(ch.Path) != name {
				t.Errorf("%s: %+v", name, ch)
			}
		case <-h.ctx().Done():
			t.Fatalf("%s is not told", name)
		}
	}
	_ = w1.Close()
	_ = w1.Close()
	h.kill()
	for {
		select {
		case ch := <-b:
			if ch.Kind != provider.WatchFailed {
				continue
			}
			if provider.CodeOf(ch.Err) != provider.CodeIOError {
				t.Errorf("%+v", ch)
			}
		case <-h.ctx().Done():
			t.Fatal("the loss of the connection is not told")
		}
		break
	}
	for len(a) > 0 {
		if ch := <-a; ch.Kind == provider.WatchFailed {
			t.Errorf("a watch that was closed is told of the end: %+v", ch)
		}
	}
}
