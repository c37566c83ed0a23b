package patch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider/patch"
)

// update makes the hunks of one file from the lines of its chunks.
func update(t *testing.T, lines ...string) []patch.Hunk {
	t.Helper()
	text := "*** Begin Patch\n*** Update File: f\n" + strings.Join(lines, "\n") + "\n*** End Patch"
	ops, err := patch.Parse(text, patch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ops[0].Hunks
}

// Each row is a rule of facts/patch.md section 4, 5 or 8. Line 1 of the patch is
// Begin, line 2 the update header, so that the first of the lines is line 3.
var applyRows = []struct {
	name  string
	file  string
	lines []string
	want  string
	at    []int
	// codex is the result with compat; same as want if empty.
	codex   string
	codexAt []int
	// The failure, when stage is set.
	stage   patch.Stage
	line    int
	start   int
	pattern []string
}{
	// Section 4: matching.
	{name: "M1 the search goes on behind the context", file: "x\na\nx\n", lines: []string{"@@ a", "-x", "+y"}, want: "x\na\ny\n"},
	{name: "M1 the context is no old line", file: "a\nb\n", lines: []string{"@@ a", "-a", "+c"}, stage: patch.StageOldLines, line: 3, start: 1, pattern: []string{"a"}},
	{name: "M1 context not found", file: "a\nb\n", lines: []string{"@@", "-a", "+A", "@@ none", "-b", "+B"}, stage: patch.StageContext, line: 6, start: 1, pattern: []string{"none"}},
	{name: "M1 context is found leniently", file: "  \u201cx\u201d  \ny\n", lines: []string{"@@ \"x\"", "+n"}, want: "  \u201cx\u201d  \nn\ny\n", at: []int{2}, codex: "  \u201cx\u201d  \ny\nn\n", codexAt: []int{3}},
	{name: "M1 the same context twice", file: "a\nx\na\nx\n", lines: []string{"@@ a", "+1", "@@ a", "+2"}, want: "a\n1\nx\na\n2\nx\n", at: []int{2, 5}, codex: "a\nx\na\nx\n1\n2\n", codexAt: []int{5, 6}},
	{name: "M3 the block is found from the cursor", file: "x\nx\nx\n", lines: []string{"@@", "-x", "+1", "@@", "-x", "+2"}, want: "1\n2\nx\n"},
	{name: "M3 chunks out of order", file: "a\nb\n", lines: []string{"@@", "-b", "+B", "@@", "-a", "+A"}, stage: patch.StageOldLines, line: 6, start: 2, pattern: []string{"a"}},
	{name: "M3 end of file is the only candidate", file: "x\ny\nz\n", lines: []string{"@@", "-x", "+X", "*** End of File"}, stage: patch.StageOldLines, line: 3, start: 2, pattern: []string{"x"}},
	{name: "M3 end of file lies before the cursor", file: "a\nb\n", lines: []string{"@@ b", "-b", "+B", "*** End of File"}, stage: patch.StageOldLines, line: 3, start: 1, pattern: []string{"b"}},
	{name: "M3 overlapping end of file chunks", file: "a\nb\n", lines: []string{"@@", "-a", "-b", "+1", "*** End of File", "@@", "-b", "+2", "*** End of File"}, stage: patch.StageOldLines, line: 8, start: 1, pattern: []string{"b"}},
	{name: "M4 the empty last line stands for the final newline", file: "a\nb\n", lines: []string{"@@", "-b", "+c", ""}, want: "a\nc\n"},
	{name: "M4 only when it is not found with it", file: "b\nx\nb\n\n", lines: []string{"@@", "-b", "+c", ""}, want: "b\nx\nc\n\n"},
	{name: "M4 at the end of the file", file: "b\na\nb\n", lines: []string{"@@", "-b", "+c", "", "*** End of File"}, want: "b\na\nc\n"},
	{name: "M4 an empty line before the last added one stays", file: "a\nb\n", lines: []string{"@@", "-b", "", "+c"}, want: "a\n\nc\n"},
	{name: "M4 a removed empty line", file: "a\nb\n", lines: []string{"@@", "-b", "-", "+c"}, want: "a\nc\n"},
	{name: "M4 removed and added empty lines", file: "a\nb\n", lines: []string{"@@", "-b", "-", "+c", "+"}, want: "a\nc\n"},
	{name: "M4 a context line before a removed one", file: "a\n\nb\n", lines: []string{"@@", " a", "", "-"}, want: "a\nb\n"},
	{name: "M4 once only", file: "a\nb\n", lines: []string{"@@", "-b", "+c", "", ""}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"b", "", ""}},
	{name: "M5 the pattern has the dropped line", file: "a\n", lines: []string{"@@ a", "-b", "+c", ""}, stage: patch.StageOldLines, line: 3, start: 1, pattern: []string{"b", ""}},
	{name: "M5 the cursor does not count the dropped line", file: "a\nb\n", lines: []string{"@@", "-a", "+A", "", "@@", "-b", "+B"}, want: "A\nB\n"},
	{name: "M5 all or none", file: "a\nb\n", lines: []string{"@@", "-a", "+A", "@@", "-c", "+C"}, stage: patch.StageOldLines, line: 6, start: 1, pattern: []string{"c"}},
	{name: "M6 longer than the file", file: "a\n", lines: []string{"@@", "-a", "-b"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"a", "b"}},
	{name: "M6 longer than the file, at its end", file: "a\n", lines: []string{"@@", "-a", "-b", "*** End of File"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"a", "b"}},
	{name: "M6 in an empty file", file: "", lines: []string{"@@", "-a"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"a"}},

	{name: "pass 1 wins over an earlier pass 2", file: "x \nx\n", lines: []string{"@@", "-x", "+y"}, want: "x \ny\n"},
	{name: "pass 2 wins over an earlier pass 3", file: " x\nx \n", lines: []string{"@@", "-x", "+y"}, want: " x\ny\n"},
	{name: "pass 3 wins over an earlier pass 4", file: "\u2010\n -\n", lines: []string{"@@", "--", "+y"}, want: "\u2010\ny\n"},
	{name: "passes are of the block, not of the line", file: "a \nb\na\nb \nc\n", lines: []string{"@@", "-a", "-b", "+y"}, want: "y\na\nb \nc\n"},
	{name: "pass 2 white space of Unicode", file: "x\u3000\u0085\n", lines: []string{"@@", "-x", "+y"}, want: "y\n"},
	{name: "pass 3 both sides", file: "\t x\n", lines: []string{"@@", "-x", "+y"}, want: "y\n"},
	{name: "pass 4 dashes", file: "a\u2010\u2011\u2012\u2013\u2014\u2015\u2212\n", lines: []string{"@@", "-a-------", "+y"}, want: "y\n"},
	{name: "pass 4 single quotes", file: "a\u2018\u2019\u201a\u201b\n", lines: []string{"@@", "-a''''", "+y"}, want: "y\n"},
	{name: "pass 4 double quotes", file: "a\u201c\u201d\u201e\u201f\n", lines: []string{"@@", "-a\"\"\"\"", "+y"}, want: "y\n"},
	{name: "pass 4 blanks", file: "a\u00a0\u2002\u200a\u202f\u205f\u3000b\n", lines: []string{"@@", "-a      b", "+y"}, want: "y\n"},
	{name: "pass 4 maps the patch too", file: "a-b\n", lines: []string{"@@", "-a\u2013b", "+y"}, want: "y\n"},
	{name: "pass 4 does not map U+2000", file: "a\u2000b\n", lines: []string{"@@", "-a b", "+y"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"a b"}},
	{name: "pass 4 does not map U+2001", file: "a\u2001b\n", lines: []string{"@@", "-a b", "+y"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"a b"}},
	{name: "pass 4 does not map the ellipsis", file: "a\u2026\n", lines: []string{"@@", "-a...", "+y"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"a..."}},
	{name: "pass 4 does not map zero width", file: "a\u200bb\n", lines: []string{"@@", "-ab", "+y"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"ab"}},
	{name: "nothing folds case", file: "A\n", lines: []string{"@@", "-a", "+y"}, stage: patch.StageOldLines, line: 3, start: 0, pattern: []string{"a"}},
	{name: "several matches take the first", file: "x\nx\n", lines: []string{"@@", "-x", "+y"}, want: "y\nx\n"},
	{name: "a false start", file: "a\na\na\nb\n", lines: []string{"@@", "-a", "-a", "-b", "+y"}, want: "a\ny\n"},

	// Section 5.1: context keeps its bytes.
	{name: "5.1 context keeps its bytes", file: "\ta  \nb\r\nc\u2019\n", lines: []string{"@@", " a", "-b", "+B", " c'"}, want: "\ta  \nB\r\nc\u2019\n", codex: "\ta  \nB\nc\u2019\n"},
	{name: "5.1 a line that is removed and added again", file: " a\nb\n", lines: []string{"@@", "-a", "+a", " b"}, want: "a\nb\n"},

	// Section 5.2: pure additions.
	{name: "5.2 behind the context", file: "x\nctx\ny\n", lines: []string{"@@ ctx", "+new"}, want: "x\nctx\nnew\ny\n", at: []int{3}, codex: "x\nctx\ny\nnew\n", codexAt: []int{4}},
	{name: "5.2 without context at the end", file: "a\nb\n", lines: []string{"@@", "+z"}, want: "a\nb\nz\n", at: []int{3}},
	{name: "5.2 with the mark at the end", file: "a\nb\n", lines: []string{"@@ a", "+z", "*** End of File"}, want: "a\nb\nz\n", at: []int{3}},
	{name: "5.2 with the mark the context must be there", file: "a\nb\n", lines: []string{"@@ c", "+z", "*** End of File"}, stage: patch.StageContext, line: 3, start: 0, pattern: []string{"c"}},
	{name: "5.2 an empty line behind it", file: "ctx\ny\n", lines: []string{"@@ ctx", "+new", "", "@@ y", "+more"}, want: "ctx\nnew\ny\nmore\n", at: []int{2, 4}, codex: "ctx\nnew\ny\nmore\n", codexAt: []int{2, 4}},
	{name: "5.2 an empty line behind it that is there", file: "ctx\n\ny\n", lines: []string{"@@ ctx", "+new", ""}, want: "ctx\nnew\n\ny\n"},
	{name: "5.2 the cursor counts lines of the original", file: "a\nb\nc\n", lines: []string{"@@ a", "+1", "+2", "+3", "@@ b", "+4"}, want: "a\n1\n2\n3\nb\n4\nc\n", at: []int{2, 6}, codex: "a\nb\nc\n1\n2\n3\n4\n", codexAt: []int{4, 7}},
	{name: "5.2 order at one place", file: "a\n", lines: []string{"@@", "+1", "@@ a", "+2", "@@", "+3"}, want: "a\n1\n2\n3\n", at: []int{2, 3, 4}},
	{name: "5.2 before a change at the same place", file: "a\nb\n", lines: []string{"@@ a", "+1", "@@", "-b", "+B"}, want: "a\n1\nB\n", at: []int{2}, codex: "a\nB\n1\n", codexAt: []int{3}},
	{name: "5.2 at the end, then a change before it", file: "a\nb\n", lines: []string{"@@", "+z", "@@", "-a", "+A", "+A2"}, want: "A\nA2\nb\nz\n", at: []int{4}},
	{name: "5.2 into an empty file", file: "", lines: []string{"@@", "+a", "+b"}, want: "a\nb\n", at: []int{1}},
	{name: "5.2 nothing to add", file: "a\n", lines: []string{"@@", ""}, want: "a\n"},

	// Section 5.3: line ends.
	{name: "5.3 the ends of the removed lines", file: "p\r\nq\nr\r\n", lines: []string{"@@", "-q", "+Q"}, want: "p\r\nQ\nr\r\n", codex: "p\r\nQ\r\nr\r\n"},
	{name: "5.3 majority of the run", file: "a\r\nb\nc\nd\r\n", lines: []string{"@@", "-a", "-b", "-c", "+1", "+2"}, want: "1\n2\nd\r\n", codex: "1\r\n2\r\nd\r\n"},
	{name: "5.3 a tie takes the first", file: "a\r\nb\nc\n", lines: []string{"@@", "-a", "-b", "+1"}, want: "1\r\nc\n"},
	{name: "5.3 each run by itself", file: "a\r\nb\nc\n", lines: []string{"@@", "-a", "+1", " b", "-c", "+3"}, want: "1\r\nb\n3\n", codex: "1\r\nb\n3\r\n"},
	{name: "5.3 one run of mixed order", file: "a\r\nb\nc\nd\n", lines: []string{"@@", "-a", "+1", "-b", "+2", "-c", "+3"}, want: "1\n2\n3\nd\n", codex: "1\r\n2\r\n3\r\nd\n"},
	{name: "5.3 the file's when nothing is removed", file: "a\nb\r\nc\r\n", lines: []string{"@@ a", "+1"}, want: "a\n1\r\nb\r\nc\r\n", at: []int{2}, codex: "a\nb\r\nc\r\n1\n", codexAt: []int{4}},
	{name: "5.3 the file's tie is LF", file: "a\r\nb\n", lines: []string{"@@ a", "+1"}, want: "a\r\n1\nb\n", at: []int{2}, codex: "a\r\nb\n1\r\n", codexAt: []int{3}},
	{name: "5.3 the file has none", file: "a", lines: []string{"@@", "-a", "+1", "+2"}, want: "1\n2", codex: "1\n2\n"},
	{name: "5.3 a CR alone ends a line", file: "a\rb\rc\r", lines: []string{"@@", "-b", "+B", "+B2"}, want: "a\rB\rB2\rc\r"},
	{name: "5.3 CR CR LF is an empty line", file: "a\r\r\nb\r\n", lines: []string{"@@", " a", "-", "+x"}, want: "a\rx\r\nb\r\n", codex: "a\rx\rb\r\n"},
	{name: "5.3 CR in a CRLF file", file: "one\r\ntwo\rthree\nfour\r\n", lines: []string{"@@", " one", " two", "-three", "+THREE", " four"}, want: "one\r\ntwo\rTHREE\nfour\r\n", codex: "one\r\ntwo\rTHREE\r\nfour\r\n"},
	{name: "5.3 a removed and a kept copy", file: "x\r\nx\n", lines: []string{"@@", "-x", " x"}, want: "x\n"},
	{name: "5.3 CRLF in the patch", file: "a\nb\n", lines: []string{"@@\r", "-a\r", "+A\r"}, want: "A\nb\n"},

	// Section 5.4: the final newline.
	{name: "5.4 stays", file: "a\nb\n", lines: []string{"@@", "-b", "+c"}, want: "a\nc\n"},
	{name: "5.4 an emptied file has no bytes", file: "a\nb\n", lines: []string{"@@", "-a", "-b"}, want: ""},
	{name: "5.4 an emptied file without one", file: "a\nb", lines: []string{"@@", "-a", "-b"}, want: ""},
	{name: "5.4 untouched last line", file: "a\nb", lines: []string{"@@", "-a", "+A"}, want: "A\nb", codex: "A\nb\n"},
	{name: "5.4 context last line", file: "a\nb", lines: []string{"@@", "-a", "+A", " b"}, want: "A\nb", codex: "A\nb\n"},
	{name: "5.4 replaced by several", file: "a\r\nb", lines: []string{"@@", "-b", "+c", "+d"}, want: "a\r\nc\r\nd", codex: "a\r\nc\r\nd\r\n"},
	{name: "5.4 appended behind context", file: "a\r\nb", lines: []string{"@@", " b", "+c"}, want: "a\r\nb\r\nc", codex: "a\r\nb\r\nc\r\n"},
	{name: "5.4 appended behind @@ context", file: "a\nb", lines: []string{"@@ b", "+c", "+d"}, want: "a\nb\nc\nd", at: []int{3}, codex: "a\nb\nc\nd\n", codexAt: []int{3}},
	{name: "5.4 several appended", file: "b", lines: []string{"@@", "+c", "@@", "+d"}, want: "b\nc\nd", at: []int{2, 3}, codex: "b\nc\nd\n", codexAt: []int{2, 3}},
	{name: "5.4 deleted, the line before was added", file: "a\nb", lines: []string{"@@", "-a", "+A", "@@", "-b"}, want: "A\n"},
	{name: "5.4 deleted, and appended elsewhere", file: "a\nb", lines: []string{"@@", "-b", "@@", "+c"}, want: "a\nc", at: []int{2}, codex: "a\nc\n", codexAt: []int{2}},
	{name: "5.4 moved inward in its own run", file: "a\nb", lines: []string{"@@", "-a", "+A", " b", "+c"}, want: "A\nb\nc", codex: "A\nb\nc\n"},

	// Section 8, the examples.
	{name: "E1 after an anchor", file: "[db]\nhost=a\n[log]\nlevel=1\n", lines: []string{"@@ [db]", "+port=5432"}, want: "[db]\nport=5432\nhost=a\n[log]\nlevel=1\n", at: []int{2}, codex: "[db]\nhost=a\n[log]\nlevel=1\nport=5432\n", codexAt: []int{5}},
	{name: "E2 an anchor, then a change", file: "def one\nx=1\ndef two\nx=1\n", lines: []string{"@@ def two", "-x=1", "+x=2"}, want: "def one\nx=1\ndef two\nx=2\n"},
	{name: "E2 the anchor is missing", file: "def one\nx=1\n", lines: []string{"@@ def two", "-x=1", "+x=2"}, stage: patch.StageContext, line: 3, start: 0, pattern: []string{"def two"}},
	{name: "E3 at the end of the file", file: "end\nmid\nend\n", lines: []string{"@@", "-end", "+fin", "*** End of File"}, want: "end\nmid\nfin\n"},
	{name: "E3 without the mark", file: "end\nmid\nend\n", lines: []string{"@@", "-end", "+fin"}, want: "fin\nmid\nend\n"},
	{name: "E4 lenient context keeps its bytes", file: "say \u201chi\u201d\t\ngo\n", lines: []string{"@@", " say \"hi\"", "-go", "+stop"}, want: "say \u201chi\u201d\t\nstop\n"},
	{name: "E5 replaced", file: "a\nb", lines: []string{"@@", "-b", "+c"}, want: "a\nc", codex: "a\nc\n"},
	{name: "E5 added", file: "a\nb", lines: []string{"@@", "+c"}, want: "a\nb\nc", at: []int{3}, codex: "a\nb\nc\n", codexAt: []int{3}},
	{name: "E5 deleted", file: "a\nb", lines: []string{"@@", "-b"}, want: "a\n"},
	{name: "E5 a final newline on purpose", file: "a\nb", lines: []string{"@@", "-b", "+c", "+"}, want: "a\nc\n", codex: "a\nc\n\n"},
	{name: "E6 mixed ends", file: "p\r\nq\nr\r\n", lines: []string{"@@", "-q", "+Q"}, want: "p\r\nQ\nr\r\n", codex: "p\r\nQ\r\nr\r\n"},
	{name: "E7 two anchored additions", file: "a\nb\nc\n", lines: []string{"@@ a", "+1", "@@ b", "+2"}, want: "a\n1\nb\n2\nc\n", at: []int{2, 4}, codex: "a\nb\nc\n1\n2\n", codexAt: []int{4, 5}},
	{name: "E8 an empty line behind the added one", file: "a\nb\n", lines: []string{"@@", "+new", ""}, want: "a\nb\nnew\n", at: []int{3}, codex: "new\na\nb\n", codexAt: []int{1}},
}

func TestApply(t *testing.T) {
	for _, tt := range applyRows {
		for _, codex := range []bool{false, true} {
			name, want, at := tt.name, tt.want, tt.at
			if codex {
				name = "codex/" + name
				if tt.codex != "" {
					want = tt.codex
				}
				if tt.codexAt != nil {
					at = tt.codexAt
				}
			}
			t.Run(name, func(t *testing.T) {
				hunks := update(t, tt.lines...)
				got, err := patch.Apply(tt.file, hunks, patch.Options{Codex: codex})
				if tt.stage != "" {
					checkFailure(t, err, tt.stage, tt.line, tt.start, tt.pattern)
					if got.Text != "" || got.InsertedAt != nil {
						t.Errorf("a failure with %+v", got)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got.Text != want || !slices.Equal(got.InsertedAt, at) {
					t.Errorf("%q at %v\nwant %q at %v", got.Text, got.InsertedAt, want, at)
				}
				// The bound is exact.
				_, err = patch.Apply(tt.file, hunks, patch.Options{Codex: codex, MaxBytes: int64(max(len(want), 1))})
				if err != nil {
					t.Error("exactly the limit:", err)
				}
				if len(want) > 1 {
					_, err = patch.Apply(tt.file, hunks, patch.Options{Codex: codex, MaxBytes: int64(len(want) - 1)})
					if !errors.Is(err, patch.ErrTooLarge) {
						t.Error("above the limit:", err)
					}
				}
			})
		}
	}
}

func checkFailure(t *testing.T, err error, stage patch.Stage, line, start int, pattern []string) {
	t.Helper()
	var f *patch.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v", err)
	}
	if f.Stage != stage || f.HunkLineNumber != line || f.SearchStart != start || !slices.Equal(f.Pattern, pattern) {
		t.Errorf("%+v", *f)
	}
}
