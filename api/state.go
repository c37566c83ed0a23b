package api

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/api/internal/queue"
)

// state is all that changes in a connection. It is guarded by Conn.mu and
// changed by [Conn.update] only, which alone decides what follows from a
// change: that the writer must look, that a waiter has room, that it is over.
//
// Conn.mu is the innermost lock: nothing that is called with it held takes
// another one or blocks.
type state struct {
	ready    bool             // initialize has succeeded
	calls    map[string]*call // by idKey
	inFlight int              // calls and notifications that run
	bytes    int64            // of their parameters

	receiving bool // a batch is being taken apart; its answer is still to come

	q       *queue.Queue[[]byte]
	epoch   string        // of the events, for gaps
	room    chan struct{} // closed and renewed when the queue has shrunk and somebody waits
	waiting bool          // somebody waits for room

	pong    string
	pongDue bool
	pingDue bool

	end       *CloseError // why the connection ends; the first reason counts
	orderly   bool        // end lets calls and replies finish
	ended     bool        // what follows from end has been done
	by        time.Time   // an orderly end is over at this time
	late      bool        // that time has come
	lateTimer *time.Timer
	gone      bool // the writer has left: nothing will be written any more

	cancelCalls func()
}

// call is one call that runs.
type call struct {
	id     jsontext.Value // nil for a notification
	method string
	params jsontext.Value // a part of the frame; nil once decoded
	cancel context.CancelCauseFunc
	size   int64 // of what it holds, bytes
	isInit bool
	after  []func() // once the answer is queued
}

func (s *state) init(lim Limits) {
	s.calls = map[string]*call{}
	// The reply queue takes one largest reply, or many small ones.
	s.q = queue.New[[]byte](int(lim.MaxReplyBytes), int(lim.EventQueueBytes))
	s.room = make(chan struct{})
}

// fail ends the connection at once: nothing that is queued is written.
func (s *state) fail(e *CloseError) {
	if s.end == nil {
		s.end = e
	}
	s.orderly = false
}

// accepts tells whether new work is taken.
func (s *state) accepts() bool { return s.end == nil }

// writable tells whether what is queued now can still go out.
func (s *state) writable() bool { return !s.gone && (s.end == nil || s.orderly) }

// finished tells the writer that nothing is left to wait for.
func (s *state) finished() bool {
	return s.end != nil && (!s.orderly || s.inFlight == 0 && !s.receiving && s.q.Len() == 0 || s.late)
}

// work is what the writer does next.
type work struct {
	over    bool // say goodbye
	by      time.Time
	pong    string
	pongDue bool
	pingDue bool
	have    bool
	item    queue.Item[[]byte]
	epoch   string
}

// take hands the writer what is due.
func (s *state) take() work {
	w := work{pong: s.pong, pongDue: s.pongDue, pingDue: s.pingDue, epoch: s.epoch}
	s.pong, s.pongDue, s.pingDue = "", false, false
	w.item, w.have = s.q.Pop()
	if s.end != nil {
		w.by = s.by
		w.over = !w.have && s.finished()
	}
	return w
}

// mark is what the writer cares about.
type mark struct {
	queued, inFlight int
	due, ended       bool
	orderly, late    bool
}

func (s *state) mark() mark {
	return mark{s.q.Len(), s.inFlight, s.pongDue || s.pingDue, s.ended, s.orderly, s.late}
}

// news tells whether the writer must look: not for what it did itself.
func (m mark) news(was mark) bool {
	return m.queued > was.queued || m.due && !was.due || m.late != was.late ||
		m.ended && (!was.ended || m.inFlight < was.inFlight || m.orderly != was.orderly)
}

// update changes the state and draws the conclusions.
func (c *Conn) update(f func(*state)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.s
	was := s.mark()
	f(s)
	if s.end != nil && !s.ended {
		s.ended = true
		s.by = time.Now().Add(c.opt.CloseTimeout)
		s.lateTimer = time.AfterFunc(c.opt.CloseTimeout, func() { c.update(func(s *state) { s.late = true }) })
		close(c.done)
		if s.cancelCalls != nil {
			s.cancelCalls()
		}
		c.sock.CutWrites(s.by)
	}
	if !s.writable() {
		s.q.Clear()
	}
	if s.waiting && (s.q.Len() < was.queued || !s.writable()) {
		s.waiting = false
		close(s.room)
		s.room = make(chan struct{})
	}
	if s.mark().news(was) {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}
