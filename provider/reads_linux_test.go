package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// readers are all that open content.
var readers = map[string]func(context.Context, *place, provider.Target) (provider.Version, error){
	"readText": func(ctx context.Context, p *place, t provider.Target) (provider.Version, error) {
		c, err := p.l.ReadText(ctx, p.f, t, provider.ReadOptions{})
		return c.Version, err
	},
	"streamText": func(ctx context.Context, p *place, t provider.Target) (provider.Version, error) {
		s, err := p.l.StreamText(ctx, p.f, t)
		if err != nil {
			return "", err
		}
		defer s.Close()
		for {
			if _, err := s.Next(); errors.Is(err, io.EOF) {
				return s.Version(), nil
			} else if err != nil {
				return "", err
			}
		}
	},
	"readBytes": func(ctx context.Context, p *place, t provider.Target) (provider.Version, error) {
		c, err := p.l.ReadBytes(ctx, p.f, t, 1<<30)
		return c.Version, err
	},
	"readByteRange": func(ctx context.Context, p *place, t provider.Target) (provider.Version, error) {
		c, err := p.l.ReadByteRange(ctx, p.f, t, provider.ByteRange{Length: 1 << 30})
		return c.Version, err
	},
	"readLines": func(ctx context.Context, p *place, t provider.Target) (provider.Version, error) {
		o, err := p.l.ReadLines(ctx, p.f, t, provider.LineWindow{})
		return o.Version, err
	},
}

// once calls do when the provider comes to a point for the first time.
func (p *place) once(point string, do func()) {
	done := false
	p.l.SetHook(func(at string) {
		if at == point && !done {
			done = true
			do()
		}
	})
}

// E8: something else stands there between the path's check and the open. No
// read waits for it, and a link that was swapped in is not followed.
func TestSwappedBeforeOpen(t *testing.T) {
	for what, swap := range map[string]func(p *place, f string){
		"FIFO":      func(p *place, f string) { must(p.t, unix.Mkfifo(f, 0o644)) },
		"directory": func(p *place, f string) { must(p.t, os.Mkdir(f, 0o755)) },
		"link out":  func(p *place, f string) { must(p.t, os.Symlink(p.O+"/precious", f)) },
		"device":    func(p *place, f string) { must(p.t, os.Symlink("/dev/zero", f)) },
	} {
		for name, read := range readers {
			t.Run(what+"/"+name, func(t *testing.T) {
				p := newPlace(t, "", provider.Config{})
				f := p.put("f", "x")
				must(t, os.WriteFile(p.O+"/precious", []byte("precious"), 0o644))
				p.once("found", func() { must(t, os.Remove(f)); swap(p, f) })
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				_, err := read(ctx, p, p.target("f"))
				code(t, err, provider.CodeNotRegularFile)
			})
		}
	}
}

// A FIFO that comes after the file was pinned is not even looked at.
func TestSwappedAfterPin(t *testing.T) {
	for name, read := range readers {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			f := p.put("f", "x")
			p.once("opened", func() { must(t, os.Remove(f)); must(t, unix.Mkfifo(f, 0o644)) })
			_, err := read(t.Context(), p, p.target("f"))
			must(t, err)
		})
	}
}

// A file that grows after its size was looked at does not get past a cap.
func TestGrowsAfterTheSizeCheck(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	f := p.put("f", "12345")
	for _, more := range []string{"6", strings.Repeat("6", 200_000)} {
		grow := func() { must(t, os.WriteFile(f, []byte("12345"+more), 0o644)) }
		p.once("opened", grow)
		_, err := p.l.ReadBytes(t.Context(), p.f, p.target("f"), 5)
		code(t, err, provider.CodeTooLarge)
		p.put("f", "12345")
		p.once("opened", grow)
		_, err = p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{MaxBytes: 5})
		code(t, err, provider.CodeTooLarge)
		p.put("f", "12345")
		p.once("opened", grow)
		c, err := p.l.ReadBytes(t.Context(), p.f, p.target("f"), 1<<20)
		if err != nil || string(c.Data) != "12345"+more {
			t.Errorf("%d bytes, %v", len(c.Data), err)
		}
		p.put("f", "12345")
	}
	p.once("opened", func() { must(t, os.Truncate(f, 2)) })
	c, err := p.l.ReadBytes(t.Context(), p.f, p.target("f"), 5)
	if err != nil || string(c.Data) != "12" {
		t.Errorf("%q, %v", c.Data, err)
	}
}

// A file that changes while it is read: the version of the read is none of the
// file's new state.
func TestChangesWhileRead(t *testing.T) {
	for name, read := range readers {
		for what, change := range map[string]func(f string) error{
			"same size": func(f string) error { return os.WriteFile(f, []byte("CONTENT"), 0o644) },
			"appended":  func(f string) error { return os.WriteFile(f, []byte("content and more"), 0o644) },
			"cut":       func(f string) error { return os.Truncate(f, 3) },
			"replaced": func(f string) error {
				return errors.Join(os.WriteFile(f+".n", []byte("CONTENT"), 0o644), os.Rename(f+".n", f))
			},
			"gone, again": func(f string) error { return errors.Join(os.Remove(f), os.WriteFile(f, []byte("CONTENT"), 0o644)) },
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				p := newPlace(t, "", provider.Config{})
				f := p.put("f", "content")
				p.once("opened", func() { must(t, change(f)) })
				v, err := read(t.Context(), p, p.target("f"))
				must(t, err)
				p.l.SetHook(nil)
				now := p.get("f")
				_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(v))
				code(t, err, provider.CodeStaleVersion)
				if p.get("f") != now {
					t.Errorf("%q", p.get("f"))
				}
			})
		}
	}
}

// A version without a hash must not be racy, or it could not guard: the read
// waits for that, on kernels of any tick.
func TestReadsWithoutHashWait(t *testing.T) {
	small := provider.Config{Clock: coarse{}, EditMaxBytes: 1, Window: provider.WindowLimits{StreamMinSize: 1}}
	for name, read := range map[string]func(p *place) (provider.Version, error){
		"readByteRange": func(p *place) (provider.Version, error) {
			c, err := p.l.ReadByteRange(p.t.Context(), p.f, p.target("f"), provider.ByteRange{Length: 3})
			return c.Version, err
		},
		"streamText, opened": func(p *place) (provider.Version, error) {
			s, err := p.l.StreamText(p.t.Context(), p.f, p.target("f"))
			if err != nil {
				return "", err
			}
			return s.Version(), s.Close()
		},
		"readLines of a large file": func(p *place) (provider.Version, error) {
			o, err := p.l.ReadLines(p.t.Context(), p.f, p.target("f"), provider.LineWindow{})
			return o.Version, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, "", small)
			p.put("f", "content\n")
			v, err := read(p)
			must(t, err)
			if racy, hashed, ok := provider.RacyVersion(v); racy || hashed || !ok {
				t.Errorf("racy %v, hashed %v, ok %v", racy, hashed, ok)
			}
			_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(v))
			code(t, err, "")
			_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(v))
			code(t, err, provider.CodeStaleVersion)
		})
	}
}

// Up to the size that can be edited a window has a hash in its version.
func TestHashOfWindow(t *testing.T) {
	for _, tt := range []struct {
		size   int
		hashed bool
	}{{99, true}, {100, true}, {101, false}, {0, true}} {
		p := newPlace(t, "", provider.Config{EditMaxBytes: 100, Window: provider.WindowLimits{StreamMinSize: 50}})
		p.put("f", strings.Repeat("x", tt.size))
		o, err := p.l.ReadLines(t.Context(), p.f, p.target("f"), provider.LineWindow{})
		must(t, err)
		if _, hashed, _ := provider.RacyVersion(o.Version); hashed != tt.hashed {
			t.Errorf("%d bytes: hashed %v", tt.size, hashed)
		}
	}
}

func TestWindowConfig(t *testing.T) {
	for _, l := range []provider.WindowLimits{{Lines: -1}, {LineLength: -1}, {Bytes: -1}, {StreamMinSize: -1}} {
		if _, err := provider.NewLocal(provider.Config{Cwd: "/", Window: l}); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	p := newPlace(t, "", provider.Config{Window: provider.WindowLimits{Lines: 3, LineLength: 4, Bytes: 6}})
	p.put("f", "😀😀😀\nab\nc\nd\n")
	o, err := p.l.ReadLines(t.Context(), p.f, p.target("f"), provider.LineWindow{})
	must(t, err)
	// Two pairs are four units and eight bytes; one of them fits.
	if fmt.Sprint(o.Lines) != "[{1 😀 true}]" || !o.TruncatedByBytes || o.TotalLines != 4 || !strings.Contains(o.Footer, "offset 2") {
		t.Errorf("%+v", o)
	}
	o, err = p.l.ReadLines(t.Context(), p.f, p.target("f"), provider.LineWindow{Offset: 2})
	must(t, err)
	if fmt.Sprint(o.Lines) != "[{2 ab false} {3 c false} {4 d false}]" || o.TruncatedByBytes {
		t.Errorf("%+v", o)
	}
	_, err = p.l.ReadLines(t.Context(), p.f, p.target("f"), provider.LineWindow{Limit: 4})
	code(t, err, provider.CodeTooLarge)
}

// A directory that is too large for one listing can be listed by pages.
func TestPagesOfTooManyEntries(t *testing.T) {
	p := newPlace(t, "", provider.Config{ListMaxEntries: 5})
	for i := range 8 {
		p.put(fmt.Sprint("f", i), "")
	}
	for _, tt := range []struct {
		o    provider.ListOptions
		n    int
		code provider.Code
	}{
		{provider.ListOptions{}, 0, provider.CodeTooLarge},
		{provider.ListOptions{Limit: 6}, 0, provider.CodeTooLarge},
		{provider.ListOptions{Limit: 100}, 0, provider.CodeTooLarge},
		{provider.ListOptions{Limit: 5}, 5, ""},
		{provider.ListOptions{Limit: 4, After: "f1"}, 4, ""},
		{provider.ListOptions{After: "f2"}, 5, ""},
		{provider.ListOptions{After: "f1"}, 0, provider.CodeTooLarge},
		{provider.ListOptions{After: "f2", Limit: 100}, 5, ""},
	} {
		es, err := p.l.ListDir(t.Context(), p.f, p.target("."), tt.o)
		code(t, err, tt.code)
		if len(es) != tt.n {
			t.Errorf("%+v: %d entries", tt.o, len(es))
		}
	}
}

// counting has a long tick and counts how often it is asked for the time: once
// for each look, and again around each wait.
type counting struct {
	coarse
	asked *atomic.Int64
}

func (c counting) Tick() time.Duration { return 50 * time.Millisecond }
func (c counting) Now() int64          { c.asked.Add(1); return c.coarse.Now() }

// A listing of many fresh files waits once, not once for each.
func TestPageWaitsOnce(t *testing.T) {
	var asked atomic.Int64
	p := newPlace(t, "", provider.Config{Clock: counting{asked: &asked}})
	target := p.target(".")
	// On a machine that stands still meanwhile the files are old: again then.
	for round := range 20 {
		for i := range 60 {
			p.put(fmt.Sprint("f", i), fmt.Sprint(round))
		}
		asked.Store(0)
		es, err := p.l.ListDir(t.Context(), p.f, target, provider.ListOptions{Limit: 40})
		must(t, err)
		n := asked.Load()
		// Every file at most twice, and one wait.
		if len(es) != 40 || n > 2*40+5 {
			t.Fatalf("%d entries, the clock was asked %d times", len(es), n)
		}
		for _, e := range es {
			if racy, _, ok := provider.RacyVersion(e.Version); racy || !ok {
				t.Errorf("%s is racy", e.Name)
			}
		}
		if n >= 2*40+2 {
			return // all of them were fresh
		}
	}
	t.Error("never were all files fresh")
}

func TestHostPath(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	for host, want := range map[string]string{"/a/b": "/a/b", "/a/../b//c/.": "/b/c", "/": "/", "a": "", "": "", "./a": "", "../a": ""} {
		got, ok := p.l.ProcessPathFromHostPath(host)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", host, got, ok)
		}
	}
}
