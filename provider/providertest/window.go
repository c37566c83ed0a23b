//go:build unix

package providertest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// testReadLines is section 8 with the default caps, which every implementation
// has here: 2000 lines, 2000 units a line, 51200 bytes.
func testReadLines(t *testing.T, mk Make) {
	const most, units, bytes = 2000, 2000, 50 << 10
	long := strings.Repeat("x", units)
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	type out struct {
		// text are the lines, each with a break, and a "~" after a cut one.
		text      string
		first     int
		total     int
		truncated bool
		footer    string
	}
	tests := []struct {
		name    string
		content string
		window  provider.LineWindow
		want    out
		code    provider.Code
		says    string // in the error
	}{
		{name: "empty", want: out{footer: "(End of file, 0 lines.)"}},
		{name: "empty, from its begin", window: provider.LineWindow{Offset: 1}, want: out{footer: "(End of file, 0 lines.)"}},
		{name: "empty, behind", window: provider.LineWindow{Offset: 2}, code: provider.CodeNotFound, says: "0 lines"},
		{name: "nothing but a mark", content: "\xef\xbb\xbf", want: out{footer: "(End of file, 0 lines.)"}},
		{name: "one line", content: "a\n", want: out{text: "a\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "no final break", content: "a\nb", want: out{text: "a\nb\n", total: 2, footer: "(End of file, 2 lines.)"}},
		{name: "empty lines", content: "\n\n", want: out{text: "\n\n", total: 2, footer: "(End of file, 2 lines.)"}},
		{name: "CR LF", content: "a\r\n\r\nb\r\n", want: out{text: "a\n\nb\n", total: 3, footer: "(End of file, 3 lines.)"}},
		{name: "one CR of two", content: "a\r\r\n", want: out{text: "a\r\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "CR alone is no break", content: "a\rb\n", want: out{text: "a\rb\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "CR at the end", content: "a\r", want: out{text: "a\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "a CR is a line", content: "a\n\r", want: out{text: "a\n\n", total: 2, footer: "(End of file, 2 lines.)"}},
		{name: "with a mark", content: "\xef\xbb\xbfa\n", want: out{text: "a\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "a part", content: lines(1, 10), window: provider.LineWindow{Offset: 3, Limit: 4},
			want: out{text: lines(3, 6), first: 3, total: 10, footer: "(Lines 3 to 6 of 10. Continue at offset 7.)"}},
		{name: "a part up to the end", content: lines(1, 10), window: provider.LineWindow{Offset: 7, Limit: 4},
			want: out{text: lines(7, 10), first: 7, total: 10, footer: "(End of file, 10 lines.)"}},
		{name: "the last line", content: lines(1, 10), window: provider.LineWindow{Offset: 10},
			want: out{text: "10\n", first: 10, total: 10, footer: "(End of file, 10 lines.)"}},
		{name: "behind the end", content: lines(1, 10), window: provider.LineWindow{Offset: 11}, code: provider.CodeNotFound, says: "10 lines"},
		{name: "behind one line", content: "a", window: provider.LineWindow{Offset: 7}, code: provider.CodeNotFound, says: "1 line"},
		{name: "all that are allowed", content: lines(1, 2001),
			want: out{text: lines(1, 2000), total: 2001, footer: "(Lines 1 to 2000 of 2001. Continue at offset 2001.)"}},
		{name: "the most", content: lines(1, 3), window: provider.LineWindow{Limit: most}, want: out{text: lines(1, 3), total: 3, footer: "(End of file, 3 lines.)"}},
		{name: "more than the most", content: lines(1, 3), window: provider.LineWindow{Limit: most + 1}, code: provider.CodeTooLarge, says: "2000"},
		{name: "negative offset", content: "a", window: provider.LineWindow{Offset: -1}, code: provider.CodeIOError, says: "negative"},
		{name: "negative limit", content: "a", window: provider.LineWindow{Limit: -1}, code: provider.CodeIOError, says: "negative"},
		{name: "far behind", content: "a", window: provider.LineWindow{Offset: int(^uint(0) >> 1)}, code: provider.CodeNotFound, says: "1 line"},
		{name: "exactly the longest", content: long + "\n", want: out{text: long + "\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "exactly the longest, CR LF", content: long + "\r\nb", want: out{text: long + "\nb\n", total: 2, footer: "(End of file, 2 lines.)"}},
		{name: "one too long", content: long + "y\nb\n", want: out{text: long + "~\nb\n", total: 2, footer: "(End of file, 2 lines.)"}},
		{name: "exactly the longest, then a lone CR (row 19)", content: long + "\rmore\n", want: out{text: long + "~\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "exactly the longest, then two CR", content: long + "\r\r\n", want: out{text: long + "~\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "length is in UTF-16 units", content: strings.Repeat("😀", 1000) + "\n" + strings.Repeat("😀", 1001) + "\n" + strings.Repeat("中", 2000),
			want: out{text: strings.Repeat("😀", 1000) + "\n" + strings.Repeat("😀", 1000) + "~\n" + strings.Repeat("中", 2000) + "\n", total: 3, footer: "(End of file, 3 lines.)"}},
		{name: "never half of a pair", content: "x" + strings.Repeat("😀", 1001), want: out{text: "x" + strings.Repeat("😀", 999) + "~\n", total: 1, footer: "(End of file, 1 line.)"}},
		{name: "a giant line", content: strings.Repeat("z", 3_000_000) + "\nb\n", want: out{text: strings.Repeat("z", units) + "~\nb\n", total: 2, footer: "(End of file, 2 lines.)"}},
		{name: "a giant line before the window", content: strings.Repeat("z", 300_000) + "\nb\n", window: provider.LineWindow{Offset: 2}, want: out{text: "b\n", first: 2, total: 2, footer: "(End of file, 2 lines.)"}},
		{name: "stopped by bytes", content: strings.Repeat(strings.Repeat("x", 1023)+"\n", 60),
			want: out{text: strings.Repeat(strings.Repeat("x", 1023)+"\n", 50), total: 60, truncated: true, footer: "(Stopped at 51200 bytes after line 50 of 60. Continue at offset 51.)"}},
		{name: "exactly the bytes", content: strings.Repeat(strings.Repeat("x", 1023)+"\n", 49) + strings.Repeat("x", 1024) + "\n",
			want: out{text: strings.Repeat(strings.Repeat("x", 1023)+"\n", 49) + strings.Repeat("x", 1024) + "\n", total: 50, footer: "(End of file, 50 lines.)"}},
		{name: "one byte more", content: strings.Repeat(strings.Repeat("x", 1023)+"\n", 49) + strings.Repeat("x", 1025) + "\n",
			want: out{text: strings.Repeat(strings.Repeat("x", 1023)+"\n", 49), total: 50, truncated: true, footer: "(Stopped at 51200 bytes after line 49 of 50. Continue at offset 50.)"}},
		{name: "an empty line has its break", content: strings.Repeat(strings.Repeat("x", 1023)+"\n", 49) + strings.Repeat("x", 1024) + "\n\n",
			want: out{text: strings.Repeat(strings.Repeat("x", 1023)+"\n", 49) + strings.Repeat("x", 1024) + "\n", total: 51, truncated: true, footer: "(Stopped at 51200 bytes after line 50 of 51. Continue at offset 51.)"}},
		{name: "bytes count when the line is cut", content: strings.Repeat(strings.Repeat("x", 9000)+"\n", 30),
			want: out{text: strings.Repeat(long+"~\n", 25), total: 30, truncated: true, footer: "(Stopped at 51200 bytes after line 25 of 30. Continue at offset 26.)"}},
		{name: "bytes are not characters", content: strings.Repeat(strings.Repeat("中", 1024)+"\n", 20),
			want: out{text: strings.Repeat(strings.Repeat("中", 1024)+"\n", 16), total: 20, truncated: true, footer: "(Stopped at 51200 bytes after line 16 of 20. Continue at offset 17.)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			w.File("W/f", tt.content)
			o, err := w.P.ReadLines(t.Context(), w.RO, w.Resolve("W/f"), tt.window)
			w.checkError(err)
			if provider.CodeOf(err) != tt.code {
				t.Fatalf("error %v, want %q", err, tt.code)
			}
			if err != nil {
				if !contains(err.Error(), tt.says) || (tt.code != provider.CodeNotFound) != isInvalid(err) {
					t.Errorf("%v", err)
				}
				return
			}
			first := max(tt.want.first, 1)
			var b strings.Builder
			for i, l := range o.Lines {
				if l.Number != first+i {
					t.Errorf("line %d has the number %d", first+i, l.Number)
				}
				b.WriteString(l.Text)
				if l.Cut {
					b.WriteString("~")
				}
				b.WriteString("\n")
			}
			if b.String() != tt.want.text {
				t.Errorf("%d lines, %.60q…\nwant %.60q…", len(o.Lines), b.String(), tt.want.text)
			}
			if o.Lines == nil {
				t.Error("no lines is an empty list")
			}
			if o.Offset != first || o.TotalLines != tt.want.total || o.TruncatedByBytes != tt.want.truncated || o.Footer != tt.want.footer || o.Version == "" {
				t.Errorf("offset %d, total %d, truncated %v, footer %q, version %q", o.Offset, o.TotalLines, o.TruncatedByBytes, o.Footer, o.Version)
			}
		})
	}
	t.Run("window after window gives every line once", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		var b strings.Builder
		for i := range 9000 {
			fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("é", i%200))
		}
		w.File("W/f", b.String())
		var got strings.Builder
		next, windows := 1, 0
		for {
			o, err := w.P.ReadLines(t.Context(), w.RO, w.Resolve("W/f"), provider.LineWindow{Offset: next})
			w.must(err)
			windows++
			size := len(o.Lines) - 1
			for _, l := range o.Lines {
				got.WriteString(l.Text + "\n")
				size += len(l.Text)
			}
			if size > bytes || o.TotalLines != 9000 {
				t.Errorf("%d bytes, %d lines in all", size, o.TotalLines)
			}
			next += len(o.Lines)
			if next > o.TotalLines {
				break
			}
			if !contains(o.Footer, fmt.Sprintf("Continue at offset %d.", next)) {
				t.Fatalf("footer %q, next %d", o.Footer, next)
			}
		}
		if got.String() != b.String() || windows < 10 {
			t.Errorf("%d bytes in %d windows, want %d", got.Len(), windows, b.Len())
		}
	})
	t.Run("the footer is none of the lines (E12)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", lines(1, 3000))
		o, err := w.P.ReadLines(t.Context(), w.RO, w.Resolve("W/f"), provider.LineWindow{Limit: 100})
		w.must(err)
		if len(o.Lines) != 100 || !contains(o.Footer, "101") {
			t.Errorf("%d lines, footer %q", len(o.Lines), o.Footer)
		}
		for i, l := range o.Lines {
			if l.Text != fmt.Sprint(i+1) || l.Number != i+1 {
				t.Errorf("line %d: %+v", i+1, l)
			}
		}
	})
	t.Run("the version of a window is that of the whole file", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", lines(1, 100_000))
		o, err := w.P.ReadLines(t.Context(), w.RO, w.Resolve("W/f"), provider.LineWindow{Offset: 50, Limit: 2})
		w.must(err)
		// Nothing that the window shows.
		f, err := os.OpenFile(w.Path("W/f"), os.O_APPEND|os.O_WRONLY, 0)
		w.must(err)
		_, err = f.WriteString("x")
		w.must(err)
		w.must(f.Close())
		if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "mine", ifVersion(o.Version)); provider.CodeOf(err) != provider.CodeStaleVersion {
			t.Errorf("%v", err)
		}
	})
	t.Run("cancelled on the way", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		// So large that nobody is done before the cancel: 1 TiB without a block.
		w.File("W/f", strings.Repeat("text\n", 2000))
		w.must(os.Truncate(w.Path("W/f"), 1<<40))
		target := w.Resolve("W/f")
		ctx, cancel := context.WithCancel(t.Context())
		begun := make(chan struct{})
		go func() { <-begun; cancel() }()
		err := soon(t, "a cancelled window", func() error {
			close(begun)
			_, err := w.P.ReadLines(ctx, w.RO, target, provider.LineWindow{})
			return err
		})
		if provider.CodeOf(err) != provider.CodeAborted {
			t.Errorf("%v", err)
		}
	})
}
