package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider/patch"
)

// PatchText implements [Patcher].
func (l *Local) PatchText(ctx context.Context, f *fence.Fence, t Target, hunks []patch.Hunk, o PatchOptions) (PatchOutcome, error) {
	c, err := l.begin(ctx, f, "patchText", t.DisplayPath)
	if err != nil {
		return PatchOutcome{}, err
	}
	var out PatchOutcome
	r := rewriting{call: c, o: o.EditOptions, change: func(text string, limit int64) (string, error) {
		p, err := c.patched(text, hunks, o.Codex, limit)
		out.InsertedAt = p.InsertedAt
		return p.Text, err
	}}
	if out.EditOutcome, err = r.run(t); err != nil {
		return PatchOutcome{}, err
	}
	return out, nil
}

// patched is a text after the hunks of one file. Hunks may come from anywhere:
// those that contradict themselves are FS_PATCH_MISMATCH as those that do not
// fit, since no file can have what they say; only the latter have a
// *patch.Failure as cause. No hunks at all fit every text.
func (c *call) patched(text string, hunks []patch.Hunk, codex bool, limit int64) (patch.Result, error) {
	for _, h := range hunks {
		for _, s := range h.NewLines {
			if i := invalidUTF8(s); i >= 0 {
				return patch.Result{}, c.fail(CodeNotText, fmt.Sprintf("a new line is not UTF-8 at offset %d", i))
			}
		}
	}
	if err := patch.Check(hunks); err != nil {
		return patch.Result{}, c.fail(CodePatchMismatch, err.Error())
	}
	// 0 would be no bound.
	r, err := patch.Apply(text, hunks, patch.Options{Codex: codex, MaxBytes: max(limit, 1)})
	var misfit *patch.Failure
	switch {
	case errors.As(err, &misfit):
		return patch.Result{}, &Error{Code: CodePatchMismatch, Op: c.op, Path: c.shown, Cause: misfit}
	case err != nil:
		return patch.Result{}, c.fail(CodeTooLarge, fmt.Sprintf("%v (limit %d bytes)", err, c.editMax))
	case int64(len(r.Text)) > limit:
		return patch.Result{}, c.tooLarge(c.editMax)
	}
	return r, nil
}
