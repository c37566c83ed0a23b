package patch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/provider/patch"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "*** Begin Patch\n*** End Patch", "<<'EOF'\n*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\nEOF",
		inner("*** Environment ID: x", "*** Delete File: a"),
		inner("*** Update File: a", "*** Move to: b", "", "@@ c", " d", "-e", "+f", "", "*** End of File", " ", "@@", "+g"),
		inner("*** Add File: a", "+\r", "+b\rc", "*** Update File: \u00e9", "\tx"),
		"*** Begin Patch\r\n*** Update File: a\r\n@@\r\n-b\r\n*** End Patch\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, codex := range []bool{false, true} {
			ops, err := patch.Parse(text, patch.Options{Codex: codex})
			var e *patch.ParseError
			if err != nil && (!errors.As(err, &e) || ops != nil || len(err.Error()) > 1000 || e.Line < 0) {
				t.Fatalf("%v, %v", ops, err)
			}
			if n := weight(ops); n > maxWeight*len(text)+1000 {
				t.Fatalf("%d bytes of patch became %d", len(text), n)
			}
			for _, op := range ops {
				if op.Path == "" || op.LineNumber < 2 {
					t.Fatalf("%+v", op)
				}
				for _, h := range op.Hunks {
					old, added := 0, 0
					for _, k := range h.Kinds {
						if k != patch.Added {
							old++
						}
						if k != patch.Removed {
							added++
						}
					}
					if len(h.Kinds) == 0 || old != len(h.OldLines) || added != len(h.NewLines) {
						t.Fatalf("%+v", h)
					}
				}
			}
		}
	})
}

func FuzzApply(f *testing.F) {
	for _, tt := range applyRows {
		f.Add(tt.file, strings.Join(tt.lines, "\n"))
	}
	f.Fuzz(func(t *testing.T, file, chunks string) {
		if len(file) > 2048 || len(chunks) > 2048 {
			return
		}
		ops, err := patch.Parse(inner("*** Update File: f", chunks), patch.Options{})
		if err != nil || len(ops) != 1 {
			return
		}
		// A CR inside a line of a patch is no line of a file.
		if patch.Check(ops[0].Hunks) != nil {
			if _, err := patch.Apply(file, ops[0].Hunks, patch.Options{}); errors.Is(err, patch.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		compare(t, file, ops[0].Hunks, false)
		compare(t, file, ops[0].Hunks, true)
		// The kinds are a help, not a condition.
		for i := range ops[0].Hunks {
			ops[0].Hunks[i].Kinds = ""
		}
		_, err = patch.Apply(file, ops[0].Hunks, patch.Options{})
		if _, _, failed := slowApply(file, restore(ops[0].Hunks), false); (err == nil) != (failed == nil) {
			t.Fatal(err, failed)
		}
	})
}

// restore gives hunks without kinds some: everything is replaced.
func restore(hunks []patch.Hunk) []patch.Hunk {
	out := make([]patch.Hunk, len(hunks))
	for i, h := range hunks {
		h.Kinds = strings.Repeat("-", len(h.OldLines)) + strings.Repeat("+", len(h.NewLines))
		out[i] = h
	}
	return out
}

// Files and hunks of few different lines, so that they meet often: in all four
// passes, several times, out of order, at the end.
func TestApplyProperty(t *testing.T) {
	words := []string{"", "a", "b", " a", "a ", "\u201ca", "\"a", "a\u2013", "a-", "\u3000"}
	ends := []string{"\n", "\r\n", "\r"}
	word := rapid.SampledFrom(words)
	rapid.Check(t, func(t *rapid.T) {
		var file strings.Builder
		for _, w := range rapid.SliceOfN(word, 0, 8).Draw(t, "file") {
			file.WriteString(w + rapid.SampledFrom(ends).Draw(t, "end"))
		}
		text := file.String()
		if rapid.Bool().Draw(t, "bare") {
			text = strings.TrimRight(text, "\r\n")
		}
		lines := slowSplit(text)
		var hunks []patch.Hunk
		for n := range rapid.IntRange(1, 3).Draw(t, "hunks") {
			h := patch.Hunk{LineNumber: n + 1, IsEndOfFile: rapid.IntRange(0, 5).Draw(t, "mark") == 0}
			if rapid.IntRange(0, 2).Draw(t, "context") == 0 {
				c := word.Draw(t, "context line")
				h.Context = &c
			}
			at := rapid.IntRange(0, len(lines)).Draw(t, "at")
			var kinds strings.Builder
			for range rapid.IntRange(1, 4).Draw(t, "rows") {
				k := rapid.SampledFrom([]byte{' ', '-', '+'}).Draw(t, "kind")
				w := word.Draw(t, "line")
				// Mostly a line that is there.
				if k != patch.Added && at < len(lines) && rapid.IntRange(0, 4).Draw(t, "there") > 0 {
					w = lines[at].text
					at++
				}
				kinds.WriteByte(k)
				if k != patch.Added {
					h.OldLines = append(h.OldLines, w)
				}
				if k != patch.Removed {
					h.NewLines = append(h.NewLines, w)
				}
			}
			h.Kinds = kinds.String()
			hunks = append(hunks, h)
		}
		if err := patch.Check(hunks); err != nil {
			t.Fatal(err)
		}
		compare(t, text, hunks, rapid.Bool().Draw(t, "codex"))
	})
}

// script is a whole file and what is done with it, line by line.
type script struct {
	text, kinds  string
	old, added   []string
	hunks, back  []patch.Hunk
	end          string
	bare, losing bool
}

// makeScript builds a script from bytes: all lines differ, so that every hunk
// fits exactly and once. losing: the result does not tell the line ends of the
// file any more, and no inverse can.
func makeScript(data []byte) script {
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	first := next()
	s := script{end: []string{"\n", "\r\n", "\r"}[first%3], bare: first&4 != 0}
	tails := []string{"", " ", "\t", "\u00a0", "\u201cq\u201d", "$1", "%s", "\u00e9"}
	var h, b patch.Hunk
	flush := func() {
		if len(h.OldLines) > 0 && len(h.NewLines) > 0 {
			s.hunks, s.back = append(s.hunks, h), append(s.back, b)
			h, b = patch.Hunk{}, patch.Hunk{}
		}
	}
	for n := 0; len(data) > 0 && n < 200; n++ {
		c := next()
		line := fmt.Sprint(n, tails[c>>5])
		kind := []byte{' ', ' ', '-', '+'}[c&3]
		s.kinds += string(kind)
		h.Kinds += string(kind)
		b.Kinds += map[byte]string{' ': " ", '-': "+", '+': "-"}[kind]
		if kind != patch.Added {
			s.old = append(s.old, line)
			h.OldLines, b.NewLines = append(h.OldLines, line), append(b.NewLines, line)
		}
		if kind != patch.Removed {
			s.added = append(s.added, line)
			h.NewLines, b.OldLines = append(h.NewLines, line), append(b.OldLines, line)
		}
		if c&28 == 0 && kind == patch.Context {
			flush()
		}
	}
	// What is left joins the last hunk.
	if n := len(s.hunks); n > 0 && (len(h.OldLines) == 0 || len(h.NewLines) == 0) {
		join := func(to *patch.Hunk, from patch.Hunk) {
			to.Kinds += from.Kinds
			to.OldLines, to.NewLines = append(to.OldLines, from.OldLines...), append(to.NewLines, from.NewLines...)
		}
		join(&s.hunks[n-1], h)
		join(&s.back[n-1], b)
	} else {
		s.hunks, s.back = append(s.hunks, h), append(s.back, b)
	}
	s.bare = s.bare && len(s.old) > 0
	s.text = join(s.old, s.end, s.bare)
	// The last run of changes.
	run := s.kinds[strings.LastIndexByte(s.kinds, ' ')+1:]
	switch {
	case s.bare && run != "" && !(strings.Contains(run, "-") && strings.Contains(run, "+")):
		s.losing = true // the last line was deleted, or got a line after it
	case s.end != "\n" && len(s.added) == 0, s.end != "\n" && s.bare && len(s.added) == 1:
		s.losing = true // no line end is left
	}
	return s
}

func join(lines []string, end string, bare bool) string {
	if len(lines) == 0 {
		return ""
	}
	text := strings.Join(lines, end)
	if !bare {
		text += end
	}
	return text
}

// A patch and its inverse give the first bytes again.
func FuzzApplyInverse(f *testing.F) {
	for _, s := range []string{"", "\x00\x00", "\x01\x02\x03", "\x02\x00\x02\x03\x00", "\x04\x00\x03\x02", "\x05\x20\x42\x63\x00\x02\x03", "\x04\x02", "\x01\x02\x02", "\x00\x03\x03\x01\x00\x02"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := makeScript(data)
		for _, kinds := range []bool{true, false} {
			if !kinds {
				for i := range s.hunks {
					s.hunks[i].Kinds, s.back[i].Kinds = "", ""
				}
			}
			forth, err := patch.Apply(s.text, s.hunks, patch.Options{})
			if err != nil {
				t.Fatalf("%q %+v: %v", s.text, s.hunks, err)
			}
			if got := slowSplit(forth.Text); len(got) != len(s.added) {
				t.Fatalf("%q became %q, want %q", s.text, forth.Text, s.added)
			}
			for i, l := range slowSplit(forth.Text) {
				if l.text != s.added[i] {
					t.Fatalf("%q became %q, want %q", s.text, forth.Text, s.added)
				}
			}
			back, err := patch.Apply(forth.Text, s.back, patch.Options{})
			if err != nil || !s.losing && back.Text != s.text {
				t.Fatalf("%q became %q and %q again (%v)", s.text, forth.Text, back.Text, err)
			}
		}
	})
}
