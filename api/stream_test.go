package api_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/api"
)

func event(tb testing.TB, seq int64, size int) *api.Notification {
	tb.Helper()
	e := api.Event{Epoch: "e", Seq: seq, Time: time.Unix(0, seq), Type: "process.output",
		Data: jsontext.Value(`{"pad":"` + strings.Repeat("x", size) + `"}`)}
	n, err := api.EncodeEvent(e)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// follow reads events until one has the number last or a gap ends there, and
// checks that each number comes once, in order, or in one gap.
func follow(tb testing.TB, p *peer, last int64) (events, gaps int) {
	tb.Helper()
	covered := int64(0)
	for covered < last {
		var m struct {
			Params api.Event `json:"params"`
		}
		if err := json.Unmarshal([]byte(p.recv()), &m); err != nil {
			tb.Fatal(err)
		}
		e := m.Params
		if e.Type != api.EventGap.Name {
			if events++; e.Seq != covered+1 {
				tb.Fatalf("event %d came after %d", e.Seq, covered)
			}
			covered = e.Seq
			continue
		}
		gaps++
		g, err := api.EventGap.Decode(e)
		if err != nil || g.From != covered+1 || g.To < g.From || e.Seq != g.To || g.Reason != api.GapSlow || e.Epoch != "e" {
			tb.Fatalf("gap %+v in %+v came after %d: %v", g, e, covered, err)
		}
		covered = g.To
	}
	return events, gaps
}

// A reader that stops reading gets a gap, costs what the limit says, and blocks
// neither the publisher nor the readers beside it.
func TestSlowReader(t *testing.T) {
	s := serve(t, newDesk(), api.Options{Limits: api.Limits{EventQueueBytes: 256 << 10}, WriteTimeout: time.Minute})
	slow := s.open(t)
	slowConn := <-s.conns
	const readers, last = 3, 4_000
	var quick []*peer
	var conns []*api.Conn
	for range readers {
		quick = append(quick, s.open(t))
		conns = append(conns, <-s.conns)
	}
	var wg sync.WaitGroup
	for i, p := range quick {
		wg.Go(func() {
			if events, gaps := follow(t, p, last); events+gaps == 0 {
				t.Errorf("reader %d got nothing", i)
			}
		})
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for seq := int64(1); seq <= last; seq++ {
		n := event(t, seq, 1000)
		if err := slowConn.Notify(n); err != nil {
			t.Fatal(err)
		}
		for _, c := range conns {
			if err := c.Notify(n); err != nil {
				t.Fatal(err)
			}
		}
	}
	wg.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes are held for a reader that does not read", grown)
	}
	// The call beside the stream is answered, and what was missed is named.
	quick[0].send(`{"jsonrpc":"2.0","id":1,` + read + `}`)
	if got := quick[0].recv(); got != resultOf("1") {
		t.Fatal(got)
	}
	if events, gaps := follow(t, slow, last); gaps == 0 || events == 0 || s.count.EventsDropped.Load() < 2_000 {
		t.Errorf("%d events and %d gaps, %d dropped", events, gaps, s.count.EventsDropped.Load())
	}
	slow.send(`{"jsonrpc":"2.0","id":1,` + read + `}`)
	if got := slow.recv(); got != resultOf("1") {
		t.Fatal(got)
	}
}

// One that never reads again is closed after the write timeout.
func TestReaderThatNeverReads(t *testing.T) {
	s := serve(t, newDesk(), api.Options{WriteTimeout: 50 * time.Millisecond})
	s.open(t)
	c := <-s.conns
	for seq := int64(1); ; seq++ {
		if err := c.Notify(event(t, seq, 10_000)); err != nil {
			if !errors.Is(err, api.ErrClosed) {
				t.Fatal(err)
			}
			break
		}
	}
	select {
	case err := <-s.ended:
		var ce *api.CloseError
		if !errors.As(err, &ce) || ce.Code != api.CloseAbnormal {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the connection did not end")
	}
}

// Replies that are not read hold their slots; the memory they take is bounded
// and none of them is lost.
func TestRepliesThatAreNotRead(t *testing.T) {
	const size = 100_000
	s := serve(t, newDesk(), api.Options{WriteTimeout: time.Minute, Limits: api.Limits{MaxReplyBytes: 250_000, MaxInFlight: 8}})
	p := s.open(t)
	call := `{"jsonrpc":"2.0","id":%d,"method":"fs/readText","params":{"sessionId":"s","path":"` + strings.Repeat("x", size) + `"}}`
	sent := 0
	for ; s.count.Busy.Load() == 0; sent++ {
		p.send(fmt.Sprintf(call, sent))
		// One at a time: either it is answered, or it waits in its slot.
		n := int64(sent + 1)
		until(t, "call", func() bool { return s.count.Calls.Load()+s.count.Busy.Load() >= n+1 })
	}
	p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":0}}`) // the reader still listens
	results := map[string]bool{}
	busy := 0
	for range sent {
		got := p.recv()
		switch {
		case strings.Contains(got, `"code":"BUSY"`):
			busy++
		case strings.Contains(got, `"result"`) && len(got) > size:
			results[got[:40]] = true
		default:
			t.Fatalf("%.200s", got)
		}
	}
	if len(results)+busy != sent || busy == 0 {
		t.Fatalf("%d results and %d refusals for %d calls", len(results), busy, sent)
	}
}

// A peer that only talks, and never reads the refusals, is told to come back
// later.
func TestRefusalsThatAreNotRead(t *testing.T) {
	s := serve(t, newDesk(), api.Options{WriteTimeout: time.Minute, CloseTimeout: 10 * time.Second, Limits: api.Limits{MaxReplyBytes: 10_000}})
	p := s.open(t)
	c := <-s.conns
	written := make(chan struct{})
	go func() {
		defer close(written)
		for {
			select {
			case <-c.Done():
				return
			default:
				if p.ws.WriteMessage(1, []byte(`nonsense`)) != nil {
					return
				}
			}
		}
	}()
	wait(t, "end", c.Done())
	wait(t, "last write", written)
	if code := p.closed(); code != api.CloseSlow {
		t.Fatalf("closed with %d", code)
	}
	if n := s.count.SlowClosed.Load(); n != 1 {
		t.Fatalf("%d were counted", n)
	}
}

// A replay waits for its reader instead of dropping.
func TestNotifyWait(t *testing.T) {
	s := serve(t, newDesk(), api.Options{WriteTimeout: time.Minute, Limits: api.Limits{EventQueueBytes: 100_000}})
	p := s.open(t)
	c := <-s.conns
	const last = 2000
	done := make(chan error, 1)
	go func() {
		for seq := int64(1); seq <= last; seq++ {
			if err := c.NotifyWait(context.Background(), event(t, seq, 1000)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	if events, gaps := follow(t, p, last); gaps != 0 || events != last {
		t.Fatalf("%d events, %d gaps", events, gaps)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	// It ends with its context and with the connection.
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.NotifyWait(gone, event(t, last+1, 1)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		for seq := int64(last + 1); ; seq++ {
			if err := c.NotifyWait(context.Background(), event(t, seq, 1000)); err != nil {
				waiting <- err
				return
			}
		}
	}()
	p.ws.NetConn().Close()
	if err := <-waiting; !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
}

// Publishers on many goroutines, a log that numbers under its own lock.
func TestPublishersKeepOrder(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	p := s.open(t)
	c := <-s.conns
	const publishers, each = 8, 500
	var log sync.Mutex
	var seq int64
	var wg sync.WaitGroup
	for range publishers {
		wg.Go(func() {
			for range each {
				log.Lock()
				seq++
				err := c.Notify(event(t, seq, 10))
				log.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	follow(t, p, publishers*each)
	wg.Wait()
}

func TestEventsHaveAPlace(t *testing.T) {
	for _, e := range []api.Event{{Seq: 1, Type: "x"}, {Epoch: "e", Type: "x"}, {Epoch: "e", Seq: -1, Type: "x"}} {
		if n, err := api.EncodeEvent(e); err == nil {
			t.Errorf("%+v became %+v", e, n)
		}
	}
	e, err := api.EventTurnBegan.New("s", "t", api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	e.Epoch, e.Seq, e.Time = "e", 3, time.Date(2026, 11, 30, 12, 0, 0, 5, time.FixedZone("x", 3600))
	n, err := api.EncodeEvent(e)
	if err != nil || n.Seq() != 3 {
		t.Fatal(n, err)
	}
	if _, err := api.EventTurnEnded.Decode(e); err == nil {
		t.Error("one type was decoded as another")
	}
}
