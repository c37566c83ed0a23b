package provider_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// The trash takes the first file and not the second: all comes back.
func TestPatchTrashRefusesTheSecond(t *testing.T) {
	p, b, patch := mixed(t, "", provider.Config{})
	b.refuse = func(path string) error {
		if strings.HasSuffix(path, "/g") {
			return &record.Error{Code: record.CodeFailed, Outcome: record.Failed, Reason: record.ReasonOperationFailed, Op: "put"}
		}
		return nil
	}
	before := tree(t, p.W, false)
	inode := tree(t, p.W, true)
	_, err := p.apply(patch, provider.ApplyOptions{})
	code(t, err, record.CodeFailed)
	sameTree(t, tree(t, p.W, false), before)
	after := tree(t, p.W, true)
	for n, what := range inode {
		// f is in the trash too, under a second name of the one file.
		if n != "f" && n != "." && after[n] != what {
			t.Errorf("%s: %s, before: %s", n, after[n], what)
		}
	}
	r := reported(t, err)
	if got := states(r); got != "undone undone undone undone undone undone failed" {
		t.Errorf("%s", got)
	}
	if r.Operations[5].Trashed == nil {
		t.Error("the report does not say that f is in the trash")
	}
}

func TestPatchWithoutTrash(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	p.put("a", "a old\n")
	p.put("f", "f old\n")
	before := tree(t, p.W, true)
	patch := patchOf(updateOp("a", "a old", "a new"), deleteOp("f"))
	for _, compat := range []string{"", provider.CompatCodex} {
		for _, dry := range []bool{true, false} {
			r, err := p.apply(patch, provider.ApplyOptions{DryRun: dry, Compat: compat})
			if compat == "" {
				code(t, err, record.CodeUnavailable)
				sameTree(t, tree(t, p.W, true), before)
			} else if err != nil || !r.Stopped || r.Operations[1].Failure.Code != record.CodeUnavailable {
				t.Errorf("%+v, %v", r, err)
			}
			if p.get("f") != "f old\n" {
				t.Errorf("%q", p.get("f"))
			}
		}
	}
	p.put("a", "a old\n")
	r, err := p.apply(patch, provider.ApplyOptions{Permanent: true})
	must(t, err)
	if r.Operations[1].Trashed != nil || p.get("a") != "a new\n" {
		t.Errorf("%+v", r)
	}
	p.only("a")
}

// C11: a delete in a patch goes into the trash, with mode and time.
func TestPatchDeleteC11(t *testing.T) {
	p, _ := patchPlace(t, "", provider.Config{})
	p.put("f", "f old\n")
	must(t, os.Chmod(p.W+"/f", 0o640))
	fi, err := os.Stat(p.W + "/f")
	must(t, err)
	r, err := p.apply(patchOf(deleteOp("f")), provider.ApplyOptions{})
	must(t, err)
	p.only()
	e := r.Operations[0].Trashed
	if e == nil || e.OriginalPath != p.W+"/f" {
		t.Fatalf("%+v", r.Operations[0])
	}
	now, err := os.Stat(e.TrashDir + "/files/" + e.Name)
	must(t, err)
	if !os.SameFile(fi, now) || now.Mode() != 0o640 || !now.ModTime().Equal(fi.ModTime()) {
		t.Errorf("%v %v", now.Mode(), now.ModTime())
	}
}

// E10: both ends of a move are fenced, and nothing happens at all.
func TestPatchEscapesE10(t *testing.T) {
	p, b := patchPlace(t, "", provider.Config{})
	evil := p.W + "-evil"
	must(t, os.Mkdir(evil, 0o755))
	must(t, os.WriteFile(evil+"/x", []byte("x old\n"), 0o644))
	must(t, os.Symlink(evil, p.W+"/l"))
	p.put("f", "f old\n")
	p.put("g", "g old\n")
	before, outside := tree(t, p.W, true), tree(t, evil, true)
	for name, op := range map[string]string{
		"move out (E10)":          moveOp("f", "../ws-evil/g", "f old", "f new"),
		"move out, absolute":      moveOp("f", evil+"/a/b/g", "f old", "f new"),
		"move out through a link": moveOp("f", "l/g", "f old", "f new"),
		"move in":                 moveOp("l/x", "x", "x old", "x new"),
		"add":                     addOp("l/new/y", "y"),
		"update":                  updateOp("../ws-evil/x", "x old", "x new"),
		"delete":                  deleteOp("l/x"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []provider.ApplyOptions{{}, {Compat: provider.CompatCodex}, {DryRun: true}, {Atomic: new(bool), Overwrite: true}} {
				_, err := p.apply(patchOf(updateOp("g", "g old", "g new"), op), o)
				code(t, err, provider.CodeSandboxDenied)
				var d *fence.Denial
				if !errors.As(err, &d) {
					t.Errorf("no denial in %v", err)
				}
				if got := states(reported(t, err)); got != "skipped failed" {
					t.Errorf("%s", got)
				}
				sameTree(t, tree(t, p.W, true), before)
				sameTree(t, tree(t, evil, true), outside)
			}
		})
	}
	if got := b.has(t); len(got) != 0 {
		t.Errorf("in the trash: %q", got)
	}
}
