package patch

import "strings"

// lines is a text and where its lines start. LF, CR LF and a CR alone end a
// line; an end of the last line begins no other one, so an empty text has no
// lines. Four bytes a line.
type lines struct {
	text  string
	start []uint32
}

// maxText is the length that offsets can have.
const maxText = 1<<32 - 1

func split(text string) *lines {
	cr := strings.Count(text, "\r")
	n := strings.Count(text, "\n") + cr + 1
	if cr > 0 {
		n -= strings.Count(text, "\r\n")
	}
	l := &lines{text: text, start: make([]uint32, 0, n)}
	next := func(c byte, from int) int {
		if i := strings.IndexByte(text[from:], c); i >= 0 {
			return from + i
		}
		return len(text)
	}
	nl, ret := next('\n', 0), len(text)
	if cr > 0 {
		ret = next('\r', 0)
	}
	for at := 0; at < len(text); {
		l.start = append(l.start, uint32(at))
		at = min(nl, ret) + 1
		if ret+1 == nl {
			at++ // CR LF
		}
		if nl < at && nl < len(text) {
			nl = next('\n', min(at, len(text)))
		}
		if ret < at && ret < len(text) {
			ret = next('\r', min(at, len(text)))
		}
	}
	return l
}

func (l *lines) len() int { return len(l.start) }

// raw is the lines from i to before j with their ends.
func (l *lines) raw(i, j int) string { return l.text[l.offset(i):l.offset(j)] }

func (l *lines) offset(i int) int {
	if i < len(l.start) {
		return int(l.start[i])
	}
	return len(l.text)
}

// line is line i without its end.
func (l *lines) line(i int) string {
	s := l.raw(i, i+1)
	return s[:len(s)-len(endOf(s))]
}

// endOf is the line end that s ends with, empty for none.
func endOf(s string) string {
	n := len(s)
	switch {
	case n == 0:
	case s[n-1] == '\r':
		return "\r"
	case s[n-1] == '\n' && n > 1 && s[n-2] == '\r':
		return "\r\n"
	case s[n-1] == '\n':
		return "\n"
	}
	return ""
}

// lineEnds are the three line ends, in no order that means anything.
var lineEnds = [...]string{"\n", "\r\n", "\r"}

// majority is the most frequent end of the lines from i to before j, empty when
// none of them has one. tie: others are as frequent, and it is the first of
// them.
func (l *lines) majority(i, j int) (end string, tie bool) {
	var count, first [len(lineEnds)]int
	for ; i < j; i++ {
		for k, e := range lineEnds {
			if endOf(l.raw(i, i+1)) == e {
				if count[k] == 0 {
					first[k] = i
				}
				count[k]++
			}
		}
	}
	best := 0
	for k := 1; k < len(lineEnds); k++ {
		switch {
		case count[k] > count[best]:
			best, tie = k, false
		case count[k] == count[best] && count[k] > 0:
			tie = true
			if first[k] < first[best] {
				best = k
			}
		}
	}
	if count[best] == 0 {
		return "", false
	}
	return lineEnds[best], tie
}
