package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
)

// aside is an event that has no place in the stream.
func aside(tb testing.TB, text string) *api.Notification {
	tb.Helper()
	n, err := api.EncodeUnnumbered(api.Event{Epoch: "e", Time: time.Unix(0, 1), Type: "fs.chunk", Data: jsontext.Value(`{"text":"` + text + `"}`)})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// What a call sends after its reply comes behind it, in a batch behind the
// answer of all; after a failure nothing is sent.
func TestAfterReply(t *testing.T) {
	h := api.HandlerFunc(func(_ context.Context, r *api.Request) (any, error) {
		switch p := r.Params.(type) {
		case *api.InitializeParams:
			return api.InitializeResult{ProtocolVersion: api.ProtocolVersion, Limits: r.Conn.Limits()}, nil
		case *api.FSReadTextParams:
			r.AfterReply(func() {
				if err := r.Conn.NotifyWait(context.Background(), aside(t, p.Path)); err != nil {
					t.Error(err)
				}
			})
			if p.Path == "no" {
				return nil, errors.New("no")
			}
			return provider.TextContent{Text: p.Path, Version: "v"}, nil
		}
		return nil, api.ErrNotHandled
	})
	p := serve(t, h, api.Options{}).open(t)
	call := func(id int, path string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"fs/readText","params":{"sessionId":"s","path":"%s"}}`, id, path)
	}
	chunk := func(path string) string {
		return `{"jsonrpc":"2.0","method":"event","params":{"epoch":"e","seq":0,"time":"1970-01-01T00:00:00.000000001Z","type":"fs.chunk","data":{"text":"` + path + `"}}}`
	}
	for i := range 100 {
		p.send(call(i, "a"))
		if got := p.recv(); !strings.Contains(got, `"result"`) {
			t.Fatalf("before the reply came %s", got)
		}
		if got := p.recv(); got != chunk("a") {
			t.Fatal(got)
		}
	}
	for range 200 {
		p.send("[" + call(1, "a") + "," + call(2, "no") + "," + call(3, "b") + "]")
		if got := p.recv(); !strings.HasPrefix(got, "[") {
			t.Fatalf("before the answer of the batch came %s", got)
		}
		got := []string{p.recv(), p.recv()}
		if got[0] == chunk("b") {
			got[0], got[1] = got[1], got[0]
		}
		if got[0] != chunk("a") || got[1] != chunk("b") {
			t.Fatalf("%q", got)
		}
	}
	// The reader, too, may be the last to have to do with a batch.
	for range 200 {
		p.send("[" + call(1, "a") + strings.Repeat(",1", 45) + "]")
		if got := p.recv(); !strings.HasPrefix(got, "[") {
			t.Fatalf("before the answer of the batch came %s", got)
		}
		if got := p.recv(); got != chunk("a") {
			t.Fatal(got)
		}
	}
	p.send(call(4, "no"))
	p.recv()
	p.send(call(5, "c"))
	if got := p.recv(); !strings.Contains(got, `"id":5`) {
		t.Fatalf("after a failure came %s", got)
	}
}

// An event without a number is never dropped, for no gap could stand for it,
// and has no number.
func TestUnnumberedEvents(t *testing.T) {
	for _, e := range []api.Event{{Type: "x"}, {Epoch: "e", Seq: 1, Type: "x"}, {Epoch: "e", Seq: -1, Type: "x"}} {
		if n, err := api.EncodeUnnumbered(e); err == nil {
			t.Errorf("%+v became %+v", e, n)
		}
	}
	s := serve(t, newDesk(), api.Options{})
	p := s.open(t)
	c := <-s.conns
	if err := c.Notify(aside(t, "x")); err == nil {
		t.Error("it was queued as if it could be dropped")
	}
	// Between events that are dropped, the gaps keep their numbers.
	go func() {
		for seq := int64(1); seq <= 100; seq++ {
			if seq%10 == 0 {
				if err := c.NotifyWait(context.Background(), aside(t, "x")); err != nil {
					t.Error(err)
				}
			}
			if err := c.Notify(event(t, seq, 10)); err != nil {
				t.Error(err)
			}
		}
	}()
	last, asides := int64(0), 0
	for last < 100 || asides < 10 {
		got := p.recv()
		var seq int64
		if _, err := fmt.Sscanf(got[strings.Index(got, `"seq":`):], `"seq":%d`, &seq); err != nil {
			t.Fatal(err)
		}
		switch {
		case seq == 0:
			asides++
		case seq <= last:
			t.Fatalf("%d came after %d", seq, last)
		default:
			last = seq
		}
	}
}

// A page goes on behind any name, also one that JSON cannot spell.
func TestPages(t *testing.T) {
	for name, want := range map[string]string{"": "", "a": "a", "..b": "..b", "中": "中", "a\xffb": "/Yf9i", "\xff": "/_w"} {
		after := api.PageAfter(name)
		if back, ok := api.NameOfPage(after); after != want || back != name || !ok {
			t.Errorf("%q became %q and %q", name, after, back)
		}
	}
	for _, after := range []string{"/", "/a/b", "/Yf9i=", "/*"} {
		if name, ok := api.NameOfPage(after); ok {
			t.Errorf("%q is the name %q", after, name)
		}
	}
}
