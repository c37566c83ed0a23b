// Package queue is the bounded queue between those who speak on a connection
// and the one who writes it.
//
// # What it guarantees
//
//   - Order: what was accepted comes out in the order in which it went in.
//   - Bounds: replies and events have each a limit in bytes. One item that is
//     larger than its limit is accepted when no other of its kind is queued, so
//     the most that is held is the sum of the limits and of the two largest
//     items.
//   - A reply that was accepted is never dropped. One that does not fit is
//     refused, and the caller waits or gives the connection up.
//   - An event that does not fit is dropped behind a gap: the numbers of all
//     dropped events lie in [From, To] of a gap that comes out where they would
//     have. No event is lost in any other way.
//
// # What it does not do
//
// It has no lock and never waits: whoever owns it does both.
package queue

// Overhead is counted for every item besides its own size, so that a flood of
// tiny items is bounded too.
const Overhead = 64

// Kind tells what an item is.
type Kind int

const (
	Reply Kind = iota
	Event
	Gap
)

// Item is one thing to write.
type Item[T any] struct {
	Kind  Kind
	Value T   // of a Reply or an Event
	Size  int // without Overhead
	// From and To are the numbers of the first and last event that a Gap
	// stands for. An Event has its number in both, unless it tells of a gap
	// itself.
	From, To int64
}

// Queue is the queue. Make one with [New].
type Queue[T any] struct {
	maxReply, maxEvent     int
	replyBytes, eventBytes int
	replies, events        int // events: those queued, gaps not counted

	items []Item[T]
	head  int // of items: what is before it is out
	// gap is the place in items of the newest item of the event kinds, if that
	// is a gap that is still queued, and -1 otherwise: later drops widen it.
	gap int
}

// New makes a queue that holds about that many bytes of each kind.
func New[T any](replyBytes, eventBytes int) *Queue[T] {
	return &Queue[T]{maxReply: replyBytes, maxEvent: eventBytes, gap: -1}
}

// PushReply queues a reply, or returns false when there is no room for it now.
func (q *Queue[T]) PushReply(v T, size int) bool {
	if q.replies > 0 && q.replyBytes+size+Overhead > q.maxReply {
		return false
	}
	q.replies++
	q.replyBytes += size + Overhead
	q.push(Item[T]{Kind: Reply, Value: v, Size: size})
	return true
}

// TryEvent queues the event with the numbers from to to, which is one number
// for all but those that tell of a gap themselves. It returns false and changes
// nothing when there is no room for it now.
func (q *Queue[T]) TryEvent(v T, size int, from, to int64) bool {
	limit := q.maxEvent
	if q.gap >= 0 {
		// A reader that is behind gets half the queue empty before it is fed
		// again; otherwise gaps and single events would alternate.
		limit /= 2
	}
	if q.events > 0 && q.eventBytes+size+Overhead > limit {
		return false
	}
	q.gap = -1
	q.events++
	q.eventBytes += size + Overhead
	q.push(Item[T]{Kind: Event, Value: v, Size: size, From: from, To: to})
	return true
}

// PushEvent queues an event, or drops it behind a gap and returns false.
// Numbers must grow from call to call.
func (q *Queue[T]) PushEvent(v T, size int, from, to int64) bool {
	if q.TryEvent(v, size, from, to) {
		return true
	}
	if q.gap >= 0 {
		q.items[q.gap].To = to
		return false
	}
	// One gap at most follows each event, so gaps need no limit of their own.
	q.push(Item[T]{Kind: Gap, From: from, To: to})
	q.gap = len(q.items) - 1
	return false
}

// Pop takes the oldest item.
func (q *Queue[T]) Pop() (Item[T], bool) {
	if q.head == len(q.items) {
		return Item[T]{}, false
	}
	it := q.items[q.head]
	q.items[q.head] = Item[T]{}
	if q.gap == q.head {
		q.gap = -1
	}
	q.head++
	if q.head == len(q.items) {
		q.head = 0
		if cap(q.items) > 256 {
			q.items = nil // a burst must not be paid for ever
		} else {
			q.items = q.items[:0]
		}
	}
	switch it.Kind {
	case Reply:
		q.replies--
		q.replyBytes -= it.Size + Overhead
	case Event:
		q.events--
		q.eventBytes -= it.Size + Overhead
	}
	return it, true
}

// Len is the number of items, gaps included.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Bytes is what is counted at present, overhead included.
func (q *Queue[T]) Bytes() int { return q.replyBytes + q.eventBytes }

// Clear drops everything; for a connection that is given up.
func (q *Queue[T]) Clear() {
	*q = Queue[T]{maxReply: q.maxReply, maxEvent: q.maxEvent, gap: -1}
}

func (q *Queue[T]) push(it Item[T]) {
	if q.head > 64 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		if q.gap >= 0 {
			q.gap -= q.head
		}
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, it)
}
