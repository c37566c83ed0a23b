package provider_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// insideText is what files hold that tries change and move.
const insideText = "inside\n"

// file is a file that is fought for; it exists, but for what others do.
func (a *arena) file(i int) string {
	if a.last {
		return "g/a/f"
	}
	n := fmt.Sprint("x", i%raceSlots)
	a.put1(a.inner, n)
	return "g/a/" + n
}

// tree is the like of file for a directory with entries.
func (a *arena) tree(i int) string {
	if a.last {
		return "g/a/t"
	}
	n := fmt.Sprint("t", i%raceSlots)
	makeTree(a.t, a.inner, n, insideText)
	return "g/a/" + n
}

// free is a name with nothing there, in the place that is fought for.
func (a *arena) free(i int) string {
	n := fmt.Sprint("n", i%raceSlots)
	_ = a.inner.RemoveAll(n)
	return "g/a/" + n
}

// calmFile, calmTree and calmFree are at the other end of moves and copies.
func (a *arena) calmFile(i int) string {
	n := fmt.Sprint("x", i%raceSlots)
	a.put1(a.calm, n)
	return "s/" + n
}

func (a *arena) calmTree(i int) string {
	n := fmt.Sprint("t", i%raceSlots)
	makeTree(a.t, a.calm, n, insideText)
	return "s/" + n
}

func (a *arena) calmFree(i int) string {
	n := fmt.Sprint("n", i%raceSlots)
	_ = a.calm.RemoveAll(n)
	return "s/" + n
}

func (a *arena) put1(in *os.Root, name string) {
	if err := in.WriteFile(name, []byte(insideText), 0o644); err != nil && !gone(err) {
		a.t.Errorf("cannot go on with the race: %v", err)
	}
}

func (a *arena) abs(name string) string { return a.W + "/" + name }

// alike replaces a text by itself, so that a file can be changed for ever.
var alike = []patch.Hunk{{OldLines: []string{"inside"}, NewLines: []string{"inside"}, Kinds: "-+"}}

// raceOp is one way to use a primitive.
type raceOp struct {
	name string
	do   func(ctx context.Context, a *arena, i int) error
}

func pathOp(name string, o provider.DeletePathOptions, which func(*arena, int) string) raceOp {
	return raceOp{name, func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.DeletePath(ctx, a.f, a.abs(which(a, i)), o)
		return err
	}}
}

func fileOp(name string, o provider.DeleteOptions) raceOp {
	return raceOp{name, func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.DeleteFile(ctx, a.f, at(a.place, a.file(i)), o)
		return err
	}}
}

type nameOf = func(*arena, int) string

func moveFileOp(name string, hunks []patch.Hunk, from, to nameOf) raceOp {
	return raceOp{name, func(ctx context.Context, a *arena, i int) error {
		o, err := a.l.MoveFile(ctx, a.f, at(a.place, from(a, i)), at(a.place, to(a, i)), provider.MoveOptions{Hunks: hunks})
		if f := o.SourceFailure; f != nil {
			return &provider.Error{Code: f.Code, Op: "moveFile, source", Detail: f.Message}
		}
		return err
	}}
}

func movePathOp(name string, over bool, from, to nameOf) raceOp {
	return raceOp{name, func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.MovePath(ctx, a.f, a.abs(from(a, i)), a.abs(to(a, i)), provider.MovePathOptions{Overwrite: over})
		return err
	}}
}

func copyPathOp(name string, over bool, from, to nameOf) raceOp {
	return raceOp{name, func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.CopyPath(ctx, a.f, a.abs(from(a, i)), a.abs(to(a, i)), provider.CopyPathOptions{Overwrite: over, Recursive: true})
		return err
	}}
}

func patchOp(name string, text func(a *arena, i int) string) raceOp {
	return raceOp{name, func(ctx context.Context, a *arena, i int) error {
		text := "*** Begin Patch\n" + strings.ReplaceAll(text(a, i), "W/", a.W+"/") + "*** End Patch\n"
		_, err := a.l.ApplyPatch(ctx, a.f, text, provider.ApplyOptions{Permanent: i%2 == 0})
		return err
	}}
}

// raceOps are all mutating primitives, each at every end that it has.
var raceOps = []raceOp{
	{"writeText", func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.WriteText(ctx, a.f, at(a.place, a.file(i)), insideText, provider.WriteOptions{})
		return err
	}},
	{"writeText, create", func(ctx context.Context, a *arena, i int) error {
		o := provider.WriteOptions{Expected: &provider.WriteIntent{Kind: provider.CreateIfAbsent}}
		_, err := a.l.WriteText(ctx, a.f, at(a.place, a.free(i)), insideText, o)
		return err
	}},
	{"writeText, new parents", func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.WriteText(ctx, a.f, at(a.place, a.free(i)+"/m/f"), insideText, provider.WriteOptions{})
		return err
	}},
	{"writeText, version", func(ctx context.Context, a *arena, i int) error {
		name := a.file(i)
		c, err := a.l.ReadText(ctx, a.f, at(a.place, name), provider.ReadOptions{})
		if err == nil {
			_, err = a.l.WriteText(ctx, a.f, at(a.place, name), insideText, ifVersion(c.Version))
		}
		return err
	}},
	{"editText", func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.EditText(ctx, a.f, at(a.place, a.file(i)), provider.EditRequest{OldString: "side", NewString: "side"}, provider.EditOptions{})
		return err
	}},
	{"patchText", func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.PatchText(ctx, a.f, at(a.place, a.file(i)), alike, provider.PatchOptions{})
		return err
	}},
	patchOp("applyPatch, update and move", func(a *arena, i int) string {
		return fmt.Sprintf("*** Update File: W/%s\n@@\n-inside\n+inside\n*** Update File: W/%s\n*** Move to: W/%s\n@@\n-inside\n+inside\n", a.file(i), a.calmFile(i), a.free(i))
	}),
	patchOp("applyPatch, add and delete", func(a *arena, i int) string {
		return fmt.Sprintf("*** Add File: W/%s/m/f\n+inside\n*** Delete File: W/%s\n*** Update File: W/%s\n@@\n-inside\n+inside\n", a.free(i), a.file(i), a.calmFile(i))
	}),
	fileOp("deleteFile, permanent", provider.DeleteOptions{Permanent: true}),
	fileOp("deleteFile, trash", provider.DeleteOptions{}),
	pathOp("deletePath, permanent", provider.DeletePathOptions{Permanent: true}, (*arena).file),
	pathOp("deletePath, trash", provider.DeletePathOptions{}, (*arena).file),
	pathOp("deletePath, tree, permanent", provider.DeletePathOptions{Permanent: true, Recursive: true}, (*arena).tree),
	pathOp("deletePath, tree, trash", provider.DeletePathOptions{}, (*arena).tree),
	moveFileOp("moveFile, out", nil, (*arena).file, (*arena).calmFree),
	moveFileOp("moveFile, in", nil, (*arena).calmFile, (*arena).free),
	moveFileOp("moveFile, over", nil, (*arena).calmFile, (*arena).file),
	moveFileOp("moveFile, hunks", alike, (*arena).file, (*arena).free),
	movePathOp("movePath, out", false, (*arena).file, (*arena).calmFree),
	movePathOp("movePath, over", true, (*arena).calmFile, (*arena).file),
	movePathOp("movePath, tree, out", false, (*arena).tree, (*arena).calmFree),
	movePathOp("movePath, tree, in", false, (*arena).calmTree, (*arena).free),
	copyPathOp("copyPath, out", false, (*arena).file, (*arena).calmFree),
	copyPathOp("copyPath, over", true, (*arena).calmFile, (*arena).file),
	copyPathOp("copyPath, tree, out", false, (*arena).tree, (*arena).calmFree),
	copyPathOp("copyPath, tree, in", false, (*arena).calmTree, (*arena).free),
	{"makeDir", func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.MakeDir(ctx, a.f, a.abs(a.free(i)), provider.MakeDirOptions{})
		return err
	}},
	{"makeDir, parents", func(ctx context.Context, a *arena, i int) error {
		_, err := a.l.MakeDir(ctx, a.f, a.abs(a.free(i)+"/m/d"), provider.MakeDirOptions{Parents: true})
		return err
	}},
}
