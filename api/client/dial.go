package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wattle-dev/wattle/api"
)

// sunPath is how many bytes a socket address holds, with the NUL that ends it
// (unix(7): 108 on Linux; 104 on Darwin).
var sunPath = len(syscall.RawSockaddrUnix{}.Path)

// CheckSocketPath tells early, and with the numbers, that a path is too long
// for a socket; the kernel says no more than "invalid argument".
func CheckSocketPath(path string) error {
	if path == "" {
		return errors.New("check socket path: it is empty")
	}
	if len(path) >= sunPath {
		return fmt.Errorf("check socket path %s: %d bytes, at most %d fit into a socket address; set WATTLE_SOCKET to a shorter path", path, len(path), sunPath-1)
	}
	return nil
}

// Options of [Dial]. Zero values mean the defaults in brackets.
type Options struct {
	// StartWait is how long to try while nobody listens: the daemon may be
	// about to start [not at all].
	StartWait time.Duration
	// MaxReplyBytes is the largest message that is read [64 MiB and the
	// envelope].
	MaxReplyBytes int64
	// WriteTimeout is how long sending one call may take [10 s].
	WriteTimeout time.Duration
	// Silence is how long the daemon, which pings every 30 s, may be silent
	// before the connection counts as lost [2 min].
	Silence time.Duration
	// EventQueueBytes is how much the events hold that the subscriber has not
	// taken yet [4 MiB].
	EventQueueBytes int
}

func (o Options) orDefaults() Options {
	if o.MaxReplyBytes <= 0 {
		o.MaxReplyBytes = api.DefaultLimits().MaxReplyBytes + 1<<20
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.Silence <= 0 {
		o.Silence = 2 * time.Minute
	}
	if o.EventQueueBytes <= 0 {
		o.EventQueueBytes = int(api.DefaultLimits().EventQueueBytes)
	}
	return o
}

// ErrNoDaemon means that nobody listens on the socket.
var ErrNoDaemon = errors.New("no daemon is listening")

// RefusedError means that a daemon listens and does not want us.
type RefusedError struct {
	Status int    // of HTTP: 401, 403, 429, 503 …
	Reason string // what it said, at most one line
}

func (e *RefusedError) Error() string {
	return strings.TrimRight(fmt.Sprintf("connect to daemon: refused with %d %s: %s", e.Status, http.StatusText(e.Status), e.Reason), ": ")
}

// Dial connects to the daemon on a unix socket. ctx bounds the connecting, not
// the connection. The error wraps [ErrNoDaemon] when nobody listens, and is a
// [*RefusedError] when the daemon refuses. Call [Client.Initialize] next, and
// [Client.Close] in the end.
func Dial(ctx context.Context, socketPath string, o Options) (*Client, error) {
	if err := CheckSocketPath(socketPath); err != nil {
		return nil, fmt.Errorf("connect to daemon: %w", err)
	}
	o = o.orDefaults()
	until := time.Now().Add(o.StartWait)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		ws, err := connect(ctx, socketPath)
		if err == nil {
			return newClient(api.NewSocket(ws), o), nil
		}
		if !errors.Is(err, ErrNoDaemon) || time.Now().Add(pause).After(until) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to daemon at %s: %w", socketPath, context.Cause(ctx))
		}
	}
}

func connect(ctx context.Context, socketPath string) (*websocket.Conn, error) {
	d := websocket.Dialer{
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socketPath)
		},
		HandshakeTimeout: 10 * time.Second,
		ReadBufferSize:   8 << 10,
		WriteBufferSize:  32 << 10,
		Subprotocols:     []string{api.Subprotocol},
	}
	ws, resp, err := d.DialContext(ctx, "ws://localhost/v1", nil)
	switch {
	case err == nil:
		return ws, nil
	case errors.Is(err, websocket.ErrBadHandshake) && resp != nil:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return nil, &RefusedError{Status: resp.StatusCode, Reason: line}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		// Nothing there yet, or the socket of a daemon that has died.
		return nil, fmt.Errorf("connect to daemon at %s: %w (%v)", filepath.Clean(socketPath), ErrNoDaemon, rootCause(err))
	}
	return nil, fmt.Errorf("connect to daemon at %s: %w", socketPath, err)
}

func rootCause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
