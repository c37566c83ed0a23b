//go:build unix

package providertest

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// reads are all operations that open content, as one: the bytes that they give
// of a small file, and its version.
var reads = map[string]func(context.Context, provider.Provider, *fence.Fence, provider.Target) (string, provider.Version, error){
	"readText": func(ctx context.Context, p provider.Provider, f *fence.Fence, t provider.Target) (string, provider.Version, error) {
		c, err := p.ReadText(ctx, f, t, provider.ReadOptions{})
		return c.Text, c.Version, err
	},
	"streamText": func(ctx context.Context, p provider.Provider, f *fence.Fence, t provider.Target) (string, provider.Version, error) {
		text, _, v, err := drain(ctx, p, f, t)
		return text, v, err
	},
	"readBytes": func(ctx context.Context, p provider.Provider, f *fence.Fence, t provider.Target) (string, provider.Version, error) {
		c, err := p.ReadBytes(ctx, f, t, 1<<20)
		return string(c.Data), c.Version, err
	},
	"readByteRange": func(ctx context.Context, p provider.Provider, f *fence.Fence, t provider.Target) (string, provider.Version, error) {
		c, err := p.ReadByteRange(ctx, f, t, provider.ByteRange{Length: 1 << 20})
		return string(c.Data), c.Version, err
	},
	"readLines": func(ctx context.Context, p provider.Provider, f *fence.Fence, t provider.Target) (string, provider.Version, error) {
		o, err := p.ReadLines(ctx, f, t, provider.LineWindow{})
		var b strings.Builder
		for _, l := range o.Lines {
			b.WriteString(l.Text + "\n")
		}
		return b.String(), o.Version, err
	},
}

// drain reads a stream to its end.
func drain(ctx context.Context, p provider.Provider, f *fence.Fence, t provider.Target) (text string, bom bool, v provider.Version, err error) {
	s, err := p.StreamText(ctx, f, t)
	if err != nil {
		return "", false, "", err
	}
	defer s.Close()
	var b strings.Builder
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			return b.String(), s.BOM(), s.Version(), nil
		}
		if err != nil {
			return "", false, "", err
		}
		if piece == "" {
			return "", false, "", errors.New("an empty piece")
		}
		b.WriteString(piece)
	}
}

// eachRead is an op for one of [reads].
func eachRead(name, mode, at string) op {
	return func(w *World) error {
		t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(at), provider.ResolveOptions{})
		if err != nil {
			return err
		}
		_, _, err = reads[name](w.T.Context(), w.P, w.mode(mode), t)
		return err
	}
}

// keyed reads a target that no resolve gave: its key is the path of a link.
func keyed(name, mode, at string) op {
	return func(w *World) error {
		_, _, err := reads[name](w.T.Context(), w.P, w.mode(mode), provider.Target{TargetKey: provider.TargetKey(w.Path(at)), DisplayPath: at})
		return err
	}
}

// testReads holds every read to the rules that they share.
func testReads(t *testing.T, mk Make) {
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		t.Run(name, func(t *testing.T) {
			do := func(mode, at string) op { return eachRead(name, mode, at) }
			run(t, mk, []row{
				{name: "plain", disk: func(w *World) { w.File("W/f", "x") }, do: do("ro", "W/f")},
				{name: "empty", disk: func(w *World) { w.File("W/f", "") }, do: do("ro", "W/f")},
				{name: "missing", do: do("ws", "W/f"), code: provider.CodeNotFound},
				{name: "missing parent", do: do("ws", "W/a/f"), code: provider.CodeNotFound},
				{name: "directory", disk: func(w *World) { w.Dir("W/f") }, do: do("ws", "W/f"), code: provider.CodeNotRegularFile},
				{name: "root of the file system", do: func(w *World) error {
					_, _, err := reads[name](w.T.Context(), w.P, w.WS, provider.Target{TargetKey: "/", DisplayPath: "/"})
					return err
				}, code: provider.CodeNotRegularFile},
				{name: "dangling link", disk: func(w *World) { w.Link("W/f", "none") }, do: do("ws", "W/f"), code: provider.CodeNotFound},
				{name: "through a link out", disk: func(w *World) { w.File("O/f", "x"); w.Link("W/d", w.O) }, do: do("ro", "W/d/f")},
				{name: "hidden", disk: func(w *World) { w.File("W/f.secret", "x") }, do: do("ws", "W/f.secret"), code: provider.CodeSandboxDenied},
				{name: "hidden, through a link", disk: func(w *World) { w.File("W/f.secret", "x"); w.Link("W/l", "f.secret") }, do: do("ws", "W/l"), code: provider.CodeSandboxDenied},
				{name: "hidden, by its key", disk: func(w *World) { w.File("W/f.secret", "x") }, do: keyed(name, "ws", "W/f.secret"), code: provider.CodeSandboxDenied},
				{name: "hidden and no file", disk: func(w *World) { w.FIFO("W/f.secret") }, do: keyed(name, "ws", "W/f.secret"), code: provider.CodeSandboxDenied},
				{name: "hidden and missing", do: keyed(name, "ws", "W/f.secret"), code: provider.CodeSandboxDenied},
				{name: "hidden, in full access", disk: func(w *World) { w.File("W/f.secret", "x") }, do: do("full", "W/f.secret")},
				{name: "protected", disk: func(w *World) { w.Dir("W/.codex"); w.File("W/.codex/f", "x") }, do: do("ws", "W/.codex/f")},
				{name: "unreadable", disk: func(w *World) { w.File("W/f", "x", 0o200) }, do: do("ws", "W/f"), code: provider.CodePermissionDenied, as: "user"},
				{name: "closed parent", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Dir("W/d", 0o600) }, do: keyed(name, "ws", "W/d/f"), code: provider.CodePermissionDenied, as: "user"},
				{name: "key became a link", disk: func(w *World) { w.File("W/f", "x"); w.Link("W/l", "f") }, do: keyed(name, "ws", "W/l"), code: provider.CodeNotRegularFile},
				{name: "key became a dangling link", disk: func(w *World) { w.Link("W/l", "none") }, do: keyed(name, "ws", "W/l"), code: provider.CodeNotFound},
				{name: "parent of the key became a link", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Link("W/l", "d") }, do: keyed(name, "ws", "W/l/f")},
				{name: "parent of the key became a link to something hidden", disk: func(w *World) {
					w.Dir("W/d.secret")
					w.File("W/d.secret/f", "x")
					w.Link("W/l", "d.secret")
				}, do: keyed(name, "ws", "W/l/f"), code: provider.CodeSandboxDenied},
				{name: "cancelled", disk: func(w *World) { w.File("W/f", "x") }, do: func(w *World) error {
					gone, cancel := context.WithCancel(w.T.Context())
					cancel()
					_, _, err := reads[name](gone, w.P, w.RO, w.Resolve("W/f"))
					if !errors.Is(err, context.Canceled) {
						w.T.Errorf("%v", err)
					}
					return err
				}, code: provider.CodeAborted},
			})
			t.Run("no fence, no call", func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.File("W/f", "x")
				if got, _, err := reads[name](t.Context(), w.P, nil, w.Resolve("W/f")); provider.CodeOf(err) != provider.CodeSandboxDenied || got != "" {
					t.Errorf("%q, %v", got, err)
				}
			})
			t.Run("content and version", func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.File("W/f", "a\nb\n")
				got, v, err := reads[name](t.Context(), w.P, w.RO, w.Resolve("W/f"))
				w.must(err)
				if got != "a\nb\n" {
					t.Errorf("%q", got)
				}
				// It guards, and not only this moment.
				if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "c\n", ifVersion(v)); err != nil {
					t.Errorf("the version does not guard: %v", err)
				}
				if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "d\n", ifVersion(v)); provider.CodeOf(err) != provider.CodeStaleVersion {
					t.Errorf("the version guards for ever: %v", err)
				}
			})
			t.Run("a version of a whole read outlives chmod, for another provider too", func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.File("W/f", "a\nb\n")
				_, v, err := reads[name](t.Context(), w.P, w.RO, w.Resolve("W/f"))
				w.must(err)
				w.must(os.Chmod(w.Path("W/f"), 0o600))
				want := provider.Code("")
				if name == "readByteRange" {
					want = provider.CodeStaleVersion // a range knows nothing of the rest
				}
				if _, err := mk(t).WriteText(t.Context(), w.WS, w.Resolve("W/f"), "c\n", ifVersion(v)); provider.CodeOf(err) != want {
					t.Errorf("%v, want %q", err, want)
				}
			})
			for _, kind := range []string{"FIFO", "socket", "/dev/zero", "/dev/null"} {
				t.Run("never waits: "+kind+" (E8)", func(t *testing.T) {
					neverWaits(t, mk, kind, func(w *World, t provider.Target) error {
						_, _, err := reads[name](w.T.Context(), w.P, w.Full, t)
						return err
					})
				})
			}
		})
	}
	for _, kind := range []string{"FIFO", "socket", "/dev/zero", "/dev/null"} {
		t.Run("never waits: editText, writeText: "+kind+" (E8)", func(t *testing.T) {
			neverWaits(t, mk, kind, func(w *World, t provider.Target) error {
				_, err := w.P.WriteText(w.T.Context(), w.Full, t, "x", noGuard)
				if provider.CodeOf(err) != provider.CodeNotRegularFile {
					return err
				}
				_, err = w.P.EditText(w.T.Context(), w.Full, t, provider.EditRequest{OldString: "a", NewString: "b"}, provider.EditOptions{})
				return err
			})
		})
	}
	t.Run("files of the kernel, which say that they are empty", func(t *testing.T) {
		const path = "/proc/self/status"
		if _, err := os.Stat(path); err != nil {
			t.Skip("SKIP: no such files here")
		}
		w := NewWorld(t, mk(t))
		target, err := w.P.Resolve(t.Context(), w.RO, path, provider.ResolveOptions{})
		w.must(err)
		for name, read := range reads {
			if got, _, err := read(t.Context(), w.P, w.RO, target); err != nil || !contains(got, "\nPid:") {
				t.Errorf("%s: %.60q, %v", name, got, err)
			}
		}
		if _, err := w.P.ReadBytes(t.Context(), w.RO, target, 100); provider.CodeOf(err) != provider.CodeTooLarge {
			t.Errorf("a cap below what is read: %v", err)
		}
		c, err := w.P.ReadByteRange(t.Context(), w.RO, target, provider.ByteRange{Offset: 5, Length: 3})
		if err != nil || len(c.Data) != 3 {
			t.Errorf("%q, %v", c.Data, err)
		}
	})
}

// soon fails the test when do does not come back: nothing here may wait for a
// FIFO or a device (E8), which would be for ever.
func soon(t *testing.T, what string, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
		return nil
	}
}

// neverWaits: no regular file, at once, and a program that waits for a reader
// of a FIFO goes on waiting.
func neverWaits(t *testing.T, mk Make, kind string, do func(*World, provider.Target) error) {
	w := NewWorld(t, mk(t))
	switch kind {
	case "FIFO":
		w.FIFO("W/s")
	case "socket":
		w.Socket("W/s")
	default:
		w.Link("W/s", kind)
	}
	target := w.Resolve("W/s")
	var writer *exec.Cmd
	if kind == "FIFO" {
		writer = exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo x > "$0"`, w.Path("W/s"))
		w.must(writer.Start())
	}
	if err := soon(t, "it", func() error { return do(w, target) }); provider.CodeOf(err) != provider.CodeNotRegularFile {
		t.Errorf("%v", err)
	}
	if writer != nil {
		ended := make(chan error, 1)
		go func() { ended <- writer.Wait() }()
		select {
		case <-ended:
			t.Error("the waiting writer was released")
		case <-time.After(50 * time.Millisecond):
		}
		writer.Process.Kill()
	}
}
