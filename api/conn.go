package api

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Options of a connection. Zero values mean the defaults in brackets.
type Options struct {
	Limits Limits // [DefaultLimits]
	// PingInterval is the time between two pings [30 s].
	PingInterval time.Duration
	// ReadTimeout is how long the peer may be silent, pongs included [75 s].
	ReadTimeout time.Duration
	// MessageTimeout is how long one message may take to arrive [60 s].
	MessageTimeout time.Duration
	// WriteTimeout is how long one write may take [10 s]. After it the
	// connection is broken.
	WriteTimeout time.Duration
	// CloseTimeout is how long an orderly end may take: calls that finish,
	// replies that go out, the peer's close frame [2 s].
	CloseTimeout time.Duration
	// Logger gets what nobody else can be told: panics, and results that
	// cannot be encoded.
	Logger zerolog.Logger
	// Counters, if set, count; they may be shared.
	Counters *Counters
}

func (o Options) orDefaults() Options {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	o.Limits = o.Limits.orDefaults()
	or(&o.PingInterval, 30*time.Second)
	or(&o.ReadTimeout, 75*time.Second)
	or(&o.MessageTimeout, time.Minute)
	or(&o.WriteTimeout, 10*time.Second)
	or(&o.CloseTimeout, 2*time.Second)
	if o.Counters == nil {
		o.Counters = new(Counters)
	}
	return o
}

// Conn is one connection of a client. Make it with [NewConn] and run it with
// [Conn.Serve]; all other methods may be called at any time by anybody and
// never block, except [Conn.NotifyWait].
//
// # Goroutines
//
// Serve reads. One goroutine writes, and is the only one that does. One
// goroutine carries out each call. All of them have ended when Serve returns.
type Conn struct {
	sock    Socket
	handler Handler
	opt     Options

	wake chan struct{} // capacity 1: the writer has something to look at
	done chan struct{} // closed when the connection is ending

	wg sync.WaitGroup // calls and the writer

	mu sync.Mutex
	s  state // guarded by mu; change it with update only
}

// NewConn makes a connection from an upgraded socket, which it owns.
func NewConn(sock Socket, h Handler, o Options) *Conn {
	o = o.orDefaults()
	c := &Conn{
		sock: sock, handler: h, opt: o,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	c.s.init(o.Limits)
	sock.Configure(SocketOptions{
		MaxFrameBytes:  o.Limits.MaxFrameBytes,
		ReadTimeout:    o.ReadTimeout,
		MessageTimeout: o.MessageTimeout,
		OnPing:         c.pinged,
	})
	return c
}

// Serve runs the connection until it is over and returns why, always as a
// [*CloseError]. When ctx ends, the connection is closed with 1001. Serve
// returns only when every call has returned. It may be called once.
func (c *Conn) Serve(ctx context.Context) error {
	c.opt.Counters.Connections.Add(1)
	defer c.opt.Counters.Connections.Add(-1)

	// Calls end by our own hand, with a cause, not by ctx directly.
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(ErrClosed)
	c.update(func(s *state) { s.cancelCalls = func() { cancel(ErrClosed) } })
	stopped := context.AfterFunc(ctx, func() { c.Close(CloseGoingAway, "the daemon stops") })
	defer stopped()

	written := make(chan struct{})
	c.spawn(func() {
		defer close(written)
		c.write()
	})
	drain := c.read(calls)
	<-written
	if drain {
		c.sock.Drain()
	}
	c.sock.Close()
	c.wg.Wait()
	c.update(func(s *state) { s.lateTimer.Stop() }) // set when the end began
	return c.Err()
}

// read takes frames until reading ends. It returns true when the peer may
// still be sending, and would miss our close frame if we just hung up.
func (c *Conn) read(ctx context.Context) (drain bool) {
	for {
		text, err := c.sock.ReadFrame()
		if err != nil {
			var ce *CloseError
			if !errors.As(err, &ce) {
				ce = &CloseError{Code: CloseAbnormal, Err: err}
			}
			c.update(func(s *state) { s.fail(ce) })
			return ce.Local
		}
		c.opt.Counters.Frames.Add(1)
		c.opt.Counters.BytesIn.Add(int64(len(text)))
		select {
		case <-c.done:
			// Ending: only the peer's close frame still matters.
		default:
			c.receive(ctx, text)
		}
	}
}

// Close ends the connection in order: nothing more is accepted, calls are
// cancelled, their replies and what is queued go out, then the close frame,
// all within CloseTimeout. It does not wait. The first reason counts.
func (c *Conn) Close(code int, text string) {
	c.update(func(s *state) {
		if s.end == nil {
			s.orderly = true
			s.end = &CloseError{Code: code, Text: text, Local: true}
		}
	})
}

// Done is closed when the connection begins to end. Calls may still be running.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ends, or nil while it does not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s.end == nil {
		return nil
	}
	return c.s.end
}

// Limits are those of the connection, for the reply to initialize.
func (c *Conn) Limits() Limits { return c.opt.Limits }

// spawn runs f on a goroutine that Serve waits for. A panic there is a defect
// of this package: the connection is given up, the daemon is not.
func (c *Conn) spawn(f func()) {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		defer func() {
			if v := recover(); v != nil {
				c.panicked("connection", v)
				c.update(func(s *state) { s.fail(&CloseError{Code: CloseInternal, Local: true, Err: fmt.Errorf("panic: %v", v)}) })
				c.sock.Close()
			}
		}()
		f()
	}()
}

func (c *Conn) panicked(where string, v any) {
	c.opt.Counters.Panics.Add(1)
	c.opt.Logger.Error().Str("where", clip(where)).Any("panic", v).Bytes("stack", debug.Stack()).Msg("panic")
}

// pinged notes that a pong is owed. Only the newest ping needs an answer
// (RFC 6455 section 5.5.3), so a flood of pings costs nothing.
func (c *Conn) pinged(payload string) {
	c.update(func(s *state) { s.pong, s.pongDue = payload, true })
}
