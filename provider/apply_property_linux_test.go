package provider_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/provider"
)

// randomPatch makes a valid patch for the files in now, by path, and changes
// now to what they are after it. It also gives the paths that are touched.
func randomPatch(r *rand.Rand, now map[string]string) (text string, touched []string) {
	names := []string{"a", "b", "c", "d/a", "d/b", "n/a", "n/m/b", "o/c"}
	var ops []string
	for n := range 2 + r.IntN(7) {
		next := fmt.Sprintf("line %d.%d", n, r.IntN(1000))
		path := names[r.IntN(len(names))]
		old, exists := now[path]
		old = strings.TrimSuffix(old, "\n")
		to := names[r.IntN(len(names))]
		_, taken := now[to]
		switch {
		case !exists:
			ops = append(ops, addOp(path, next))
			now[path] = next + "\n"
		case r.IntN(3) == 0 && !taken:
			ops = append(ops, moveOp(path, to, old, next))
			delete(now, path)
			now[to] = next + "\n"
			touched = append(touched, to)
		case r.IntN(4) == 0:
			ops = append(ops, deleteOp(path))
			delete(now, path)
		default:
			ops = append(ops, updateOp(path, old, next))
			now[path] = next + "\n"
		}
		touched = append(touched, path)
	}
	return patchOf(ops...), touched
}

// TestPatchProperty applies random patches. Without a failure the files are
// what doing one operation after the other makes of them, also when they are
// committed one by one. With a failure at a random place the tree is what it
// was, to the inode.
func TestPatchProperty(t *testing.T) {
	rounds := 200
	if os.Getenv("WATTLE_SOAK") != "" {
		rounds = 2000
	}
	if testing.Short() {
		rounds = 40
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	failed := map[string]int{}
	for n := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		p, _ := patchPlace(t, fastDir(t), provider.Config{})
		lacks := r.IntN(4) == 0
		p.l.Lack(lacks, lacks, lacks)
		start := map[string]string{}
		must(t, os.Mkdir(p.W+"/d", 0o755))
		must(t, os.Mkdir(p.W+"/n", 0o755))
		for _, name := range []string{"a", "b", "d/a", "d/b"} {
			if r.IntN(4) > 0 {
				start[name] = name + " start\n"
				p.put(name, start[name])
			}
		}
		if a, ok := start["a"]; ok && r.IntN(3) == 0 {
			must(t, os.Link(p.W+"/a", p.W+"/c"))
			start["c"] = a
		}
		want := maps.Clone(start)
		patch, touched := randomPatch(r, want)
		before := tree(t, p.W, true)
		how := []string{"misfit", "stale", "guard", "none"}[r.IntN(4)]
		o := provider.ApplyOptions{}
		victim := touched[r.IntN(len(touched))]
		restore := func() {}
		applied := patch
		switch how {
		case "misfit":
			ops := strings.TrimSuffix(patch, "*** End Patch\n")
			applied = ops + updateOp("bystander", "no", "yes") + "*** End Patch\n"
		case "guard":
			o.Guards = &refusing{path: filepath.Join(p.W, victim), after: r.IntN(2)}
		case "stale":
			done := false
			p.l.SetHook(func(at string) {
				if at != "publishing" && at != "removing" && at != "trashing" || done {
					return
				}
				done = true
				restore = disturb(t, filepath.Join(p.W, victim))
			})
		case "none":
			atomic := r.IntN(2) == 0
			o.Atomic = &atomic
		}
		rep, err := p.apply(applied, o)
		restore()
		for _, made := range []string{"n/m", "o"} { // what a foreign file kept alive
			if _, ok := before[made]; !ok && how == "stale" && err != nil {
				os.Remove(filepath.Join(p.W, made))
			}
		}
		if how == "none" && (err != nil || rep.Stopped) {
			t.Fatalf("round %d: %v, %s\n%s", n, err, states(rep), patch)
		}
		if err != nil {
			failed[how]++
			after := tree(t, p.W, true)
			if !maps.Equal(after, before) {
				t.Errorf("round %d, %s of %s, lacks=%v: %v\n%s", n, how, victim, lacks, err, patch)
				sameTree(t, after, before)
				return
			}
			continue
		}
		failed["not at all"]++
		got := map[string]string{}
		for name := range tree(t, p.W, false) {
			if fi, err := os.Stat(filepath.Join(p.W, name)); err == nil && fi.Mode().IsRegular() {
				got[name] = p.get(name)
			}
		}
		if how == "stale" { // the victim, and a hard link to it, were disturbed in time
			for _, name := range []string{victim, "a", "c"} {
				if name == victim || got[name] == "foreign" {
					delete(got, name)
					delete(want, name)
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("round %d, %s, lacks=%v: %v\nwant %v\nfrom %v\n%s", n, how, lacks, got, want, start, patch)
			return
		}
	}
	t.Logf("failed: %v", failed)
	for _, how := range []string{"misfit", "stale", "guard"} {
		if failed[how] == 0 {
			t.Errorf("never failed by %s", how)
		}
	}
}

// disturb changes the file at path, or makes one, so that a patch that has
// looked at it must fail. What it returns makes all as it was.
func disturb(t *testing.T, path string) (restore func()) {
	fi, err := os.Stat(path)
	if err != nil {
		if os.WriteFile(path, []byte("foreign"), 0o644) != nil {
			return func() {}
		}
		return func() { os.Remove(path) }
	}
	old, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte("foreign"), 0o644))
	return func() {
		if now, err := os.Stat(path); err == nil && os.SameFile(fi, now) {
			must(t, os.WriteFile(path, old, 0o644))
			must(t, os.Chtimes(path, fi.ModTime(), fi.ModTime()))
		}
	}
}

// refusing are guards that refuse one path, when it is asked for the first or
// the second time.
type refusing struct {
	path     string
	after    int
	observed []string
}

func (g *refusing) ask(t provider.Target) error {
	if string(t.TargetKey) != g.path {
		return nil
	}
	if g.after--; g.after >= 0 {
		return nil
	}
	return &provider.Error{Code: provider.CodeNotObserved, Op: "guard", Path: t.DisplayPath, Detail: "refused"}
}

func (g *refusing) WriteIntent(t provider.Target) (*provider.WriteIntent, error) {
	return nil, g.ask(t)
}
func (g *refusing) EditIntent(t provider.Target) (*provider.VersionGuard, error) {
	return nil, g.ask(t)
}
func (g *refusing) DeleteIntent(t provider.Target) (*provider.VersionGuard, error) {
	return nil, g.ask(t)
}
func (g *refusing) Observed(t provider.Target, o provider.Observation) {
	what := " absent"
	if o.Version != "" {
		what = " present"
	}
	g.observed = append(g.observed, filepath.Base(string(t.TargetKey))+what)
}

// policy is read-before-write: it knows what it was told and nothing else.
type policy struct {
	known map[provider.TargetKey]provider.Observation
	asked []string
}

var errUnseen = errors.New("unseen")

func (g *policy) WriteIntent(t provider.Target) (*provider.WriteIntent, error) {
	g.asked = append(g.asked, "write "+filepath.Base(string(t.TargetKey)))
	if o := g.known[t.TargetKey]; o.Version != "" {
		return &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: o.Version}, nil
	}
	return &provider.WriteIntent{Kind: provider.CreateIfAbsent}, nil
}

func (g *policy) version(kind string, t provider.Target) (*provider.VersionGuard, error) {
	g.asked = append(g.asked, kind+" "+filepath.Base(string(t.TargetKey)))
	if o := g.known[t.TargetKey]; o.Version != "" {
		return &provider.VersionGuard{Version: o.Version}, nil
	}
	return nil, &provider.Error{Code: provider.CodeNotObserved, Op: "guard", Cause: errUnseen}
}

func (g *policy) EditIntent(t provider.Target) (*provider.VersionGuard, error) {
	return g.version("edit", t)
}
func (g *policy) DeleteIntent(t provider.Target) (*provider.VersionGuard, error) {
	return g.version("delete", t)
}
func (g *policy) Observed(t provider.Target, o provider.Observation) { g.known[t.TargetKey] = o }

// The observation policy: what was not read is refused, what the patch itself
// did needs no reading, and what it did is known afterwards.
func TestPatchGuards(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		t.Run(fmt.Sprintf("atomic=%v", atomic), func(t *testing.T) {
			p, _ := patchPlace(t, "", provider.Config{})
			p.put("f", "f old\n")
			p.put("g", "g old\n")
			before := tree(t, p.W, true)
			g := &policy{known: map[provider.TargetKey]provider.Observation{}}
			o := provider.ApplyOptions{Atomic: &atomic, Guards: g}
			patch := patchOf(addOp("n", "1"), updateOp("n", "1", "2"), updateOp("f", "f old", "f new"), deleteOp("g"))
			_, err := p.apply(patch, o)
			code(t, err, provider.CodeNotObserved)
			if !errors.Is(err, errUnseen) {
				t.Errorf("%v", err)
			}
			sameTree(t, tree(t, p.W, true), before)
			if len(g.known) != 0 {
				t.Errorf("observed %v", g.known)
			}
			for _, n := range []string{"f", "g"} {
				r, err := p.l.ReadText(t.Context(), p.f, p.target(n), provider.ReadOptions{})
				must(t, err)
				g.known[p.target(n).TargetKey] = provider.Observation{Version: r.Version}
			}
			o.DryRun = true
			_, err = p.apply(patch, o)
			must(t, err)
			if len(g.known) != 2 {
				t.Errorf("a dry run observed: %v", g.known)
			}
			o.DryRun, g.asked = false, nil
			_, err = p.apply(patch, o)
			must(t, err)
			if !slices.Equal(g.asked[:3], []string{"write n", "edit f", "delete g"}) || len(g.asked) < 6 {
				t.Errorf("asked %v", g.asked)
			}
			if o := g.known[provider.TargetKey(p.W+"/g")]; o.Version != "" {
				t.Errorf("g is known as %v", o)
			}
			// A chain of own patches needs no reading, and a foreign change does.
			_, err = p.apply(patchOf(updateOp("n", "2", "3"), updateOp("f", "f new", "f newer")), o)
			must(t, err)
			must(t, os.WriteFile(p.W+"/f", []byte("f newer\nforeign\n"), 0o644))
			r, err := p.apply(patchOf(updateOp("n", "3", "4"), updateOp("f", "f newer", "x")), o)
			if atomic {
				code(t, err, provider.CodeStaleVersion)
			} else if err != nil || !r.Stopped || r.Operations[1].Failure.Code != provider.CodeStaleVersion {
				t.Errorf("%+v, %v", r, err)
			}
			if want := map[bool]string{true: "3\n", false: "4\n"}[atomic]; p.get("n") != want || p.get("f") != "f newer\nforeign\n" {
				t.Errorf("%q %q", p.get("n"), p.get("f"))
			}
		})
	}
}
