package client

import (
	"context"
	"io"
	"sync"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/provider"
)

// window is how many chunks of a stream may be on their way or wait to be
// taken; the daemon sends no more before it is asked. With the daemon's own
// size of chunks, that is 1 MiB.
const window = 16

// textStream is a stream of [Files]. The reader of the connection fills it.
type textStream struct {
	f     *Files
	ctx   context.Context
	unctx func() bool // ends the watch over ctx
	shown string
	id    string
	bom   bool

	wake chan struct{} // capacity 1

	mu      sync.Mutex
	version provider.Version
	chunks  []string
	seq     int64 // of the last chunk that came
	taken   int   // chunks since the daemon was last asked for more
	end     error // io.EOF, or why it is over; nil while it goes on
	told    bool  // Next has given end
	closed  bool
}

// StreamText reads a text file of any size piece by piece. It ends with ctx;
// close it.
func (f *Files) StreamText(ctx context.Context, t provider.Target) (provider.TextStream, error) {
	r, err := file(ctx, f, api.FSStreamText, t.DisplayPath, api.FSStreamTextParams{FileRef: f.at(t), Window: window})
	if err != nil {
		return nil, err
	}
	s := f.c.stream(r.StreamID)
	s.mu.Lock()
	s.f, s.ctx, s.shown, s.bom = f, ctx, t.DisplayPath, r.BOM
	if s.version == "" {
		s.version = r.Version
	}
	s.mu.Unlock()
	s.unctx = context.AfterFunc(ctx, s.stop)
	return s, nil
}

// stream finds a stream, or makes it: its first chunks may come before the
// caller has looked at the answer.
func (c *Client) stream(id string) *textStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		s = &textStream{id: id, wake: make(chan struct{}, 1)}
		c.streams[id] = s
	}
	return s
}

// streamed takes an event of a stream; it runs on the reader and never waits:
// the daemon sends no more than the window.
func (c *Client) streamed(e api.Event) {
	switch e.Type {
	case api.EventFSChunk.Name:
		if d, err := api.EventFSChunk.Decode(e); err == nil {
			c.stream(d.StreamID).add(d)
		}
	case api.EventFSStreamEnd.Name:
		if d, err := api.EventFSStreamEnd.Decode(e); err == nil {
			if c.stream(d.StreamID).over(d) {
				c.forgetStream(d.StreamID)
			}
		}
	}
}

func (s *textStream) add(d api.FSChunkData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.end != nil:
		return
	case d.Seq != s.seq+1:
		s.end = &provider.Error{Code: provider.CodeIOError, Op: "streamText", Path: s.shown, Detail: "a chunk is missing"}
		s.chunks = nil
	default:
		s.seq = d.Seq
		s.chunks = append(s.chunks, d.Text)
	}
	s.signal()
}

// over ends the stream, and tells whether its caller has it already. Otherwise
// the caller finds it by its id.
func (s *textStream) over(d api.FSStreamEndData) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = io.EOF
		if d.Error != nil {
			s.end = d.Error
		}
	}
	if d.Version != "" {
		s.version = d.Version
	}
	s.signal()
	return s.f != nil
}

func (c *Client) forgetStream(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, id)
}

func (s *textStream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next implements [provider.TextStream].
func (s *textStream) Next() (string, error) {
	lost := false
	for {
		if err := s.ctx.Err(); err != nil {
			return "", &provider.Error{Code: provider.CodeAborted, Op: "streamText", Path: s.shown, Cause: context.Cause(s.ctx)}
		}
		s.mu.Lock()
		switch {
		case s.closed && !s.told:
			s.mu.Unlock()
			return "", &provider.Error{Code: provider.CodeIOError, Op: "streamText", Path: s.shown, Detail: "the stream is closed"}
		case len(s.chunks) > 0:
			text := s.chunks[0]
			s.chunks = s.chunks[1:]
			ask := 0
			if s.taken++; s.taken >= window/2 && s.end == nil {
				ask, s.taken = s.taken, 0
			}
			s.mu.Unlock()
			if ask > 0 {
				s.steer(api.FSStreamTextParams{Window: ask})
			}
			return text, nil
		case s.end == io.EOF:
			s.told = true
			s.mu.Unlock()
			return "", io.EOF
		case s.end != nil:
			s.told = true
			s.mu.Unlock()
			return "", fileError(s.ctx, "streamText", s.shown, s.end)
		}
		s.mu.Unlock()
		if lost {
			return "", fileError(s.ctx, "streamText", s.shown, s.f.c.Err())
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
		case <-s.f.c.done:
			lost = true // what has come is given first
		}
	}
}

// steer asks for more, or for no more. A failure is one of the connection,
// which Next meets itself.
func (s *textStream) steer(p api.FSStreamTextParams) {
	p.SessionID, p.StreamID = s.f.session, s.id
	_, _ = Do(context.WithoutCancel(s.ctx), s.f.c, api.FSStreamText, p)
}

// stop tells the daemon that nobody reads any more.
func (s *textStream) stop() {
	s.mu.Lock()
	over := s.closed || s.end != nil
	s.closed, s.chunks = true, nil
	s.mu.Unlock()
	if over {
		s.f.c.forgetStream(s.id)
		return
	}
	s.steer(api.FSStreamTextParams{Stop: true})
}

// BOM implements [provider.TextStream].
func (s *textStream) BOM() bool { return s.bom }

// Version implements [provider.TextStream].
func (s *textStream) Version() provider.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Close implements [provider.TextStream].
func (s *textStream) Close() error {
	s.unctx()
	s.stop()
	return nil
}
