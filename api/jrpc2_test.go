package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/gorilla/websocket"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
)

// wsChannel is the transport of jrpc2's client: one message in one text frame.
type wsChannel struct{ ws *websocket.Conn }

func (c wsChannel) Send(b []byte) error { return c.ws.WriteMessage(websocket.TextMessage, b) }

func (c wsChannel) Recv() ([]byte, error) {
	_, b, err := c.ws.ReadMessage()
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		return nil, io.EOF
	}
	return b, err
}

func (c wsChannel) Close() error {
	c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
	return c.ws.Close()
}

// An implementation that is not ours understands us: calls, concurrent calls,
// batches, errors with their data, and events.
func TestIndependentPeer(t *testing.T) {
	d := newDesk()
	s := serve(t, d, api.Options{})
	events := make(chan string, 10)
	cli := jrpc2.NewClient(wsChannel{s.dial(t).ws}, &jrpc2.ClientOptions{
		OnNotify: func(r *jrpc2.Request) {
			var e api.Event
			if err := r.UnmarshalParams(&e); err != nil {
				events <- err.Error()
				return
			}
			events <- fmt.Sprint(r.Method(), " ", e.Epoch, " ", e.Seq, " ", e.Type)
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer cli.Close()

	code := func(err error) jrpc2.Code {
		var e *jrpc2.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is no error of the wire", err)
		}
		return e.Code
	}
	file := func(path string) map[string]any { return map[string]any{"sessionId": "s", "path": path} }

	if _, err := cli.Call(ctx, "fs/readText", file("p")); code(err) != -32002 {
		t.Fatal(err)
	}
	var init api.InitializeResult
	err := cli.CallResult(ctx, "initialize", map[string]any{"protocolVersion": "1", "client": map[string]any{"name": "jrpc2", "version": "1"}}, &init)
	if err != nil || init.Limits.MaxInFlight != 64 {
		t.Fatal(init, err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var text provider.TextContent
			if err := cli.CallResult(ctx, "fs/readText", file(fmt.Sprint("p", i)), &text); err != nil || text.Text != fmt.Sprint("p", i) {
				t.Error(text, err)
			}
		})
	}
	wg.Wait()
	rsps, err := cli.Batch(ctx, []jrpc2.Spec{
		{Method: "fs/readText", Params: file("a")},
		{Method: "fs/readText", Params: file("n"), Notify: true},
		{Method: "fs/nothing"},
		{Method: "fs/readText", Params: map[string]any{"sessionId": "s", "Path": "p"}},
	})
	if err != nil || len(rsps) != 3 {
		t.Fatal(rsps, err)
	}
	if rsps[0].Error() != nil || rsps[1].Error().Code != -32601 || rsps[2].Error().Code != -32602 {
		t.Fatal(rsps)
	}
	if got := string(rsps[2].Error().Data); got != `{"code":"INVALID_PARAMS","member":"/Path"}` {
		t.Fatal(got)
	}
	if _, err := cli.Call(ctx, "process/signal", map[string]any{"processId": "p", "signal": "S"}); code(err) != -32603 {
		t.Fatal(err)
	}
	if err := cli.Notify(ctx, "fs/readText", file("p")); err != nil {
		t.Fatal(err)
	}
	c := <-s.conns
	if err := c.Notify(event(t, 1, 3)); err != nil {
		t.Fatal(err)
	}
	if got := <-events; got != "event e 1 process.output" {
		t.Fatal(got)
	}
}
