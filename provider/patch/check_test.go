package patch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/provider/patch"
)

// Hunks that nobody parsed.
func TestCheck(t *testing.T) {
	tests := []struct {
		name string
		hunk patch.Hunk
		says string // empty: nothing is wrong
		want string // of Apply to "a\nb\n", or "mismatch"
	}{
		{name: "no kinds", hunk: patch.Hunk{OldLines: []string{"a"}, NewLines: []string{"A"}}, want: "A\nb\n"},
		{name: "nothing at all", hunk: patch.Hunk{}, want: "a\nb\n"},
		{name: "only the mark", hunk: patch.Hunk{IsEndOfFile: true}, want: "a\nb\n"},
		{name: "kinds of more lines", hunk: patch.Hunk{OldLines: []string{"a"}, Kinds: "--"}, says: "hunk 1: its kinds", want: "b\n"},
		{name: "kinds of fewer lines", hunk: patch.Hunk{LineNumber: 7, OldLines: []string{"a", "b"}, NewLines: []string{"a"}, Kinds: " "}, says: "patch line 7: its kinds", want: "a\n"},
		{name: "kinds of no line", hunk: patch.Hunk{Kinds: " "}, says: "its kinds", want: "a\nb\n"},
		{name: "context of different lines", hunk: patch.Hunk{OldLines: []string{"a"}, NewLines: []string{"A"}, Kinds: " "}, says: "its kinds", want: "A\nb\n"},
		{name: "an unknown kind", hunk: patch.Hunk{OldLines: []string{"a"}, Kinds: "x"}, says: "its kinds", want: "b\n"},
		{name: "kinds that are no text", hunk: patch.Hunk{OldLines: []string{"a"}, Kinds: "\xff"}, says: "its kinds", want: "b\n"},
		{name: "LF in an old line", hunk: patch.Hunk{OldLines: []string{"a\nb"}}, says: `line break in the line "a\nb"`, want: "mismatch"},
		{name: "LF in a new line", hunk: patch.Hunk{OldLines: []string{"a"}, NewLines: []string{"1\n2"}}, says: "line break", want: "1\n2\nb\n"},
		{name: "CR in a new line", hunk: patch.Hunk{OldLines: []string{"a"}, NewLines: []string{"1\r"}, Kinds: "-+"}, says: "line break", want: "1\r\nb\n"},
		{name: "LF in the context", hunk: patch.Hunk{Context: at("a\n"), NewLines: []string{"1"}, Kinds: "+"}, says: "line break", want: "a\n1\nb\n"},
		{name: "a negative line number", hunk: patch.Hunk{LineNumber: -5, OldLines: []string{"x"}, Kinds: " "}, says: "hunk 1:", want: "mismatch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := patch.Check([]patch.Hunk{tt.hunk})
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			got, err := patch.Apply("a\nb\n", []patch.Hunk{tt.hunk}, patch.Options{})
			var f *patch.Failure
			if tt.want == "mismatch" {
				if !errors.As(err, &f) {
					t.Errorf("%+v, %v", got, err)
				}
			} else if err != nil || got.Text != tt.want {
				t.Errorf("%q, %v", got.Text, err)
			}
		})
	}
}

// Without kinds, lines that stay are found by their text, and keep the bytes of
// the file.
func TestPairing(t *testing.T) {
	lines := func(s string) []string { return strings.Split(s, " ") }
	tests := []struct{ name, file, old, added, want string }{
		{"one changed line", "a\r\nb\nc\r\n", "a b c", "a B c", "a\r\nB\nc\r\n"},
		{"context leniently", "a \nb\nc\t\n", "a b c", "a c", "a \nc\t\n"},
		{"two changed lines", "a\r\nb\nc\r\nd\ne\r\n", "a b c d e", "a B c D e", "a\r\nB\nc\r\nD\ne\r\n"},
		{"a line goes ahead", "a\r\nb\nc\r\n", "a b c", "b a c", "b\na\r\nc\r\n"},
		{"the subsequence is the longest", "x\r\na\nb\r\nc\n", "x a b c", "a b c x", "a\nb\r\nc\nx\n"},
		{"all lines", "a\r\nb\n", "a b", "c d e", "c\r\nd\r\ne\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := patch.Apply(tt.file, []patch.Hunk{{OldLines: lines(tt.old), NewLines: lines(tt.added)}}, patch.Options{})
			if err != nil || got.Text != tt.want {
				t.Errorf("%q, %v; want %q", got.Text, err, tt.want)
			}
		})
	}
}

// Above its bound a hunk is paired at its ends only; the text is the same.
func TestPairingIsBounded(t *testing.T) {
	old := make([]string, 6000)
	for i := range old {
		old[i] = strings.Repeat("x", i%7) + string(rune('a'+i%26))
	}
	added := slices.Clone(old)
	added[3], added[5990] = "changed", "changed too"
	slices.Reverse(added[100:5900])
	got, err := patch.Apply(strings.Join(old, "\n")+"\n", []patch.Hunk{{OldLines: old, NewLines: added}}, patch.Options{})
	if err != nil || got.Text != strings.Join(added, "\n")+"\n" {
		t.Error("the text differs", err)
	}
}

func TestFailureSaysWhere(t *testing.T) {
	for _, tt := range []struct {
		f    patch.Failure
		want string
	}{
		{patch.Failure{HunkLineNumber: 7, Stage: patch.StageContext, SearchStart: 2, Pattern: []string{"def a"}},
			`patch line 7 does not fit (stage context): the context "def a" does not occur from line 3 of the file on`},
		{patch.Failure{HunkLineNumber: 7, Stage: patch.StageOldLines, Pattern: []string{"x"}},
			`patch line 7 does not fit (stage oldLines): the line "x" does not occur from line 1 of the file on`},
		{patch.Failure{Stage: patch.StageOldLines, Pattern: []string{"x", "y"}},
			`a hunk does not fit (stage oldLines): the 2 lines that begin with "x" do not occur from line 1 of the file on`},
	} {
		if got := tt.f.Error(); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
	long := patch.Failure{Stage: patch.StageOldLines, Pattern: []string{strings.Repeat("x", 1<<20)}}
	if n := len(long.Error()); n > 300 {
		t.Errorf("%d bytes of message", n)
	}
}

// Patches that were made to take long end in a few seconds, or at once.
func TestHostilePatches(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: slow")
	}
	n := 1 << 20
	same := strings.Repeat("a\n", n)
	block := slices.Repeat([]string{"a"}, n/2)
	// Hunks that fit in the last pass only, at the top of the file, and whose
	// lines all occur further down.
	var top, chunks strings.Builder
	var late []patch.Hunk
	for i := range 5000 {
		line := string(rune('a'+i%20)) + string(rune('a'+i/20%20)) + string(rune('a'+i/400))
		top.WriteString("\u201c" + line + "\nx\n")
		chunks.WriteString("\"" + line + "\n")
		late = append(late, patch.Hunk{OldLines: []string{"\"" + line, "x"}, Kinds: "--"})
	}
	for _, tt := range []struct {
		name  string
		file  string
		hunks []patch.Hunk
		want  error // nil: a Failure
	}{
		{"a long block that nearly fits everywhere", same, []patch.Hunk{{OldLines: append(slices.Clone(block), "b")}}, nil},
		{"the same with its last line at the end", same + "b\na\n", []patch.Hunk{{OldLines: append(slices.Clone(block), "b", "b")}}, nil},
		{"many late fits", top.String() + strings.Repeat("y\n", n) + chunks.String() + "x\n", late, patch.ErrTooLarge},
		{"CR only", strings.Repeat("a\r", n), []patch.Hunk{{OldLines: []string{"a", "b"}}}, nil},
		{"empty lines", strings.Repeat("\n", n), []patch.Hunk{{OldLines: []string{"", "b", ""}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			_, err := patch.Apply(tt.file, tt.hunks, patch.Options{})
			var f *patch.Failure
			if tt.want == nil && !errors.As(err, &f) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Error(err)
			}
			took := time.Since(start)
			t.Log(took)
			// Generous: the quadratic way takes hours.
			if took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}
