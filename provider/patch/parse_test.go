package patch_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/provider/patch"
)

func at(s string) *string { return &s }

// inner puts lines between Begin and End: the first of them is line 2.
func inner(lines ...string) string {
	return strings.Join(append(append([]string{"*** Begin Patch"}, lines...), "*** End Patch"), "\n")
}

func hunk(line int, kinds string, old, added []string) patch.Hunk {
	return patch.Hunk{LineNumber: line, Kinds: kinds, OldLines: old, NewLines: added}
}

func updateOf(line int, hunks ...patch.Hunk) patch.Operation {
	return patch.Operation{Kind: patch.Update, Path: "f", LineNumber: line, Hunks: hunks}
}

func TestParse(t *testing.T) {
	ab := hunk(3, "-+", []string{"a"}, []string{"b"})
	del := patch.Operation{Kind: patch.Delete, Path: "f", LineNumber: 2}
	add := func(content string) patch.Operation {
		return patch.Operation{Kind: patch.Add, Path: "f", LineNumber: 2, Content: content}
	}
	with := func(h patch.Hunk, change func(*patch.Hunk)) patch.Hunk { change(&h); return h }
	tests := []struct {
		name string
		text string
		want []patch.Operation
		// The error, when says is set.
		line int
		says string
	}{
		// The outer text.
		{name: "P1 the text is trimmed", text: "\n \u3000" + inner("*** Delete File: f") + "\n\n\t", want: []patch.Operation{del}},
		{name: "P1 CR before LF is dropped", text: "*** Begin Patch\r\n*** Add File: f\r\n+a\r\n+b\r\n*** End Patch\r\n", want: []patch.Operation{add("a\nb\n")}},
		{name: "P1 one CR only", text: inner("*** Add File: f", "+a\r\r", "+b\rc"), want: []patch.Operation{add("a\r\nb\rc\n")}},
		{name: "P2 padded ends", text: "*** Begin Patch \t\n*** Delete File: f\n   *** End Patch", want: []patch.Operation{del}},
		{name: "P2 empty", text: "", says: "first line must be *** Begin Patch"},
		{name: "P2 no Begin", text: "*** Delete File: f\n*** End Patch", says: "first line must be *** Begin Patch"},
		{name: "P2 no End", text: "*** Begin Patch\n*** Delete File: f", says: "last line must be *** End Patch"},
		{name: "P2 Begin alone", text: "*** Begin Patch", says: "last line must be *** End Patch"},
		{name: "P3 here-document", text: "<<EOF\n" + inner("*** Delete File: f") + "\nEOF\n", want: []patch.Operation{del}},
		{name: "P3 single quotes", text: "<<'EOF'\n" + inner("*** Delete File: f") + "\nEOF", want: []patch.Operation{del}},
		{name: "P3 double quotes", text: "<<\"EOF\"\r\n" + inner("*** Delete File: f") + "\r\nEOF", want: []patch.Operation{del}},
		{name: "P3 the last line ends with EOF", text: "<<EOF\n" + inner("*** Delete File: f") + "\nxEOF", want: []patch.Operation{del}},
		{name: "P3 four lines are enough", text: "<<EOF\n" + inner() + "\nEOF"},
		{name: "P3 mismatched quotes", text: "<<\"EOF'\n" + inner("*** Delete File: f") + "\nEOF", says: "first line must be *** Begin Patch"},
		{name: "P3 no end", text: "<<EOF\n" + inner("*** Delete File: f"), says: "first line must be *** Begin Patch"},
		{name: "P3 three lines", text: "<<EOF\n*** Begin Patch\nEOF", says: "first line must be *** Begin Patch"},
		{name: "P3 nothing inside", text: "<<EOF\nx\ny\nEOF", says: "first line must be *** Begin Patch"},
		{name: "P3 a command before it", text: "apply_patch <<EOF\n" + inner("*** Delete File: f") + "\nEOF", says: "first line must be *** Begin Patch"},
		{name: "P4 text after End", text: inner("*** Delete File: f") + "\nmore", says: "last line must be *** End Patch"},
		{name: "P4 two Ends", text: inner("*** Delete File: f", "*** End Patch"), says: "*** End Patch must be the last line"},
		{name: "P4 End inside an update", text: inner("*** Update File: f", "-a", "*** End Patch "), says: "*** End Patch must be the last line"},
		{name: "P4 no operation", text: inner()},
		{name: "P5 Begin is line 1", text: "\n\n\n" + inner("bad"), line: 2, says: `"bad" is no header`},
		{name: "P5 in a here-document too", text: "<<EOF\n" + inner("*** Delete File: f", "bad") + "\nEOF", line: 3, says: `"bad" is no header`},

		// Headers.
		{name: "P6 trimmed where an operation may start", text: inner(" \t*** Delete File: f  "), want: []patch.Operation{del}},
		{name: "P6 trimmed inside an add", text: inner("*** Add File: f", "+a", "  *** Delete File: g"),
			want: []patch.Operation{add("a\n"), {Kind: patch.Delete, Path: "g", LineNumber: 4}}},
		{name: "P6 trimmed inside a delete", text: inner("*** Delete File: f", "  *** Delete File: g"),
			want: []patch.Operation{del, {Kind: patch.Delete, Path: "g", LineNumber: 3}}},
		{name: "P6 an indented header in an update is context", text: inner("*** Update File: f", " *** Update File: g", " *** End Patch", " @@", " *** End of File"),
			want: []patch.Operation{updateOf(2, hunk(3, "    ", []string{"*** Update File: g", "*** End Patch", "@@", "*** End of File"}, []string{"*** Update File: g", "*** End Patch", "@@", "*** End of File"}))}},
		{name: "P6 trailing blanks in an update", text: inner("*** Update File: f", "@@  ", "-a", "*** End of File \t", "*** Delete File: g  "),
			want: []patch.Operation{updateOf(2, with(hunk(3, "-", []string{"a"}, nil), func(h *patch.Hunk) { h.IsEndOfFile = true })), {Kind: patch.Delete, Path: "g", LineNumber: 6}}},
		{name: "P7 leading blanks belong to the path", text: inner("*** Delete File:   a b "), want: []patch.Operation{{Kind: patch.Delete, Path: "  a b", LineNumber: 2}}},
		{name: "P7 no path is no header", text: inner("*** Delete File: "), line: 2, says: `"*** Delete File:" is no header`},
		{name: "P7 no blank is no header", text: inner("*** Add File:f"), line: 2, says: "is no header"},
		{name: "P7 paths stay as written", text: inner("*** Delete File: ../x/./y//"), want: []patch.Operation{{Kind: patch.Delete, Path: "../x/./y//", LineNumber: 2}}},
		{name: "P8 the forms are listed", text: inner("*** Frobnicate File: f"), line: 2, says: "these are: *** Add File: {path}, *** Delete File: {path}, *** Update File: {path}"},
		{name: "P8 an empty line inside an add", text: inner("*** Add File: f", "+a", "", "+b"), line: 4, says: `"" is no header`},
		{name: "P8 an empty line inside a delete", text: inner("*** Delete File: f", "", "*** Delete File: g"), line: 3, says: `"" is no header`},
		{name: "P8 an empty line after Begin", text: inner("", "*** Delete File: f"), line: 2, says: `"" is no header`},
		{name: "P8 a minus inside an add", text: inner("*** Add File: f", "-a"), line: 3, says: `"-a" is no header`},
		{name: "P8 long lines are cut in the message", text: inner(strings.Repeat("x", 1000)), line: 2, says: strings.Repeat("x", 100) + `"… is no header`},
		{name: "P9 environment", text: inner("*** Environment ID: e1", "*** Delete File: f"), want: []patch.Operation{{Kind: patch.Delete, Path: "f", LineNumber: 3}}},
		{name: "P9 twice", text: inner("*** Environment ID: e1", "*** Environment ID: e1"), says: "given twice"},
		{name: "P9 empty", text: inner("*** Environment ID:  ", "*** Delete File: f"), says: "environment is empty"},
		{name: "P9 later", text: inner("*** Delete File: f", "*** Environment ID: e1"), says: "directly after *** Begin Patch"},
		{name: "P9 in an update", text: inner("*** Update File: f", "-a", "*** Environment ID: e1"), says: "directly after *** Begin Patch"},

		// Add and delete.
		{name: "P10 lines", text: inner("*** Add File: f", "+a", "+", "+ b "), want: []patch.Operation{add("a\n\n b \n")}},
		{name: "P10 no line is an empty file", text: inner("*** Add File: f"), want: []patch.Operation{add("")}},
		{name: "P10 markers are content", text: inner("*** Add File: f", "+*** End Patch", "+*** Delete File: x"), want: []patch.Operation{add("*** End Patch\n*** Delete File: x\n")}},
		{name: "P10 two adds", text: inner("*** Add File: f", "+a", "*** Add File: g", "+b"),
			want: []patch.Operation{add("a\n"), {Kind: patch.Add, Path: "g", LineNumber: 4, Content: "b\n"}}},
		{name: "P11 a delete has no body", text: inner("*** Delete File: f", "-a"), line: 3, says: "is no header"},

		// Update.
		{name: "P12 move", text: inner("*** Update File: f", "*** Move to:  g ", "@@", "-a"),
			want: []patch.Operation{{Kind: patch.Update, Path: "f", LineNumber: 2, MoveTo: " g", Hunks: []patch.Hunk{hunk(4, "-", []string{"a"}, nil)}}}},
		{name: "P12 twice", text: inner("*** Update File: f", "*** Move to: g", "*** Move to: h", "@@", "-a"), line: 4, says: "unexpected line"},
		{name: "P12 later", text: inner("*** Update File: f", "-a", "*** Move to: g"), line: 4, says: "must start with @@"},
		{name: "P12 after an empty line", text: inner("*** Update File: f", "", "*** Move to: g", "@@", "-a"), line: 4, says: "must start with @@"},
		{name: "P12 after the ignored mark", text: inner("*** Update File: f", "*** End of File", "*** Move to: g", "@@", "-a"), line: 4, says: "unexpected line"},
		{name: "P12 no path", text: inner("*** Update File: f", "*** Move to: ", "@@", "-a"), line: 3, says: "unexpected line"},
		{name: "P12 after an add", text: inner("*** Add File: f", "*** Move to: g"), line: 3, says: "is no header"},
		{name: "P13 marker", text: inner("*** Update File: f", "@@", "-a", "+b"), want: []patch.Operation{updateOf(2, ab)}},
		{name: "P13 context", text: inner("*** Update File: f", "@@  def a(): ", "-a", "+b"),
			want: []patch.Operation{updateOf(2, with(ab, func(h *patch.Hunk) { h.Context = at(" def a():") }))}},
		{name: "P13 the first marker may be left out", text: inner("*** Update File: f", "-a", "+b"), want: []patch.Operation{updateOf(2, ab)}},
		{name: "P13 no blank is no marker", text: inner("*** Update File: f", "@@foo"), line: 3, says: "unexpected line"},
		{name: "P13 a unified diff's header is context", text: inner("*** Update File: f", "@@ -1,3 +1,4 @@", "-a", "+b"),
			want: []patch.Operation{updateOf(2, with(ab, func(h *patch.Hunk) { h.Context = at("-1,3 +1,4 @@") }))}},
		{name: "P14 stacked", text: inner("*** Update File: f", "@@ class A", "@@ def b", "-a"), line: 3, says: "the chunk has no lines"},
		{name: "P14 nothing before the next operation", text: inner("*** Update File: f", "@@", "*** Delete File: g"), line: 3, says: "the chunk has no lines"},
		{name: "P14 nothing before End", text: inner("*** Update File: f", "-a", "@@"), line: 4, says: "the chunk has no lines"},
		{name: "P15 kinds", text: inner("*** Update File: f", "@@", " a", "-b", "+c", "", "+", "-"),
			want: []patch.Operation{updateOf(2, hunk(3, " -+ +-", []string{"a", "b", "", ""}, []string{"a", "c", "", ""}))}},
		{name: "P15 an empty line belongs to the chunk before", text: inner("*** Update File: f", "@@", "-a", "", "@@", "-b"),
			want: []patch.Operation{updateOf(2, hunk(3, "- ", []string{"a", ""}, []string{""}), hunk(6, "-", []string{"b"}, nil))}},
		{name: "P15 blanks only are context", text: inner("*** Update File: f", "@@", "-a", "  "),
			want: []patch.Operation{updateOf(2, hunk(3, "- ", []string{"a", " "}, []string{" "}))}},
		{name: "P15 empty lines before the first marker are ignored", text: inner("*** Update File: f", "", "", "@@", "-a"),
			want: []patch.Operation{updateOf(2, hunk(5, "-", []string{"a"}, nil))}},
		{name: "P15 empty lines before a move's marker", text: inner("*** Update File: f", "*** Move to: g", "", "@@", "-a"),
			want: []patch.Operation{{Kind: patch.Update, Path: "f", LineNumber: 2, MoveTo: "g", Hunks: []patch.Hunk{hunk(5, "-", []string{"a"}, nil)}}}},
		{name: "P15 empty lines before a line without marker count", text: inner("*** Update File: f", "", "", "-a"),
			want: []patch.Operation{updateOf(2, hunk(3, "  -", []string{"", "", "a"}, []string{"", ""}))}},
		{name: "P15 empty lines alone are a chunk", text: inner("*** Update File: f", ""),
			want: []patch.Operation{updateOf(2, hunk(3, " ", []string{""}, []string{""}))}},
		{name: "P15 empty lines alone, then an operation", text: inner("*** Update File: f", "", "*** Delete File: g"),
			want: []patch.Operation{updateOf(2, hunk(3, " ", []string{""}, []string{""})), {Kind: patch.Delete, Path: "g", LineNumber: 4}}},
		{name: "P16 end of file", text: inner("*** Update File: f", "@@", "-a", "+b", "*** End of File"),
			want: []patch.Operation{updateOf(2, with(ab, func(h *patch.Hunk) { h.IsEndOfFile = true }))}},
		{name: "P16 blank lines after it", text: inner("*** Update File: f", "@@", "-a", "+b", "*** End of File", "", " \t", "@@", "-c"),
			want: []patch.Operation{updateOf(2, with(ab, func(h *patch.Hunk) { h.IsEndOfFile = true }), hunk(9, "-", []string{"c"}, nil))}},
		{name: "P16 after empty lines", text: inner("*** Update File: f", "", "*** End of File"),
			want: []patch.Operation{updateOf(2, with(hunk(3, " ", []string{""}, []string{""}), func(h *patch.Hunk) { h.IsEndOfFile = true }))}},
		{name: "P16 before any chunk it is ignored", text: inner("*** Update File: f", "*** End of File", "@@", "-a", "+b"),
			want: []patch.Operation{updateOf(2, with(ab, func(h *patch.Hunk) { h.LineNumber = 4 }))}},
		{name: "P16 directly after the marker", text: inner("*** Update File: f", "@@", "*** End of File"), line: 4, says: "needs a line"},
		{name: "P16 a line after it", text: inner("*** Update File: f", "@@", "-a", "*** End of File", "+b"), line: 6, says: "must start with @@"},
		{name: "P16 twice", text: inner("*** Update File: f", "@@", "-a", "*** End of File", "*** End of File"), line: 6, says: "must start with @@"},
		{name: "P17 first line", text: inner("*** Update File: f", "@@", "\tx"), line: 4, says: "begin with a blank, + or -"},
		{name: "P17 first line without marker", text: inner("*** Update File: f", "x"), line: 3, says: "begin with a blank, + or -"},
		{name: "P17 later", text: inner("*** Update File: f", "@@", "-a", "x"), line: 5, says: "a chunk must start with @@"},
		{name: "P18 no chunk", text: inner("*** Update File: f"), line: 2, says: `the update of "f" has no chunk`},
		{name: "P18 no chunk before the next", text: inner("*** Delete File: g", "*** Update File: f", "*** Delete File: h"), line: 3, says: "has no chunk"},
		{name: "P18 only the ignored mark", text: inner("*** Update File: f", "*** End of File"), line: 2, says: "has no chunk"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := patch.Parse(tt.text, patch.Options{})
			checkParse(t, got, err, tt.want, tt.line, tt.says)
			// The dialect of Codex differs in what has a test of its own.
			if tt.says == "" && len(tt.want) > 0 {
				got, err = patch.Parse(tt.text, patch.Options{Codex: true})
				checkParse(t, got, err, tt.want, tt.line, tt.says)
			}
		})
	}
}

func checkParse(t *testing.T, got []patch.Operation, err error, want []patch.Operation, line int, says string) {
	t.Helper()
	if says == "" {
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		return
	}
	var e *patch.ParseError
	if !errors.As(err, &e) || got != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if e.Line != line || !strings.Contains(e.Message, says) {
		t.Errorf("line %d: %s\nwant line %d: …%s…", e.Line, e.Message, line, says)
	}
}

// What Codex refuses and Wattle does not (P4, P18, section 7).
func TestParseCodex(t *testing.T) {
	move := inner("*** Update File: f", "*** Move to: g")
	got, err := patch.Parse(move, patch.Options{})
	checkParse(t, got, err, []patch.Operation{{Kind: patch.Update, Path: "f", LineNumber: 2, MoveTo: "g"}}, 0, "")
	got, err = patch.Parse(move, patch.Options{Codex: true})
	checkParse(t, got, err, nil, 2, "has no chunk")
	got, err = patch.Parse(inner(), patch.Options{Codex: true})
	checkParse(t, got, err, nil, 0, "changes no file")
}

// weight is about what a parsed patch holds in memory, without the text itself.
func weight(ops []patch.Operation) int {
	n := cap(ops) * int(unsafe.Sizeof(patch.Operation{}))
	for _, op := range ops {
		n += len(op.Content) + cap(op.Hunks)*int(unsafe.Sizeof(patch.Hunk{}))
		for _, h := range op.Hunks {
			n += (cap(h.OldLines)+cap(h.NewLines))*int(unsafe.Sizeof("")) + len(h.Kinds) + int(unsafe.Sizeof(""))
		}
	}
	return n
}

// maxWeight is what a byte of a patch may cost: an empty line is one context
// line, so two string headers and their slices' spare room.
const maxWeight = 80

func TestParseIsLinear(t *testing.T) {
	const n = 200_000
	for name, text := range map[string]string{
		"empty lines":       inner("*** Update File: f", "@@", strings.Repeat("\n", n)),
		"leading lines":     inner("*** Update File: f", strings.Repeat("\n", n)),
		"additions":         inner("*** Update File: f", "@@", strings.Repeat("+\n", n)+"+"),
		"chunks":            inner("*** Update File: f", strings.Repeat("@@\n+\n", n)+"@@", "+"),
		"deletes":           inner(strings.Repeat("*** Delete File: f\n", n) + "*** Delete File: f"),
		"adds":              inner(strings.Repeat("*** Add File: f\n+\n", n) + "*** Add File: f"),
		"one line":          inner("*** Add File: f", "+"+strings.Repeat("x", n)),
		"an error at last":  inner("*** Update File: f", "@@", strings.Repeat("+\n", n)+"x"),
		"a long error line": inner(strings.Repeat("x", n)),
	} {
		ops, err := patch.Parse(text, patch.Options{})
		if got := weight(ops); got > maxWeight*len(text) {
			t.Errorf("%s: %d bytes of patch became %d", name, len(text), got)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the message has %d bytes", name, len(err.Error()))
		}
	}
}
