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
	// stands for. An Event has its number in both.
	From, To int64
}

// Queue is the queue. The zero Queue accepts one reply and one event at a time;
// make one with [New].
type Queue[T any] struct {
	maxReply, maxEvent     int
	replyBytes, eventBytes int
	replies, events        int // events: those queued, gaps not counted

	items []*Item[T]
	head  int
	// gap is the newest item of the event kinds, if that is a gap that is still
	// queued: later drops widen it.
	gap *Item[T]
}

// New makes a queue that holds about that many bytes of each kind.
func New[T any](replyBytes, eventBytes int) *Queue[T] {
	return &Queue[T]{maxReply: replyBytes, maxEvent: eventBytes}
}

// PushReply queues a reply, or returns false when there is no room for it now.
func (q *Queue[T]) PushReply(v T, size int) bool {
	if q.replies > 0 && q.replyBytes+size+Overhead > q.maxReply {
		return false
	}
	q.replies++
	q.replyBytes += size + Overhead
	q.push(&Item[T]{Kind: Reply, Value: v, Size: size})
	return true
}

// TryEvent queues event seq, or returns false and changes nothing when there
// is no room for it now.
func (q *Queue[T]) TryEvent(v T, size int, seq int64) bool {
	limit := q.maxEvent
	if q.gap != nil {
		// A reader that is behind gets half the queue empty before it is fed
		// again; otherwise gaps and single events would alternate.
		limit /= 2
	}
	if q.events > 0 && q.eventBytes+size+Overhead > limit {
		return false
	}
	q.gap = nil
	q.events++
	q.eventBytes += size + Overhead
	q.push(&Item[T]{Kind: Event, Value: v, Size: size, From: seq, To: seq})
	return true
}

// PushEvent queues event seq, or drops it behind a gap and returns false.
// Numbers must grow from call to call.
func (q *Queue[T]) PushEvent(v T, size int, seq int64) bool {
	if q.TryEvent(v, size, seq) {
		return true
	}
	if q.gap != nil {
		q.gap.To = seq
		return false
	}
	// One gap at most follows each event, so gaps need no limit of their own.
	q.gap = &Item[T]{Kind: Gap, From: seq, To: seq}
	q.push(q.gap)
	return false
}

// Pop takes the oldest item.
func (q *Queue[T]) Pop() (Item[T], bool) {
	if q.head == len(q.items) {
		return Item[T]{}, false
	}
	it := q.items[q.head]
	q.items[q.head] = nil
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
	case Gap:
		if q.gap == it {
			q.gap = nil
		}
	}
	return *it, true
}

// Len is the number of items, gaps included.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Bytes is what is counted at present, overhead included.
func (q *Queue[T]) Bytes() int { return q.replyBytes + q.eventBytes }

// Clear drops everything; for a connection that is given up.
func (q *Queue[T]) Clear() {
	*q = Queue[T]{maxReply: q.maxReply, maxEvent: q.maxEvent}
}

func (q *Queue[T]) push(it *Item[T]) {
	if q.head > 64 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, it)
}
