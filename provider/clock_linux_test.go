package provider_test

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// The kernels that the tests usually run on stamp files finely, which hides
// every fault of the racy rule (facts/kernels section 4). These clocks show
// the files as Linux before 6.13 stamps them.

// coarse is a clock of 4 ms.
type coarse struct{}

const tick = 4 * time.Millisecond

func (coarse) Tick() time.Duration { return tick }
func (coarse) Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		panic(err)
	}
	return coarse{}.Stamp(ts.Nano())
}

// Stamp rounds down to a tick. The ticks do not fall on whole seconds: those
// are the mark of other file systems.
func (coarse) Stamp(ns int64) int64 {
	const phase = 1_234_567
	return (ns-phase)/int64(tick)*int64(tick) + phase
}

// frozen stands still: all that happens after its time is one tick.
type frozen int64

func (f frozen) Tick() time.Duration  { return tick }
func (f frozen) Now() int64           { return int64(f) }
func (f frozen) Stamp(ns int64) int64 { return min(ns, int64(f)) }

func freeze() frozen { return frozen(time.Now().Add(-time.Minute).UnixNano()) }

// In one tick, a rewrite of the same size and even a replacement leave the
// stamp as it was: the content must decide.
func TestRewriteInsideOneTick(t *testing.T) {
	rewrite := map[string]func(t *testing.T, f, content string){
		"in place": func(t *testing.T, f, content string) {
			h, err := os.OpenFile(f, os.O_WRONLY, 0)
			must(t, err)
			_, err = h.WriteAt([]byte(content), 0)
			must(t, err)
			must(t, h.Close())
		},
		"truncate and write": func(t *testing.T, f, content string) { must(t, os.WriteFile(f, []byte(content), 0o644)) },
		"renamed over, twice": func(t *testing.T, f, content string) {
			// ext4 gives the first inode number again.
			for _, c := range []string{"xxxxxxx", content} {
				must(t, os.WriteFile(f+".n", []byte(c), 0o644))
				must(t, os.Rename(f+".n", f))
			}
		},
	}
	for how, change := range rewrite {
		for _, source := range []string{"read", "write", "edit", "stat", "stat, then read"} {
			t.Run(how+"/"+source, func(t *testing.T) {
				p := newPlace(t, "", provider.Config{Clock: freeze()})
				f := p.put("f", "content")
				var v provider.Version
				switch source {
				case "read":
					c, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
					must(t, err)
					v = c.Version
				case "write":
					o, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "content", provider.WriteOptions{})
					must(t, err)
					v = o.Version
				case "edit":
					p.put("f", "CONTENT")
					o, err := p.l.EditText(t.Context(), p.f, p.target("f"), provider.EditRequest{OldString: "CONTENT", NewString: "content"}, provider.EditOptions{})
					must(t, err)
					v = o.Version
				default:
					i, err := p.l.Stat(t.Context(), p.f, p.target("f"))
					must(t, err)
					v = i.Version
				}
				if racy, hashed, ok := provider.RacyVersion(v); !racy || !ok || hashed != (source != "stat" && source != "stat, then read") {
					t.Fatalf("racy %v, hashed %v, ok %v", racy, hashed, ok)
				}
				change(t, f, "foreign")
				if source == "stat, then read" {
					// What is read now came after the version was made.
					_, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
					must(t, err)
				}
				_, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(v))
				code(t, err, provider.CodeStaleVersion)
				_, err = p.l.EditText(t.Context(), p.f, p.target("f"), provider.EditRequest{OldString: "foreign", NewString: "mine"},
					provider.EditOptions{Expected: &provider.VersionGuard{Version: v}})
				code(t, err, provider.CodeStaleVersion)
				if p.get("f") != "foreign" {
					t.Errorf("file %q", p.get("f"))
				}
				// The same content again is the same version (D5).
				if source != "stat" && source != "stat, then read" {
					change(t, f, "content")
					_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(v))
					code(t, err, "")
				}
			})
		}
	}
}

// A change right before the exchange, inside the tick of the guard's look.
func TestRewriteInsideOneTickDuringReplacement(t *testing.T) {
	for _, point := range []string{"staged", "checked"} {
		t.Run(point, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{Clock: freeze()})
			f := p.put("f", "content")
			c, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
			must(t, err)
			p.l.SetHook(func(at string) {
				if at == point {
					h, err := os.OpenFile(f, os.O_WRONLY, 0)
					must(t, err)
					_, err = h.WriteAt([]byte("foreign"), 0)
					must(t, err)
					must(t, h.Close())
				}
			})
			_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(c.Version))
			code(t, err, provider.CodeStaleVersion)
			if p.get("f") != "foreign" {
				t.Errorf("file %q", p.get("f"))
			}
			p.only("f")
		})
	}
}

// stat waits for the tick to pass, so that its version has no need of a hash:
// the next change shows, however the file is changed.
func TestStatWaitsForTheTick(t *testing.T) {
	p := newPlace(t, "", provider.Config{Clock: coarse{}})
	f := p.put("f", "0000")
	for i := range 50 {
		must(t, os.WriteFile(f, []byte{'a', byte(i), 'b', 'c'}, 0o644))
		info, err := p.l.Stat(t.Context(), p.f, p.target("f"))
		must(t, err)
		if racy, hashed, _ := provider.RacyVersion(info.Version); racy || hashed {
			t.Fatalf("round %d: racy %v, hashed %v", i, racy, hashed)
		}
		es, err := p.l.ListDir(t.Context(), p.f, p.target("."), provider.ListOptions{})
		must(t, err)
		if es[0].Version != info.Version {
			t.Fatalf("round %d: the listing has another version", i)
		}
		must(t, os.WriteFile(f, []byte{'A', byte(i), 'b', 'c'}, 0o644))
		_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(info.Version))
		code(t, err, provider.CodeStaleVersion)
		// Unchanged, the version is good without any read.
		info, err = p.l.Stat(t.Context(), p.f, p.target("f"))
		must(t, err)
		if racy, _, _ := provider.RacyVersion(info.Version); racy {
			t.Fatalf("round %d: racy", i)
		}
		_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(info.Version))
		code(t, err, "")
	}
}

// counted is the coarse clock and how often it was asked.
type counted struct {
	coarse
	asked *atomic.Int64
}

func (c counted) Now() int64 {
	c.asked.Add(1)
	return c.coarse.Now()
}

// A listing waits once, not once for each child: the clock is asked once for
// each look at a child, of which there are two at most, and a few times for the
// wait.
func TestListingWaitsOnce(t *testing.T) {
	var asked atomic.Int64
	p := newPlace(t, "", provider.Config{Clock: counted{asked: &asked}})
	for i := range 100 {
		p.put(string(rune('a'+i%26))+string(rune('a'+i/26)), "x")
	}
	es, err := p.l.ListDir(t.Context(), p.f, p.target("."), provider.ListOptions{})
	must(t, err)
	if n := asked.Load(); n > 210 {
		t.Errorf("the clock was asked %d times for 100 children", n)
	}
	for _, e := range es {
		if racy, _, _ := provider.RacyVersion(e.Version); racy {
			t.Errorf("%s: racy", e.Name)
		}
	}
}

// stalled is the coarse clock of a machine that stands still right after the
// clock was asked: every other answer is an old one.
type stalled struct {
	coarse
	asked *atomic.Int64
}

func (s stalled) Now() int64 {
	if s.asked.Add(1)%2 == 1 {
		return s.coarse.Now() - int64(time.Minute)
	}
	return s.coarse.Now()
}

// A file that is younger than the clock that was read before the look at it may
// change once more in the same tick: the version must say so. (It did not, and
// a guarded write then replaced a content that nobody had seen, once in some
// hundred thousand operations of two processes on a loaded machine.)
func TestMachineThatStandsStillBeforeTheLook(t *testing.T) {
	p := newPlace(t, "", provider.Config{Clock: stalled{asked: new(atomic.Int64)}})
	p.put("f", "content")
	c, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
	must(t, err)
	if racy, _, ok := provider.RacyVersion(c.Version); !racy || !ok {
		t.Errorf("racy %v, ok %v", racy, ok)
	}
}
