package patch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/wattle-dev/wattle/provider/patch"
)

// The rules of sections 4 and 5 done the slow way, as lists of lines, to
// compare with.

type slowLine struct {
	text, end string
	// Of an added line: it stands where the file ended.
	atEnd bool
	added bool
}

func slowSplit(s string) []slowLine {
	var out []slowLine
	var cur strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n':
			out = append(out, slowLine{text: cur.String(), end: "\r\n"})
			cur.Reset()
			i++
		case s[i] == '\r' || s[i] == '\n':
			out = append(out, slowLine{text: cur.String(), end: s[i : i+1]})
			cur.Reset()
		default:
			cur.WriteByte(s[i])
		}
	}
	if cur.Len() > 0 {
		out = append(out, slowLine{text: cur.String()})
	}
	return out
}

func slowEqual(pass int, a, b string) bool {
	norm := func(s string) string {
		rs := []rune(s)
		for pass >= 2 && len(rs) > 0 && unicode.Is(unicode.White_Space, rs[len(rs)-1]) {
			rs = rs[:len(rs)-1]
		}
		for pass >= 3 && len(rs) > 0 && unicode.Is(unicode.White_Space, rs[0]) {
			rs = rs[1:]
		}
		if pass >= 4 {
			for i, r := range rs {
				switch {
				case strings.ContainsRune("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", r):
					rs[i] = '-'
				case strings.ContainsRune("\u2018\u2019\u201a\u201b", r):
					rs[i] = '\''
				case strings.ContainsRune("\u201c\u201d\u201e\u201f", r):
					rs[i] = '"'
				case strings.ContainsRune("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", r):
					rs[i] = ' '
				}
			}
		}
		return string(rs)
	}
	if pass == 1 {
		return a == b
	}
	return norm(a) == norm(b)
}

func slowFind(file []slowLine, block []string, from int, atEnd bool) int {
	for pass := 1; pass <= 4; pass++ {
		for at := from; at+len(block) <= len(file); at++ {
			if atEnd && at+len(block) != len(file) {
				continue
			}
			ok := true
			for i := range block {
				ok = ok && slowEqual(pass, file[at+i].text, block[i])
			}
			if ok {
				return at
			}
		}
	}
	return -1
}

// slowRow is a line of a hunk; old and added tell on which sides it stands.
type slowRow struct {
	text       string
	old, added bool
}

func slowRows(h patch.Hunk) []slowRow {
	var out []slowRow
	i, j := 0, 0
	for _, k := range h.Kinds {
		r := slowRow{old: k != patch.Added, added: k != patch.Removed}
		if r.added {
			r.text = h.NewLines[j]
			j++
		}
		if r.old {
			r.text = h.OldLines[i]
			i++
		}
		out = append(out, r)
	}
	return out
}

func sideOf(rows []slowRow, old bool) []string {
	var out []string
	for _, r := range rows {
		if old && r.old || !old && r.added {
			out = append(out, r.text)
		}
	}
	return out
}

// slowDrop is rule M4.
func slowDrop(rows []slowRow) []slowRow {
	rows = slices.Clone(rows)
	for _, old := range []bool{true, false} {
		for i := len(rows) - 1; i >= 0; i-- {
			r := &rows[i]
			if old && !r.old || !old && !r.added {
				continue
			}
			if old {
				r.old = false
			} else if r.text == "" {
				r.added = false
			}
			break
		}
	}
	return slices.DeleteFunc(rows, func(r slowRow) bool { return !r.old && !r.added })
}

func slowStyle(lines []slowLine) string {
	count, best, tie := map[string]int{}, "", false
	for _, l := range lines {
		if l.end != "" {
			count[l.end]++
		}
	}
	for _, l := range lines { // in their order, so that the first wins a tie
		if l.end != "" && count[l.end] > count[best] {
			best = l.end
		}
	}
	for e, n := range count {
		tie = tie || e != best && n == count[best]
	}
	if tie {
		return best + "tie"
	}
	return best
}

type slowEdit struct {
	at, slot int
	rows     []slowRow
}

// slowApply gives the hunk that does not fit and its stage, or the text.
func slowApply(text string, hunks []patch.Hunk, codex bool) (result string, at []int, failed *patch.Failure) {
	file := slowSplit(text)
	var edits []slowEdit
	cursor := 0
	for _, h := range hunks {
		if h.Context != nil {
			i := slowFind(file, []string{*h.Context}, cursor, false)
			if i < 0 {
				return "", nil, &patch.Failure{HunkLineNumber: h.LineNumber, Stage: patch.StageContext, SearchStart: cursor}
			}
			cursor = i + 1
		}
		rows := slowRows(h)
		emptied := false
		if len(h.OldLines) > 0 {
			i := slowFind(file, h.OldLines, cursor, h.IsEndOfFile)
			if i < 0 && h.OldLines[len(h.OldLines)-1] == "" {
				rows = slowDrop(rows)
				if emptied = len(h.OldLines) == 1; !emptied {
					i = slowFind(file, sideOf(rows, true), cursor, h.IsEndOfFile)
				}
			}
			if i < 0 && !emptied {
				start := cursor
				if h.IsEndOfFile {
					start = max(len(file)-len(h.OldLines), 0)
				}
				return "", nil, &patch.Failure{HunkLineNumber: h.LineNumber, Stage: patch.StageOldLines, SearchStart: start}
			}
			if !emptied {
				edits = append(edits, slowEdit{i, -1, rows})
				cursor = i + len(sideOf(rows, true))
				continue
			}
		}
		if len(rows) == 0 {
			continue
		}
		pos := len(file)
		if !h.IsEndOfFile && (!codex && h.Context != nil || codex && emptied) {
			pos = cursor
		}
		edits = append(edits, slowEdit{pos, len(at), rows})
		at = append(at, 0)
	}
	slices.SortStableFunc(edits, func(a, b slowEdit) int { return a.at - b.at })

	style := slowStyle(file)
	if codex && len(file) > 0 {
		style = file[0].end
	}
	if style == "" || strings.HasSuffix(style, "tie") {
		style = "\n"
	}
	var out []slowLine
	i := 0
	for _, e := range edits {
		out = append(out, file[i:e.at]...)
		i = e.at
		if e.slot >= 0 {
			at[e.slot] = len(out) + 1
		}
		for len(e.rows) > 0 {
			n := 0
			for n < len(e.rows) && !(e.rows[n].old && e.rows[n].added) {
				n++
			}
			from := i
			for _, r := range e.rows[:n] {
				if r.old {
					i++
				}
			}
			end := strings.TrimSuffix(slowStyle(file[from:i]), "tie")
			if end == "" || codex {
				end = style
			}
			for _, r := range e.rows[:n] {
				if r.added {
					out = append(out, slowLine{text: r.text, end: end, added: true, atEnd: i == len(file)})
				}
			}
			if e.rows = e.rows[n:]; len(e.rows) > 0 {
				out = append(out, file[i])
				i++
				e.rows = e.rows[1:]
			}
		}
	}
	out = append(out, file[i:]...)
	bare := len(file) > 0 && file[len(file)-1].end == ""
	var b strings.Builder
	for k, l := range out {
		switch {
		case l.end == "" && (k < len(out)-1 || codex):
			l.end = style
		case k == len(out)-1 && l.added && l.atEnd && bare && !codex:
			l.end = ""
		}
		b.WriteString(l.text + l.end)
	}
	return b.String(), at, nil
}

// compare holds Apply to the slow way.
func compare(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, hunks []patch.Hunk, codex bool) {
	t.Helper()
	got, err := patch.Apply(text, hunks, patch.Options{Codex: codex})
	want, at, failed := slowApply(text, hunks, codex)
	var f *patch.Failure
	if failed != nil {
		if !errors.As(err, &f) || f.Stage != failed.Stage || f.HunkLineNumber != failed.HunkLineNumber || f.SearchStart != failed.SearchStart {
			t.Fatalf("file %q, hunks %+v, codex %v:\n%v\nwant %v", text, hunks, codex, err, failed)
		}
		return
	}
	if err != nil || got.Text != want || !slices.Equal(got.InsertedAt, at) {
		t.Fatalf("file %q, hunks %+v, codex %v:\n%q at %v, %v\nwant %q at %v", text, hunks, codex, got.Text, got.InsertedAt, err, want, at)
	}
}

func TestApplyTheSlowWay(t *testing.T) {
	for _, tt := range applyRows {
		for _, codex := range []bool{false, true} {
			compare(t, tt.file, update(t, tt.lines...), codex)
		}
	}
}
