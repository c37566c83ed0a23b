package provider

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/wattle-dev/wattle/fence"
)

// textStream is an opened [TextStream]. It holds one chunk.
type textStream struct {
	c       *call
	p       *pin
	text    *textScanner
	version Version
	err     error // what Next answers from now on
}

// StreamText implements [Reader].
func (l *Local) StreamText(ctx context.Context, f *fence.Fence, t Target) (TextStream, error) {
	c, err := l.begin(ctx, f, "streamText", t.DisplayPath)
	if err != nil {
		return nil, err
	}
	var s *textStream
	err = c.regular(t, func(p *pin) error {
		// A stream that is not read to its end has a version without a hash.
		err := c.steady(p)
		if err == nil {
			err = c.openPinned(p)
		}
		if err != nil {
			p.Close()
			return err
		}
		v := c.token(content{made: p.made, info: p.Info}).version()
		s = &textStream{c: c, p: p, text: c.text(p, true), version: v}
		return nil
	})
	if err != nil {
		if s != nil {
			s.Close()
		}
		return nil, err
	}
	return s, nil
}

// Next implements [TextStream].
func (s *textStream) Next() (string, error) {
	if s.err != nil {
		return "", s.err
	}
	piece, err := s.text.next()
	if err == nil {
		return string(piece), nil
	}
	if errors.Is(err, io.EOF) {
		s.version, err = s.whole(err)
	}
	if !errors.Is(err, io.EOF) {
		err = s.c.mapped(err)
	}
	s.release()
	s.err = err
	return "", err
}

// whole is the version after the last byte; end is given back when there is one.
func (s *textStream) whole(end error) (Version, error) {
	v, err := s.text.whole()
	if err != nil {
		return s.version, err
	}
	return v, end
}

// BOM implements [TextStream].
func (s *textStream) BOM() bool { return s.text.bom }

// Version implements [TextStream].
func (s *textStream) Version() Version { return s.version }

// Close implements [TextStream]. A Next after it is FS_IO_ERROR.
func (s *textStream) Close() error {
	s.release()
	if s.err == nil {
		s.err = s.c.failed(CodeIOError, "the stream is closed", fs.ErrClosed)
	}
	return nil
}

// release gives the file back, once.
func (s *textStream) release() {
	if s.p != nil {
		s.text.close()
		s.p.Close()
		s.p = nil
	}
}
