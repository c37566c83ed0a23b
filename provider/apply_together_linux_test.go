package provider_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// Patches of the same files at once, in both orders, from two providers as two
// processes have them: each is done whole or not at all, and nobody waits for
// ever. All files hold one number; a patch counts it up in each of them.
func TestPatchesTogether(t *testing.T) {
	for name, shared := range map[string]bool{"one process": true, "two processes": false} {
		t.Run(name, func(t *testing.T) {
			p, _ := patchPlace(t, fastDir(t), provider.Config{})
			second := p.l
			if !shared {
				var err error
				second, err = provider.NewLocal(provider.Config{Cwd: p.W})
				must(t, err)
			}
			const files = 4
			var names []string
			for i := range files {
				p.put(fmt.Sprint(i), "0\n")
				names = append(names, fmt.Sprint(i))
			}
			tries := 150
			if testing.Short() {
				tries = 30
			}
			var done, left atomic.Int64
			var wg sync.WaitGroup
			for w, l := range []*provider.Local{p.l, second, p.l, second} {
				wg.Go(func() {
					for range tries {
						b, err := os.ReadFile(p.W + "/0")
						must(t, err)
						from := strings.TrimSpace(string(b))
						var n int
						fmt.Sscan(from, &n)
						var ops []string
						for i := range files {
							if w%2 == 1 {
								i = files - 1 - i
							}
							ops = append(ops, updateOp(fmt.Sprint(i), from, fmt.Sprint(n+1)))
						}
						_, err = l.ApplyPatch(t.Context(), p.f, patchOf(ops...), provider.ApplyOptions{})
						if err == nil {
							done.Add(1)
							continue
						}
						r := reported(t, err)
						if c := provider.CodeOf(err); c != provider.CodePatchMismatch && c != provider.CodeStaleVersion {
							t.Errorf("%v", err)
						}
						if strings.Contains(states(r), "left") {
							left.Add(1)
						}
					}
				})
			}
			wg.Wait()
			for i := range files {
				if got := p.get(fmt.Sprint(i)); got != fmt.Sprintf("%d\n", done.Load()) {
					t.Errorf("%d: %q after %d patches", i, got, done.Load())
				}
			}
			if done.Load() == 0 || left.Load() > 0 {
				t.Errorf("%d done, %d left", done.Load(), left.Load())
			}
			t.Logf("%d of %d done", done.Load(), 4*tries)
			p.only(names...)
		})
	}
}

// D3: the other name of a file keeps the old content, and the report says so.
func TestPatchBreaksLinks(t *testing.T) {
	p, _ := patchPlace(t, "", provider.Config{})
	p.put("f", "old\n")
	must(t, os.Link(p.W+"/f", p.W+"/g"))
	r, err := p.apply(patchOf(updateOp("f", "old", "new"), addOp("h", "x")), provider.ApplyOptions{})
	must(t, err)
	if r.Operations[0].LinksBroken != 1 || r.Operations[1].LinksBroken != 0 || p.get("g") != "old\n" {
		t.Errorf("%+v, %q", r, p.get("g"))
	}
}

// Handles are given back, whatever becomes of a patch.
func TestPatchGivesHandlesBack(t *testing.T) {
	p, _, patch := mixed(t, fastDir(t), provider.Config{})
	count := func() int {
		es, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(es)
	}
	failing := patchOf(updateOp("a", "a old", "x"), deleteOp("f"), moveOp("d", "n/d", "d old", "y"), updateOp("b", "no", "x"))
	stale := func(string) {}
	p.l.SetHook(func(at string) { stale(at) })
	for range 3 {
		_, err := p.apply(failing, provider.ApplyOptions{})
		code(t, err, provider.CodePatchMismatch)
	}
	before := count()
	for range 20 {
		_, err := p.apply(failing, provider.ApplyOptions{})
		code(t, err, provider.CodePatchMismatch)
		n := 0
		stale = func(at string) {
			if n++; at == "published" {
				stale = func(string) {}
				must(t, os.Rename(p.W+"/b", p.W+"/b2"))
			}
		}
		_, err = p.apply(patch, provider.ApplyOptions{})
		code(t, err, provider.CodeStaleVersion)
		must(t, os.Rename(p.W+"/b2", p.W+"/b"))
	}
	_, err := p.apply(patch, provider.ApplyOptions{})
	must(t, err)
	if now := count(); now > before {
		t.Errorf("%d handles, before %d", now, before)
	}
}

// A move has the mode of its source, also when somebody changes that of the file
// which it replaces in the last moment.
func TestPatchMoveKeepsItsMode(t *testing.T) {
	p, _ := patchPlace(t, "", provider.Config{})
	must(t, os.Chmod(p.put("f", "old\n"), 0o751))
	g := p.put("g", "there\n")
	p.l.SetHook(func(at string) {
		if at == "checked" && p.get("g") == "there\n" {
			must(t, os.Chmod(g, 0o600))
		}
	})
	_, err := p.apply(patchOf(moveOp("f", "g", "old", "new")), provider.ApplyOptions{Overwrite: true})
	must(t, err)
	if fi, err := os.Stat(g); err != nil || fi.Mode() != 0o751 || p.get("g") != "new\n" {
		t.Errorf("%v, %v, %q", fi.Mode(), err, p.get("g"))
	}
	p.only("g")
}

// One by one: a call that is cancelled half-way is FS_ABORTED, and its report
// has what was done.
func TestPatchCancelledOneByOne(t *testing.T) {
	p, _, patch := mixed(t, "", provider.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	locked := 0
	p.l.SetHook(func(at string) {
		if at == "locked" {
			if locked++; locked == 3 {
				cancel()
			}
		}
	})
	no := false
	_, err := p.l.ApplyPatch(ctx, p.f, patch, provider.ApplyOptions{Atomic: &no})
	code(t, err, provider.CodeAborted)
	r := reported(t, err)
	if got := states(r); got != "done done failed skipped skipped skipped skipped" || !r.Stopped {
		t.Errorf("%s, stopped %v", got, r.Stopped)
	}
	if p.get("a") != "a new\n" || p.get("b") != "b new\n" || p.get("d") != "d old\n" {
		t.Errorf("%q %q %q", p.get("a"), p.get("b"), p.get("d"))
	}
	p.only("a", "b", "d", "e", "f", "g", "bystander")
}
