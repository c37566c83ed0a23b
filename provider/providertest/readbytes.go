//go:build unix

package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// testReadBytes is section 3, readBytes and readByteRange.
func testReadBytes(t *testing.T, mk Make) {
	w := NewWorld(t, mk(t))
	w.File("W/f", "0123456789")
	w.File("W/e", "")
	w.File("W/b", "\x00\xff\r\n\xef\xbb\xbf")
	for _, tt := range []struct {
		name string
		max  int64
		want string
		code provider.Code
	}{
		{"W/f", 10, "0123456789", ""}, {"W/f", 9, "", provider.CodeTooLarge}, {"W/f", 11, "0123456789", ""},
		{"W/f", math.MaxInt64, "0123456789", ""}, {"W/f", 1, "", provider.CodeTooLarge},
		{"W/f", 0, "", provider.CodeIOError}, {"W/f", -1, "", provider.CodeIOError},
		{"W/e", 1, "", ""}, {"W/b", 100, "\x00\xff\r\n\xef\xbb\xbf", ""},
	} {
		c, err := w.P.ReadBytes(t.Context(), w.RO, w.Resolve(tt.name), tt.max)
		w.checkError(err)
		if string(c.Data) != tt.want || provider.CodeOf(err) != tt.code || err == nil && c.Version == "" {
			t.Errorf("%s, cap %d: %q, %v", tt.name, tt.max, c.Data, err)
		}
		if tt.code == provider.CodeIOError && !isInvalid(err) {
			t.Errorf("cap %d: %v", tt.max, err)
		}
	}
	for _, tt := range []struct {
		name         string
		offset, size int64
		want         string
		code         provider.Code
	}{
		{"W/f", 0, 10, "0123456789", ""}, {"W/f", 0, 0, "", ""}, {"W/f", 3, 4, "3456", ""}, {"W/f", 8, 4, "89", ""},
		{"W/f", 10, 1, "", ""}, {"W/f", 11, 1, "", ""}, {"W/f", math.MaxInt64, 1, "", ""}, {"W/f", 9, math.MaxInt64, "9", ""},
		{"W/f", math.MaxInt64, math.MaxInt64, "", ""}, {"W/f", 100, 0, "", ""}, {"W/e", 0, 5, "", ""}, {"W/b", 1, 2, "\xff\r", ""},
		{"W/f", -1, 1, "", provider.CodeIOError}, {"W/f", 0, -1, "", provider.CodeIOError},
		{"W/none", 0, 0, "", provider.CodeNotFound}, {"W", 0, 0, "", provider.CodeNotRegularFile},
	} {
		c, err := w.P.ReadByteRange(t.Context(), w.RO, w.Resolve(tt.name), provider.ByteRange{Offset: tt.offset, Length: tt.size})
		w.checkError(err)
		if string(c.Data) != tt.want || provider.CodeOf(err) != tt.code || err == nil && c.Version == "" {
			t.Errorf("%s, %d at %d: %q, %v", tt.name, tt.size, tt.offset, c.Data, err)
		}
		if tt.code == provider.CodeIOError && !isInvalid(err) {
			t.Errorf("%d at %d: %v", tt.size, tt.offset, err)
		}
	}
	t.Run("many chunks", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		var b strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&b, "%d\n", i)
		}
		content := b.String()
		w.File("W/f", content)
		target := w.Resolve("W/f")
		n := int64(len(content))
		c, err := w.P.ReadBytes(t.Context(), w.RO, target, n)
		if err != nil || string(c.Data) != content {
			t.Errorf("%d bytes, %v", len(c.Data), err)
		}
		if _, err := w.P.ReadBytes(t.Context(), w.RO, target, n-1); provider.CodeOf(err) != provider.CodeTooLarge {
			t.Errorf("one above the cap: %v", err)
		}
		for _, r := range []provider.ByteRange{{Offset: 1, Length: n - 2}, {Offset: 70_000, Length: 140_000}, {Offset: n - 70_000, Length: 100_000}} {
			c, err := w.P.ReadByteRange(t.Context(), w.RO, target, r)
			if want := content[r.Offset:min(r.Offset+r.Length, n)]; err != nil || !bytes.Equal(c.Data, []byte(want)) {
				t.Errorf("%+v: %d bytes, %v", r, len(c.Data), err)
			}
		}
	})
	t.Run("a part of a file of any size", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "begin")
		w.must(os.Truncate(w.Path("W/f"), 8<<30))
		if _, err := w.P.ReadBytes(t.Context(), w.RO, w.Resolve("W/f"), 1<<20); provider.CodeOf(err) != provider.CodeTooLarge {
			t.Errorf("%v", err)
		}
		c, err := w.P.ReadByteRange(t.Context(), w.RO, w.Resolve("W/f"), provider.ByteRange{Offset: 8<<30 - 3, Length: 1 << 40})
		if err != nil || string(c.Data) != "\x00\x00\x00" {
			t.Errorf("%q, %v", c.Data, err)
		}
	})
}

// isInvalid: an argument error, which the contract has no code for.
func isInvalid(err error) bool {
	var e *provider.Error
	return errors.As(err, &e) && e.Errno == "EINVAL"
}
