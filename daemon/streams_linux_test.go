package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// long is a text of many chunks whose characters have three bytes each, so that
// few chunks end where a buffer does.
func (h *house) long(name string, size int) string {
	h.t.Helper()
	text := strings.Repeat("中文字", size/9)
	if err := os.WriteFile(filepath.Join(h.ws, name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return text
}

func (h *house) target(c *client.Client, session, name string) provider.Target {
	h.t.Helper()
	return do(h, c, api.FSResolve, api.FSResolveParams{SessionID: session, Path: name})
}

// whole reads a stream to its end.
func whole(s provider.TextStream) (string, error) {
	var b strings.Builder
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
		b.WriteString(piece)
	}
}

// A stream is the text of readText, in chunks of whole characters behind the
// answer to the call, then its end with the version of the whole; the events
// have no number and are not in the stream of events.
func TestStreamOnTheWire(t *testing.T) {
	h := newHouse(t).start()
	text := h.long("long", 1<<20)
	p := dialBare(h)
	id := p.open(fence.WorkspaceWrite)
	p.call("events/subscribe", `{}`)
	var version string
	r := p.call("fs/streamText", `{"sessionId":"`+id+`","path":"long","chunkBytes":1000}`)
	stream := r["streamId"].(string)
	var b strings.Builder
	for n := 1; ; n++ {
		e := p.event()
		d := e["data"].(map[string]any)
		if e["seq"] != 0.0 || e["epoch"] == "" || e["sessionId"] != id || d["streamId"] != stream {
			t.Fatalf("%v", e)
		}
		if e["type"] == "fs.streamEnd" {
			if d["error"] != nil {
				t.Errorf("the end is %v", d)
			}
			version, _ = d["version"].(string)
			break
		}
		piece := d["text"].(string)
		if d["seq"] != float64(n) || len(piece) == 0 || len(piece) > 1000 || strings.ContainsRune(piece, '\uFFFD') {
			t.Fatalf("chunk %d: %v bytes, seq %v", n, len(piece), d["seq"])
		}
		b.WriteString(piece)
	}
	if b.String() != text {
		t.Errorf("%d bytes came of %d", b.Len(), len(text))
	}
	// The version of the end is one that guards.
	p.call("events/unsubscribe", `{}`)
	p.call("fs/writeText", `{"sessionId":"`+id+`","path":"long","content":"x","expected":{"kind":"replaceIfVersion","version":"`+version+`"}}`)
	p.events = nil
	// The answer comes first, however short the text is.
	if err := os.WriteFile(filepath.Join(h.ws, "short"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		p.call("fs/streamText", `{"sessionId":"`+id+`","path":"short"}`)
		if len(p.events) > 0 {
			t.Fatalf("before the answer came %v", p.events[0])
		}
		for p.event()["type"] != "fs.streamEnd" {
		}
	}
	// What is wrong in the middle is told at the end, with a code.
	if err := os.WriteFile(filepath.Join(h.ws, "bad"), []byte(strings.Repeat("x", 200<<10)+"\xff"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.call("fs/streamText", `{"sessionId":"`+id+`","path":"bad"}`)
	e := p.event()
	for e["type"] != "fs.streamEnd" {
		e = p.event()
	}
	d := e["data"].(map[string]any)
	if d["error"].(map[string]any)["data"].(map[string]any)["code"] != "FS_NOT_TEXT" || d["version"] != nil {
		t.Errorf("%v", d)
	}
}

// A stream with a window stands still until it is given more, and holds up
// nothing; one that is stopped ends with FS_ABORTED.
func TestStreamWindow(t *testing.T) {
	h := newHouse(t).start()
	h.long("long", 1<<20)
	p := dialBare(h)
	id := p.open(fence.ReadOnly)
	r := p.call("fs/streamText", `{"sessionId":"`+id+`","path":"long","chunkBytes":1000,"window":3}`)
	stream := r["streamId"].(string)
	chunks := func(n int) {
		t.Helper()
		for range n {
			if e := p.event(); e["type"] != "fs.chunk" {
				t.Fatalf("%v", e)
			}
		}
	}
	chunks(3)
	p.call("fs/stat", `{"sessionId":"`+id+`","path":"long"}`)
	if n := len(p.events); n != 0 {
		t.Fatalf("%d events beyond the window", n)
	}
	p.call("fs/streamText", `{"sessionId":"`+id+`","streamId":"`+stream+`","window":2}`)
	chunks(2)
	p.call("fs/streamText", `{"sessionId":"`+id+`","streamId":"`+stream+`","stop":true}`)
	e := p.event()
	d := e["data"].(map[string]any)
	if e["type"] != "fs.streamEnd" || d["error"].(map[string]any)["data"].(map[string]any)["code"] != "FS_ABORTED" {
		t.Fatalf("%v", e)
	}
	// It is over, which is no error to whoever does not know yet.
	p.call("fs/streamText", `{"sessionId":"`+id+`","streamId":"`+stream+`","window":2}`)
}

// A reader that does not read costs the daemon no memory, however long the
// text is, and calls beside the stream are answered.
func TestStreamThatIsNotRead(t *testing.T) {
	h := newHouse(t).start()
	const size = 64 << 20
	f, err := os.Create(filepath.Join(h.ws, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 1<<20-1) + "\n")
	for range size / len(line) {
		if _, err := f.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p := dialBare(h)
	id := p.open(fence.ReadOnly)
	before := h.resident()
	p.call("fs/streamText", `{"sessionId":"`+id+`","path":"huge"}`)
	// The socket and the queue fill up; then the daemon stands still.
	open, still := 0, 0
	until(t, "the daemon's standing still", func() bool {
		if n := h.readSoFar(); n != open {
			open, still = n, 0
		}
		still++
		return still == 50
	})
	if grown := h.resident() - before; grown > 32<<20 {
		t.Errorf("the daemon grew by %d MiB for a reader that does not read", grown>>20)
	}
	other := h.dial()
	s := h.open(other, fence.ReadOnly)
	do(h, other, api.FSStat, api.FileRef{SessionID: s.SessionID, Path: "huge"})
	if open >= size {
		t.Errorf("%d bytes of %d were read ahead", open, size)
	}
	// It goes on where it stood.
	n := 0
	for {
		e := p.event()
		d := e["data"].(map[string]any)
		if e["type"] == "fs.streamEnd" {
			if d["error"] != nil {
				t.Errorf("%v", d)
			}
			break
		}
		n += len(d["text"].(string))
	}
	if n != size {
		t.Errorf("%d bytes came of %d", n, size)
	}
}

// One connection has 16 streams; the next one waits for the end of one.
func TestStreamLimit(t *testing.T) {
	h := newHouse(t).start()
	text := h.long("long", 2<<20)
	c := h.dial()
	s := h.open(c, fence.ReadOnly)
	files := client.NewFiles(c, s.SessionID)
	at := h.target(c, s.SessionID, "long")
	var streams []provider.TextStream
	for range 16 {
		x, err := files.StreamText(h.ctx(), at)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, x)
	}
	refused(h, c, api.FSStreamText, api.FSStreamTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "long"}}, api.CodeBusy)
	// All at once, each the whole text, and calls beside them.
	errs := make(chan error, len(streams))
	for _, x := range streams {
		go func() {
			got, err := whole(x)
			if err == nil && got != text {
				err = fmt.Errorf("%d bytes of %d", len(got), len(text))
			}
			errs <- err
		}()
	}
	for range streams {
		do(h, c, api.FSStat, api.FileRef{SessionID: s.SessionID, Path: "long"})
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	x, err := files.StreamText(h.ctx(), at)
	if err != nil {
		t.Fatal(err)
	}
	_ = x.Close()
}

// A stream ends with its context, with its session and with its connection,
// and leaves no open file in the daemon.
func TestStreamsEnd(t *testing.T) {
	h := newHouse(t).start()
	h.long("long", 4<<20)
	c := h.dial()
	s := h.open(c, fence.ReadOnly)
	files := client.NewFiles(c, s.SessionID)
	at := h.target(c, s.SessionID, "long")
	begin := func(ctx context.Context) provider.TextStream {
		t.Helper()
		x, err := files.StreamText(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	gone := func(how string) {
		t.Helper()
		until(t, "the end of the stream "+how, func() bool { return !h.hasOpen("long") })
	}
	ctx, cancel := context.WithCancel(h.ctx())
	x := begin(ctx)
	if !h.hasOpen("long") {
		t.Fatal("the daemon does not hold the file: the test looks in the wrong place")
	}
	cancel()
	if _, err := x.Next(); provider.CodeOf(err) != provider.CodeAborted {
		t.Errorf("%v", err)
	}
	gone("with its context")

	x = begin(h.ctx())
	_ = x.Close()
	gone("by Close")

	x = begin(h.ctx())
	do(h, c, api.SessionClose, api.SessionRef{SessionID: s.SessionID})
	gone("with its session")
	if _, err := whole(x); provider.CodeOf(err) != provider.CodeAborted {
		t.Errorf("%v", err)
	}

	s = h.open(c, fence.ReadOnly)
	files = client.NewFiles(c, s.SessionID)
	x = begin(h.ctx())
	_ = c.Close()
	gone("with its connection")
	if _, err := whole(x); provider.CodeOf(err) != provider.CodeIOError {
		t.Errorf("%v", err)
	}
}
