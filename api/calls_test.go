package api_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
)

func waitCall(id any, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"process/wait","params":{"processId":"%s"}}`, id, name)
}

func cancelOf(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%v}}`, id)
}

func TestCallsRunAtOnce(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{})
	p := s.open(t)
	// All 64 run at the same time, and the ordinary call overtakes none.
	for i := range 64 {
		p.send(waitCall(i, fmt.Sprint("p", i)))
	}
	for i := range 64 {
		wait(t, "call", d.began(fmt.Sprint("p", i)))
	}
	p.send(`{"jsonrpc":"2.0","id":"over","method":"fs/stat","params":{"sessionId":"s","path":"p"}}`)
	if got := p.recv(); !strings.HasPrefix(got, errorOf(`"over"`, -32005)) || !strings.HasSuffix(got, `"data":{"code":"BUSY"}}}`) {
		t.Fatal(got)
	}
	// Notifications count too, and are refused without a word.
	p.send(`{"jsonrpc":"2.0",` + read + `}`)
	until(t, "second refusal", func() bool { return s.count.Busy.Load() == 2 })
	// Another connection is not concerned.
	q := s.open(t)
	q.send(`{"jsonrpc":"2.0","id":1,` + read + `}`)
	if got := q.recv(); got != resultOf("1") {
		t.Fatal(got)
	}
	close(d.release)
	seen := map[string]bool{}
	for range 64 {
		seen[p.recv()] = true
	}
	if len(seen) != 64 {
		t.Fatalf("%d different replies", len(seen))
	}
	p.send(`{"jsonrpc":"2.0","id":"over","method":"fs/stat","params":{"sessionId":"s","path":"p"}}`)
	if got := p.recv(); got != `{"jsonrpc":"2.0","id":"over","result":null}` {
		t.Fatal(got)
	}
}

func TestParametersInFlightAreBounded(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{Limits: api.Limits{MaxInFlightBytes: 1000}})
	p := s.open(t)
	p.send(waitCall(1, "a"))
	wait(t, "call", d.began("a"))
	p.send(`{"jsonrpc":"2.0","id":2,"method":"fs/readText","params":{"sessionId":"s","path":"` + strings.Repeat("x", 1000) + `"}}`)
	if got := p.recv(); !strings.HasPrefix(got, errorOf("2", -32005)) {
		t.Fatal(got)
	}
	close(d.release)
	p.recv()
	// Alone it may be as large as a frame.
	p.send(`{"jsonrpc":"2.0","id":3,"method":"fs/readText","params":{"sessionId":"s","path":"` + strings.Repeat("x", 1000) + `"}}`)
	if got := p.recv(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":3,"result":`) {
		t.Fatal(got)
	}
}

func TestIDInUse(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{})
	p := s.open(t)
	for name, id := range map[string]string{"number": `7`, "string": `"seven"`} {
		p.send(waitCall(id, name))
		wait(t, "call", d.began(name))
		// Not with its own id: that would answer the call that runs.
		p.send(`{"jsonrpc":"2.0","id":` + id + `,` + read + `}`)
		if got := p.recv(); !strings.HasPrefix(got, errorOf("null", -32600)) {
			t.Fatal(got)
		}
	}
	// The same string in another spelling is the same id; a number is another.
	p.send(`{"jsonrpc":"2.0","id":"\u0073even",` + read + `}`)
	if got := p.recv(); !strings.HasPrefix(got, errorOf("null", -32600)) {
		t.Fatal(got)
	}
	p.send(`{"jsonrpc":"2.0","id":"7",` + read + `}`)
	if got := p.recv(); got != resultOf(`"7"`) {
		t.Fatal(got)
	}
	// Within one batch as well.
	p.send(`[{"jsonrpc":"2.0","id":8,"method":"process/wait","params":{"processId":"b"}},{"jsonrpc":"2.0","id":8,` + read + `}]`)
	wait(t, "call", d.began("b"))
	// The whole batch has been looked at when the frame behind it is answered.
	p.send(`{"jsonrpc":"2.0","id":"behind","method":"$/cancelRequest","params":{"id":99}}`)
	if got := p.recv(); got != `{"jsonrpc":"2.0","id":"behind","result":{}}` {
		t.Fatal(got)
	}
	close(d.release)
	var got []string
	for range 3 {
		got = append(got, p.recv())
	}
	all := strings.Join(got, "\n")
	if !strings.Contains(all, errorOf("null", -32600)) || !strings.Contains(all, `"id":8,"result"`) {
		t.Fatal(all)
	}
	// As soon as the reply is there the id is free.
	for range 500 {
		p.send(`{"jsonrpc":"2.0","id":7,` + read + `}`)
		if got := p.recv(); got != resultOf("7") {
			t.Fatal(got)
		}
	}
}

func TestCancel(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{})
	p := s.open(t)
	p.send(waitCall(1, "a"))
	p.send(waitCall(`"1"`, "b"))
	wait(t, "call", d.began("a"))
	wait(t, "call", d.began("b"))
	p.send(cancelOf(`"1"`))
	if got := p.recv(); !strings.HasPrefix(got, errorOf(`"1"`, -32800)) || !strings.HasSuffix(got, `"data":{"code":"CANCELLED"}}}`) {
		t.Fatal(got)
	}
	p.send(`[` + cancelOf(1) + `,` + cancelOf(2) + `]`)
	if got := p.recv(); !strings.HasPrefix(got, errorOf("1", -32800)) {
		t.Fatal(got)
	}
	if n := s.count.Cancelled.Load(); n != 2 {
		t.Fatalf("%d cancelled", n)
	}
}

// What a cancelled call really did is not hidden: a result stays a result, and
// the code of a failure stays in the data.
func TestCancelTellsWhatHappened(t *testing.T) {
	began := make(chan struct{}, 1)
	h := api.HandlerFunc(func(ctx context.Context, r *api.Request) (any, error) {
		p, ok := r.Params.(*api.FSReadTextParams)
		if !ok {
			return api.InitializeResult{ProtocolVersion: "1"}, nil
		}
		began <- struct{}{}
		<-ctx.Done()
		switch p.Path {
		case "done":
			return provider.TextContent{Text: "done"}, nil
		case "aborted":
			return nil, &provider.Error{Code: provider.CodeAborted, Op: "readText", Path: "aborted", Cause: ctx.Err()}
		}
		return nil, &provider.Error{Code: provider.CodeIOError, Op: "readText", Path: "p", Errno: "EIO"}
	})
	s := serve(t, h, api.Options{})
	p := s.open(t)
	for path, want := range map[string]string{
		"done":    `{"jsonrpc":"2.0","id":1,"result":{"text":"done"`,
		"aborted": `{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"the call was cancelled: readText aborted: context canceled","data":{"code":"FS_ABORTED",`,
		"failed":  `{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"the call was cancelled: readText p: FS_IO_ERROR","data":{"code":"FS_IO_ERROR",`,
	} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"fs/readText","params":{"sessionId":"s","path":"` + path + `"}}`)
		<-began
		p.send(cancelOf(1))
		if got := p.recv(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestCancelStorm(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{})
	p := s.open(t)
	const rounds, width = 20, 32
	for round := range rounds {
		for i := range width {
			p.send(waitCall(i, fmt.Sprint(round, "-", i)))
		}
		// Each cancelled many times, in the wrong order, among ids that never
		// were and calls that go on.
		written := make(chan struct{})
		go func() {
			defer close(written)
			for n := range 4 * width {
				if p.ws.WriteMessage(1, []byte(cancelOf((width-n)%(2*width)))) != nil {
					return
				}
			}
			for i := range width {
				if p.ws.WriteMessage(1, []byte(cancelOf(i))) != nil {
					return
				}
			}
			p.ws.WriteMessage(1, []byte(`{"jsonrpc":"2.0","id":"end",`+read+`}`))
		}()
		cancelled := map[string]bool{}
		for range width + 1 {
			got := p.recv()
			if strings.Contains(got, `"code":-32800`) {
				cancelled[got] = true
			} else if got != resultOf(`"end"`) {
				t.Fatal(got)
			}
		}
		wait(t, "end of the storm", written)
		if len(cancelled) != width {
			t.Fatalf("round %d: %d cancelled", round, len(cancelled))
		}
	}
	until(t, "all calls have ended", func() bool { return s.count.InFlight.Load() == 0 })
}

func TestBatchIsAnsweredWhole(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{})
	p := s.open(t)
	var b strings.Builder
	b.WriteString("[")
	for i := range 49 {
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%d,%s},`, i, read)
	}
	b.WriteString(waitCall(49, "slow") + "]")
	p.send(b.String())
	wait(t, "call", d.began("slow"))
	p.send(`{"jsonrpc":"2.0","id":"meanwhile",` + read + `}`)
	if got := p.recv(); got != resultOf(`"meanwhile"`) {
		t.Fatal(got)
	}
	close(d.release)
	got := p.recv()
	if n := strings.Count(got, `"result"`); n != 50 || got[0] != '[' || got[len(got)-1] != ']' {
		t.Fatalf("%d results in %s", n, got)
	}
}

// What a call holds is counted: a frame does not stay in memory for a small
// call that came in it.
func TestFramesAreLetGo(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{})
	p := s.open(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const calls, size = 32, 4 << 20
	for i := range calls {
		name := fmt.Sprint("p", i)
		p.send(`[` + waitCall(i, name) + `,"` + strings.Repeat("x", size) + `"]`)
		wait(t, "call", d.began(name))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 6*size {
		t.Errorf("%d calls hold %d bytes", calls, grown)
	}
	close(d.release)
	for range calls {
		if got := p.recv(); !strings.Contains(got, `"result"`) || !strings.Contains(got, `"code":-32600`) {
			t.Fatalf("%.200s", got)
		}
	}
}

// When the connection goes, its calls are told why, and Serve waits for them.
func TestCallsEndWithTheConnection(t *testing.T) {
	began, cause := make(chan struct{}), make(chan error, 1)
	h := api.HandlerFunc(func(ctx context.Context, r *api.Request) (any, error) {
		if r.Method == api.Initialize.Name {
			return api.InitializeResult{ProtocolVersion: "1"}, nil
		}
		close(began)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	s := serve(t, h, api.Options{})
	p := s.open(t)
	p.send(waitCall(1, "a"))
	wait(t, "call", began)
	p.ws.NetConn().Close()
	select {
	case err := <-s.ended:
		var ce *api.CloseError
		if !errors.As(err, &ce) || ce.Code != api.CloseAbnormal {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the connection did not end")
	}
	if err := <-cause; !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
}

// An orderly end lets calls finish: what a mutation did is not lost.
func TestStopDeliversReplies(t *testing.T) {
	began := make(chan struct{})
	h := api.HandlerFunc(func(ctx context.Context, r *api.Request) (any, error) {
		if r.Method == api.Initialize.Name {
			return api.InitializeResult{ProtocolVersion: "1"}, nil
		}
		close(began)
		<-ctx.Done()
		return provider.TextContent{Text: "written before the end"}, nil
	})
	s := serve(t, h, api.Options{CloseTimeout: patience})
	p := s.open(t)
	p.send(`[{"jsonrpc":"2.0","id":1,` + read + `}]`)
	wait(t, "call", began)
	s.stop()
	if got := p.recv(); !strings.Contains(got, "written before the end") {
		t.Fatal(got)
	}
	if code := p.closed(); code != api.CloseGoingAway {
		t.Fatal(code)
	}
}

func TestResultTooLarge(t *testing.T) {
	s := serve(t, newDesk(), api.Options{Limits: api.Limits{MaxReplyBytes: 1000}})
	p := s.open(t)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"fs/writeText","params":{"sessionId":"s","path":"p","content":"` + strings.Repeat("x", 2000) + `"}}`)
	got := p.recv()
	if !strings.HasPrefix(got, errorOf("1", -32010)) || !strings.HasSuffix(got, `"data":{"code":"FS_TOO_LARGE","limit":1000,"completed":true}}}`) {
		t.Fatal(got)
	}
	// In a batch the whole counts; what does not fit any more is named.
	one := `{"jsonrpc":"2.0","id":%d,"method":"fs/readText","params":{"sessionId":"s","path":"` + strings.Repeat("x", 300) + `"}}`
	p.send(fmt.Sprintf("["+one+","+one+","+one+"]", 1, 2, 3))
	got = p.recv()
	if strings.Count(got, `"result"`) != 2 || strings.Count(got, `"FS_TOO_LARGE"`) != 1 {
		t.Fatal(got)
	}
}
