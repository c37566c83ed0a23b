package queue_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/api/internal/queue"
)

// Any interleaving of replies, events and reads gives each event once and in
// order or one gap that covers it, and every accepted reply in order.
func TestAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxReply := rapid.IntRange(0, 2000).Draw(t, "maxReply")
		maxEvent := rapid.IntRange(0, 2000).Draw(t, "maxEvent")
		q := queue.New[int64](maxReply, maxEvent)

		var seq, waited int64
		var replies []int64 // accepted, not yet out
		var nextReply int64
		covered := int64(0) // every event up to this number is out or in a gap that is out
		largest := map[queue.Kind]int{}

		take := func() bool {
			it, ok := q.Pop()
			if !ok {
				return false
			}
			switch it.Kind {
			case queue.Reply:
				if len(replies) == 0 || replies[0] != it.Value {
					t.Fatalf("reply %d came out, want the first of %v", it.Value, replies)
				}
				replies = replies[1:]
			case queue.Event:
				if it.From != covered+1 || it.To != it.Value {
					t.Fatalf("event %d to %d came out after %d", it.From, it.Value, covered)
				}
				covered = it.Value
			case queue.Gap:
				if it.From != covered+1 || it.To < it.From {
					t.Fatalf("gap [%d, %d] came out after %d", it.From, it.To, covered)
				}
				covered = it.To
			}
			return true
		}

		t.Repeat(map[string]func(*rapid.T){
			"reply": func(t *rapid.T) {
				size := rapid.IntRange(0, 1500).Draw(t, "size")
				was := q.Len()
				if q.PushReply(nextReply, size) {
					replies = append(replies, nextReply)
					largest[queue.Reply] = max(largest[queue.Reply], size+queue.Overhead)
				} else if q.Len() != was {
					t.Fatal("a refused reply changed the queue")
				}
				nextReply++
			},
			"event": func(t *rapid.T) {
				size := rapid.IntRange(0, 1500).Draw(t, "size")
				from := seq + 1
				seq += rapid.Int64Range(1, 3).Draw(t, "numbers")
				if q.PushEvent(seq, size, from, seq) {
					largest[queue.Event] = max(largest[queue.Event], size+queue.Overhead)
				}
			},
			"waiting event": func(t *rapid.T) {
				size := rapid.IntRange(0, 1500).Draw(t, "size")
				was, bytes := q.Len(), q.Bytes()
				if q.TryEvent(seq+1, size, seq+1, seq+1) {
					seq++
					largest[queue.Event] = max(largest[queue.Event], size+queue.Overhead)
				} else {
					waited++
					if q.Len() != was || q.Bytes() != bytes {
						t.Fatal("a waiting event changed the queue")
					}
				}
			},
			"take": func(t *rapid.T) { take() },
			"take many": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					if !take() {
						break
					}
				}
			},
			"": func(t *rapid.T) {
				if b, most := q.Bytes(), maxReply+maxEvent+largest[queue.Reply]+largest[queue.Event]; b < 0 || b > most {
					t.Fatalf("%d bytes held, at most %d are allowed", b, most)
				}
				// Gaps have no limit of their own: one at most before, between
				// and behind the events that are queued.
				if n := q.Len(); n > 2*(q.Bytes()/queue.Overhead)+1 {
					t.Fatalf("%d items in %d bytes", n, q.Bytes())
				}
			},
		})
		for take() {
		}
		if covered != seq {
			t.Fatalf("events up to %d came out, %d were published", covered, seq)
		}
		if len(replies) != 0 {
			t.Fatalf("replies %v never came out", replies)
		}
		if q.Bytes() != 0 || q.Len() != 0 {
			t.Fatalf("an empty queue counts %d bytes, %d items", q.Bytes(), q.Len())
		}
	})
}

func TestReaderThatNeverReads(t *testing.T) {
	q := queue.New[int](1000, 10_000)
	for i := 1; i <= 1_000_000; i++ {
		q.PushEvent(i, 100, int64(i), int64(i))
	}
	if q.Bytes() > 10_000 || q.Len() > 10_000/(100+queue.Overhead)+1 {
		t.Fatalf("%d bytes and %d items are held", q.Bytes(), q.Len())
	}
	var last queue.Item[int]
	for it, ok := q.Pop(); ok; it, ok = q.Pop() {
		last = it
	}
	if last.Kind != queue.Gap || last.To != 1_000_000 {
		t.Fatalf("the last item is %+v, want a gap up to the last event", last)
	}
}

func TestClear(t *testing.T) {
	q := queue.New[int](1000, 1000)
	q.PushReply(1, 10)
	q.PushEvent(2, 5000, 1, 1)
	q.PushEvent(3, 10, 2, 2)
	q.Clear()
	if it, ok := q.Pop(); ok || q.Bytes() != 0 {
		t.Fatalf("%+v is left, %d bytes", it, q.Bytes())
	}
	if !q.PushReply(4, 900) || q.PushReply(5, 900) {
		t.Fatal("the limits are gone")
	}
}
