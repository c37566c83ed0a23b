package provider

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
)

// ReadBytes implements [Reader].
func (l *Local) ReadBytes(ctx context.Context, f *fence.Fence, t Target, maxBytes int64) (ByteContent, error) {
	c, err := l.begin(ctx, f, "readBytes", t.DisplayPath)
	if err != nil {
		return ByteContent{}, err
	}
	if maxBytes <= 0 {
		return ByteContent{}, c.failed(CodeIOError, "maxBytes must be above zero", syscall.EINVAL)
	}
	var out ByteContent
	err = c.readFile(t, func(p *pin) (err error) {
		out, err = c.readBytes(p, maxBytes)
		return err
	})
	if err != nil {
		return ByteContent{}, err
	}
	return out, nil
}

func (c *call) readBytes(p *pin, limit int64) (ByteContent, error) {
	if p.Info.Size > limit {
		return ByteContent{}, c.tooLarge(limit)
	}
	if err := c.openPinned(p); err != nil {
		return ByteContent{}, err
	}
	cur := c.scanner(p, true)
	// One byte more tells that it is too large.
	data, err := cur.collect(p.Info.Size, min(limit, math.MaxInt64-1)+1)
	if err != nil {
		return ByteContent{}, err
	}
	if int64(len(data)) > limit {
		return ByteContent{}, c.tooLarge(limit)
	}
	v, err := cur.whole()
	return ByteContent{Data: data, Version: v}, err
}

// ReadByteRange implements [Reader].
func (l *Local) ReadByteRange(ctx context.Context, f *fence.Fence, t Target, r ByteRange) (ByteContent, error) {
	c, err := l.begin(ctx, f, "readByteRange", t.DisplayPath)
	if err != nil {
		return ByteContent{}, err
	}
	if r.Offset < 0 || r.Length < 0 {
		return ByteContent{}, c.failed(CodeIOError, "offset and length must not be negative", syscall.EINVAL)
	}
	var out ByteContent
	err = c.readFile(t, func(p *pin) (err error) {
		out, err = c.readByteRange(p, r)
		return err
	})
	if err != nil {
		return ByteContent{}, err
	}
	return out, nil
}

func (c *call) readByteRange(p *pin, r ByteRange) (ByteContent, error) {
	if err := c.steady(p); err != nil {
		return ByteContent{}, err
	}
	if err := c.openPinned(p); err != nil {
		return ByteContent{}, err
	}
	out := ByteContent{Version: c.token(content{made: p.made, info: p.Info}).version()}
	// Past this no file has bytes, and a read would overflow.
	length := min(r.Length, math.MaxInt64-r.Offset)
	cur := c.scanner(p, false)
	cur.off = r.Offset
	data, err := cur.collect(p.Info.Size-r.Offset, length)
	out.Data = data
	return out, err
}

// collect reads up to most bytes, fewer at the end of the file. expect is how
// many there seem to be: the first room that is made, with one for the end to
// show in the same read.
func (r *scanner) collect(expect, most int64) ([]byte, error) {
	data := make([]byte, 0, min(min(max(expect, 0), 64<<20)+1, most))
	for int64(len(data)) < most {
		if len(data) == cap(data) {
			data = slices.Grow(data, 512)
		}
		b := data[len(data):min(cap(data), len(data)+chunk)]
		if left := most - int64(len(data)); left < int64(len(b)) {
			b = b[:left]
		}
		n, err := r.next(b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		data = data[:len(data)+n]
	}
	return data, nil
}
