package api

import (
	"context"
	"errors"
)

var errUnnumbered = errors.New("notify: an event without a number must be waited for")

// Notify queues an event and never waits: publishers may call it while they
// hold their own locks. When the reader is too far behind, the event is dropped
// behind a gap that the reader is told of. Numbers must grow from call to call,
// and the epoch be one for the life of the process.
//
// The error is [ErrClosed]; a dropped event is none. An event without a number
// cannot be named in a gap and is refused.
func (c *Conn) Notify(n *Notification) error {
	if n.seq == 0 {
		return errUnnumbered
	}
	var err error
	c.update(func(s *state) {
		if !s.writable() {
			err = ErrClosed
			return
		}
		s.epoch = n.epoch
		if !s.q.PushEvent(n.text, len(n.text), n.from, n.seq) {
			c.opt.Counters.EventsDropped.Add(1)
		}
	})
	return err
}

// NotifyWait queues an event and waits until there is room: for the replay of a
// log, and for streams that are held back by their reader. The error is
// [ErrClosed], or that of ctx; the event is then not queued.
func (c *Conn) NotifyWait(ctx context.Context, n *Notification) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sent := c.waitRoom(ctx, func(s *state) bool {
		s.epoch = n.epoch
		return s.q.TryEvent(n.text, len(n.text), n.from, n.seq)
	})
	if sent {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrClosed
}
