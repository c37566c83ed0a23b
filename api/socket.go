package api

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Close codes (RFC 6455 section 7.4, facts/conventions section 9 rule 10).
const (
	CloseNormal      = websocket.CloseNormalClosure   // 1000
	CloseGoingAway   = websocket.CloseGoingAway       // 1001: the daemon stops
	CloseProtocol    = websocket.CloseProtocolError   // 1002
	CloseUnsupported = websocket.CloseUnsupportedData // 1003: a binary frame
	CloseAbnormal    = websocket.CloseAbnormalClosure // 1006: the peer vanished; never on the wire
	ClosePolicy      = websocket.ClosePolicyViolation // 1008
	CloseTooBig      = websocket.CloseMessageTooBig   // 1009
	CloseInternal    = websocket.CloseInternalServerErr
	CloseSlow        = websocket.CloseTryAgainLater // 1013: slow consumer, come back later
	CloseTakenOver   = 4001                         // authentication lost or taken over
)

// CloseError says how a connection ended: by a close frame of either side, or
// with CloseAbnormal without one.
type CloseError struct {
	Code int
	Text string
	// Local is set when this side closed.
	Local bool
	// Err is what broke the connection, if something did.
	Err error
}

func (e *CloseError) Error() string {
	who := "peer"
	if e.Local {
		who = "us"
	}
	switch {
	case e.Err != nil:
		return fmt.Sprintf("connection lost: %v", e.Err)
	case e.Text != "":
		return fmt.Sprintf("connection closed by %s: %d: %s", who, e.Code, e.Text)
	}
	return fmt.Sprintf("connection closed by %s: %d", who, e.Code)
}

func (e *CloseError) Unwrap() error { return e.Err }

// Socket is one WebSocket connection, as far as JSON-RPC needs one. All that is
// known about the library below it is in this file.
//
// One goroutine reads and one writes; Close, EndReads and CutWrites may be
// called by any.
type Socket interface {
	// Configure sets the limits, once and before the first read.
	Configure(SocketOptions)
	// ReadFrame returns the next text message, whole. Errors are *CloseError:
	// the code is the peer's, or the one with which to close.
	ReadFrame() ([]byte, error)
	// WriteFrame writes one text message. After an error nothing more can be
	// written.
	WriteFrame(frame []byte, deadline time.Time) error
	// Ping and Pong write control frames.
	Ping(deadline time.Time) error
	Pong(payload string, deadline time.Time) error
	// WriteClose writes the close frame; nothing is written after it.
	WriteClose(code int, text string, deadline time.Time) error
	// EndReads makes reading fail at that time at the latest, whatever the
	// peer sends until then.
	EndReads(at time.Time)
	// CutWrites makes a write that is going on fail at that time.
	CutWrites(at time.Time)
	// Drain reads and drops until the peer is gone or reading has ended, so
	// that the peer gets to see our close frame. The reader calls it last.
	Drain()
	// Close closes without a word.
	Close() error
}

// SocketOptions are the limits of one socket. Zero means none.
type SocketOptions struct {
	// MaxFrameBytes is the largest message that is read.
	MaxFrameBytes int64
	// ReadTimeout is how long the peer may be silent: messages, pings and pongs
	// count, the parts of a message do not.
	ReadTimeout time.Duration
	// MessageTimeout is how long one message may take from its first byte.
	MessageTimeout time.Duration
	// OnPing is called by the reader for each ping, and must not block. It
	// replaces the library's own answer, which writes from the reader
	// (gorilla/websocket#97).
	OnPing func(payload string)
}

// NewSocket wraps a connection that has been upgraded or dialled, and owns it
// from then on.
func NewSocket(ws *websocket.Conn) Socket { return &socket{ws: ws} }

func (s *socket) Configure(o SocketOptions) {
	s.opt = o
	ws := s.ws
	ws.SetReadLimit(o.MaxFrameBytes)
	ws.SetPongHandler(func(string) error { s.alive(); return nil })
	ws.SetPingHandler(func(payload string) error {
		s.alive()
		if o.OnPing != nil {
			o.OnPing(payload)
		}
		return nil
	})
	// The writer answers a close frame, not the reader.
	ws.SetCloseHandler(func(int, string) error { return nil })
	s.alive()
}

type socket struct {
	ws  *websocket.Conn
	opt SocketOptions

	// started is when the message that is being read began, or zero. Only the
	// reader uses it; the handlers of pings and pongs run on the reader too.
	started time.Time

	mu  sync.Mutex
	end time.Time // of EndReads
}

// alive moves the read deadline: the peer has shown that it is there. A peer
// that never finishes a message is not saved by its pongs.
func (s *socket) alive() {
	var at time.Time
	if s.opt.ReadTimeout > 0 {
		at = time.Now().Add(s.opt.ReadTimeout)
	}
	if !s.started.IsZero() && s.opt.MessageTimeout > 0 {
		at = earlier(at, s.started.Add(s.opt.MessageTimeout))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ws.SetReadDeadline(earlier(at, s.end)) // fails only on a closed connection
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (s *socket) EndReads(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = earlier(at, s.end)
	s.ws.SetReadDeadline(s.end)
}

func (s *socket) CutWrites(at time.Time) { s.ws.NetConn().SetWriteDeadline(at) }

func (s *socket) ReadFrame() ([]byte, error) {
	typ, r, err := s.ws.NextReader()
	if err != nil {
		return nil, readError(err)
	}
	if typ != websocket.TextMessage {
		return nil, &CloseError{Code: CloseUnsupported, Text: "text frames only", Local: true}
	}
	s.started = time.Now()
	s.alive()
	frame, err := readWhole(r)
	s.started = time.Time{}
	if err != nil {
		return nil, readError(err)
	}
	s.alive()
	return frame, nil
}

// readWhole reads to the end. It believes no announced length: memory is taken
// as bytes arrive, in pieces that are put together once. The limit of the socket
// ends it.
func readWhole(r io.Reader) ([]byte, error) {
	const most = 1 << 20
	var full [][]byte
	total := 0
	b := make([]byte, 0, 1024)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case len(b) < cap(b):
		case cap(b) < most:
			b = append(make([]byte, 0, 2*cap(b)), b...)
		default:
			full, total = append(full, b), total+len(b)
			b = make([]byte, 0, most)
		}
	}
	if full == nil {
		return b, nil
	}
	whole := make([]byte, 0, total+len(b))
	for i, p := range full {
		whole = append(whole, p...)
		full[i] = nil
	}
	return append(whole, b...), nil
}

func readError(err error) *CloseError {
	var c *websocket.CloseError
	var n net.Error
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return &CloseError{Code: CloseTooBig, Text: "message too big", Local: true}
	case errors.As(err, &c) && c.Code == websocket.CloseAbnormalClosure:
		return &CloseError{Code: CloseAbnormal, Err: io.ErrUnexpectedEOF}
	case errors.As(err, &c):
		return &CloseError{Code: c.Code, Text: c.Text}
	case errors.As(err, &n), errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF):
		return &CloseError{Code: CloseAbnormal, Err: err}
	}
	return &CloseError{Code: CloseProtocol, Text: "malformed frame", Local: true, Err: err}
}

func (s *socket) WriteFrame(frame []byte, deadline time.Time) error {
	s.ws.SetWriteDeadline(deadline) // only stores it
	return s.ws.WriteMessage(websocket.TextMessage, frame)
}

func (s *socket) Ping(deadline time.Time) error {
	return s.ws.WriteControl(websocket.PingMessage, nil, deadline)
}

func (s *socket) Pong(payload string, deadline time.Time) error {
	return s.ws.WriteControl(websocket.PongMessage, []byte(payload), deadline)
}

func (s *socket) WriteClose(code int, text string, deadline time.Time) error {
	if code == CloseAbnormal {
		code = CloseNormal // 1006 must not travel
	}
	const most = 123 // RFC 6455 section 5.5: 125 with the code
	if len(text) > most {
		text = text[:most]
	}
	return s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), deadline)
}

// Drain reads below the library, whose reader has ended.
func (s *socket) Drain() { io.Copy(io.Discard, s.ws.NetConn()) }

func (s *socket) Close() error { return s.ws.Close() }
