package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/internal/queue"
)

// Subscription delivers events. One goroutine takes them with
// [Subscription.Next].
type Subscription struct {
	client *Client
	// Start is the place of the stream where the subscription began; set before
	// Subscribe returns.
	Start api.Place

	wake chan struct{} // capacity 1
	over chan struct{} // closed when no more events come

	mu    sync.Mutex
	q     *queue.Queue[api.Event]
	epoch string
	ended bool
}

// ErrUnsubscribed is returned by Next after [Subscription.Close].
var ErrUnsubscribed = errors.New("unsubscribed")

// ErrSubscribed means that this connection has a subscription already.
var ErrSubscribed = errors.New("this connection has a subscription already")

// ErrWatching means that [Files.Watch] has this connection's subscription.
var ErrWatching = errors.New("the events of this connection go to its watches; subscribe before the first watch, or on another connection")

// Subscribe begins to deliver events. A connection has one subscription at a
// time. When the connection is lost, dial again and subscribe after the last
// event that came.
func (c *Client) Subscribe(ctx context.Context, p api.EventsSubscribeParams) (*Subscription, error) {
	s := &Subscription{
		client: c,
		wake:   make(chan struct{}, 1), over: make(chan struct{}),
		q: queue.New[api.Event](0, c.opt.EventQueueBytes),
	}
	// Before the call: events may come before its reply.
	c.mu.Lock()
	switch {
	case c.err != nil:
		defer c.mu.Unlock()
		return nil, c.err
	case c.sub != nil:
		defer c.mu.Unlock()
		return nil, ErrSubscribed
	case c.watches.listening:
		defer c.mu.Unlock()
		return nil, ErrWatching
	}
	c.sub = s
	c.mu.Unlock()
	r, err := Do(ctx, c, api.EventsSubscribe, p)
	if err != nil {
		c.drop(s)
		return nil, err
	}
	s.Start = r.Place
	return s, nil
}

// Next returns the next event, waiting for it. An event of type gap stands for
// events that are missing; it comes from the daemon, or from here when Next was
// called too rarely. After the end, what is queued is still delivered, then
// comes the error: the connection's, [ErrUnsubscribed], or that of ctx.
func (s *Subscription) Next(ctx context.Context) (api.Event, error) {
	for {
		if e, ok := s.take(); ok {
			return e, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return api.Event{}, context.Cause(ctx)
		case <-s.over:
			if e, ok := s.take(); ok {
				return e, nil
			}
			if err := s.client.Err(); err != nil {
				return api.Event{}, err
			}
			return api.Event{}, ErrUnsubscribed
		}
	}
}

func (s *Subscription) take() (api.Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.q.Pop()
	if !ok {
		return api.Event{}, false
	}
	if it.Kind == queue.Gap {
		e, err := api.EventGap.New("", "", api.GapData{From: it.From, To: it.To, Reason: api.GapSlow})
		if err != nil {
			panic("encode gap: " + err.Error()) // three numbers and a constant always encode
		}
		e.Epoch, e.Seq, e.Time = s.epoch, it.To, time.Now().UTC()
		return e, true
	}
	return it.Value, true
}

// Close ends the subscription, and tells the daemon.
func (s *Subscription) Close(ctx context.Context) error {
	s.client.drop(s)
	_, err := Do(ctx, s.client, api.EventsUnsubscribe, api.Empty{})
	return err
}

func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.over)
	}
}

func (c *Client) drop(s *Subscription) {
	c.mu.Lock()
	if c.sub == s {
		c.sub = nil
	}
	c.mu.Unlock()
	s.end()
}

// publish queues an event; it runs on the reader and never waits.
func (c *Client) publish(e api.Event, size int) {
	if e.Seq == 0 {
		c.streamed(e)
		return
	}
	c.watched(e)
	c.mu.Lock()
	s := c.sub
	c.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	s.epoch = e.Epoch
	s.q.PushEvent(e, size, e.FirstNumber(), e.Seq)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
