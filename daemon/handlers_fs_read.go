package daemon

import (
	"context"
	"fmt"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// What is read whole must fit into a message of [api.Limits.MaxFrameBytes]
// (DESIGN section 10: larger content is FS_TOO_LARGE, or is streamed).
const (
	maxRead = 16 << 20
	// maxReadBytes: base64 makes four bytes of three.
	maxReadBytes = maxRead / 4 * 3
)

func (s *Server) readHandlers() {
	onFile(s, api.FSReadText, func(p *api.FSReadTextParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSReadTextParams) (provider.TextContent, error) {
			return x.ReadText(ctx, p)
		})
	api.On(s.mux, api.FSStreamText, s.streamText)
	onFile(s, api.FSReadBytes, func(p *api.FSReadBytesParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSReadBytesParams) (provider.ByteContent, error) {
			return x.ReadBytes(ctx, p)
		})
	onFile(s, api.FSReadByteRange, func(p *api.FSReadByteRangeParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSReadByteRangeParams) (provider.ByteContent, error) {
			return x.ReadByteRange(ctx, p)
		})
	onFile(s, api.FSReadLines, func(p *api.FSReadLinesParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSReadLinesParams) (provider.ReadOutcome, error) {
			return x.ReadLines(ctx, p)
		})
}

// ReadText reads a whole text file. One above maxRead is FS_TOO_LARGE before it
// is read.
func (s *Session) ReadText(ctx context.Context, p *api.FSReadTextParams) (provider.TextContent, error) {
	o := p.ReadOptions
	if o.MaxBytes == 0 || o.MaxBytes > maxRead {
		o.MaxBytes = maxRead
	}
	at, out, err := onTarget(ctx, s, nil, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.TextContent, error) {
		return s.host.files.ReadText(ctx, f, t, o)
	})
	s.looked(at, out.Version, err)
	return out, err
}

// StreamText reads a text file piece by piece. The stream ends with ctx and
// with the session; close it.
func (s *Session) StreamText(ctx context.Context, ref *api.FileRef) (provider.TextStream, error) {
	at, out, err := onTarget(ctx, s, nil, ref, func(f *fence.Fence, t provider.Target) (provider.TextStream, error) {
		return s.host.files.StreamText(ctx, f, t)
	})
	if err != nil {
		s.looked(at, "", err)
		return nil, err
	}
	s.looked(at, out.Version(), nil)
	return out, nil
}

// ReadBytes reads a whole file as it is. One above maxReadBytes is
// FS_TOO_LARGE before it is read.
func (s *Session) ReadBytes(ctx context.Context, p *api.FSReadBytesParams) (provider.ByteContent, error) {
	at, out, err := onTarget(ctx, s, nil, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.ByteContent, error) {
		return s.host.files.ReadBytes(ctx, f, t, min(p.MaxBytes, maxReadBytes))
	})
	s.looked(at, out.Version, err)
	return out, err
}

// ReadByteRange reads a part of a file. One that has more than maxReadBytes is
// FS_TOO_LARGE.
func (s *Session) ReadByteRange(ctx context.Context, p *api.FSReadByteRangeParams) (provider.ByteContent, error) {
	r := p.ByteRange
	r.Length = min(r.Length, maxReadBytes+1)
	at, out, err := onTarget(ctx, s, nil, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.ByteContent, error) {
		c, err := s.host.files.ReadByteRange(ctx, f, t, r)
		if err == nil && len(c.Data) > maxReadBytes {
			return provider.ByteContent{}, &provider.Error{Code: provider.CodeTooLarge, Op: "readByteRange", Path: t.DisplayPath,
				Detail: fmt.Sprintf("a range has at most %d bytes", maxReadBytes)}
		}
		return c, err
	})
	s.looked(at, out.Version, err)
	return out, err
}

// ReadLines reads a window of a text file. The session remembers the footer.
func (s *Session) ReadLines(ctx context.Context, p *api.FSReadLinesParams) (provider.ReadOutcome, error) {
	at, out, err := onTarget(ctx, s, nil, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.ReadOutcome, error) {
		return s.host.files.ReadLines(ctx, f, t, p.LineWindow)
	})
	if err != nil && provider.CodeOf(err) == provider.CodeNotFound && p.Offset > 1 {
		return out, err // perhaps only the line is missing
	}
	if err == nil {
		s.footers.add(out.Footer)
	}
	s.looked(at, out.Version, err)
	return out, err
}
