package provider

import (
	"errors"
	"fmt"
	"strings"
)

var (
	errNoMatch    = errors.New("the text does not occur in the file")
	errEmptyMatch = errors.New("the text to replace must not be empty")
	errResultSize = errors.New("the result would be too large")
)

// ambiguous is the error of an edit that fits more than once.
type ambiguous int

func (n ambiguous) Error() string {
	return fmt.Sprintf("the text occurs %d times; give more of its surroundings, or replace all", int(n))
}

// splice replaces oldText in raw, a text without byte-order mark, and returns
// the new bytes (fs-contract 4.3, decision D6).
//
// Matching is on the view in which CR LF is LF, for all three texts; matches
// are counted from the left without overlap. What is replaced are the bytes of
// the match that really change: equal text at both ends of oldText and newText
// stays as it is stored. New line breaks take the style of the matched bytes
// (majority, on a tie the first), else that of the file (majority, else LF).
//
// Errors: errEmptyMatch, errNoMatch, ambiguous, errResultSize when the result
// would be longer than limit bytes.
func splice(raw, oldText, newText string, all bool, limit int64) (string, error) {
	oldText, newText = toLF(oldText), toLF(newText)
	if oldText == "" {
		return "", errEmptyMatch
	}
	view := toLF(raw)
	n := strings.Count(view, oldText)
	switch {
	case n == 0:
		return "", errNoMatch
	case n > 1 && !all:
		return "", ambiguous(n)
	}
	head := commonPrefix(oldText, newText)
	tail := commonSuffix(oldText[head:], newText[head:])
	insert := newText[head : len(newText)-tail]
	pick := style{file: raw, lf: insert, crlf: strings.ReplaceAll(insert, "\n", "\r\n")}

	var out strings.Builder
	c := newCursor(raw)
	done := 0 // bytes of raw that are in out, or left out of it
	for at := 0; ; {
		i := strings.Index(view[at:], oldText)
		if i < 0 {
			break
		}
		at += i
		matchStart := c.seek(at)
		from := c.seek(at + head)
		to := c.seek(at + len(oldText) - tail)
		matchEnd := c.seek(at + len(oldText))
		text := pick.text(raw[matchStart:matchEnd])
		if int64(out.Len()+from-done)+int64(len(text)) > limit {
			return "", errResultSize
		}
		out.WriteString(raw[done:from])
		out.WriteString(text)
		done = to
		at += len(oldText)
	}
	if int64(out.Len()+len(raw)-done) > limit {
		return "", errResultSize
	}
	out.WriteString(raw[done:])
	return out.String(), nil
}

// style chooses the line breaks of inserted text.
type style struct {
	file     string // all of it
	lf, crlf string // the inserted text in both styles
	counted  bool   // fileCRLF is known; counting takes a pass over the file
	fileCRLF bool
}

func (s *style) text(span string) string {
	if len(s.lf) == len(s.crlf) {
		return s.lf // no line break in it
	}
	crlf, lf, first := lineBreaks(span)
	use := crlf > lf
	switch {
	case crlf == lf && crlf > 0:
		use = first
	case crlf == lf:
		if !s.counted {
			fc, fl, _ := lineBreaks(s.file)
			s.counted, s.fileCRLF = true, fc > fl
		}
		use = s.fileCRLF
	}
	if use {
		return s.crlf
	}
	return s.lf
}

// cursor turns offsets of the LF view into offsets of the stored bytes. It only
// moves forward, so that all matches together cost one pass.
type cursor struct {
	raw       string
	pos, view int
	next      int // stored offset of the next CR LF at or after pos, or len(raw)
}

func newCursor(raw string) *cursor {
	c := &cursor{raw: raw}
	c.find()
	return c
}

func (c *cursor) find() {
	if i := strings.Index(c.raw[c.pos:], "\r\n"); i >= 0 {
		c.next = c.pos + i
	} else {
		c.next = len(c.raw)
	}
}

// seek gives the stored offset of a view offset, which must not lie before the
// last one. The LF of a CR LF begins at its CR.
func (c *cursor) seek(view int) int {
	for c.next < len(c.raw) && c.view+(c.next-c.pos) < view {
		c.view += c.next - c.pos + 1
		c.pos = c.next + 2
		c.find()
	}
	c.pos += view - c.view
	c.view = view
	return c.pos
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
