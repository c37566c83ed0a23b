package provider

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// textScanner goes over an opened file as text: strict UTF-8, no NUL byte in the
// sample, without the byte-order mark. It holds one chunk, whatever the file.
type textScanner struct {
	*scanner
	runes
	sample func([]byte, int64) error
}

func (c *call) text(p *pin, hashed bool) *textScanner {
	return &textScanner{
		scanner: c.scanner(p, hashed),
		runes:   runes{buf: chunks.Get().(*[chunk]byte)[:]},
		sample:  c.noNUL(sampleSize),
	}
}

// close gives the chunk back; next must not be called any more.
func (t *textScanner) close() {
	chunks.Put((*[chunk]byte)(t.buf))
	t.buf = nil
}

// next gives the next piece, which is never empty and holds until the next
// call; io.EOF after the last one.
func (t *textScanner) next() ([]byte, error) {
	for {
		n, err := t.scanner.next(t.room())
		if errors.Is(err, io.EOF) && t.rest > 0 {
			return nil, t.notUTF8(t.buf[0], t.off-int64(t.rest))
		}
		if err != nil {
			return nil, err
		}
		if err := t.sample(t.buf[t.rest:t.rest+n], t.off-int64(n)); err != nil {
			return nil, err
		}
		piece, bad := t.take(n)
		if bad >= 0 {
			return nil, t.notUTF8(t.buf[bad], t.off-int64(t.rest+n)+int64(bad))
		}
		if len(piece) > 0 {
			return piece, nil
		}
	}
}

// runes puts characters together that lie in two chunks. What is read goes to
// room, and take gives what is whole of it.
type runes struct {
	buf  []byte // at least one character and a byte
	tail []byte // of buf: the begin of a character that the last piece ended before
	rest int    // len(tail), at the start of buf
	text bool   // something was given
	bom  bool
}

func (r *runes) room() []byte {
	r.rest = copy(r.buf, r.tail)
	return r.buf[r.rest:]
}

// take gives the whole characters after n bytes were put into room; bad is the
// place in buf of a byte that is no UTF-8, or -1. A byte-order mark is one
// character, so the first piece begins with all of it.
func (r *runes) take(n int) (piece []byte, bad int) {
	all := r.buf[:r.rest+n]
	whole := wholeRunes(all)
	piece, r.tail = all[:whole], all[whole:]
	if !utf8.Valid(piece) {
		return nil, invalidUTF8(string(piece))
	}
	if !r.text && len(piece) > 0 {
		r.text = true
		piece, r.bom = bytes.CutPrefix(piece, []byte(bom))
	}
	return piece, -1
}

// wholeRunes is the length of b without a character at its end that may go on.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}
