package client_test

import (
	"context"
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

// quickPings are options of connections on which silence is noticed soon.
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
