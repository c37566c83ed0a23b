package provider_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// fastDir is a directory in memory, where a hundred thousand synced writes do
// not take an hour; the test's own where there is none.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "provider-race-")
	if err != nil {
		t.Logf("no /dev/shm: %v", err)
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// tally counts outcomes by code.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	k := string(provider.CodeOf(err))
	if err == nil {
		k = "done"
	}
	c.n[k]++
}

func (c *tally) count(k string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[k]
}

func (c *tally) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c.n)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c.n[k]))
	}
	return strings.Join(parts, ", ")
}

// raceRounds is how many tries a race gets, and for how long at most. There
// are four races, and each runs as root and as a normal user.
func raceRounds() (int64, time.Duration) {
	switch {
	case testing.Short():
		return 3_000, 20 * time.Second
	case raceDetector:
		return 10_000, 20 * time.Second
	}
	return 50_000, 40 * time.Second
}

// race exchanges two names as fast as it can while operations on one of them
// run, and looks whether anything outside was touched.
func race(t *testing.T, prepare func(p *place) (a, b string), ops []func(ctx context.Context, p *place, i int64) error) {
	p := newPlace(t, fastDir(t), provider.Config{})
	for _, n := range []string{"f", "g"} {
		must(t, os.WriteFile(p.O+"/"+n, []byte("outside"), 0o644))
	}
	before := listing(t, p.O)
	a, b := prepare(p)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var swaps int64
	wg.Go(func() {
		for ctx.Err() == nil {
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				swaps++
			}
			// A link that was kept elsewhere (see putBack) is put here anew, or
			// the race would be over.
			if swaps%64 == 0 && !isLink(a) && !isLink(b) {
				must(t, os.Symlink(p.O+"/f", p.O+"/../again"))
				must(t, os.Rename(p.O+"/../again", b))
			}
		}
	})
	rounds, limit := raceRounds()
	deadline := time.Now().Add(limit)
	var tries, told atomic.Int64
	var got tally
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for {
				i := tries.Add(1)
				if i > rounds || time.Now().After(deadline) {
					return
				}
				err := ops[i%int64(len(ops))](ctx, p, i)
				if err != nil && strings.Contains(err.Error(), "kept as") {
					told.Add(1)
				}
				got.add(err)
			}
		})
	}
	workers.Wait()
	stop()
	wg.Wait()
	t.Logf("tries: %d, exchanges: %d, kept aside: %d; %v", min(tries.Load(), rounds), swaps, told.Load(), &got)
	if after := listing(t, p.O); after != before {
		t.Errorf("outside was touched:\n%s\nbefore:\n%s", after, before)
	}
	if got.n["done"] == 0 || len(got.n) < 2 {
		t.Errorf("the race did not happen: %v", &got)
	}
	// Nothing is left behind but what an error named: a file whose place was
	// taken by the exchange in the middle of a replacement.
	for _, d := range []string{p.W, p.W + "/a", p.W + "/b"} {
		if isLink(d) {
			continue
		}
		es, _ := os.ReadDir(d)
		for _, e := range es {
			if !strings.Contains(e.Name(), provider.TempPrefix) {
				continue
			}
			if told.Add(-1) < 0 {
				t.Errorf("left behind: %s/%s", d, e.Name())
			}
		}
	}
	if told.Load() != 0 {
		t.Errorf("%d files that errors named are gone", told.Load())
	}
}

func isLink(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode()&os.ModeSymlink != 0
}

// listing is every name below dir with all that a write could change.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	es, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range es {
		fi, err := e.Info()
		must(t, err)
		content, err := os.ReadFile(dir + "/" + e.Name())
		must(t, err)
		fmt.Fprintf(&b, "%s %v %d %v %q\n", e.Name(), fi.Mode(), fi.Size(), fi.ModTime().UnixNano(), content)
	}
	fi, err := os.Stat(dir)
	must(t, err)
	fmt.Fprintf(&b, ". %v %v\n", fi.Mode(), fi.ModTime().UnixNano())
	return b.String()
}

func at(p *place, name string) provider.Target {
	return provider.Target{TargetKey: provider.TargetKey(p.W + "/" + name), DisplayPath: p.W + "/" + name}
}

func raceOps(name, text string) []func(ctx context.Context, p *place, i int64) error {
	return []func(ctx context.Context, p *place, i int64) error{
		func(ctx context.Context, p *place, i int64) error {
			_, err := p.l.WriteText(ctx, p.f, at(p, name), text, provider.WriteOptions{})
			return err
		},
		func(ctx context.Context, p *place, i int64) error {
			_, err := p.l.EditText(ctx, p.f, at(p, name), provider.EditRequest{OldString: "side", NewString: "side"}, provider.EditOptions{})
			return err
		},
		func(ctx context.Context, p *place, i int64) error {
			o := provider.WriteOptions{Expected: &provider.WriteIntent{Kind: provider.CreateIfAbsent}}
			target := at(p, fmt.Sprintf("%s.%d", name, i))
			_, err := p.l.WriteText(ctx, p.f, target, text, o)
			return err
		},
		func(ctx context.Context, p *place, i int64) error {
			c, err := p.l.ReadText(ctx, p.f, at(p, name), provider.ReadOptions{})
			if err != nil {
				return err
			}
			_, err = p.l.WriteText(ctx, p.f, at(p, name), text, ifVersion(c.Version))
			return err
		},
	}
}

// A directory and a link to the outside exchange their names.
func TestSwappedDirectory(t *testing.T) {
	race(t, func(p *place) (string, string) {
		must(t, os.Mkdir(p.W+"/a", 0o755))
		must(t, os.WriteFile(p.W+"/a/f", []byte("inside"), 0o644))
		must(t, os.Symlink(p.O, p.W+"/b"))
		return p.W + "/a", p.W + "/b"
	}, raceOps("a/f", "inside"))
}

// New parents below the exchanged name.
func TestSwappedParent(t *testing.T) {
	race(t, func(p *place) (string, string) {
		must(t, os.Mkdir(p.W+"/a", 0o755))
		must(t, os.Symlink("../out", p.W+"/b"))
		return p.W + "/a", p.W + "/b"
	}, []func(ctx context.Context, p *place, i int64) error{
		func(ctx context.Context, p *place, i int64) error {
			_, err := p.l.WriteText(ctx, p.f, at(p, fmt.Sprintf("a/n%d/m/f", i%64)), "inside", provider.WriteOptions{})
			return err
		},
	})
}

// A file and a link to a file outside exchange their names.
func TestSwappedFile(t *testing.T) {
	race(t, func(p *place) (string, string) {
		must(t, os.WriteFile(p.W+"/f", []byte("inside"), 0o644))
		must(t, os.Symlink(p.O+"/f", p.W+"/b"))
		return p.W + "/f", p.W + "/b"
	}, raceOps("f", "inside"))
}

// In full access the target is used as given: a link that takes its place is
// not followed either.
func TestSwappedFileInFullAccess(t *testing.T) {
	race(t, func(p *place) (string, string) {
		must(t, os.WriteFile(p.W+"/f", []byte("inside"), 0o644))
		must(t, os.Symlink(p.O+"/f", p.W+"/b"))
		var err error
		p.f, err = fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: p.W})
		must(t, err)
		return p.W + "/f", p.W + "/b"
	}, raceOps("f", "inside"))
}
