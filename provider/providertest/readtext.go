//go:build unix

package providertest

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// testReadText is about text: readText and streamText give the same, and a
// window refuses the same.
func testReadText(t *testing.T, mk Make) {
	big, edge := strings.Repeat("a", 9000), strings.Repeat("x", 64<<10)
	tests := []struct {
		name, content, text string
		bom                 bool
		code                provider.Code
	}{
		{name: "empty"},
		{name: "plain", content: "a\nb\n", text: "a\nb\n"},
		{name: "line breaks stay", content: "a\r\nb\rc\n", text: "a\r\nb\rc\n"},
		{name: "byte-order mark", content: "\xef\xbb\xbfa\n", text: "a\n", bom: true},
		{name: "nothing but a mark", content: "\xef\xbb\xbf", bom: true},
		{name: "one mark of two", content: "\xef\xbb\xbf\xef\xbb\xbfa", text: "\xef\xbb\xbfa", bom: true},
		{name: "mark inside", content: "a\xef\xbb\xbf", text: "a\xef\xbb\xbf"},
		{name: "half a mark", content: "\xef\xbb", code: provider.CodeNotText},
		{name: "exactly a chunk", content: edge, text: edge},
		{name: "chunks of two bytes' characters", content: "x" + strings.Repeat("é", 100_000), text: "x" + strings.Repeat("é", 100_000)},
		{name: "chunks of three bytes' characters", content: strings.Repeat("中", 100_000), text: strings.Repeat("中", 100_000)},
		{name: "chunks of four bytes' characters", content: "xyz" + strings.Repeat("😀", 50_000), text: "xyz" + strings.Repeat("😀", 50_000)},
		{name: "mark and chunks", content: "\xef\xbb\xbf" + strings.Repeat("é", 100_000), text: strings.Repeat("é", 100_000), bom: true},
		{name: "NUL (E16)", content: big[:8191] + "\x00", code: provider.CodeNotText},
		{name: "NUL at once (E16)", content: "\x00", code: provider.CodeNotText},
		{name: "NUL after the sample (E16)", content: big[:8192] + "\x00", text: big[:8192] + "\x00"},
		{name: "NUL and a tail (E16)", content: big + "\x00tail\n", text: big + "\x00tail\n"},
		{name: "NUL after the sample, with a mark (E16)", content: "\xef\xbb\xbf" + big[:8189] + "\x00", text: big[:8189] + "\x00", bom: true},
		{name: "NUL at the start of a later chunk (E16)", content: edge + "\x00\x00x", text: edge + "\x00\x00x"},
		{name: "latin1 (P35)", content: "caf\xe9\nb\n", code: provider.CodeNotText},
		{name: "GBK (E4)", content: "name=\xd6\xd0\xce\xc4\n", code: provider.CodeNotText},
		{name: "UTF-16 without mark (E4)", content: "p\x00o\x00r\x00t\x00", code: provider.CodeNotText},
		{name: "surrogate", content: "\xed\xa0\x80", code: provider.CodeNotText},
		{name: "overlong", content: "\xc0\x80", code: provider.CodeNotText},
		{name: "cut short", content: "a\xe2\x82", code: provider.CodeNotText},
		{name: "cut short at a chunk's end", content: edge[1:] + "\xe2", code: provider.CodeNotText},
		{name: "cut short between chunks", content: edge[1:] + "\xe2\x82x", code: provider.CodeNotText},
		{name: "a byte that goes on with nothing, at a chunk's start", content: edge + "\x82", code: provider.CodeNotText},
		{name: "no UTF-8 in the last of many chunks", content: strings.Repeat(edge, 3) + "\xff", code: provider.CodeNotText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			w.File("W/f", tt.content)
			target := w.Resolve("W/f")
			w.Version("W/f") // waits until the versions of this content are one
			whole, err := w.P.ReadText(t.Context(), w.RO, target, provider.ReadOptions{})
			w.checkError(err)
			if provider.CodeOf(err) != tt.code || whole.Text != tt.text || whole.BOM != tt.bom || err == nil && whole.Version == "" {
				t.Errorf("readText: %.40q, bom %v, version %q, %v; want %q", whole.Text, whole.BOM, whole.Version, err, tt.code)
			}
			text, bom, v, serr := drain(t.Context(), w.P, w.RO, target)
			w.checkError(serr)
			if provider.CodeOf(serr) != tt.code || text != tt.text || bom != tt.bom {
				t.Errorf("streamText: %.40q, bom %v, %v; want %q", text, bom, serr, tt.code)
			}
			o, lerr := w.P.ReadLines(t.Context(), w.RO, target, provider.LineWindow{})
			w.checkError(lerr)
			if provider.CodeOf(lerr) != tt.code || o.BOM != tt.bom {
				t.Errorf("readLines: bom %v, %v; want %q", o.BOM, lerr, tt.code)
			}
			if err != nil && serr != nil && lerr != nil && (detail(serr) != detail(err) || detail(lerr) != detail(err)) {
				t.Errorf("%v; %v; %v", err, serr, lerr)
			}
			// The bytes are what they are.
			c, err := w.P.ReadBytes(t.Context(), w.RO, target, 1<<20)
			if err != nil || string(c.Data) != tt.content {
				t.Errorf("readBytes: %d bytes, %v", len(c.Data), err)
			}
			if tt.code == "" && (v != whole.Version || c.Version != v || o.Version != v) {
				t.Errorf("versions of one file: %s, %s, %s, %s", whole.Version, v, c.Version, o.Version)
			}
		})
	}
	t.Run("the offset of the byte that is no text is told (P35)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "caf\xe9\nb\n")
		w.File("W/g", edge+"\xe2\x82")
		for name, want := range map[string]string{"W/f": "offset 3", "W/g": "offset 65536"} {
			_, err := w.P.ReadText(t.Context(), w.RO, w.Resolve(name), provider.ReadOptions{})
			_, _, _, serr := drain(t.Context(), w.P, w.RO, w.Resolve(name))
			if err == nil || serr == nil || !contains(err.Error(), want) || !contains(serr.Error(), want) {
				t.Errorf("%v; %v", err, serr)
			}
		}
	})
	t.Run("cap", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "12345")
		for limit, want := range map[int64]provider.Code{4: provider.CodeTooLarge, 5: "", 6: "", math.MaxInt64: ""} {
			if _, err := w.P.ReadText(t.Context(), w.RO, w.Resolve("W/f"), provider.ReadOptions{MaxBytes: limit}); provider.CodeOf(err) != want {
				t.Errorf("limit %d: %v", limit, err)
			}
		}
	})
	t.Run("an edit looks at all of the file (E16)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", big+"\x00tail\n")
		if err := edit("ws", "W/f", "tail", "TAIL", provider.EditOptions{})(w); provider.CodeOf(err) != provider.CodeNotText {
			t.Error(err)
		}
		if b, _ := os.ReadFile(w.Path("W/f")); string(b) != big+"\x00tail\n" {
			t.Error("the file has changed")
		}
	})
}

func detail(err error) string {
	_, d, _ := strings.Cut(err.Error(), ": ")
	return d
}
