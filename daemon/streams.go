package daemon

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
)

const (
	// maxStreams is how many streams one connection may have: each holds an
	// open file and one chunk.
	maxStreams   = 16
	defaultChunk = 64 << 10
)

// stream is a text that a connection gets in pieces. One goroutine reads the
// file and sends; it waits while the connection's queue is full and, with a
// window, until the client gives it more. It ends with the text, with Stop,
// with the session or with the connection.
type stream struct {
	cl      *client
	id      string
	session *Session
	size    int // of a chunk, bytes
	text    provider.TextStream
	ctx     context.Context // ends with the session too
	cancel  context.CancelFunc
	piece   string // the first, read before the call is answered
	err     error  // that came with it

	more chan struct{} // capacity 1: there may be more credit

	mu       sync.Mutex
	windowed bool
	credit   int
}

// streamText begins a stream, gives one more chunks, or ends one.
func (s *Server) streamText(ctx context.Context, r *api.Request, p *api.FSStreamTextParams) (api.FSStreamTextResult, error) {
	var none api.FSStreamTextResult
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return none, err
	}
	cl, err := s.caller(r)
	if err != nil {
		return none, err
	}
	if p.StreamID != "" {
		cl.steer(x, p)
		return api.FSStreamTextResult{StreamID: p.StreamID}, nil
	}
	if r.ID == nil {
		return none, api.NewError(api.CodeInvalidRequest, "stream text: nobody would learn the id of the stream")
	}
	st := &stream{cl: cl, id: newID(), session: x, size: p.ChunkBytes, windowed: p.Window > 0, credit: p.Window, more: make(chan struct{}, 1)}
	if st.size == 0 {
		st.size = defaultChunk
	}
	st.ctx, st.cancel = context.WithCancel(x.life)
	if err := cl.addStream(st); err != nil {
		st.cancel()
		return none, err
	}
	if err := st.open(ctx, &p.FileRef); err != nil {
		cl.dropStream(st)
		st.cancel()
		return none, err
	}
	r.AfterReply(st.start)
	out := api.FSStreamTextResult{StreamID: st.id, Version: st.text.Version(), BOM: st.text.BOM()}
	return out, nil
}

// open opens the file and reads the first piece, with which the byte-order mark
// is known. Until then the call's own end ends it.
func (st *stream) open(ctx context.Context, ref *api.FileRef) error {
	held := context.AfterFunc(ctx, st.cancel)
	text, err := st.session.StreamText(st.ctx, ref)
	if err != nil {
		held()
		return err
	}
	st.piece, st.err = text.Next()
	if !held() {
		_ = text.Close()
		return &provider.Error{Code: provider.CodeAborted, Op: "streamText", Path: ref.Path, Cause: context.Cause(ctx)}
	}
	st.text = text
	return nil
}

// start begins to send. It is called once the client has been told the id.
func (st *stream) start() {
	st.cl.streamWG.Add(1)
	go func() {
		defer st.cl.streamWG.Done()
		defer func() {
			if v := recover(); v != nil {
				st.cl.server.host.log.Error().Any("panic", v).Msg("stream panicked")
				st.cl.conn.Close(api.CloseInternal, "internal error")
			}
		}()
		defer st.cancel()
		err := st.run()
		end := api.FSStreamEndData{StreamID: st.id}
		if errors.Is(err, io.EOF) {
			end.Version = st.text.Version()
		} else {
			end.Error = api.ErrorOf(err)
		}
		_ = st.text.Close()
		// Before the end is told: whoever knows of it may begin another one.
		st.cl.dropStream(st)
		// The session may be over, and the client is to know. This waits for
		// the client, or for the end of its connection.
		_ = sendAside(context.WithoutCancel(st.ctx), st, api.EventFSStreamEnd, end)
	}()
}

// run sends the text and returns io.EOF, or why it ended early.
func (st *stream) run() error {
	seq := int64(0)
	for piece, err := st.piece, st.err; ; piece, err = st.text.Next() {
		for piece != "" {
			n := cut(piece, st.size)
			if err := st.await(); err != nil {
				return err
			}
			seq++
			if err := sendAside(st.ctx, st, api.EventFSChunk, api.FSChunkData{StreamID: st.id, Seq: seq, Text: piece[:n]}); err != nil {
				return st.aborted(err)
			}
			piece = piece[n:]
		}
		if err != nil {
			return err
		}
	}
}

// await waits until one more chunk may be sent.
func (st *stream) await() error {
	for {
		st.mu.Lock()
		ok := !st.windowed || st.credit > 0
		if ok {
			st.credit--
		}
		st.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-st.more:
		case <-st.ctx.Done():
			return st.aborted(st.ctx.Err())
		case <-st.cl.conn.Done():
			return st.aborted(api.ErrClosed)
		}
	}
}

func (st *stream) aborted(err error) error {
	return &provider.Error{Code: provider.CodeAborted, Op: "streamText", Cause: err}
}

// cut is how much of a text goes into a chunk: whole characters.
func cut(text string, size int) int {
	if len(text) <= size {
		return len(text)
	}
	for n := size; n > size-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return size
}

// sendAside sends an event that belongs to one stream, and waits for room.
func sendAside[D any](ctx context.Context, st *stream, t api.EventType[D], data D) error {
	e, err := t.New(st.session.id, "", data)
	if err != nil {
		return err
	}
	e.Epoch, e.Time = st.cl.server.log.Epoch(), time.Now()
	note, err := api.EncodeUnnumbered(e)
	if err != nil {
		return err
	}
	return st.cl.conn.NotifyWait(ctx, note)
}

// addStream takes a place for a stream. BUSY: the connection has too many.
func (cl *client) addStream(st *stream) error {
	cl.streamMu.Lock()
	defer cl.streamMu.Unlock()
	if len(cl.streams) >= maxStreams {
		return api.NewError(api.CodeBusy, "stream text: the connection has too many streams", "limit", maxStreams)
	}
	if cl.streams == nil {
		cl.streams = map[string]*stream{}
	}
	cl.streams[st.id] = st
	return nil
}

func (cl *client) dropStream(st *stream) {
	cl.streamMu.Lock()
	defer cl.streamMu.Unlock()
	delete(cl.streams, st.id)
}

// steer gives a stream more chunks, or ends it. One that is over, or another
// session's, is left alone: the client may not know yet.
func (cl *client) steer(x *Session, p *api.FSStreamTextParams) {
	cl.streamMu.Lock()
	st := cl.streams[p.StreamID]
	cl.streamMu.Unlock()
	switch {
	case st == nil || st.session != x:
	case p.Stop:
		st.cancel()
	default:
		st.mu.Lock()
		st.credit = min(st.credit+p.Window, maxWindow)
		st.mu.Unlock()
		select {
		case st.more <- struct{}{}:
		default:
		}
	}
}

// maxWindow keeps the sum of what a client gives from overflowing.
const maxWindow = 1 << 30

// endStreams ends the streams of a connection that is over.
func (cl *client) endStreams() {
	cl.streamMu.Lock()
	all := make([]*stream, 0, len(cl.streams))
	for _, st := range cl.streams {
		all = append(all, st)
	}
	cl.streamMu.Unlock()
	for _, st := range all {
		st.cancel()
	}
	cl.streamWG.Wait()
	// What is left was never begun: its answer could not be sent.
	cl.streamMu.Lock()
	defer cl.streamMu.Unlock()
	for id, st := range cl.streams {
		if st.text != nil {
			_ = st.text.Close()
		}
		delete(cl.streams, id)
	}
}
