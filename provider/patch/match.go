package patch

import (
	"strings"
	"unicode"
)

// maxSteps bounds the steps of all searches of one call: a second or two. A hunk
// that is found costs the lines up to it; one that is found in a later pass
// costs all lines to the end for each pass before, unless one of its lines does
// not occur there at all, which is seen at once. So only a patch that was made
// for it comes near.
const maxSteps = 1 << 28

// passes are the ways to compare lines, from strict to lenient (section 4).
var passes = [...]func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) },
	strings.TrimSpace,
	func(s string) string { return plain(strings.TrimSpace(s)) },
}

// plain maps typographic characters to those of a keyboard.
func plain(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return strings.Map(plainRune, s)
		}
	}
	return s
}

func plainRune(r rune) rune {
	switch {
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r >= 0x2018 && r <= 0x201b:
		return '\''
	case r >= 0x201c && r <= 0x201f:
		return '"'
	case r == 0xa0, r >= 0x2002 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000:
		return ' '
	}
	return r
}

// matcher finds the lines of hunks in a file. For each pass that is needed, the
// lines that occur in hunks are numbered, and the file becomes a sequence of
// these numbers, in which blocks are found in linear time.
type matcher struct {
	file  *lines
	hunks []Hunk
	index [len(passes)]*index
	steps int // done so far
	// Scratch of one search.
	pattern []uint32
	back    []int
}

// index is the file as one pass sees it.
type index struct {
	number map[string]uint32 // of the lines of all hunks, from 1
	file   []uint32          // 0 for a line that is in no hunk
	last   []int             // by number: where in the file last, or -1
}

// find looks for a block of lines at or after from, or with atEnd as the last
// lines of the file only. Each pass goes over the whole range before the next;
// the first hit wins. The error is tooHard.
func (m *matcher) find(block []string, from int, atEnd bool) (at int, ok bool, err error) {
	n := m.file.len()
	if len(block) > n-from {
		return 0, false, nil
	}
	if atEnd {
		from = n - len(block)
	}
	for p := range passes {
		ix := m.pass(p)
		if !m.translate(ix, p, block, from) {
			continue
		}
		if m.steps > maxSteps {
			return 0, false, tooHard{}
		}
		at = m.search(ix.file, from)
		if at >= 0 {
			return at, true, nil
		}
	}
	return 0, false, nil
}

// translate makes numbers of a block; false when it cannot occur, because one
// of its lines does not.
func (m *matcher) translate(ix *index, pass int, block []string, from int) bool {
	m.pattern = m.pattern[:0]
	for i, s := range block {
		id := ix.number[passes[pass](s)]
		if ix.last[id] < from+i {
			return false
		}
		m.pattern = append(m.pattern, id)
	}
	return true
}

// search gives the first place of m.pattern at or after from, or -1. It is the
// method of Knuth, Morris and Pratt: no line of the file is looked at twice.
func (m *matcher) search(file []uint32, from int) int {
	pat := m.pattern
	// back[i] is the length of the longest proper prefix of the pattern that
	// ends at i.
	m.back = append(m.back[:0], 0)
	for i, k := 1, 0; i < len(pat); i++ {
		for k > 0 && pat[k] != pat[i] {
			k = m.back[k-1]
		}
		if pat[k] == pat[i] {
			k++
		}
		m.back = append(m.back, k)
	}
	m.steps += len(pat)
	k := 0
	for i := from; i < len(file); i++ {
		for k > 0 && pat[k] != file[i] {
			k = m.back[k-1]
		}
		if pat[k] != file[i] {
			continue
		}
		if k++; k == len(pat) {
			m.steps += i - from
			return i - k + 1
		}
	}
	m.steps += len(file) - from
	return -1
}

// pass makes the index of a pass once.
func (m *matcher) pass(p int) *index {
	if m.index[p] != nil {
		return m.index[p]
	}
	ix := &index{number: map[string]uint32{}}
	var likely sieve
	number := func(s string) {
		s = passes[p](s)
		if _, ok := ix.number[s]; !ok {
			ix.number[s] = uint32(len(ix.number) + 1)
			likely.add(s)
		}
	}
	for _, h := range m.hunks {
		if h.Context != nil {
			number(*h.Context)
		}
		for _, s := range h.OldLines {
			number(s)
		}
	}
	ix.last = make([]int, len(ix.number)+1)
	for i := range ix.last {
		ix.last[i] = -1
	}
	ix.file = make([]uint32, m.file.len())
	for i := range ix.file {
		s := passes[p](m.file.line(i))
		if !likely.has(s) {
			continue
		}
		if id := ix.number[s]; id != 0 {
			ix.file[i] = id
			ix.last[id] = i
		}
	}
	m.index[p] = ix
	return ix
}

// sieve tells cheaply that most lines are not among some few.
type sieve [64]uint64

func (*sieve) hash(s string) (word, bit int) {
	h := len(s)
	if h > 0 {
		h = h*31 + int(s[0])*7 + int(s[len(s)-1])*13 + int(s[len(s)/2])
	}
	return h >> 6 & 63, h & 63
}

func (v *sieve) add(s string) {
	w, b := v.hash(s)
	v[w] |= 1 << b
}

func (v *sieve) has(s string) bool {
	w, b := v.hash(s)
	return v[w]>>b&1 != 0
}
