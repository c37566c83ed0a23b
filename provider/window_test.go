package provider_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/provider"
)

// wholeOrTenth is n in a soak run, and a tenth of it otherwise.
func wholeOrTenth(n int64) int64 {
	if os.Getenv("WATTLE_SOAK") == "1" {
		return n
	}
	return n / 10
}

// plainWindow is section 8 said in the plainest way: the whole text, split.
func plainWindow(text string, w provider.LineWindow, l provider.WindowLimits) (out []provider.Line, total int, truncated bool) {
	all := strings.Split(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	room := l.Bytes
	for i, line := range all {
		n := i + 1
		if n < w.Offset || n-w.Offset >= w.Limit {
			continue
		}
		line = strings.TrimSuffix(line, "\r")
		short, units := "", 0
		for _, r := range line {
			if units += utf16.RuneLen(r); units > l.LineLength {
				break
			}
			short += string(r)
		}
		cost := len(short)
		if len(out) > 0 {
			cost++
		}
		if cost > room && len(out) > 0 {
			truncated = true
			break
		}
		if cost > room {
			truncated = true
			short = short[:room]
			for !utf8.ValidString(short) {
				short = short[:len(short)-1]
			}
		}
		room -= cost
		out = append(out, provider.Line{Number: n, Text: short, Cut: short != line})
		if truncated {
			break
		}
	}
	return out, len(all), truncated
}

func checkWindow(t *testing.T, content string, sizes []byte, w provider.LineWindow, l provider.WindowLimits) {
	t.Helper()
	pieces, bom, bad := provider.Text(content, sizes)
	if bad >= 0 {
		if utf8.ValidString(content) {
			t.Fatalf("%q is UTF-8; %d is said to be bad", content, bad)
		}
		if utf8.ValidString(content[bad:]) || !utf8.ValidString(content[:bad]) {
			t.Fatalf("%q: not at %d", content, bad)
		}
		return
	}
	text, mark := strings.CutPrefix(content, "\xef\xbb\xbf")
	if got := strings.Join(pieces, ""); got != text || bom != mark {
		t.Fatalf("text %q of %q, mark %v", got, content, bom)
	}
	got := provider.Window(pieces, w, l)
	lines, total, truncated := plainWindow(text, w, l)
	if !slices.Equal(got.Lines, lines) || got.TotalLines != total || got.TruncatedByBytes != truncated {
		t.Fatalf("%q in %d pieces, %+v, %+v:\n%+v, %d lines, truncated %v\nwant %+v, %d lines, truncated %v",
			text, len(pieces), w, l, got.Lines, got.TotalLines, got.TruncatedByBytes, lines, total, truncated)
	}
	if total > 0 && w.Offset <= total && len(got.Lines) == 0 {
		t.Fatalf("%q, %+v, %+v: a window without progress", text, w, l)
	}
	next := w.Offset + len(got.Lines)
	if w.Offset <= total && strings.Contains(got.Footer, fmt.Sprintf(" Continue at offset %d.", next)) != (next <= total) {
		t.Fatalf("footer %q, next %d of %d", got.Footer, next, total)
	}
}

func FuzzWindow(f *testing.F) {
	for _, s := range []string{"", "a", "a\n", "a\r\nb\rc\r", "\r", "\n\r\n", "12345\r6\n", "12345\r\n", "12345\r\r\n", "😀😀é\n中\n", "\xef\xbb\xbfa\n", "\xef\xbb", "a\xe2\x82", "\xff", "é\xc3"} {
		f.Add(s, []byte{1}, uint8(1), uint8(2), uint8(5), uint8(9))
		f.Add(s, []byte{3, 1, 7}, uint8(2), uint8(1), uint8(1), uint8(1))
		f.Add(s, []byte{63}, uint8(1), uint8(200), uint8(200), uint8(200))
	}
	f.Fuzz(func(t *testing.T, content string, sizes []byte, offset, limit, length, bytes uint8) {
		if len(content) > 4096 {
			return
		}
		checkWindow(t, content, sizes, provider.LineWindow{Offset: max(1, int(offset)), Limit: max(1, int(limit))},
			provider.WindowLimits{LineLength: max(1, int(length)), Bytes: max(1, int(bytes))})
	})
}

// Random texts of what matters, with small caps: every border is met often.
func TestWindowAgainstModel(t *testing.T) {
	parts := []string{"a", "bc", "\n", "\n", "\r", "\r\n", "é", "中", "😀", "\x00", "\xef\xbb\xbf", "12345", "\xff", "\xe2\x82"}
	r := rand.New(rand.NewPCG(1, 2))
	for range wholeOrTenth(2_000_000) {
		var b strings.Builder
		kinds := len(parts)
		if r.IntN(4) > 0 {
			kinds -= 2 // mostly text
		}
		for range r.IntN(30) {
			b.WriteString(parts[r.IntN(kinds)])
		}
		sizes := []byte{byte(r.IntN(8)), byte(r.IntN(8)), byte(r.IntN(64))}
		checkWindow(t, b.String(), sizes, provider.LineWindow{Offset: 1 + r.IntN(5), Limit: 1 + r.IntN(6)},
			provider.WindowLimits{LineLength: 1 + r.IntN(8), Bytes: 1 + r.IntN(20)})
	}
}

// Windows one after the other come to the end, whatever the caps, and a cap
// below one line is none that is asked for again and again.
func TestWindowsMakeProgress(t *testing.T) {
	text := strings.Repeat("😀😀😀\n\nabcdef\n", 50)
	for _, l := range []provider.WindowLimits{{LineLength: 1, Bytes: 1}, {LineLength: 2, Bytes: 3}, {LineLength: 9, Bytes: 4}, {LineLength: 9, Bytes: 7}, {LineLength: math.MaxInt, Bytes: math.MaxInt}} {
		next := 1
		for n := 0; next <= 150; n++ {
			o := provider.Window([]string{text}, provider.LineWindow{Offset: next, Limit: math.MaxInt}, l)
			if n > 150 || len(o.Lines) == 0 {
				t.Fatalf("%+v: at line %d after %d windows", l, next, n)
			}
			next += len(o.Lines)
		}
	}
}

func TestPageKeepsLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var names []string
		for i := range 1 + r.IntN(400) {
			names = append(names, fmt.Sprintf("%x-%d", r.IntN(50), i))
		}
		sorted := slices.Sorted(slices.Values(names))
		after := ""
		if r.IntN(2) == 0 {
			after = sorted[r.IntN(len(sorted))][:2]
		}
		most := 1 + r.IntN(60)
		want := slices.DeleteFunc(sorted, func(n string) bool { return n <= after })
		got, held := provider.Page(names, after, most)
		if want = want[:min(most, len(want))]; !slices.Equal(got, want) {
			t.Fatalf("%d names behind %q: %q, want %q", most, after, got, want)
		}
		if held >= 2*most && held > 1 {
			t.Errorf("held %d for a page of %d", held, most)
		}
	}
}
