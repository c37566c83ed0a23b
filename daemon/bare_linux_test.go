package daemon_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/websocket"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
)

// bare is a client that knows nothing but WebSocket and JSON: what one in
// another language sees.
type bare struct {
	h      *house
	ws     *websocket.Conn
	id     int
	events []map[string]any // that came while an answer was awaited
}

func dialBare(h *house) *bare {
	h.t.Helper()
	d := websocket.Dialer{NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", h.socket)
	}}
	ws, _, err := d.Dial("ws://localhost/v1", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = ws.Close() })
	p := &bare{h: h, ws: ws}
	p.call("initialize", `{"protocolVersion":"1","client":{"name":"bare","version":"1"}}`)
	return p
}

func (p *bare) read() map[string]any {
	p.h.t.Helper()
	_ = p.ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, b, err := p.ws.ReadMessage()
	if err != nil {
		p.h.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		p.h.t.Fatal(err)
	}
	return m
}

// call makes one call and waits for its result, keeping the events before it.
func (p *bare) call(method, params string) map[string]any {
	p.h.t.Helper()
	p.id++
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, p.id, method, params)
	if err := p.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		p.h.t.Fatal(err)
	}
	for {
		m := p.read()
		if m["method"] == api.EventMethod {
			p.events = append(p.events, m["params"].(map[string]any))
			continue
		}
		if m["error"] != nil || m["id"] != float64(p.id) {
			p.h.t.Fatalf("%s: %v", method, m)
		}
		r, _ := m["result"].(map[string]any)
		return r
	}
}

// event is the next event.
func (p *bare) event() map[string]any {
	p.h.t.Helper()
	if len(p.events) > 0 {
		e := p.events[0]
		p.events = p.events[1:]
		return e
	}
	m := p.read()
	if m["method"] != api.EventMethod {
		p.h.t.Fatalf("%v", m)
	}
	return m["params"].(map[string]any)
}

func (p *bare) open(mode fence.Mode) string {
	p.h.t.Helper()
	r := p.call("session/open", fmt.Sprintf(`{"workspace":%q,"mode":%q}`, p.h.ws, mode))
	return r["sessionId"].(string)
}

// resident is the memory of the daemon in bytes.
func (h *house) resident() int {
	h.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		h.t.Fatal(err)
	}
	return n * os.Getpagesize()
}

// readSoFar is how much the daemon has read in its life.
func (h *house) readSoFar() int {
	h.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", h.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// hasOpen tells whether the daemon holds a file of that name open.
func (h *house) hasOpen(name string) bool {
	h.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", h.cmd.Process.Pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && filepath.Base(to) == name {
			return true
		}
	}
	return false
}
