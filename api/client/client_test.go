package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/scratch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

var who = api.Implementation{Name: "test", Version: "0"}

// world is a daemon that serves what these tests need, on a real socket.
type world struct {
	path    string
	mux     *api.Mux
	conns   chan *api.Conn
	stop    func()
	refuse  atomic.Int64 // a status of HTTP, or 0
	waiting chan struct{}
	causes  chan error
	writes  atomic.Int64
	opt     api.Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "wattle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{
		path: filepath.Join(dir, "s"), mux: api.NewMux(), conns: make(chan *api.Conn, 100),
		waiting: make(chan struct{}, 100), causes: make(chan error, 100),
	}
	api.On(w.mux, api.Initialize, func(_ context.Context, r *api.Request, _ *api.InitializeParams) (api.InitializeResult, error) {
		return api.InitializeResult{ProtocolVersion: api.ProtocolVersion, Epoch: "e", Limits: r.Conn.Limits()}, nil
	})
	api.On(w.mux, api.FSReadText, func(_ context.Context, _ *api.Request, p *api.FSReadTextParams) (provider.TextContent, error) {
		return provider.TextContent{Text: p.Path, Version: "v"}, nil
	})
	api.On(w.mux, api.FSStat, func(context.Context, *api.Request, *api.FileRef) (*provider.Info, error) { return nil, nil })
	api.On(w.mux, api.FSWriteText, func(_ context.Context, _ *api.Request, p *api.FSWriteTextParams) (provider.WriteOutcome, error) {
		w.writes.Add(1)
		return provider.WriteOutcome{}, &fence.Denial{Code: fence.CodeSandboxDenied, Path: "/etc/x", Access: fence.Create,
			Mode: fence.WorkspaceWrite, Rule: fence.RuleOutside, Verdict: fence.VerdictFence, Evidence: fence.EvidenceDecision}
	})
	api.On(w.mux, api.SessionClose, func(ctx context.Context, _ *api.Request, _ *api.SessionRef) (api.Empty, error) {
		w.waiting <- struct{}{}
		<-ctx.Done()
		w.causes <- context.Cause(ctx)
		return api.Empty{}, ctx.Err()
	})
	api.On(w.mux, api.EventsSubscribe, func(_ context.Context, _ *api.Request, p *api.EventsSubscribeParams) (api.EventsSubscribeResult, error) {
		if p.SessionID == "none" {
			return api.EventsSubscribeResult{}, api.NewError(api.CodeSessionNotFound, "subscribe: no such session")
		}
		return api.EventsSubscribeResult{Place: api.Place{Epoch: "e", Seq: 0}}, nil
	})
	api.On(w.mux, api.EventsUnsubscribe, func(context.Context, *api.Request, *api.Empty) (api.Empty, error) { return api.Empty{}, nil })
	return w
}

// options of the daemon's connections.
var quickPings = api.Options{PingInterval: 20 * time.Millisecond, ReadTimeout: time.Second}

// listen starts the daemon; stop ends it and waits.
func (w *world) listen(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", w.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	hs := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		if code := int(w.refuse.Load()); code != 0 {
			http.Error(rw, "peers that descend from a fenced command are refused\nsecond line", code)
			return
		}
		sock, err := api.Upgrade(rw, r)
		if err != nil {
			return
		}
		c := api.NewConn(sock, w.mux, w.opt)
		w.conns <- c
		c.Serve(ctx)
	})}
	wg.Add(1)
	go func() { defer wg.Done(); hs.Serve(l) }()
	w.stop = sync.OnceFunc(func() { cancel(); hs.Close(); wg.Wait() })
	t.Cleanup(w.stop)
}

func (w *world) dial(t *testing.T, o client.Options) (*client.Client, *api.Conn) {
	t.Helper()
	ctx := deadline(t)
	c, err := client.Dial(ctx, w.path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if r, err := c.Initialize(ctx, who); err != nil || r.Epoch != "e" {
		t.Fatal(r, err)
	}
	return c, <-w.conns
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func readParams(path string) api.FSReadTextParams {
	return api.FSReadTextParams{FileRef: api.FileRef{SessionID: "s", Path: path}}
}

func TestCalls(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	ctx := deadline(t)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			for range 20 {
				want := fmt.Sprint("p", i)
				if r, err := client.Do(ctx, c, api.FSReadText, readParams(want)); err != nil || r.Text != want {
					t.Error(r, err)
				}
			}
		})
	}
	wg.Wait()
	if r, err := client.Do(ctx, c, api.FSStat, api.FileRef{SessionID: "s", Path: "p"}); err != nil || r != nil {
		t.Fatal(r, err)
	}
	// Large both ways.
	big := strings.Repeat("é", 7<<20)
	if r, err := client.Do(ctx, c, api.FSReadText, readParams(big)); err != nil || r.Text != big {
		t.Fatal(len(r.Text), err)
	}
	if err := c.Call(ctx, "fs/stat", map[string]any{"sessionId": "s", "path": "p"}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestErrors(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	ctx := deadline(t)
	_, err := client.Do(ctx, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: "s", Path: "/etc/x"}})
	var e *api.Error
	if !errors.As(err, &e) || e.Code != -32010 || e.Stable() != fence.CodeSandboxDenied {
		t.Fatal(err)
	}
	if d := e.Denial(); d == nil || d.Path != "/etc/x" || d.Rule != fence.RuleOutside || d.Access != fence.Create {
		t.Fatalf("%+v", d)
	}
	err = c.Call(ctx, "fs/nothing", nil, nil)
	if !errors.Is(err, api.NewError(api.CodeMethodNotFound, "")) {
		t.Fatal(err)
	}
	err = c.Call(ctx, "fs/stat", map[string]any{"x": 1}, nil)
	if !errors.As(err, &e) || e.Stable() != api.CodeInvalidParams || e.Denial() != nil {
		t.Fatal(err)
	}
	if err := c.Call(ctx, "fs/stat", func() {}, nil); err == nil {
		t.Fatal("a function was sent")
	}
	// A path that is no UTF-8 would arrive as another one.
	if _, err := client.Do(ctx, c, api.FSReadText, readParams("\xff")); err == nil {
		t.Fatal("bytes that are no text were sent")
	}
	var wrong struct {
		Text int `json:"text"`
	}
	if err := c.Call(ctx, "fs/readText", readParams("p"), &wrong); err == nil {
		t.Fatal("a string became a number")
	}
	if _, err := client.Do(ctx, c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err) // none of that hurt the connection
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	const calls = 32
	errs := make(chan error, calls)
	ctx, cancel := context.WithCancel(deadline(t))
	for range calls {
		go func() {
			_, err := client.Do(ctx, c, api.SessionClose, api.SessionRef{SessionID: "s"})
			errs <- err
		}()
	}
	for range calls {
		<-w.waiting
	}
	cancel()
	for range calls {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := <-w.causes; !errors.Is(err, api.ErrCancelled) {
			t.Fatal(err)
		}
	}
	if _, err := client.Do(ctx, c, api.FSWriteText, api.FSWriteTextParams{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err)
	}
	if n := w.writes.Load(); n != 0 {
		t.Fatalf("a call whose context was over was sent %d times", n)
	}
}

func TestTheDaemonGoes(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	go func() {
		_, err := client.Do(deadline(t), c, api.SessionClose, api.SessionRef{SessionID: "s"})
		errs <- err
	}()
	<-w.waiting
	w.stop()
	// The call is told that it was cancelled, or that the connection is over.
	var e *api.Error
	var ce *api.CloseError
	if err := <-errs; !errors.As(err, &e) && !errors.As(err, &ce) {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); !errors.As(err, &ce) || ce.Code != api.CloseGoingAway || ce.Local {
		t.Fatal(err)
	}
	if _, err := sub.Next(deadline(t)); !errors.As(err, &ce) {
		t.Fatal(err)
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); !errors.As(err, &ce) {
		t.Fatal(err)
	}
	if _, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{}); !errors.As(err, &ce) {
		t.Fatal(err)
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{})
	errs := make(chan error, 1)
	go func() {
		_, err := client.Do(deadline(t), c, api.SessionClose, api.SessionRef{SessionID: "s"})
		errs <- err
	}()
	<-w.waiting
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { c.Close() })
	}
	wg.Wait()
	if err := <-errs; !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
	if err := <-w.causes; !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
	<-sc.Done()
	var ce *api.CloseError
	if err := sc.Err(); !errors.As(err, &ce) || ce.Code != api.CloseNormal {
		t.Fatal(err)
	}
	if err := c.Call(deadline(t), "fs/stat", nil, nil); !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
}

func publish(t *testing.T, c *api.Conn, seq int64, size int) {
	t.Helper()
	e, err := api.EventScratchCreated.New("s", "", scratch.Created{Path: strings.Repeat("x", size)})
	if err != nil {
		t.Fatal(err)
	}
	e.Epoch, e.Seq, e.Time = "e", seq, time.Now()
	n, err := api.EncodeEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.NotifyWait(ctx, n); err != nil {
		t.Fatal(err)
	}
}

// follow takes events up to last and checks that nothing is missing silently.
func follow(t *testing.T, sub *client.Subscription, last int64) (events, gaps int) {
	t.Helper()
	covered := int64(0)
	for covered < last {
		e, err := sub.Next(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		if e.FirstNumber() != covered+1 || e.Epoch != "e" {
			t.Fatalf("%+v came after %d", e, covered)
		}
		covered = e.Seq
		if e.Type == api.EventGap.Name {
			gaps++
		} else {
			events++
		}
	}
	return events, gaps
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{})
	var e *api.Error
	if _, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{SessionID: "none"}); !errors.As(err, &e) || e.Code != -32014 {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil || sub.Start.Epoch != "e" {
		t.Fatal(sub, err)
	}
	if _, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{}); !errors.Is(err, client.ErrSubscribed) {
		t.Fatal(err)
	}
	for seq := int64(1); seq <= 500; seq++ {
		publish(t, sc, seq, 10)
	}
	if events, gaps := follow(t, sub, 500); events != 500 || gaps != 0 {
		t.Fatal(events, gaps)
	}
	short, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sub.Next(short); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := sub.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(deadline(t)); !errors.Is(err, client.ErrUnsubscribed) {
		t.Fatal(err)
	}
	publish(t, sc, 501, 10) // to nobody
	if sub, err = c.Subscribe(deadline(t), api.EventsSubscribeParams{}); err != nil {
		t.Fatal(err)
	}
	publish(t, sc, 502, 10)
	if e, err := sub.Next(deadline(t)); err != nil || e.Seq < 501 {
		t.Fatal(e, err)
	}
}

// A subscriber that is slow holds nobody up and learns what it missed.
func TestSlowSubscriber(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{EventQueueBytes: 50_000})
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	const last = 2000
	for seq := int64(1); seq <= last; seq++ {
		publish(t, sc, seq, 1000)
		if seq%200 == 0 { // replies pass
			if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
				t.Fatal(err)
			}
		}
	}
	events, gaps := follow(t, sub, last)
	if events == 0 || gaps == 0 || events > 100 {
		t.Fatalf("%d events, %d gaps", events, gaps)
	}
}

// A gap of the daemon that is dropped here is part of the gap that is told.
func TestGapWithinAGap(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{EventQueueBytes: 1})
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, sc, 1, 10)
	g, err := api.EventGap.New("", "", api.GapData{From: 2, To: 50, Reason: api.GapEvicted})
	if err != nil {
		t.Fatal(err)
	}
	g.Epoch, g.Seq, g.Time = "e", 50, time.Now()
	n, err := api.EncodeEvent(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := sc.NotifyWait(deadline(t), n); err != nil {
		t.Fatal(err)
	}
	publish(t, sc, 51, 10)
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err)
	}
	follow(t, sub, 51)
}

func TestDial(t *testing.T) {
	w := newWorld(t)
	ctx := deadline(t)
	if _, err := client.Dial(ctx, w.path, client.Options{}); !errors.Is(err, client.ErrNoDaemon) || !strings.Contains(err.Error(), w.path) {
		t.Fatal(err)
	}
	if _, err := client.Dial(ctx, w.path, client.Options{StartWait: 50 * time.Millisecond}); !errors.Is(err, client.ErrNoDaemon) {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := client.Dial(gone, w.path, client.Options{StartWait: time.Hour}); err == nil {
		t.Fatal("connected")
	}

	// A daemon that starts while somebody tries.
	type result struct {
		c   *client.Client
		err error
	}
	dialled := make(chan result, 1)
	go func() {
		c, err := client.Dial(ctx, w.path, client.Options{StartWait: patience})
		dialled <- result{c, err}
	}()
	w.listen(t)
	r := <-dialled
	if r.err != nil {
		t.Fatal(r.err)
	}
	r.c.Close()

	w.refuse.Store(403)
	var re *client.RefusedError
	if _, err := client.Dial(ctx, w.path, client.Options{StartWait: time.Hour}); !errors.As(err, &re) || re.Status != 403 || strings.Contains(re.Error(), "second") || !strings.Contains(re.Error(), "fenced") {
		t.Fatal(err)
	}
	w.refuse.Store(0)

	// The socket of a daemon that has died is as good as none.
	w.stop()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := client.Dial(ctx, w.path, client.Options{}); !errors.Is(err, client.ErrNoDaemon) {
		t.Fatal(err)
	}
}

func TestSocketPathLength(t *testing.T) {
	dir, err := os.MkdirTemp("", "wattle")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fits := filepath.Join(dir, strings.Repeat("x", 107-len(dir)-1))
	if err := client.CheckSocketPath(fits); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", fits) // the kernel agrees
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = client.Dial(deadline(t), fits+"x", client.Options{StartWait: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "108 bytes, at most 107") || !strings.Contains(err.Error(), "WATTLE_SOCKET") {
		t.Fatal(err)
	}
	if l, err := net.Listen("unix", fits+"x"); err == nil {
		l.Close()
		t.Fatal("the kernel takes more than we allow")
	}
	if err := client.CheckSocketPath(""); err == nil {
		t.Fatal("an empty path")
	}
}

// A client that has nothing to say stays: it answers pings.
func TestSilentClientStays(t *testing.T) {
	w := newWorld(t)
	w.opt = quickPings
	w.listen(t)
	c, sc := w.dial(t, client.Options{})
	select {
	case <-c.Done():
		t.Fatal(c.Err())
	case <-sc.Done():
		t.Fatal(sc.Err())
	case <-time.After(3 * quickPings.ReadTimeout): // nothing is to happen for so long
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err)
	}
}

// A daemon that has stopped answering is noticed.
func TestSilentDaemon(t *testing.T) {
	w := newWorld(t)
	w.opt = api.Options{PingInterval: time.Hour}
	w.listen(t)
	c, _ := w.dial(t, client.Options{Silence: 200 * time.Millisecond})
	_, err := client.Do(deadline(t), c, api.SessionClose, api.SessionRef{SessionID: "s"})
	var ce *api.CloseError
	if !errors.As(err, &ce) || ce.Code != api.CloseAbnormal {
		t.Fatal(err)
	}
}

// One that does not read is noticed while sending.
func TestDaemonThatDoesNotRead(t *testing.T) {
	dir, err := os.MkdirTemp("", "wattle")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	up := make(chan api.Socket, 1)
	hs := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if sock, err := api.Upgrade(rw, r); err == nil {
			up <- sock // and nobody ever reads from it
		}
	})}
	var wg sync.WaitGroup
	wg.Go(func() { hs.Serve(l) })
	defer wg.Wait()
	defer hs.Close()
	c, err := client.Dial(deadline(t), filepath.Join(dir, "s"), client.Options{WriteTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer (<-up).Close()
	var ce *api.CloseError
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams(strings.Repeat("x", 8<<20))); !errors.As(err, &ce) {
		t.Fatal(err)
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); !errors.As(err, &ce) {
		t.Fatal(err)
	}
}

// A peer that speaks no JSON-RPC ends the connection, not the program.
func TestNonsenseFromTheDaemon(t *testing.T) {
	for _, text := range []string{`nonsense`, `[]`, `{"jsonrpc":"2.0","id":"x","result":1}`, `{"jsonrpc":"2.0","method":"event","params":{"seq":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"id":1,"result":1}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`} {
		up := make(chan api.Socket, 1)
		dir, err := os.MkdirTemp("", "wattle")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		hs := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if sock, err := api.Upgrade(rw, r); err == nil {
				up <- sock
			}
		})}
		var wg sync.WaitGroup
		wg.Go(func() { hs.Serve(l) })
		c, err := client.Dial(deadline(t), filepath.Join(dir, "s"), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sock := <-up
		// What is only unknown is ignored: the daemon may be newer.
		for _, ok := range []string{`{"jsonrpc":"2.0","method":"news","params":{}}`, `{"jsonrpc":"2.0","id":99,"result":1,"more":2}`} {
			if err := sock.WriteFrame([]byte(ok), time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
		}
		if err := sock.WriteFrame([]byte(text), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		if c.Err() == nil {
			t.Errorf("%s was taken", text)
		}
		c.Close()
		sock.Close()
		hs.Close()
		wg.Wait()
		os.RemoveAll(dir)
	}
}
