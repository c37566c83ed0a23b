package api

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is one call, decoded and checked.
type Request struct {
	// Method is a name of the method table.
	Method string
	// Params points to the parameter type that the table names for the method.
	Params any
	// ID is the id as the client spelled it, or nil for a notification, whose
	// result nobody gets.
	ID jsontext.Value
	// Conn is the connection that asked.
	Conn *Conn

	after []func()
}

// AfterReply has f called once the answer of this call is queued, so that what
// f sends comes behind it. f must not block. It is not called when the call
// fails, or when the answer cannot be sent any more. Only Handle may call it,
// before it returns.
func (r *Request) AfterReply(f func()) { r.after = append(r.after, f) }

// Handler carries out calls. The daemon implements it.
//
// Handle is called at once for many calls of one connection, each on a
// goroutine of its own; what must be ordered (calls on one target file) is the
// handler's business. `initialize` alone is carried out by the reader, before
// anything that follows it.
//
// The context ends when the client cancels the call (context.Cause is then
// [ErrCancelled]) or when the connection ends ([ErrClosed]). Handle must then
// return soon: a connection is over only when its calls are.
//
// The result must be of the type that the table names. An error travels as
// [ErrorOf] says. A panic is answered with INTERNAL_ERROR and logged; the
// connection stays.
type Handler interface {
	Handle(ctx context.Context, r *Request) (any, error)
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, r *Request) (any, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) (any, error) { return f(ctx, r) }

var _ Handler = HandlerFunc(nil)

var (
	// ErrNotHandled is what a handler returns for a method that it does not
	// have; it is answered with METHOD_NOT_FOUND.
	ErrNotHandled = errors.New("method is not served here")
	// ErrCancelled is the cause of a context whose call the client cancelled.
	ErrCancelled = errors.New("cancelled by the client")
	// ErrClosed means that the connection is over.
	ErrClosed = errors.New("connection is closed")
)

// Mux is a [Handler] that finds a typed function for each method. Fill it with
// [On], then use it; it must not be changed afterwards.
type Mux struct {
	funcs map[string]func(context.Context, *Request) (any, error)
}

// NewMux makes an empty Mux: it answers every call with METHOD_NOT_FOUND.
func NewMux() *Mux {
	return &Mux{funcs: map[string]func(context.Context, *Request) (any, error){}}
}

// On sets the function of a method; the types are those of the table, so that
// a mismatch does not compile.
func On[P, R any](m *Mux, method Method[P, R], f func(ctx context.Context, r *Request, p *P) (R, error)) {
	m.funcs[method.Name] = func(ctx context.Context, r *Request) (any, error) {
		p, ok := r.Params.(*P)
		if !ok {
			return nil, ErrNotHandled
		}
		return f(ctx, r, p)
	}
}

// Handle implements [Handler].
func (m *Mux) Handle(ctx context.Context, r *Request) (any, error) {
	f := m.funcs[r.Method]
	if f == nil {
		return nil, ErrNotHandled
	}
	return f(ctx, r)
}

// Missing are the methods of the table that have no function, in the order of
// the table.
func (m *Mux) Missing() []string {
	var out []string
	for _, s := range Methods() {
		if m.funcs[s.Name] == nil {
			out = append(out, s.Name)
		}
	}
	return out
}
