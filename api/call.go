package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// CancelMethod cancels a call (LSP 3.17, $/cancelRequest). As a notification it
// is not answered; as a call it is answered with {}.
const CancelMethod = "$/cancelRequest"

// CancelParams names the call. The id must be spelled as it was.
type CancelParams struct {
	ID jsontext.Value `json:"id"`
}

var cancelShape = shapeOf(reflect.TypeFor[CancelParams]())

// receive carries out one frame. It runs on the reader and never waits, except
// for initialize.
func (c *Conn) receive(ctx context.Context, text []byte) {
	f, perr := parseFrame(text, c.opt.Limits)
	if perr != nil {
		c.opt.Counters.Malformed.Add(1)
		c.sendNow(errorFrame(nullID, perr), nil)
		return
	}
	if f.batch {
		c.receiveBatch(ctx, f.messages)
		return
	}
	c.sendNow(c.carryOut(ctx, &f.messages[0], nil), nil)
}

// carryOut starts one request, or returns the answer to it at once. b is the
// batch that it belongs to, or nil.
func (c *Conn) carryOut(ctx context.Context, m *message, b *batch) []byte {
	var err *Error
	switch {
	case m.kind == kindResponse:
		c.opt.Counters.IgnoredResponses.Add(1)
		return nil
	case m.kind == kindVoid:
		c.opt.Counters.Malformed.Add(1)
		return nil
	case m.kind == kindInvalid:
		if err = m.err; m.id == nil {
			m.id = nullID
		}
	case m.method == CancelMethod:
		if err = c.cancelCall(m); err == nil && m.id != nil {
			return resultFrame(m.id, []byte("{}"))
		}
	default:
		err = c.admit(ctx, m, b)
	}
	if err == nil {
		return nil
	}
	if err.Code == numBusy {
		c.opt.Counters.Busy.Add(1)
	} else {
		c.opt.Counters.Malformed.Add(1)
	}
	if m.id == nil {
		return nil
	}
	return errorFrame(m.id, err)
}

// sendNow queues an answer that the reader made. The reader does not wait: a
// peer that sends faster than it reads, until the queue is full of answers, is
// told to come back later.
func (c *Conn) sendNow(text []byte, then func(*state)) {
	if text == nil && then == nil {
		return
	}
	c.update(func(s *state) {
		if then != nil {
			then(s)
		}
		if text == nil || !s.writable() {
			return
		}
		if !s.q.PushReply(text, len(text)) {
			c.slow(s)
		}
	})
}

// slow gives up a peer that does not read its answers.
func (c *Conn) slow(s *state) {
	c.opt.Counters.SlowClosed.Add(1)
	s.fail(&CloseError{Code: CloseSlow, Text: "answers are not read", Local: true})
}

// admit starts a call, or says why not. It changes m.id to null when the id
// must not be echoed.
func (c *Conn) admit(ctx context.Context, m *message, b *batch) *Error {
	spec := methodByName(m.method)
	isInit := m.method == Initialize.Name
	// A call keeps nothing of the frame but its parameters, and those only
	// until they are decoded: what is counted is all that it holds.
	k := &call{
		id: m.id.Clone(), method: m.method, params: m.params,
		size: int64(len(m.params) + 2*len(m.id)), isInit: isInit,
	}
	var callCtx context.Context
	callCtx, k.cancel = context.WithCancelCause(ctx)

	var err *Error
	c.update(func(s *state) {
		key := ""
		if m.id != nil {
			key = idKey(m.id)
		}
		lim := &c.opt.Limits
		switch {
		case !s.accepts():
			// Nobody reads the answer any more.
			err = protocolError(numInternal, CodeInternal, "start call: the connection is closing")
		case m.id != nil && s.calls[key] != nil:
			// With its own id the answer would be taken for the one of the
			// call that runs.
			m.id = nullID
			err = protocolError(numInvalidRequest, CodeInvalidRequest, "start call: the id %s is in use", clip(string(k.id)))
		case !s.ready && !isInit:
			err = protocolError(numNotInitialized, CodeNotInitialized, "start call: the first call must be initialize")
		case s.ready && isInit:
			err = protocolError(numInvalidRequest, CodeInvalidRequest, "start call: initialize was called already")
		case spec == nil:
			err = protocolError(numMethodNotFound, CodeMethodNotFound, "start call: there is no method %q", clip(m.method))
		case s.inFlight >= lim.MaxInFlight:
			err = protocolError(numBusy, CodeBusy, "start call: %d calls are running, which is the limit", s.inFlight)
		case s.inFlight > 0 && s.bytes+k.size > lim.MaxInFlightBytes:
			err = protocolError(numBusy, CodeBusy, "start call: the parameters of running calls hold %d bytes", s.bytes)
		default:
			s.inFlight++
			s.bytes += k.size
			c.opt.Counters.Calls.Add(1)
			c.opt.Counters.InFlight.Add(1)
			if m.id != nil {
				s.calls[key] = k
			}
			if b != nil {
				b.shares++
			}
		}
	})
	if err != nil {
		k.cancel(nil)
		return err
	}
	if isInit {
		// Before anything behind it is looked at, so that a client may send
		// its first calls without waiting.
		c.run(callCtx, k, spec, b)
		return nil
	}
	c.spawn(func() { c.run(callCtx, k, spec, b) })
	return nil
}

// cancelCall cancels a call that runs. An id that is not known is no error: the
// call may just have ended.
func (c *Conn) cancelCall(m *message) *Error {
	var p CancelParams
	if err := decodeParams(m.params, cancelShape, &p); err != nil {
		return err
	}
	if !validID(p.ID) {
		return paramsError("/id", "an id is a string or a number")
	}
	var k *call
	c.update(func(s *state) { k = s.calls[idKey(p.ID)] })
	if k != nil {
		c.opt.Counters.Cancelled.Add(1)
		k.cancel(ErrCancelled)
	}
	return nil
}

var errPanic = errors.New("the handler panicked")

// run carries out one call and answers it, whatever the handler does.
func (c *Conn) run(ctx context.Context, k *call, spec *Spec, b *batch) {
	var text []byte
	ok, returned := false, false
	defer func() {
		if !returned { // a panic, or runtime.Goexit
			c.panicked(k.method, recover())
			text = c.failure(ctx, k, errPanic)
		}
		k.cancel(nil)
		c.finish(k, ok, text, b)
	}()
	text, ok = c.call(ctx, k, spec)
	returned = true
}

// finish frees the slot of a call and queues what is to be sent in one step: a
// client that has the reply may use the id again. When there is no room, it
// waits and holds the slot, so that a client that does not read meets BUSY.
func (c *Conn) finish(k *call, ok bool, text []byte, b *batch) {
	if !ok {
		k.after = nil
	}
	if b != nil {
		var last bool
		if text, last = c.settle(k, ok, text, b); !last {
			return
		}
		k.after = b.after
	}
	sent := c.waitRoom(context.Background(), func(s *state) bool {
		if text != nil && !s.q.PushReply(text, len(text)) {
			if !k.isInit {
				return false
			}
			c.slow(s) // the reader must not wait
		}
		c.free(s, k, ok)
		return true
	})
	if !sent {
		c.update(func(s *state) { c.free(s, k, ok) })
		return
	}
	for _, f := range k.after {
		f()
	}
}

func (c *Conn) call(ctx context.Context, k *call, spec *Spec) ([]byte, bool) {
	params := spec.newParams()
	raw := k.params
	k.params = nil
	if err := decodeParams(raw, spec.shape, params); err != nil {
		c.opt.Counters.Malformed.Add(1)
		return c.failure(ctx, k, err), false
	}
	r := &Request{Method: k.method, Params: params, ID: k.id, Conn: c}
	result, err := c.handler.Handle(ctx, r)
	k.after = r.after
	if err != nil {
		return c.failure(ctx, k, err), false
	}
	if k.id == nil {
		return nil, true
	}
	text, err := encodeResult(k.id, result, c.opt.Limits.MaxReplyBytes)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			c.opt.Logger.Error().Str("method", k.method).Err(err).Msg("encode result")
		}
		return c.failure(ctx, k, err), false
	}
	return text, true
}

// failure is the answer to a call that failed.
func (c *Conn) failure(ctx context.Context, k *call, err error) []byte {
	if k.id == nil {
		return nil
	}
	if errors.Is(err, ErrNotHandled) {
		return errorFrame(k.id, protocolError(numMethodNotFound, CodeMethodNotFound, "start call: there is no method %q", clip(k.method)))
	}
	e := ErrorOf(err)
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		// The client asked for this number; what really happened stays in the
		// data, for an effect may be known only from there.
		e = cancelled(e)
	} else if e.Code == numInternal && !errors.Is(err, errPanic) {
		c.opt.Logger.Error().Str("method", k.method).Err(err).Msg("call failed without a code")
	}
	return errorFrame(k.id, e)
}

// free gives the slot of a call back.
func (c *Conn) free(s *state, k *call, ok bool) {
	s.inFlight--
	s.bytes -= k.size
	if k.id != nil {
		delete(s.calls, idKey(k.id))
	}
	if ok && k.isInit {
		s.ready = true
	}
	c.opt.Counters.InFlight.Add(-1)
}

// waitRoom tries f, under the lock, whenever there is more room in the queue.
// It returns false when nothing will be written any more or ctx ends.
func (c *Conn) waitRoom(ctx context.Context, f func(*state) bool) bool {
	for {
		var done, over bool
		var room chan struct{}
		c.update(func(s *state) {
			if over = !s.writable(); over {
				return
			}
			if done = f(s); !done {
				s.waiting = true
				room = s.room
			}
		})
		if done || over {
			return done
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

func tooLarge(size int, limit int64) *Error {
	return NewError(codeTooLarge, fmt.Sprintf("send result: the call is completed, but its result of %d bytes exceeds %d", size, limit),
		"limit", limit, "completed", true)
}
