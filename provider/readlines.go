package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
)

// ReadLines implements [Reader].
func (l *Local) ReadLines(ctx context.Context, f *fence.Fence, t Target, w LineWindow) (ReadOutcome, error) {
	c, err := l.begin(ctx, f, "readLines", t.DisplayPath)
	if err != nil {
		return ReadOutcome{}, err
	}
	if w, err = c.window(w); err != nil {
		return ReadOutcome{}, err
	}
	var out ReadOutcome
	err = c.readFile(t, func(p *pin) (err error) {
		out, err = c.readLines(p, w)
		return err
	})
	if err != nil {
		return ReadOutcome{}, err
	}
	return out, nil
}

// window fills in what the caller left out and refuses what means nothing.
func (c *call) window(w LineWindow) (LineWindow, error) {
	most := c.Local.window.Lines
	switch {
	case w.Offset < 0 || w.Limit < 0:
		return w, c.failed(CodeIOError, "offset and limit must not be negative", syscall.EINVAL)
	case w.Limit > most:
		return w, c.failed(CodeTooLarge, fmt.Sprintf("limit must be at most %d lines", most), syscall.EINVAL)
	}
	if w.Offset == 0 {
		w.Offset = 1
	}
	if w.Limit == 0 {
		w.Limit = most
	}
	return w, nil
}

// readLines reads to the end, also behind the window, for the number of lines.
// Every size is read in the same way, so that the result cannot depend on it;
// only the hash does.
func (c *call) readLines(p *pin, w LineWindow) (ReadOutcome, error) {
	hashed := c.worthHash(p.Info.Size)
	if !hashed {
		if err := c.steady(p); err != nil {
			return ReadOutcome{}, err
		}
	}
	if err := c.openPinned(p); err != nil {
		return ReadOutcome{}, err
	}
	text := c.text(p, hashed)
	defer text.close()
	lines := newLineWindow(w, c.Local.window)
	for {
		piece, err := text.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return ReadOutcome{}, err
		}
		lines.feed(piece)
	}
	total := lines.end()
	if w.Offset > max(total, 1) {
		return ReadOutcome{}, c.fail(CodeNotFound, fmt.Sprintf("offset %d is behind the end: the file has %s", w.Offset, countLines(total)))
	}
	v, err := text.whole()
	if err != nil {
		return ReadOutcome{}, err
	}
	out := ReadOutcome{
		Offset: w.Offset, Lines: lines.lines, TotalLines: total, TruncatedByBytes: lines.full,
		Version: v, BOM: text.bom,
	}
	out.Footer = footer(out, c.Local.window.Bytes)
	return out, nil
}

// worthHash tells whether a window makes a hash of its file. The hash is what
// makes a guard survive a change of metadata; it costs several times what
// counting lines does. So it stops at the size above which nothing is edited.
func (c *call) worthHash(size int64) bool {
	return size < c.Local.window.StreamMinSize || size <= c.editMax
}
