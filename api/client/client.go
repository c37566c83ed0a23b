package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/api"
)

// Client is one connection to the daemon. Any number of goroutines may use it
// at once.
type Client struct {
	sock api.Socket
	opt  Options

	// write is held (by putting a token in) by the one who writes. It is a
	// channel so that a call that is cancelled need not wait for it.
	write chan struct{} // capacity 1
	pongs chan string   // capacity 1: the newest ping that is to be answered
	done  chan struct{} // closed when the connection is over
	wg    sync.WaitGroup

	mu      sync.Mutex // innermost: nothing is called with it held
	lastID  int64
	pending map[int64]chan reply // each of capacity 1
	err     error                // why the connection is over
	sub     *Subscription
	limits  api.Limits // of the daemon, from initialize
	streams map[string]*textStream
	watches watches
}

type reply struct {
	result jsontext.Value
	err    *api.Error
}

func newClient(sock api.Socket, o Options) *Client {
	c := &Client{
		sock: sock, opt: o,
		write: make(chan struct{}, 1), pongs: make(chan string, 1), done: make(chan struct{}),
		pending: map[int64]chan reply{}, limits: api.DefaultLimits(), streams: map[string]*textStream{},
	}
	sock.Configure(api.SocketOptions{MaxFrameBytes: o.MaxReplyBytes, ReadTimeout: o.Silence, OnPing: c.pinged})
	c.wg.Go(c.read)
	c.wg.Go(c.pong)
	return c
}

// Initialize begins the conversation; it must be the first call.
func (c *Client) Initialize(ctx context.Context, who api.Implementation) (api.InitializeResult, error) {
	r, err := Do(ctx, c, api.Initialize, api.InitializeParams{ProtocolVersion: api.ProtocolVersion, Client: who})
	if err == nil {
		c.mu.Lock()
		c.limits = r.Limits
		c.mu.Unlock()
	}
	return r, err
}

// Do makes a call of the method table with its own types.
func Do[P, R any](ctx context.Context, c *Client, m api.Method[P, R], params P) (R, error) {
	var r R
	err := c.Call(ctx, m.Name, params, &r)
	return r, err
}

// Call makes one call and waits for its result. params is an object or nil,
// result a pointer or nil.
//
// The error is an [*api.Error] when the daemon refused. When ctx ends, the call
// is cancelled and ctx's error returned at once: whether it was carried out is
// then unknown, and so it is after an error of the connection.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	raw, err := encodeParams(params)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	return c.call(ctx, method, raw, result, false)
}

// call makes one call. With stay, a call that is cancelled waits for its answer
// all the same: what has happened is then known. Nothing bounds that wait but
// the connection.
func (c *Client) call(ctx context.Context, method string, raw jsontext.Value, result any, stay bool) error {
	id, answer, err := c.begin()
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	defer c.forget(id)
	if err := c.send(ctx, frame(id, method, raw)); err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	select {
	case r := <-answer:
		return finish(method, r, result)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.done:
		err = c.Err()
	}
	select {
	case r := <-answer: // it came right before the end: better than not to know
		return finish(method, r, result)
	default:
	}
	c.cancel(id)
	if stay {
		select {
		case r := <-answer:
			return finish(method, r, result)
		case <-c.done:
			err = c.Err()
		}
	}
	return fmt.Errorf("call %s: %w", method, err)
}

func finish(method string, r reply, result any) error {
	if r.err != nil {
		return r.err
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.result, result); err != nil {
		return fmt.Errorf("call %s: decode result: %w", method, err)
	}
	return nil
}

// Close closes the connection and waits until nothing of it is left. Calls
// that wait get an error.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.err == nil {
		c.err = api.ErrClosed
	}
	c.mu.Unlock()
	by := time.Now().Add(2 * time.Second)
	c.sock.EndReads(by) // the daemon has so long to answer our close frame
	_ = c.sock.WriteClose(api.CloseNormal, "", by)
	<-c.done
	c.wg.Wait()
	return nil
}

// Done is closed when the connection is over, by whichever side.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is why the connection is over, or nil while it is not: [api.ErrClosed]
// after Close, else an [*api.CloseError] with the daemon's code if it gave one.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// begin registers a call.
func (c *Client) begin() (int64, chan reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.lastID++
	answer := make(chan reply, 1)
	c.pending[c.lastID] = answer
	return c.lastID, answer, nil
}

func (c *Client) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// cancel tells the daemon that nobody waits for the answer any more. It does
// not make the caller wait: when another one is writing, it is left to a
// goroutine, which ends with that write.
func (c *Client) cancel(id int64) {
	text := []byte(`{"jsonrpc":"2.0","method":"` + api.CancelMethod + `","params":{"id":` + strconv.FormatInt(id, 10) + `}}`)
	c.mu.Lock()
	over := c.err != nil
	if !over {
		c.wg.Add(1) // under the lock: Close waits only after err is set
	}
	c.mu.Unlock()
	if over {
		return
	}
	go func() {
		defer c.wg.Done()
		_ = c.send(context.Background(), text) // the connection's error is kept elsewhere
	}()
}

// send writes one frame. An error of ctx means that nothing was written.
func (c *Client) send(ctx context.Context, text []byte) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case c.write <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return c.Err()
	}
	err := c.sock.WriteFrame(text, time.Now().Add(c.opt.WriteTimeout))
	<-c.write
	if err == nil {
		return nil
	}
	// What the daemon has seen is unknown. If it has closed, the reader learns
	// why; otherwise reading must end too.
	c.sock.EndReads(time.Now().Add(time.Second))
	<-c.done
	return c.Err()
}

// read takes frames until the connection is over.
func (c *Client) read() {
	var end error
	for {
		text, err := c.sock.ReadFrame()
		if err != nil {
			end = err
			break
		}
		if err := c.receive(text); err != nil {
			end = err
			break
		}
	}
	var ce *api.CloseError
	if errors.As(end, &ce) && !ce.Local && ce.Code != api.CloseAbnormal {
		code := ce.Code
		if code == 1005 {
			code = api.CloseNormal
		}
		_ = c.sock.WriteClose(code, "", time.Now().Add(time.Second))
	}
	c.mu.Lock()
	if c.err == nil {
		c.err = end
	}
	sub := c.sub
	c.mu.Unlock()
	close(c.done)
	c.sock.Close()
	if sub != nil {
		sub.end()
	}
}

// pong answers pings, so that the reader never writes.
func (c *Client) pong() {
	for {
		select {
		case p := <-c.pongs:
			if c.sock.Pong(p, time.Now().Add(c.opt.WriteTimeout)) != nil {
				return
			}
		case <-c.done:
			return
		}
	}
}

func (c *Client) pinged(payload string) {
	select { // the newest one counts
	case <-c.pongs:
	default:
	}
	select {
	case c.pongs <- payload:
	default:
	}
}
