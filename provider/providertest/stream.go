//go:build unix

package providertest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// testStream is what a stream promises beside its text.
func testStream(t *testing.T, mk Make) {
	open := func(ctx context.Context, t *testing.T, content string) (*World, provider.TextStream) {
		w := NewWorld(t, mk(t))
		w.File("W/f", content)
		s, err := w.P.StreamText(ctx, w.RO, w.Resolve("W/f"))
		w.must(err)
		t.Cleanup(func() { s.Close() })
		return w, s
	}
	long := strings.Repeat("0123456789abcde\n", 64<<10) // 1 MiB
	t.Run("pieces are bounded", func(t *testing.T) {
		_, s := open(t.Context(), t, long)
		n := 0
		for {
			piece, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || len(piece) == 0 || len(piece) > 64<<10 {
				t.Fatalf("%d bytes, %v", len(piece), err)
			}
			n += len(piece)
		}
		if n != len(long) {
			t.Errorf("%d bytes", n)
		}
	})
	t.Run("the end stays the end", func(t *testing.T) {
		w, s := open(t.Context(), t, "x")
		_, err := s.Next()
		w.must(err)
		for range 3 {
			if piece, err := s.Next(); piece != "" || !errors.Is(err, io.EOF) {
				t.Errorf("%q, %v", piece, err)
			}
		}
		w.must(s.Close())
		w.must(s.Close())
		if _, err := s.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after Close: %v", err)
		}
		if s.Version() == "" {
			t.Error("no version")
		}
	})
	t.Run("closed before its end", func(t *testing.T) {
		w, s := open(t.Context(), t, long)
		_, err := s.Next()
		w.must(err)
		w.must(s.Close())
		w.must(s.Close())
		if _, err := s.Next(); provider.CodeOf(err) != provider.CodeIOError {
			t.Errorf("%v", err)
		}
	})
	t.Run("a stream that was left guards this state of the file", func(t *testing.T) {
		w, s := open(t.Context(), t, long)
		v := s.Version()
		w.must(s.Close())
		if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "mine", ifVersion(v)); err != nil {
			t.Error(err)
		}
		if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "again", ifVersion(v)); provider.CodeOf(err) != provider.CodeStaleVersion {
			t.Error(err)
		}
	})
	t.Run("cancelled between pieces", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, s := open(ctx, t, long)
		_, err := s.Next()
		w.must(err)
		cancel()
		for { // pieces that were on their way already
			_, err := s.Next()
			if err == nil {
				continue
			}
			if provider.CodeOf(err) != provider.CodeAborted {
				t.Errorf("%v", err)
			}
			break
		}
	})
	t.Run("an error stays", func(t *testing.T) {
		_, s := open(t.Context(), t, "a\xff")
		_, err := s.Next()
		_, again := s.Next()
		if provider.CodeOf(err) != provider.CodeNotText || provider.CodeOf(again) != provider.CodeNotText {
			t.Errorf("%v, then %v", err, again)
		}
	})
	t.Run("goes on with the file that it opened", func(t *testing.T) {
		w, s := open(t.Context(), t, long)
		var b strings.Builder
		piece, err := s.Next()
		w.must(err)
		b.WriteString(piece)
		w.must(write("ws", "W/f", "new", noGuard)(w))
		for {
			piece, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			w.must(err)
			b.WriteString(piece)
		}
		if b.String() != long {
			t.Errorf("%d bytes, %d of them are of the old file", b.Len(), len(long))
		}
		if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "x", ifVersion(s.Version())); provider.CodeOf(err) != provider.CodeStaleVersion {
			t.Errorf("its version guards the new file: %v", err)
		}
	})
}
