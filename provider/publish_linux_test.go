package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// createIfAbsent loses against what appears after the look.
func TestCompetitorOfCreate(t *testing.T) {
	for name, tt := range map[string]struct {
		make  func(path string) error
		code  provider.Code // createIfAbsent
		plain provider.Code // no guard
	}{
		"file":          {func(f string) error { return os.WriteFile(f, []byte("theirs"), 0o644) }, provider.CodeNotObserved, ""},
		"directory":     {func(f string) error { return os.Mkdir(f, 0o755) }, provider.CodeNotRegularFile, provider.CodeNotRegularFile},
		"link out":      {func(f string) error { return os.Symlink("../out/victim", f) }, provider.CodeNotRegularFile, provider.CodeSandboxDenied},
		"dangling link": {func(f string) error { return os.Symlink("none", f) }, provider.CodeNotRegularFile, provider.CodeNotRegularFile},
		"FIFO":          {func(f string) error { return syscall.Mkfifo(f, 0o644) }, provider.CodeNotRegularFile, provider.CodeNotRegularFile},
	} {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprint(name, "/", guarded), func(t *testing.T) {
				p := newPlace(t, "", provider.Config{})
				acted := false
				p.l.SetHook(func(at string) {
					if at == "staged" && !acted {
						acted = true
						must(t, tt.make(p.W+"/f"))
					}
				})
				o, want := provider.WriteOptions{}, tt.plain
				if guarded {
					o.Expected, want = &provider.WriteIntent{Kind: provider.CreateIfAbsent}, tt.code
				}
				got, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", o)
				code(t, err, want)
				if want == "" && (got.Operation != provider.OperationUpdate || got.Before == nil || *got.Before != "theirs" || p.get("f") != "mine") {
					t.Errorf("%+v, file %q", got, p.get("f"))
				}
				if name == "file" && guarded && p.get("f") != "theirs" {
					t.Errorf("the competitor was changed: %q", p.get("f"))
				}
				if _, err := os.Lstat(p.O + "/victim"); err == nil {
					t.Error("outside was written")
				}
				p.only("f")
			})
		}
	}
}

// A FIFO that takes the place of a file between look and open releases no
// writer and hangs nobody (E8).
func TestFileSwappedForFIFO(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	p.put("f", "x")
	p.l.SetHook(func(at string) {
		if at == "found" {
			must(t, os.Remove(p.W+"/f"))
			must(t, syscall.Mkfifo(p.W+"/f", 0o644))
		}
	})
	_, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
	code(t, err, provider.CodeNotRegularFile)
}

// countdown is a context that is cancelled when it is asked the n-th time:
// between any two steps, metadata look-ups in flight included.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Cancelled at any step, a call either did nothing and says so, or it did all.
func TestCancelledAtEveryStep(t *testing.T) {
	ops := map[string]func(ctx context.Context, p *place) error{
		"write new": func(ctx context.Context, p *place) error {
			_, err := p.l.WriteText(ctx, p.f, p.target("a/b/new"), "new", provider.WriteOptions{})
			return err
		},
		"write": func(ctx context.Context, p *place) error {
			_, err := p.l.WriteText(ctx, p.f, p.target("f"), "new", provider.WriteOptions{})
			return err
		},
		"edit": func(ctx context.Context, p *place) error {
			_, err := p.l.EditText(ctx, p.f, p.target("f"), provider.EditRequest{OldString: "old", NewString: "new"}, provider.EditOptions{})
			return err
		},
		"read": func(ctx context.Context, p *place) error {
			_, err := p.l.ReadText(ctx, p.f, p.target("f"), provider.ReadOptions{})
			return err
		},
		"list": func(ctx context.Context, p *place) error {
			_, err := p.l.ListDir(ctx, p.f, p.target("."), provider.ListOptions{})
			return err
		},
		"resolve": func(ctx context.Context, p *place) error {
			_, err := p.l.Resolve(ctx, p.f, "f", provider.ResolveOptions{})
			return err
		},
		"stat": func(ctx context.Context, p *place) error { _, err := p.l.Stat(ctx, p.f, p.target("f")); return err },
		"stat none": func(ctx context.Context, p *place) error {
			i, err := p.l.Stat(ctx, p.f, p.target("none"))
			if i != nil {
				t.Error("something is there")
			}
			return err
		},
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			done := false
			for n := 0; !done; n++ {
				if n > 200 {
					t.Fatal("never succeeds")
				}
				p := newPlace(t, t.TempDir(), provider.Config{})
				p.put("f", "old")
				err := op(&countdown{t.Context(), n}, p)
				switch {
				case err == nil:
					done = true
					if n == 0 {
						t.Error("a call that was cancelled before it began succeeded")
					}
				case provider.CodeOf(err) != provider.CodeAborted:
					t.Errorf("step %d: %v", n, err)
				default:
					p.only("f")
					if p.get("f") != "old" {
						t.Errorf("step %d: file %q", n, p.get("f"))
					}
				}
			}
		})
	}
}

func TestErrorsNameTheDisplayPath(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	must(t, os.Mkdir(p.W+"/real", 0o755))
	must(t, os.Symlink("real", p.W+"/shown"))
	p.put("real/f", "\x00")
	must(t, os.Mkdir(p.W+"/real/d", 0o755))
	for _, do := range []func() error{
		func() error {
			_, err := p.l.ReadText(t.Context(), p.f, p.target("shown/f"), provider.ReadOptions{})
			return err
		},
		func() error {
			_, err := p.l.ReadText(t.Context(), p.f, p.target("shown/none"), provider.ReadOptions{})
			return err
		},
		func() error {
			_, err := p.l.ListDir(t.Context(), p.f, p.target("shown/none"), provider.ListOptions{})
			return err
		},
		func() error {
			_, err := p.l.WriteText(t.Context(), p.f, p.target("shown/d"), "", provider.WriteOptions{})
			return err
		},
		func() error {
			_, err := p.l.EditText(t.Context(), p.f, p.target("shown/f"), provider.EditRequest{OldString: "a"}, provider.EditOptions{})
			return err
		},
	} {
		err := do()
		var e *provider.Error
		if !errors.As(err, &e) || !strings.Contains(e.Path, "/shown/") || strings.Contains(err.Error(), "/real/") || !strings.Contains(err.Error(), "/shown/") {
			t.Errorf("%v", err)
		}
	}
}
