package provider_test

import (
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// unit is one character of the matching view and the bytes that store it.
type unit struct {
	view byte
	raw  string
}

func units(s string) []unit {
	var out []unit
	for i := 0; i < len(s); i++ {
		if s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' {
			out = append(out, unit{'\n', "\r\n"})
			i++
		} else {
			out = append(out, unit{s[i], s[i : i+1]})
		}
	}
	return out
}

// plainSplice is the rule of the contract, done the slow way, character by
// character.
func plainSplice(raw, oldText, newText string, all bool) (result string, n int) {
	file, from, to := units(raw), units(oldText), units(newText)
	if len(from) == 0 {
		return "", 0
	}
	at := func(i int) bool {
		if i+len(from) > len(file) {
			return false
		}
		for k := range from {
			if file[i+k].view != from[k].view {
				return false
			}
		}
		return true
	}
	var starts []int
	for i := 0; i < len(file); {
		if at(i) {
			starts = append(starts, i)
			i += len(from)
		} else {
			i++
		}
	}
	if len(starts) == 0 || len(starts) > 1 && !all {
		return "", len(starts)
	}
	head := 0
	for head < len(from) && head < len(to) && from[head].view == to[head].view {
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head && from[len(from)-1-tail].view == to[len(to)-1-tail].view {
		tail++
	}
	var out strings.Builder
	done := 0
	for _, s := range starts {
		for _, u := range file[done : s+head] {
			out.WriteString(u.raw)
		}
		brk := breakOf(file[s:s+len(from)], file)
		for _, u := range to[head : len(to)-tail] {
			if u.view == '\n' {
				out.WriteString(brk)
			} else {
				out.WriteByte(u.view)
			}
		}
		done = s + len(from) - tail
	}
	for _, u := range file[done:] {
		out.WriteString(u.raw)
	}
	return out.String(), len(starts)
}

func breakOf(span, file []unit) string {
	for _, us := range [][]unit{span, file} {
		balance, first := 0, ""
		for _, u := range us {
			if u.view != '\n' {
				continue
			}
			if first == "" {
				first = u.raw
			}
			if u.raw == "\n" {
				balance--
			} else {
				balance++
			}
		}
		switch {
		case balance > 0:
			return "\r\n"
		case balance < 0:
			return "\n"
		case first != "" && &us[0] == &span[0] && len(us) == len(span):
			return first
		}
	}
	return "\n"
}

func FuzzSplice(f *testing.F) {
	for _, s := range [][3]string{
		{"a\r\nb\nc", "b", "B"}, {"a\r\nb\r\n", "a\nb", "a\nc"}, {"aaa", "aa", "b"}, {"a\r\r\nb", "\r\nb", "c"},
		{"x\ny\r\nz", "x\ny\nz", "x\nq\nz"}, {"\r\n\r\n\n", "\n\n", "\n"}, {"\u00e9\u00e8", "\u00e9", "\u00ea"}, {"abcabc", "abc", "abcabc"},
	} {
		f.Add(s[0], s[1], s[2], false)
		f.Add(s[0], s[1], s[2], true)
	}
	f.Fuzz(func(t *testing.T, raw, from, to string, all bool) {
		if len(raw) > 4096 || len(from) > 256 || len(to) > 256 {
			return
		}
		const limit = 1 << 22
		got, err := provider.Splice(raw, from, to, all, limit)
		want, n := plainSplice(raw, from, to, all)
		if (err == nil) != (n == 1 || n > 1 && all) {
			t.Fatalf("%d matches, error %v", n, err)
		}
		if err != nil {
			if c := provider.AmbiguousCount(err); n > 1 && c != n {
				t.Fatalf("count %d, want %d", c, n)
			}
			return
		}
		if got != want {
			t.Fatalf("%q\nwant %q", got, want)
		}
		if _, err := provider.Splice(raw, from, to, all, int64(len(got))-1); err == nil {
			t.Fatal("the limit does not hold")
		}
		// An edit and its inverse give the first bytes again, where the file
		// has one style and the inverse is not ambiguous.
		if all || to == "" || strings.ContainsRune(to+from, '\r') {
			return
		}
		lf := strings.Count(raw, "\n")
		crlf := strings.Count(raw, "\r\n")
		if strings.Count(raw, "\r") != crlf || crlf != 0 && crlf != lf {
			return
		}
		// Overlapping occurrences: the leftmost may be another one.
		if view := strings.ReplaceAll(got, "\r\n", "\n"); strings.Index(view, to) != strings.LastIndex(view, to) {
			return
		}
		// With no line break left in the file its style is forgotten.
		if crlf > 0 && !strings.Contains(strings.Replace(strings.ReplaceAll(raw, "\r\n", "\n"), from, "", 1), "\n") {
			return
		}
		back, err := provider.Splice(got, to, from, false, limit)
		if err == nil && back != raw {
			t.Fatalf("there and back: %q\nwas %q", back, raw)
		}
	})
}

// A file with many matches and its only CR LF at the end must not take
// quadratic time.
func TestSpliceManyMatches(t *testing.T) {
	raw := strings.Repeat("ab", 1<<20) + "\r\n"
	got, err := provider.Splice(raw, "a", "c", true, 1<<30)
	if err != nil || got != strings.Repeat("cb", 1<<20)+"\r\n" {
		t.Fatal(err)
	}
}
