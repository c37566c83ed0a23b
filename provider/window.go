package provider

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// whole fills in the defaults of fs-contract section 8.
func (l WindowLimits) whole() (WindowLimits, error) {
	if l.Lines < 0 || l.LineLength < 0 || l.Bytes < 0 || l.StreamMinSize < 0 {
		return l, errors.New("the limits of windows must be positive")
	}
	if l.Lines == 0 {
		l.Lines = 2000
	}
	if l.LineLength == 0 {
		l.LineLength = 2000
	}
	if l.Bytes == 0 {
		l.Bytes = 50 << 10
	}
	if l.StreamMinSize == 0 {
		l.StreamMinSize = 10 << 20
	}
	return l, nil
}

// lineWindow finds lines in a text that comes in pieces of whole characters. It
// keeps what the caps allow and no more, and counts the rest.
type lineWindow struct {
	offset, limit int // the lines that are wanted
	length        int // cap of a line, in UTF-16 units
	left          int // bytes that the window may still have

	number int  // of the line that is being read, from 1
	begun  bool // it has a byte, if only its break
	lines  []Line
	full   bool // the byte cap stopped the output

	// The line that is being read, while it is wanted.
	text  []byte
	units int
	cr    bool // a CR that is none of the text when the line ends here
	cut   bool // longer than length
	over  bool // more bytes than left
}

func newLineWindow(w LineWindow, l WindowLimits) *lineWindow {
	return &lineWindow{offset: w.Offset, limit: w.Limit, length: l.LineLength, left: l.Bytes, number: 1, lines: []Line{}}
}

func (w *lineWindow) wanted() bool {
	return w.number >= w.offset && w.number-w.offset < w.limit && !w.full
}

func (w *lineWindow) feed(piece []byte) {
	for len(piece) > 0 {
		if !w.wanted() {
			piece = w.skip(piece)
			continue
		}
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			w.add(piece)
			return
		}
		w.add(piece[:end])
		w.endLine()
		piece = piece[end+1:]
	}
}

// skip counts lines up to the first that is wanted and gives what is left.
func (w *lineWindow) skip(piece []byte) []byte {
	if n := bytes.Count(piece, []byte{'\n'}); w.number >= w.offset || n < w.offset-w.number {
		w.number += n
		w.begun = piece[len(piece)-1] != '\n'
		return nil
	}
	for w.number < w.offset {
		piece = piece[bytes.IndexByte(piece, '\n')+1:]
		w.number++
	}
	w.begun = false
	return piece
}

// add takes a part of a wanted line. A CR waits: it is dropped at the end of
// the line and belongs to the text before anything else.
func (w *lineWindow) add(part []byte) {
	w.begun = true
	for len(part) > 0 && !w.cut && !w.over {
		if w.cr {
			w.cr = false
			w.push([]byte{'\r'}, 1)
		}
		run, rest, cr := bytes.Cut(part, []byte{'\r'})
		w.addRun(run)
		part, w.cr = rest, cr
	}
}

// addRun adds characters without a CR among them. Most lines fit whole: there
// are never more units than bytes.
func (w *lineWindow) addRun(run []byte) {
	if len(run) <= min(w.length-w.units, w.budget()-len(w.text)) {
		w.text = append(w.text, run...)
		for _, b := range run {
			if utf8.RuneStart(b) {
				w.units++
			}
			if b >= 0xf0 { // four bytes, which are a pair of units
				w.units++
			}
		}
		return
	}
	for len(run) > 0 && !w.cut && !w.over {
		r, n := utf8.DecodeRune(run)
		w.push(run[:n], utf16.RuneLen(r))
		run = run[n:]
	}
}

// push adds one character, whole or not at all: a line is never cut between the
// halves of a surrogate pair.
func (w *lineWindow) push(c []byte, units int) {
	switch {
	case w.units+units > w.length:
		w.cut = true
	case len(w.text)+len(c) > w.budget():
		w.over = true
	default:
		w.text = append(w.text, c...)
		w.units += units
	}
}

// budget is how many bytes the line may have: a break costs one from the second
// line on.
func (w *lineWindow) budget() int {
	if len(w.lines) == 0 {
		return w.left
	}
	return w.left - 1
}

// endLine gives the line, unless the byte cap forbids it. The first one is
// given in any case, cut: without any line the next window would begin at the
// same place, for ever.
func (w *lineWindow) endLine() {
	budget := w.budget()
	w.full = w.over || len(w.text) > budget
	if !w.full || len(w.lines) == 0 {
		w.lines = append(w.lines, Line{Number: w.number, Text: string(w.text), Cut: w.cut || w.over})
		w.left = budget - len(w.text)
	}
	w.number++
	w.text, w.units = w.text[:0], 0
	w.begun, w.cr, w.cut, w.over = false, false, false, false
}

// end is after the last piece; it gives the number of lines. A final line break
// makes no line.
func (w *lineWindow) end() int {
	if w.begun {
		if w.wanted() {
			w.endLine()
		} else {
			w.number++
		}
	}
	return w.number - 1
}

// footer is the sentence after the lines of a window.
func footer(o ReadOutcome, maxBytes int) string {
	last := o.Offset + len(o.Lines) - 1
	var b strings.Builder
	switch {
	case o.TruncatedByBytes:
		fmt.Fprintf(&b, "(Stopped at %d bytes after line %d of %d.", maxBytes, last, o.TotalLines)
	case last < o.TotalLines:
		fmt.Fprintf(&b, "(Lines %d to %d of %d.", o.Offset, last, o.TotalLines)
	default:
		return fmt.Sprintf("(End of file, %s.)", countLines(o.TotalLines))
	}
	if last < o.TotalLines {
		fmt.Fprintf(&b, " Continue at offset %d.", last+1)
	}
	b.WriteString(")")
	return b.String()
}

func countLines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}
