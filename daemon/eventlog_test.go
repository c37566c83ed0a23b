package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
)

// heard collects what a subscriber is sent. It may be told to stop after some
// events, as a connection that is lost.
type heard struct {
	mu     sync.Mutex
	events []api.Event
	left   int // how many more are taken; -1 any number
	upTo   int64
	done   chan struct{} // closed when event upTo, or a gap up to it, has come
}

func newHeard(left int, upTo int64) *heard {
	return &heard{left: left, upTo: upTo, done: make(chan struct{})}
}

func (h *heard) NotifyWait(ctx context.Context, n *api.Notification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.left == 0 {
		return api.ErrClosed
	}
	h.left--
	e := decode(n)
	h.events = append(h.events, e)
	if e.Seq >= h.upTo {
		select {
		case <-h.done:
		default:
			close(h.done)
		}
	}
	return nil
}

// decode reads a notification back as a client does.
func decode(n *api.Notification) api.Event {
	var env struct {
		Params api.Event `json:"params"`
	}
	if err := json.Unmarshal(n.Text(), &env); err != nil {
		panic(err)
	}
	return env.Params
}

func mark(session string, i int) api.Event {
	e, err := api.EventScratchWritten.New(session, "", scratch.Written{Path: "f", Bytes: int64(i)})
	if err != nil {
		panic(err)
	}
	return e
}

func output(session string, size int) api.Event {
	e, err := api.EventProcessOutput.New(session, "", api.ProcessOutputData{ProcessID: "p", Chunk: sandbox.Chunk{Seq: 1, Stream: sandbox.Stdout, Data: []byte(strings.Repeat("x", size))}})
	if err != nil {
		panic(err)
	}
	return e
}

// Any interleaving of publishing, losing the connection and going on after the
// last number gives each wanted event once and in order, or a gap that covers
// it. facts/conventions section 10, proof.
func TestEventsOnceOrInAGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := daemon.NewLog(rapid.IntRange(600, 6000).Draw(t, "bytes"), rapid.IntRange(400, 3000).Draw(t, "output"))
		filter := daemon.Filter{Session: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "session")}
		if rapid.Bool().Draw(t, "typed") {
			filter.Types = []string{api.EventScratchWritten.Name}
		}
		wanted := map[int64]bool{}
		place := log.Place()
		var got []api.Event
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for i := range rapid.IntRange(0, 25).Draw(t, "publish") {
				session := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of")
				e := mark(session, i)
				if rapid.Bool().Draw(t, "isOutput") {
					e = output(session, rapid.IntRange(0, 600).Draw(t, "size"))
				}
				log.Publish(e)
				seq := log.Place().Seq
				if (filter.Session == "" || filter.Session == session) && (filter.Types == nil || e.Type == filter.Types[0]) {
					wanted[seq] = true
				}
			}
			h := newHeard(rapid.IntRange(0, 20).Draw(t, "take"), 1<<62)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = log.Follow(ctx, place, filter, h) }()
			for !daemon.Followed(log) {
				h.mu.Lock()
				full := h.left == 0
				h.mu.Unlock()
				if full {
					break
				}
			}
			cancel()
			<-ended
			got = append(got, h.events...)
			if n := len(h.events); n > 0 {
				place = api.Place{Epoch: log.Epoch(), Seq: h.events[n-1].Seq}
			}
		}
		// The rest, to the end.
		last := log.Place().Seq
		h := newHeard(-1, last)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = log.Follow(ctx, place, filter, h) }()
		for !daemon.Followed(log) {
		}
		cancel()
		<-ended
		got = append(got, h.events...)

		seen := map[int64]int{}
		prev := int64(0)
		for _, e := range got {
			if e.Seq <= prev {
				t.Fatalf("event %d came after %d", e.Seq, prev)
			}
			prev = e.Seq
			if e.Type != api.EventGap.Name {
				seen[e.Seq]++
				if !wanted[e.Seq] {
					t.Fatalf("event %d (%s of %s) was not asked for", e.Seq, e.Type, e.SessionID)
				}
				continue
			}
			g, err := api.EventGap.Decode(e)
			if err != nil {
				t.Fatal(err)
			}
			for s := g.From; s <= g.To; s++ {
				seen[s]++
			}
		}
		for s := range wanted {
			if seen[s] != 1 {
				t.Fatalf("event %d came %d times, or was in as many gaps", s, seen[s])
			}
		}
	})
}

// Events of another life of the daemon are not known: what this one holds
// comes behind a gap that says so.
func TestEventsOfAnotherEpoch(t *testing.T) {
	log := daemon.NewLog(0, 0)
	for i := range 3 {
		log.Publish(mark("a", i))
	}
	for _, after := range []api.Place{{Epoch: "another", Seq: 2}, {Epoch: log.Epoch(), Seq: 99}} {
		h := newHeard(-1, log.Place().Seq)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _ = log.Follow(ctx, after, daemon.Filter{}, h) }()
		<-h.done
		cancel()
		if len(h.events) != 4 || h.events[0].Type != api.EventGap.Name {
			t.Fatalf("after %+v came %v", after, h.events)
		}
		g, err := api.EventGap.Decode(h.events[0])
		if err != nil || g.Reason != api.GapEpoch {
			t.Fatalf("gap %+v, %v", g, err)
		}
	}
}

// One noisy command cannot push the events of others out of the log.
func TestOutputHasItsShareOnly(t *testing.T) {
	log := daemon.NewLog(1<<20, 64<<10)
	log.Publish(mark("quiet", 1))
	for range 5000 {
		log.Publish(output("noisy", 1000))
	}
	log.Publish(mark("quiet", 2))
	h := newHeard(-1, log.Place().Seq)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = log.Follow(ctx, api.Place{Epoch: log.Epoch(), Seq: 1}, daemon.Filter{Session: "quiet"}, h) }()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.events) != 2 {
		t.Fatalf("of the quiet session came %d events, not 2: %v", len(h.events), h.events)
	}
	if b := log.Bytes(); b > 1<<20 {
		t.Fatalf("the log holds %d bytes", b)
	}
}

// Subscribers that do not read hold nobody up and get a gap in the end.
func TestSlowSubscriberHoldsNobody(t *testing.T) {
	log := daemon.NewLog(64<<10, 0)
	stuck := make(chan struct{})
	slow := sinkFunc(func(ctx context.Context, _ *api.Notification) error {
		select {
		case <-stuck:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 50 {
		go func() { _ = log.Follow(ctx, api.Place{Epoch: log.Epoch(), Seq: 1}, daemon.Filter{}, slow) }()
	}
	const n = 20000
	fast := newHeard(-1, n+1)
	go func() { _ = log.Follow(ctx, api.Place{Epoch: log.Epoch(), Seq: 1}, daemon.Filter{}, fast) }()
	for i := range n {
		log.Publish(mark("a", i))
	}
	<-fast.done
	if b := log.Bytes(); b > 64<<10 {
		t.Fatalf("the log holds %d bytes", b)
	}
}

type sinkFunc func(context.Context, *api.Notification) error

func (f sinkFunc) NotifyWait(ctx context.Context, n *api.Notification) error { return f(ctx, n) }

func BenchmarkPublish(b *testing.B) {
	for _, subscribers := range []int{0, 100} {
		b.Run(fmt.Sprintf("subscribers=%d", subscribers), func(b *testing.B) {
			log := daemon.NewLog(0, 0)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range subscribers {
				go func() {
					_ = log.Follow(ctx, log.Place(), daemon.Filter{}, sinkFunc(func(context.Context, *api.Notification) error { return nil }))
				}()
			}
			e := mark("a", 1)
			for b.Loop() {
				log.Publish(e)
			}
		})
	}
}
