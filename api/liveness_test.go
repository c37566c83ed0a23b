package api_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wattle-dev/wattle/api"
)

func (s *server) endedWith(tb testing.TB) *api.CloseError {
	tb.Helper()
	select {
	case err := <-s.ended:
		var ce *api.CloseError
		if !errors.As(err, &ce) {
			tb.Fatalf("Serve returned %v", err)
		}
		return ce
	case <-time.After(patience):
		tb.Fatal("the connection did not end")
	}
	return nil
}

// rawFrame is one masked frame (mask zero) as RFC 6455 section 5.2 has it.
func rawFrame(first byte, payload string) []byte {
	if len(payload) > 125 {
		panic("short frames only")
	}
	return append([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
}

// raw is a connection behind the handshake, without a library.
func (s *server) raw(tb testing.TB) (net.Conn, *bufio.Reader) {
	tb.Helper()
	nc, err := net.Dial("unix", s.path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	io.WriteString(nc, "GET /v1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	br := bufio.NewReader(nc)
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			tb.Fatal(err)
		}
		if line == "\r\n" {
			return nc, br
		}
	}
}

// A peer that is there answers pings, and stays for as long as it likes.
func TestPongsKeepTheConnection(t *testing.T) {
	s := serve(t, newDesk(), api.Options{PingInterval: 50 * time.Millisecond, ReadTimeout: time.Second})
	p := s.open(t)
	pings := make(chan struct{}, 1000)
	p.ws.SetPingHandler(func(data string) error {
		pings <- struct{}{}
		return p.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
	})
	reply := make(chan string, 1)
	go func() { reply <- p.recv() }()
	for range 45 { // more than two read timeouts
		<-pings
	}
	p.send(`{"jsonrpc":"2.0","id":1,` + read + `}`)
	if got := <-reply; got != resultOf("1") {
		t.Fatal(got)
	}
}

// One that is half open does not.
func TestHalfOpen(t *testing.T) {
	s := serve(t, newDesk(), api.Options{PingInterval: 20 * time.Millisecond, ReadTimeout: 100 * time.Millisecond})
	nc, _ := s.raw(t)
	ce := s.endedWith(t)
	var ne net.Error
	if ce.Code != api.CloseAbnormal || !errors.As(ce, &ne) || !ne.Timeout() {
		t.Fatal(ce)
	}
	nc.Close()
}

func TestPingsAreAnswered(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	p := s.open(t)
	pongs := make(chan string, 10_000)
	p.ws.SetPongHandler(func(data string) error { pongs <- data; return nil })
	go p.ws.ReadMessage()
	for i := range 5000 {
		payload := "some"
		if i == 4999 {
			payload = "last"
		}
		if err := p.ws.WriteControl(websocket.PingMessage, []byte(payload), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		select {
		case got := <-pongs:
			if got == "last" {
				return
			}
		case <-time.After(patience):
			t.Fatal("the last ping was not answered")
		}
	}
}

// A message that never ends is cut off, although its sender is alive.
func TestMessageThatNeverEnds(t *testing.T) {
	for name, piece := range map[string]string{"empty pieces": "", "small pieces": "x"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newDesk(), api.Options{MessageTimeout: 200 * time.Millisecond})
			nc, _ := s.raw(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				nc.Write(rawFrame(0x01, `{"`))
				for {
					if _, err := nc.Write(append(rawFrame(0x00, piece), rawFrame(0x8A, "pong")...)); err != nil {
						return
					}
				}
			}()
			if ce := s.endedWith(t); ce.Code != api.CloseAbnormal {
				t.Fatal(ce)
			}
			wait(t, "last write", done)
		})
	}
}

// Pieces count together, whatever their number.
func TestPiecesCountTogether(t *testing.T) {
	s := serve(t, newDesk(), api.Options{Limits: api.Limits{MaxFrameBytes: 1000}})
	nc, br := s.raw(t)
	nc.Write(rawFrame(0x01, strings.Repeat("x", 100)))
	for range 10 {
		nc.Write(rawFrame(0x00, strings.Repeat("x", 100)))
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(br, head); err != nil || head[0] != 0x88 || int(head[2])<<8|int(head[3]) != api.CloseTooBig {
		t.Fatalf("%x %v", head, err)
	}
	nc.Close()
	s.endedWith(t)
}

func TestFramesThatBreakTheProtocol(t *testing.T) {
	huge := append([]byte{0x81, 0xFF}, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0)
	for name, tc := range map[string]struct {
		bytes []byte
		code  int
	}{
		"unmasked":                {[]byte{0x81, 1, 'x'}, api.CloseProtocol},
		"reserved bit":            {rawFrame(0xC1, "x"), api.CloseProtocol},
		"unknown opcode":          {rawFrame(0x83, "x"), api.CloseProtocol},
		"continuation of nothing": {rawFrame(0x80, "x"), api.CloseProtocol},
		"ping in pieces":          {rawFrame(0x09, "x"), api.CloseProtocol},
		"text within text":        {append(rawFrame(0x01, "x"), rawFrame(0x81, "x")...), api.CloseProtocol},
		"length above 2^63":       {huge, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newDesk(), api.Options{CloseTimeout: 100 * time.Millisecond})
			nc, br := s.raw(t)
			nc.Write(tc.bytes)
			head := make([]byte, 4)
			if _, err := io.ReadFull(br, head); err == nil && tc.code != 0 && (head[0] != 0x88 || int(head[2])<<8|int(head[3]) != tc.code) {
				t.Fatalf("%x", head)
			} else if err != nil && tc.code != 0 {
				t.Fatal(err)
			}
			s.endedWith(t)
		})
	}
}

func TestCloseByThePeer(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	for _, tc := range []struct{ send, echo int }{{1000, 1000}, {1001, 1001}, {4321, 4321}, {1005, 1000}} {
		p := s.open(t)
		p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(tc.send, "bye"), time.Now().Add(patience))
		if got := p.closed(); got != tc.echo {
			t.Errorf("%d was answered with %d", tc.send, got)
		}
		if ce := s.endedWith(t); ce.Code != tc.send || ce.Local {
			t.Errorf("Serve said %v", ce)
		}
	}
}

func TestCloseByUs(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	p := s.open(t)
	c := <-s.conns
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	for seq := int64(1); seq <= 100; seq++ {
		c.Notify(event(t, seq, 1000))
	}
	c.Close(api.CloseTakenOver, "another client took over")
	c.Close(api.CloseNormal, "too late: the first reason counts")
	if err := c.Notify(event(t, 101, 1)); err != nil && !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
	follow(t, p, 100) // what was queued goes out first
	if code := p.closed(); code != api.CloseTakenOver {
		t.Fatal(code)
	}
	if ce := s.endedWith(t); ce.Code != api.CloseTakenOver || !ce.Local {
		t.Fatal(ce)
	}
	if err := c.Notify(event(t, 102, 1)); !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
}

// A peer that does not answer our close frame does not keep us.
func TestCloseWithoutAnswer(t *testing.T) {
	s := serve(t, newDesk(), api.Options{CloseTimeout: 50 * time.Millisecond})
	s.raw(t)
	(<-s.conns).Close(api.ClosePolicy, "go")
	if ce := s.endedWith(t); ce.Code != api.ClosePolicy {
		t.Fatal(ce)
	}
}
