package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// The numbers to reach are DESIGN section 8: a write of 4 KiB in at most 1.15
// times what write, fsync, rename and fsync of the directory take by hand. Run
// both sides in one go and compare.

func benchLocal(b *testing.B) (*provider.Local, *fence.Fence, string) {
	w := b.TempDir()
	f, err := fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: w})
	if err != nil {
		b.Fatal(err)
	}
	l, err := provider.NewLocal(provider.Config{Cwd: w})
	if err != nil {
		b.Fatal(err)
	}
	return l, f, w
}

func benchTarget(b *testing.B, l *provider.Local, f *fence.Fence, path string) provider.Target {
	t, err := l.Resolve(b.Context(), f, path, provider.ResolveOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func BenchmarkWrite4K(b *testing.B) {
	content := strings.Repeat("0123456789abcde\n", 256)
	b.Run("byHand", func(b *testing.B) {
		_, _, w := benchLocal(b)
		for i := 0; b.Loop(); i++ {
			tmp, dst := filepath.Join(w, "tmp"), filepath.Join(w, "f")
			f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.WriteString(content); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			f.Close()
			if err := os.Rename(tmp, dst); err != nil {
				b.Fatal(err)
			}
			d, err := os.Open(w)
			if err != nil {
				b.Fatal(err)
			}
			if err := d.Sync(); err != nil {
				b.Fatal(err)
			}
			d.Close()
		}
	})
	b.Run("unguarded", func(b *testing.B) {
		l, f, _ := benchLocal(b)
		t := benchTarget(b, l, f, "f")
		for b.Loop() {
			if _, err := l.WriteText(b.Context(), f, t, content, provider.WriteOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("guarded", func(b *testing.B) {
		l, f, _ := benchLocal(b)
		t := benchTarget(b, l, f, "f")
		o, err := l.WriteText(b.Context(), f, t, content, provider.WriteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			o, err = l.WriteText(b.Context(), f, t, content, provider.WriteOptions{
				Expected: &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: o.Version}})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("create", func(b *testing.B) {
		l, f, _ := benchLocal(b)
		for i := 0; b.Loop(); i++ {
			t := benchTarget(b, l, f, fmt.Sprint("f", i))
			if _, err := l.WriteText(b.Context(), f, t, content, provider.WriteOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLook(b *testing.B) {
	l, f, w := benchLocal(b)
	content := strings.Repeat("0123456789abcde\n", 256)
	path := filepath.Join(w, "f")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(w, fmt.Sprint("n", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		b.Fatal(err)
	}
	t, dir := benchTarget(b, l, f, path), benchTarget(b, l, f, w)
	// The first listing waits for the times of the new files to settle.
	if _, err := l.ListDir(b.Context(), f, dir, provider.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Run("stat/plain", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.Stat(path); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("stat/wattle", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Stat(b.Context(), f, t); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read4K/plain", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile(path); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read4K/wattle", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.ReadText(b.Context(), f, t, provider.ReadOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list100/plain", func(b *testing.B) {
		for b.Loop() {
			es, err := os.ReadDir(w)
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range es {
				if _, err := e.Info(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("list100/wattle", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.ListDir(b.Context(), f, dir, provider.ListOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
