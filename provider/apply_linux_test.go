package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// mixed is a place and a patch with an operation of every kind: a and b are
// updated, new/c is made in a directory that is made, d is moved to new/d, e
// is replaced, f and g are deleted.
func mixed(t *testing.T, base string, c provider.Config) (*place, *bin, string) {
	t.Helper()
	p, b := patchPlace(t, base, c)
	for _, n := range strings.Split("abdefg", "") {
		p.put(n, n+" old\n")
	}
	p.put("bystander", "x")
	return p, b, patchOf(
		updateOp("a", "a old", "a new"), updateOp("b", "b old", "b new"), addOp("new/c", "c new"),
		moveOp("d", "new/d", "d old", "d new"), deleteOp("e"), addOp("e", "e new"), deleteOp("f"), deleteOp("g"),
	)
}

func TestPatchAppliesAll(t *testing.T) {
	p, b, patch := mixed(t, "", provider.Config{})
	must(t, os.Chmod(p.W+"/d", 0o751))
	r, err := p.apply(patch, provider.ApplyOptions{})
	must(t, err)
	if states(r) != "done done done done done done done" {
		t.Errorf("%s", states(r))
	}
	for n, want := range map[string]string{"a": "a new\n", "b": "b new\n", "new/c": "c new\n", "new/d": "d new\n", "e": "e new\n", "bystander": "x"} {
		if p.get(n) != want {
			t.Errorf("%s: %q", n, p.get(n))
		}
	}
	p.only("a", "b", "new", "e", "bystander")
	if fi, err := os.Stat(p.W + "/new/d"); err != nil || fi.Mode() != 0o751 {
		t.Errorf("the mode did not go with the move: %v %v", fi.Mode(), err)
	}
	if got := b.has(t); len(got) != 2 || got[0] != "f old\n" || got[1] != "g old\n" {
		t.Errorf("in the trash: %q", got)
	}
	const want = "Success. Updated the following files:\nA new/c\nM a\nM b\nM new/d\nM e\nD f\nD g\n"
	if r.Summary != want {
		t.Errorf("%q", r.Summary)
	}
	for i, kind := range []string{"update", "update", "add", "move", "replace", "delete", "delete"} {
		o := r.Operations[i]
		if o.Kind != kind || (o.Version == "") != (kind == "delete") || (o.Trashed != nil) != (kind == "delete") ||
			(o.Before == nil) != (kind == "add") || (o.After == nil) != (kind == "delete") {
			t.Errorf("%d: %+v", i, o)
		}
		if kind != "delete" {
			name := o.Path
			if kind == "move" {
				name = o.Destination
			}
			_, err := p.l.WriteText(t.Context(), p.f, p.target(name), "again", ifVersion(o.Version))
			must(t, err)
		}
	}
}

// points runs a patch once and gives the names of the points that it passes.
func points(t *testing.T) []string {
	p, _, patch := mixed(t, fastDir(t), provider.Config{})
	var out []string
	p.l.SetHook(func(at string) { out = append(out, at) })
	_, err := p.apply(patch, provider.ApplyOptions{})
	must(t, err)
	return out
}

// A call that is cancelled changes nothing before the first file is published,
// and is done after it.
func TestPatchCancelledAtEveryPoint(t *testing.T) {
	all := points(t)
	published := 0
	for n, name := range all {
		t.Run(fmt.Sprintf("%02d-%s", n, name), func(t *testing.T) {
			p, b, patch := mixed(t, fastDir(t), provider.Config{})
			before := tree(t, p.W, true)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := 0
			p.l.SetHook(func(string) {
				if seen == n {
					cancel()
				}
				seen++
			})
			_, err := p.l.ApplyPatch(ctx, p.f, patch, provider.ApplyOptions{})
			if err == nil {
				published++
				if seen != len(all) || p.get("a") != "a new\n" {
					t.Errorf("done, but %d points and %q", seen, p.get("a"))
				}
				return
			}
			code(t, err, provider.CodeAborted)
			reported(t, err)
			sameTree(t, tree(t, p.W, true), before)
			if got := b.has(t); len(got) != 0 {
				t.Errorf("in the trash: %q", got)
			}
		})
	}
	if published == 0 || published == len(all) {
		t.Errorf("%d of %d were done all the same", published, len(all))
	}
}

// A third file of five that somebody changes after it was looked at.
func TestPatchThirdOfFiveStale(t *testing.T) {
	for name, change := range map[string]func(f string) error{
		"rewritten": func(f string) error { return os.WriteFile(f, []byte("foreign\n"), 0o644) },
		"same size": func(f string) error { return os.WriteFile(f, []byte("2 xxx\n"), 0o644) },
		"renamed over": func(f string) error {
			if err := os.WriteFile(f+".tmp", []byte("foreign\n"), 0o644); err != nil {
				return err
			}
			return os.Rename(f+".tmp", f)
		},
		"removed":   os.Remove,
		"directory": func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o755)) },
	} {
		// How many files are published when it happens: 0 is before the first,
		// 2 is before the third, 3 is right at the exchange of the third.
		for _, when := range []int{0, 2, 3} {
			for _, lacks := range []bool{false, true} {
				if lacks && when == 3 {
					continue // without an exchange the look right before it is the last one
				}
				t.Run(fmt.Sprintf("%s/%d/lacks=%v", name, when, lacks), func(t *testing.T) {
					p, _ := patchPlace(t, fastDir(t), provider.Config{})
					p.l.Lack(lacks, lacks, lacks)
					var ops []string
					for i := range 5 {
						p.put(fmt.Sprint(i), fmt.Sprintf("%d old\n", i))
						ops = append(ops, updateOp(fmt.Sprint(i), fmt.Sprintf("%d old", i), fmt.Sprintf("%d new", i)))
					}
					before := tree(t, p.W, true)
					published, done := 0, false
					p.l.SetHook(func(at string) {
						if at == "published" {
							published++
						}
						want := map[int]string{0: "staging", 2: "publishing", 3: "checked"}[when]
						if !done && at == want && published == min(when, 2) {
							done = true
							must(t, change(p.W+"/2"))
						}
					})
					r, err := p.apply(patchOf(ops...), provider.ApplyOptions{})
					if err == nil {
						t.Fatalf("applied: %+v", r)
					}
					r = reported(t, err)
					if when > 0 {
						if got := states(r); got != "undone undone failed skipped skipped" {
							t.Errorf("states %s", got)
						}
						code(t, err, provider.CodeStaleVersion)
					}
					got := tree(t, p.W, true)
					for _, n := range []string{"0", "1", "3", "4"} {
						if got[n] != before[n] {
							t.Errorf("%s: %s, before: %s", n, got[n], before[n])
						}
					}
					if got["2"] == before["2"] || len(got)-len(before) != map[bool]int{true: -1}[name == "removed"] {
						t.Errorf("%v", got)
					}
				})
			}
		}
	}
}

// What others did to a file that was published already is theirs: it stays.
func TestPatchForeignChangeBeforeUndo(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f string) error
		want   string
	}{
		"rewritten": {func(f string) error { return os.WriteFile(f, []byte("foreign\n"), 0o644) }, "foreign\n"},
		"same size": {func(f string) error { return os.WriteFile(f, []byte("0 xxx\n"), 0o644) }, "0 xxx\n"},
		"renamed over": {func(f string) error {
			return errors.Join(os.WriteFile(f+".tmp", []byte("foreign\n"), 0o644), os.Rename(f+".tmp", f))
		}, "foreign\n"},
		"removed": {os.Remove, ""},
	} {
		for _, kind := range []string{"update", "add", "update/copied", "update/late", "add/late"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				kind, how, _ := strings.Cut(kind, "/")
				p, _ := patchPlace(t, fastDir(t), provider.Config{})
				p.l.Lack(how == "copied", how == "copied", how == "copied")
				first := addOp("0", "0 new")
				if kind == "update" {
					p.put("0", "0 old\n")
					first = updateOp("0", "0 old", "0 new")
				}
				p.put("1", "1 old\n")
				p.put("2", "2 old\n")
				published, undoing := 0, 0
				p.l.SetHook(func(at string) {
					switch at {
					case "published":
						if published++; published == 2 {
							must(t, os.WriteFile(p.W+"/2", []byte("stale\n"), 0o644))
							if how != "late" {
								must(t, tt.change(p.W+"/0"))
							}
						}
					case "undoing": // right after the look at it: the second is 0
						if undoing++; undoing == 2 && how == "late" {
							must(t, tt.change(p.W+"/0"))
						}
					}
				})
				_, err := p.apply(patchOf(first, updateOp("1", "1 old", "1 new"), updateOp("2", "2 old", "2 new")), provider.ApplyOptions{})
				code(t, err, provider.CodeStaleVersion)
				r := reported(t, err)
				want := "left undone failed"
				if name == "removed" && kind == "add" {
					want = "undone undone failed" // nothing is there, as before
				}
				if states(r) != want {
					t.Errorf("states %s, want %s", states(r), want)
				}
				if o := r.Operations[0]; o.State == provider.ApplyLeft && (o.Failure == nil || !strings.Contains(o.Failure.Message, "somebody else")) {
					t.Errorf("%+v", o.Failure)
				}
				names := []string{"0", "1", "2"}
				if tt.want == "" {
					names = names[1:]
				} else if p.get("0") != tt.want {
					t.Errorf("%q", p.get("0"))
				}
				if p.get("1") != "1 old\n" || p.get("2") != "stale\n" {
					t.Errorf("%q %q", p.get("1"), p.get("2"))
				}
				p.only(names...)
			})
		}
	}
}

// The disk fills up while the third new content is staged.
func TestPatchFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to mount a small file system")
	}
	p, _ := patchPlace(t, "", provider.Config{})
	d := p.W + "/t"
	must(t, os.Mkdir(d, 0o755))
	if err := unix.Mount("none", d, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIP: cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(d, unix.MNT_DETACH) })
	p.put("t/a", "a old\n")
	p.put("t/b", "b old\n")
	before := tree(t, p.W, true)
	big := strings.Repeat("b", 30_000)
	patch := patchOf(updateOp("t/a", "a old", "a new"), addOp("t/new/c", big), addOp("t/new/d", big), updateOp("t/b", "b old", big))
	for _, lacks := range []bool{false, true} {
		p.l.Lack(lacks, lacks, lacks)
		for _, atomic := range []bool{true, false} {
			r, err := p.apply(patch, provider.ApplyOptions{Atomic: &atomic})
			if atomic {
				code(t, err, provider.CodeIOError)
				if !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%v", err)
				}
				sameTree(t, tree(t, p.W, true), before)
				r = reported(t, err)
			} else if err != nil || !r.Stopped || p.get("t/a") != "a new\n" || p.get("t/b") != "b old\n" {
				t.Errorf("%+v, %v", r, err)
			}
			f := r.Operations[len(r.Operations)-1].Failure
			for _, o := range r.Operations {
				if o.State == provider.ApplyFailed {
					f = o.Failure
				}
			}
			if f == nil || f.Code != provider.CodeIOError {
				t.Errorf("%s: %+v", states(r), f)
			}
			if !atomic {
				must(t, os.RemoveAll(d+"/new"))
				p.put("t/a", "a old\n")
				before = tree(t, p.W, true)
			}
		}
	}
}
