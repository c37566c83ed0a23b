package api_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
)

// bare is a WebSocket server on a unix socket with nothing of ours.
func bare(b *testing.B, f func(*websocket.Conn)) *server {
	path := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	u := websocket.Upgrader{Subprotocols: []string{api.Subprotocol}}
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wg.Add(1)
		defer wg.Done()
		ws, err := u.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		f(ws)
	})}
	wg.Add(1)
	go func() { defer wg.Done(); hs.Serve(l) }()
	b.Cleanup(func() { hs.Close(); wg.Wait() })
	return &server{path: path}
}

// percentile runs f b.N times and reports the median and the 99th percentile.
func percentile(b *testing.B, f func()) {
	times := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for range b.N {
		t := time.Now()
		f()
		times = append(times, time.Since(t))
	}
	b.StopTimer()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
}

// A reply of 4 KiB, against an echo of the same bytes by the bare library
// (DESIGN section 8: at most 1.5 times at the median).
func BenchmarkReply4KiB(b *testing.B) {
	text := strings.Repeat("0123456789abcde\n", 256)
	h := api.HandlerFunc(func(_ context.Context, r *api.Request) (any, error) {
		if r.Method == api.Initialize.Name {
			return api.InitializeResult{ProtocolVersion: "1"}, nil
		}
		return provider.TextContent{Text: text, Version: "v"}, nil
	})
	call := []byte(`{"jsonrpc":"2.0","id":1,` + read + `}`)
	p := serve(b, h, api.Options{}).open(b)
	p.send(string(call))
	reply := []byte(p.recv())
	p.ws.SetReadDeadline(time.Time{})

	exchange := func(ws *websocket.Conn, out []byte) func() {
		return func() {
			if err := ws.WriteMessage(websocket.TextMessage, out); err != nil {
				b.Fatal(err)
			}
			if _, in, err := ws.ReadMessage(); err != nil || len(in) != len(reply) {
				b.Fatal(len(in), err)
			}
		}
	}
	b.Run("wattle", func(b *testing.B) { percentile(b, exchange(p.ws, call)) })
	b.Run("echo", func(b *testing.B) {
		p := bare(b, func(ws *websocket.Conn) {
			for {
				typ, m, err := ws.ReadMessage()
				if err != nil || ws.WriteMessage(typ, m) != nil {
					return
				}
			}
		}).dial(b)
		percentile(b, exchange(p.ws, reply))
	})
}

// One event of 256 bytes to many subscribers until all have it, against the
// bare library's prepared message (DESIGN section 8: at least 0.8 times).
func BenchmarkBroadcast(b *testing.B) {
	const subscribers = 1000
	listen := func(b *testing.B, s *server, opened func()) (next func()) {
		var each []chan struct{}
		for range subscribers {
			p := s.dial(b)
			opened()
			got := make(chan struct{}, 1)
			each = append(each, got)
			go func() {
				for {
					if _, _, err := p.ws.ReadMessage(); err != nil {
						return
					}
					got <- struct{}{}
				}
			}()
		}
		return func() {
			for _, got := range each {
				<-got
			}
		}
	}
	b.Run(fmt.Sprint("wattle-", subscribers), func(b *testing.B) {
		s := serve(b, newDesk(), api.Options{})
		var conns []*api.Conn
		next := listen(b, s, func() { conns = append(conns, <-s.conns) })
		seq := int64(0)
		b.ResetTimer()
		for range b.N {
			seq++
			n := event(b, seq, 256)
			for _, c := range conns {
				if err := c.Notify(n); err != nil {
					b.Fatal(err)
				}
			}
			next()
		}
		b.StopTimer()
	})
	b.Run(fmt.Sprint("gorilla-", subscribers), func(b *testing.B) {
		opened := make(chan *websocket.Conn, subscribers)
		s := bare(b, func(ws *websocket.Conn) {
			opened <- ws
			ws.ReadMessage()
		})
		var conns []*websocket.Conn
		next := listen(b, s, func() { conns = append(conns, <-opened) })
		text := []byte(strings.Repeat("x", 256+130))
		b.ResetTimer()
		for range b.N {
			m, err := websocket.NewPreparedMessage(websocket.TextMessage, text)
			if err != nil {
				b.Fatal(err)
			}
			for _, ws := range conns {
				if err := ws.WritePreparedMessage(m); err != nil {
					b.Fatal(err)
				}
			}
			next()
		}
		b.StopTimer()
	})
}
