package provider_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// keepPlace is a place whose policy keeps what is overwritten, with g, which is
// overwritten, and f, which moves there.
func keepPlace(t *testing.T) (*place, *bin) {
	t.Helper()
	base := fastDir(t)
	b := newBin(t, base)
	p := newPlace(t, base, provider.Config{Trash: b})
	var err error
	p.f, err = fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: p.W, KeepOverwritten: true})
	must(t, err)
	p.put("f", "new\n")
	p.put("g", "old\n")
	return p, b
}

// overwrites are the calls that make g "new\n"; moves tells whether f goes.
var overwrites = []struct {
	name  string
	moves bool
	do    func(ctx context.Context, p *place, g, f provider.Target) error
}{
	{"writeText", false, func(ctx context.Context, p *place, g, _ provider.Target) error {
		_, err := p.l.WriteText(ctx, p.f, g, "new\n", provider.WriteOptions{})
		return err
	}},
	{"moveFile", true, func(ctx context.Context, p *place, g, f provider.Target) error {
		_, err := p.l.MoveFile(ctx, p.f, f, g, provider.MoveOptions{})
		return err
	}},
	{"moveFile with hunks", true, func(ctx context.Context, p *place, g, f provider.Target) error {
		_, err := p.l.MoveFile(ctx, p.f, f, g, provider.MoveOptions{Codex: true})
		return err
	}},
	{"applyPatch", false, func(ctx context.Context, p *place, _, _ provider.Target) error {
		_, err := p.l.ApplyPatch(ctx, p.f, patchOf(addOp("g", "new")), provider.ApplyOptions{Overwrite: true})
		return err
	}},
	{"applyPatch, move", true, func(ctx context.Context, p *place, _, _ provider.Target) error {
		_, err := p.l.ApplyPatch(ctx, p.f, patchOf(moveOp("f", "g", "new", "new")), provider.ApplyOptions{Overwrite: true})
		return err
	}},
}

// The trash refuses when the new content has its name already: the old one
// comes back, the file itself, and f stays.
func TestKeepRefused(t *testing.T) {
	refusals := map[string]*record.Error{
		"failed":      {Code: record.CodeFailed, Outcome: record.Failed, Reason: record.ReasonOperationFailed, Op: "trash", Cause: unix.EROFS},
		"unavailable": {Code: record.CodeUnavailable, Outcome: record.Failed, Reason: record.ReasonBackend, Op: "trash"},
	}
	for _, o := range overwrites {
		for _, lacks := range []bool{false, true} {
			for why, refusal := range refusals {
				t.Run(fmt.Sprintf("%s/%s/lacks=%v", o.name, why, lacks), func(t *testing.T) {
					p, b := keepPlace(t)
					p.l.Lack(lacks, lacks, lacks)
					asked := 0
					b.refuse = func(path string) error {
						if asked++; path != p.W+"/g" {
							t.Errorf("asked for %s", path)
						}
						return refusal
					}
					// The number of links is another one when f has two names for
					// a moment; it is the same again afterwards.
					before := tree(t, p.W, true)
					err := o.do(t.Context(), p, p.target("g"), p.target("f"))
					code(t, err, provider.Code(refusal.Code))
					if asked == 0 {
						t.Error("the trash was not asked")
					}
					sameTree(t, tree(t, p.W, true), before)
					if why == "unavailable" && !strings.Contains(err.Error(), "the policy keeps what is overwritten") {
						t.Errorf("%v does not say why", err)
					}
				})
			}
		}
	}
}

// Nothing is overwritten, and nothing staged, where there is no trash; where the
// trash is off, or the place temporary, nothing is kept.
func TestKeepWithoutTrash(t *testing.T) {
	for _, how := range []string{"no trash", "off", "temporary"} {
		for _, o := range overwrites {
			t.Run(how+"/"+o.name, func(t *testing.T) {
				p, b := keepPlace(t)
				c := provider.Config{Cwd: p.W, Trash: b, TrashOff: how == "off"}
				switch how {
				case "no trash":
					c.Trash = nil
				case "temporary":
					c.TempDirs = []string{p.O}
					for _, n := range []string{"f", "g"} {
						must(t, os.Rename(p.W+"/"+n, p.O+"/"+n))
					}
					p.W, c.Cwd = p.O, p.O
				}
				var err error
				if how == "temporary" {
					// Outside of every writable root.
					p.f, err = fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: p.W + "/../ws", KeepOverwritten: true})
					must(t, err)
				}
				p.l, err = provider.NewLocal(c)
				must(t, err)
				staged := false
				p.l.SetHook(func(at string) { staged = staged || at == "staged" })
				before := tree(t, p.W, true)
				err = o.do(t.Context(), p, p.target("g"), p.target("f"))
				if how == "no trash" {
					code(t, err, record.CodeUnavailable)
					sameTree(t, tree(t, p.W, true), before)
					if staged {
						t.Error("something was staged")
					}
					return
				}
				must(t, err)
				if got := b.has(t); len(got) != 0 || p.get("g") != "new\n" {
					t.Errorf("in the trash %q, g is %q", got, p.get("g"))
				}
			})
		}
	}
}

// Somebody changes the new file while the trash refuses the old one. Theirs
// stays, and the old one is kept under the name that the error tells.
func TestKeepRefusedAndChanged(t *testing.T) {
	for _, o := range overwrites {
		for name, change := range map[string]func(p *place){
			"renamed over": func(p *place) {
				must(t, os.WriteFile(p.O+"/n", []byte("theirs\n"), 0o644))
				must(t, os.Rename(p.O+"/n", p.W+"/g"))
			},
			"removed": func(p *place) { must(t, os.Remove(p.W+"/g")) },
		} {
			t.Run(o.name+"/"+name, func(t *testing.T) {
				p, b := keepPlace(t)
				b.refuse = func(string) error {
					change(p)
					return &record.Error{Code: record.CodeFailed, Outcome: record.Failed, Op: "trash"}
				}
				err := o.do(t.Context(), p, p.target("g"), p.target("f"))
				if err == nil {
					t.Fatal("no error")
				}
				want := "theirs\n"
				if name == "removed" {
					want = "error: open " + p.W + "/g: no such file or directory"
				}
				if got := p.get("g"); got != want {
					t.Errorf("g is %q", got)
				}
				if strings.HasPrefix(o.name, "applyPatch") {
					return // its report tells that it is left, as of any patch
				}
				es, rerr := os.ReadDir(p.W)
				must(t, rerr)
				kept := false
				for _, e := range es {
					kept = kept || strings.Contains(err.Error(), e.Name()) && strings.HasPrefix(e.Name(), provider.TempPrefix) && p.get(e.Name()) == "old\n"
				}
				if !kept {
					t.Errorf("%v, and there is %v", err, es)
				}
				if o.moves && p.get("f") != "new\n" {
					t.Errorf("f is %q", p.get("f"))
				}
			})
		}
	}
}

// A trash that does not know what became of the file: the new content is there,
// and the error says that the outcome is unknown.
func TestKeepUnknown(t *testing.T) {
	for _, o := range overwrites[:3] {
		t.Run(o.name, func(t *testing.T) {
			p, b := keepPlace(t)
			b.refuse = func(string) error {
				return &record.Error{Code: record.CodeUnknown, Outcome: record.Unknown, Reason: record.ReasonTimeout, Op: "trash"}
			}
			err := o.do(t.Context(), p, p.target("g"), p.target("f"))
			code(t, err, record.CodeUnknown)
			if p.get("g") != "new\n" {
				t.Errorf("g is %q", p.get("g"))
			}
			// It was not taken by this one: then it must not be lost.
			kept := 0
			es, rerr := os.ReadDir(p.W)
			must(t, rerr)
			for _, e := range es {
				if p.get(e.Name()) == "old\n" {
					kept++
				}
			}
			if kept != 1 {
				t.Errorf("kept %d times: %v", kept, es)
			}
		})
	}
}

// The trash takes what the first operation overwrites and refuses what the
// second one does: both come back.
func TestKeepPatchRefusesTheSecond(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		p, b := keepPlace(t)
		p.l.Lack(lacks, lacks, lacks)
		p.put("h", "old too\n")
		before := tree(t, p.W, false)
		b.refuse = func(path string) error {
			if strings.HasSuffix(path, "/h") {
				return &record.Error{Code: record.CodeFailed, Outcome: record.Failed, Op: "trash"}
			}
			return nil
		}
		_, err := p.apply(patchOf(addOp("g", "new"), addOp("h", "new")), provider.ApplyOptions{Overwrite: true})
		code(t, err, record.CodeFailed)
		sameTree(t, tree(t, p.W, false), before)
		r := reported(t, err)
		if got := states(r); got != "undone failed" || r.Operations[0].Trashed == nil {
			t.Errorf("%s, %+v", got, r.Operations[0].Trashed)
		}
	}
}
