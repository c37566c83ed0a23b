package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash"
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

// raceTries is how many calls all races make together, and how long one of them
// may take. Each runs as root and as a normal user.
func raceTries() (int, time.Duration) {
	switch {
	case os.Getenv("WATTLE_SOAK") != "":
		return 1_000_000, 20 * time.Minute
	case testing.Short():
		return 4_000, 20 * time.Second
	case raceDetector:
		return 10_000, 20 * time.Second
	}
	return 100_000, 40 * time.Second
}

// arena is where a race takes place. W has a directory g/a with the names that
// are fought for, and s, which stays as it is. O has the like of everything in
// g/a, so that whatever reaches it by g or a finds something to spoil.
type arena struct {
	*place
	race
	base string
	// inner and calm are the directories g/a and s themselves, whatever has
	// their names: what a try needs is made through them.
	inner, calm *os.Root
	// self is a path of inner that no exchange leads elsewhere.
	self  string
	swaps []*swap
}

// raceSlots is how many names of each kind there are.
const raceSlots = 8

// race is one kind of exchange.
type race struct {
	name string
	// last: the names of files and trees are exchanged themselves, and are f
	// and t of g/a. Otherwise every try has a file, or a tree, of its own.
	last bool
	full bool // full access
	poor bool // a file system without any feature
	// temp: the hidden names of the provider are exchanged.
	temp bool
	// prepare gives the exchanges.
	prepare func(a *arena) []*swap
}

func newArena(t *testing.T, r race) *arena {
	a := &arena{base: fastDir(t), race: r}
	bin, err := trash.New(trash.Config{DataHome: a.base + "/home", UID: os.Geteuid(), NoSync: true})
	must(t, err)
	t.Cleanup(func() { bin.Close(context.Background()) })
	a.place = newPlace(t, a.base, provider.Config{Trash: bin})
	for _, d := range []string{a.base + "/aux", a.W + "/g/a", a.W + "/s", a.O + "/a/sub"} {
		must(t, os.MkdirAll(d, 0o755))
	}
	out, err := os.OpenRoot(a.O + "/a")
	must(t, err)
	defer out.Close()
	for _, n := range []string{"f", "sub/f"} {
		must(t, out.WriteFile(n, []byte("outside\n"), 0o644))
	}
	must(t, os.WriteFile(a.O+"/f", []byte("outside\n"), 0o644))
	for i := range raceSlots {
		must(t, out.WriteFile(fmt.Sprint("x", i), []byte("outside\n"), 0o644))
		makeTree(t, out, fmt.Sprint("t", i), "outside\n")
	}
	makeTree(t, out, "t", "outside\n")
	a.inner, err = os.OpenRoot(a.W + "/g/a")
	must(t, err)
	t.Cleanup(func() { a.inner.Close() })
	self, err := os.Open(a.W + "/g/a")
	must(t, err)
	t.Cleanup(func() { self.Close() })
	a.self = fmt.Sprintf("/proc/self/fd/%d", self.Fd())
	a.calm, err = os.OpenRoot(a.W + "/s")
	must(t, err)
	t.Cleanup(func() { a.calm.Close() })
	if r.full {
		a.f, err = fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: a.W})
		must(t, err)
	}
	if r.poor {
		a.l.Lack(true, true, true)
	}
	a.swaps = r.prepare(a)
	return a
}

// makeTree makes a directory with a file and a directory that has one too.
func makeTree(t testing.TB, in *os.Root, name, text string) {
	for _, d := range []string{name, name + "/sub"} {
		if err := in.Mkdir(d, 0o755); err != nil && !gone(err) && !errors.Is(err, fs.ErrExist) {
			must(t, err)
		}
	}
	for _, n := range []string{"/f", "/sub/f"} {
		if err := in.WriteFile(name+n, []byte(text), 0o644); err != nil && !gone(err) {
			must(t, err)
		}
	}
}

// gone: another try was faster, or a link stands there that leads out.
func gone(err error) bool {
	for _, e := range []error{syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENOTEMPTY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return err != nil && strings.Contains(err.Error(), "escapes")
}

// run is the race: three workers try, and for every exchange one goroutine
// makes it as fast as it can. The tries also exchange at the named points of the
// calls themselves.
func (a *arena) run(t *testing.T, rounds int, limit time.Duration, each map[string]*tally) {
	before := listing(t, a.O)
	ops := slices.Clone(raceOps)
	if a.full {
		// A patch resolves its paths itself, and may then follow a link.
		ops = slices.DeleteFunc(ops, func(o raceOp) bool { return strings.HasPrefix(o.name, "applyPatch") })
	}
	ctx, stop := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	for _, s := range a.swaps {
		swapping.Go(func() {
			for ctx.Err() == nil {
				s.once()
			}
		})
	}
	var points atomic.Int64
	a.l.SetHook(func(string) {
		n := points.Add(1)
		if len(a.swaps) > 0 && n%5 == 0 {
			a.swaps[n/5%int64(len(a.swaps))].once()
		}
		if a.temp && n%2 == 0 {
			a.swapHidden()
		}
	})
	deadline := time.Now().Add(limit)
	var tries atomic.Int64
	var got tally
	var mu sync.Mutex
	named := map[string]bool{}
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for {
				i := int(tries.Add(1)) - 1
				if i >= rounds || time.Now().After(deadline) {
					return
				}
				op := ops[i%len(ops)]
				err := op.do(ctx, a, i/len(ops))
				got.add(err)
				each[op.name].add(err)
				if err != nil {
					mu.Lock()
					for _, n := range hiddenName.FindAllString(err.Error(), -1) {
						named[n] = true
					}
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	stop()
	swapping.Wait()
	a.l.SetHook(nil)
	exchanges := 0
	for _, s := range a.swaps {
		exchanges += s.n
	}
	t.Logf("tries: %d, exchanges: %d, kept aside: %d; %v", min(int(tries.Load()), rounds), exchanges+int(hiddenSwaps.Swap(0)), len(named), &got)
	if after := listing(t, a.O); after != before {
		t.Errorf("outside was touched:\n%s\nbefore:\n%s", after, before)
	}
	if got.n["done"] == 0 || len(got.n) < 2 {
		t.Errorf("the race did not happen: %v", &got)
	}
	if !a.temp {
		a.noResidue(t, named)
	}
	es, err := os.ReadDir(a.base)
	must(t, err)
	for _, e := range es {
		if !slices.Contains([]string{"aux", "home", "out", "ws"}, e.Name()) {
			t.Errorf("beside the workspace there is %s", e.Name())
		}
	}
}

var hiddenName = regexp.MustCompile(regexp.QuoteMeta(provider.TempPrefix) + "[A-Z2-7]{16}")

// noResidue: nothing is left behind but what an error named, which is a file
// whose place was taken by an exchange in the middle of a replacement.
func (a *arena) noResidue(t *testing.T, named map[string]bool) {
	must(t, filepath.WalkDir(a.W, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(e.Name(), provider.TempPrefix) && !named[hiddenName.FindString(e.Name())] {
			t.Errorf("left behind: %s", path)
		}
		return err
	}))
}

// listing is every name below dir with all that a change of any kind shows in.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %v %d:%d %d names, %d bytes, %v %v", rel, fi.Mode(), st.Uid, st.Gid, st.Nlink, st.Size, st.Mtim, st.Ctim)
		if fi.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", content)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

func at(p *place, name string) provider.Target {
	return provider.Target{TargetKey: provider.TargetKey(p.W + "/" + name), DisplayPath: p.W + "/" + name}
}

// TestExchangeRaces runs every mutating primitive while names that it uses are
// exchanged with links to the outside, as fast as that goes. Nothing outside may
// be touched.
func TestExchangeRaces(t *testing.T) {
	tries, limit := raceTries()
	each := map[string]*tally{}
	for _, o := range raceOps {
		each[o.name] = &tally{}
	}
	for _, r := range races {
		t.Run(r.name, func(t *testing.T) {
			newArena(t, r).run(t, tries/len(races), limit, each)
		})
	}
	total := 0
	for _, o := range raceOps {
		n := 0
		for _, c := range each[o.name].n {
			n += c
		}
		total += n
		t.Logf("%s, %d: %v", o.name, n, each[o.name])
		if each[o.name].n["done"] == 0 || each[o.name].n["done"] == n {
			t.Errorf("%s was in no race", o.name)
		}
	}
	t.Logf("tries: %d in all", total)
}
