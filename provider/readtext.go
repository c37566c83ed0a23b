package provider

import (
	"bytes"
	"context"
	"fmt"

	"github.com/wattle-dev/wattle/fence"
)

// ReadText implements [Provider].
func (l *Local) ReadText(ctx context.Context, f *fence.Fence, t Target, o ReadOptions) (TextContent, error) {
	c, err := l.begin(ctx, f, "readText", t.DisplayPath)
	if err != nil {
		return TextContent{}, err
	}
	var out TextContent
	err = c.readFile(t, func(p *pin) (err error) {
		out, err = c.readText(p, o)
		return err
	})
	if err != nil {
		return TextContent{}, err
	}
	return out, nil
}

func (c *call) readText(p *pin, o ReadOptions) (TextContent, error) {
	r := reading{keep: -1, accept: c.noNUL(sampleSize)}
	if o.MaxBytes > 0 {
		if p.Info.Size > o.MaxBytes {
			return TextContent{}, c.tooLarge(o.MaxBytes)
		}
		r.keep = o.MaxBytes
	}
	read, err := c.read(p, r)
	if err != nil {
		return TextContent{}, err
	}
	if read.over {
		return TextContent{}, c.tooLarge(o.MaxBytes)
	}
	if err := c.utf8(read.text); err != nil {
		return TextContent{}, err
	}
	out := TextContent{Version: c.token(read).version()}
	out.Text, out.BOM = cutBOM(read.text)
	return out, nil
}

// noNUL refuses a NUL byte in the first bytes of a file, any number if limit
// is below 0.
func (c *call) noNUL(limit int64) func([]byte, int64) error {
	return func(part []byte, off int64) error {
		if limit >= 0 {
			part = part[:min(max(limit-off, 0), int64(len(part)))]
		}
		if i := bytes.IndexByte(part, 0); i >= 0 {
			return c.fail(CodeNotText, fmt.Sprintf("binary: a NUL byte at offset %d", off+int64(i)))
		}
		return nil
	}
}

func (c *call) utf8(text string) error {
	if i := invalidUTF8(text); i >= 0 {
		return c.notUTF8(text[i], int64(i))
	}
	return nil
}

func (c *call) notUTF8(b byte, off int64) error {
	return c.fail(CodeNotText, fmt.Sprintf("not UTF-8: the byte 0x%02x at offset %d", b, off))
}

func (c *call) tooLarge(limit int64) *Error {
	return c.fail(CodeTooLarge, fmt.Sprintf("larger than the limit of %d bytes", limit))
}
