package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// server is a real listener on a unix socket whose connections run in api.
type server struct {
	path  string
	count *api.Counters
	conns chan *api.Conn // each new connection, while there is room
	ended chan error     // what Serve returned, likewise
	stop  context.CancelFunc
}

func serve(tb testing.TB, h api.Handler, o api.Options) *server {
	tb.Helper()
	dir, err := os.MkdirTemp("", "wattle") // t.TempDir may be too long for sun_path
	if err != nil {
		tb.Fatal(err)
	}
	s := &server{path: filepath.Join(dir, "s"), count: new(api.Counters), conns: make(chan *api.Conn, 1024), ended: make(chan error, 1024)}
	o.Counters = s.count
	l, err := net.Listen("unix", s.path)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	var wg sync.WaitGroup
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		sock, err := api.Upgrade(w, r)
		if err != nil {
			return
		}
		c := api.NewConn(sock, h, o)
		select {
		case s.conns <- c:
		default:
		}
		err = c.Serve(ctx)
		select {
		case s.ended <- err:
		default:
		}
	})}
	wg.Add(1)
	go func() { defer wg.Done(); hs.Serve(l) }()
	tb.Cleanup(func() {
		cancel()
		hs.Close()
		wg.Wait()
		os.RemoveAll(dir)
	})
	return s
}

// peer is a bare WebSocket client: what it sends is exactly what is written.
type peer struct {
	tb testing.TB
	ws *websocket.Conn
}

func (s *server) dial(tb testing.TB) *peer {
	tb.Helper()
	d := websocket.Dialer{
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.path)
		},
		EnableCompression: true, // offered, as common clients do
		Subprotocols:      []string{"other", api.Subprotocol},
	}
	ws, resp, err := d.Dial("ws://localhost/v1", nil)
	if err != nil {
		tb.Fatal(err)
	}
	if got := resp.Header.Get("Sec-WebSocket-Extensions"); got != "" {
		tb.Fatalf("an extension was accepted: %s", got)
	}
	if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != api.Subprotocol {
		tb.Fatalf("subprotocol %q was chosen", got)
	}
	p := &peer{tb, ws}
	tb.Cleanup(func() { ws.Close() })
	return p
}

const initFrame = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"1","client":{"name":"t","version":"0"}}}`

// open dials and initializes.
func (s *server) open(tb testing.TB) *peer {
	tb.Helper()
	p := s.dial(tb)
	p.send(initFrame)
	if got := p.recv(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"1"`) {
		tb.Fatalf("initialize: %s", got)
	}
	return p
}

func (p *peer) send(text string) {
	p.tb.Helper()
	if err := p.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *peer) recv() string {
	p.tb.Helper()
	p.ws.SetReadDeadline(time.Now().Add(patience))
	typ, b, err := p.ws.ReadMessage()
	if err != nil {
		p.tb.Fatal(err)
	}
	if typ != websocket.TextMessage {
		p.tb.Fatalf("frame of type %d", typ)
	}
	return string(b)
}

// closed waits for the close frame and returns its code.
func (p *peer) closed() int {
	p.tb.Helper()
	p.ws.SetReadDeadline(time.Now().Add(patience))
	for {
		_, _, err := p.ws.ReadMessage()
		var ce *websocket.CloseError
		if errors.As(err, &ce) {
			return ce.Code
		}
		if err != nil {
			p.tb.Fatalf("no close frame: %v", err)
		}
	}
}

// desk is the handler of most tests.
type desk struct {
	mu      sync.Mutex
	running map[string]chan struct{} // process/wait by processId: closed when it has begun
	release chan struct{}            // lets every process/wait end well
}

func newDesk() *desk {
	return &desk{running: map[string]chan struct{}{}, release: make(chan struct{})}
}

// began is closed when process/wait of that id runs.
func (d *desk) began(id string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[id] == nil {
		d.running[id] = make(chan struct{})
	}
	return d.running[id]
}

func (d *desk) Handle(ctx context.Context, r *api.Request) (any, error) {
	switch p := r.Params.(type) {
	case *api.InitializeParams:
		return api.InitializeResult{ProtocolVersion: api.ProtocolVersion, Epoch: "e", Limits: r.Conn.Limits()}, nil
	case *api.FileRef:
		if r.Method == api.FSStat.Name {
			return (*provider.Info)(nil), nil
		}
	case *api.FSReadTextParams:
		return provider.TextContent{Text: p.Path, Version: "v"}, nil
	case *api.FSWriteTextParams:
		return provider.WriteOutcome{Operation: provider.OperationCreate, After: p.Content}, nil
	case *api.ProcessWaitParams:
		close(d.began(p.ProcessID))
		select {
		case <-d.release:
			return sandbox.State{Signal: p.ProcessID}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	case *api.ProcessSignalParams:
		panic("a handler with a defect: " + p.Signal)
	case *api.ProcessTerminateParams:
		return nil, errors.New("no code, and a secret")
	}
	return nil, api.ErrNotHandled
}

func wait(tb testing.TB, what string, c <-chan struct{}) {
	tb.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		tb.Fatalf("%s did not happen", what)
	}
}

// until waits for a condition that nothing announces.
func until(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	late := time.After(patience)
	for !cond() {
		select {
		case <-look.C:
		case <-late:
			tb.Fatalf("%s did not happen", what)
		}
	}
}
