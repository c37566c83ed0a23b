package provider

import (
	"context"
	"errors"
	"sync"
)

// turns gives out one lock per key, first come first served. A key that nobody
// holds or waits for takes no memory; at most maxWaiting callers wait at once.
type turns struct {
	mu      sync.Mutex
	waiting int
	// held has an entry for each key that is locked: who waits for it, in
	// order. A waiter's channel has capacity 0 and is closed to hand the lock
	// over; the entry is removed with the last one.
	held map[string][]chan struct{}
}

// maxWaiting bounds the callers that wait for any lock: far above what the
// connections of a daemon can have in flight.
const maxWaiting = 1 << 14

var errTooManyWaiting = errors.New("too many calls wait for locks")

// lock waits for the key and returns what releases it, to be called once.
// Errors: the context's, or errTooManyWaiting.
func (t *turns) lock(ctx context.Context, key string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.held == nil {
		t.held = make(map[string][]chan struct{})
	}
	queue, locked := t.held[key]
	if !locked {
		t.held[key] = nil
		t.mu.Unlock()
		return func() { t.pass(key) }, nil
	}
	if t.waiting >= maxWaiting {
		t.mu.Unlock()
		return nil, errTooManyWaiting
	}
	t.waiting++
	turn := make(chan struct{})
	t.held[key] = append(queue, turn)
	t.mu.Unlock()

	select {
	case <-turn:
		return func() { t.pass(key) }, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	for i, w := range t.held[key] {
		if w == turn {
			q := t.held[key]
			t.held[key] = append(q[:i:i], q[i+1:]...)
			t.waiting--
			t.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	t.mu.Unlock()
	// The lock was handed over in the same moment: pass it on.
	t.pass(key)
	return nil, ctx.Err()
}

// pass hands the lock to the next in line, or frees the key.
func (t *turns) pass(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.held[key]
	if len(queue) == 0 {
		delete(t.held, key)
		return
	}
	t.waiting--
	t.held[key] = queue[1:]
	close(queue[0])
}
