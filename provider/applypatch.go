package provider

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider/patch"
)

// patchMaxOperations bounds the operations of one patch. Each may hold a few
// file handles until the commit.
const patchMaxOperations = 1000

// patching is one applyPatch. One goroutine uses it.
type patching struct {
	*call
	o         ApplyOptions
	codex     bool
	atomic    bool
	overwrite bool
	steps     []*step
	// failing is the step that is worked on, and the one that failed.
	failing *step
}

// step is one operation of the patch and what became of it.
type step struct {
	op     patch.Operation
	report ApplyOperation
	// replace: an add that a delete of the same path came before.
	replace  bool
	from, to *stepPath // to is nil but for moves
}

// target is where the content of the step goes, or what it deletes.
func (s *step) target() *stepPath {
	if s.to != nil {
		return s.to
	}
	return s.from
}

func (s *step) paths() []*stepPath {
	if s.to != nil {
		return []*stepPath{s.from, s.to}
	}
	return []*stepPath{s.from}
}

// stepPath is one path of an operation.
type stepPath struct {
	way, shown string
	removed    bool // the operation takes the file away
	a          aim
	aimed      bool // a is good for one try
	f          *file
}

// ApplyPatch implements [Patcher].
func (l *Local) ApplyPatch(ctx context.Context, f *fence.Fence, text string, o ApplyOptions) (PatchReport, error) {
	c, err := l.begin(ctx, f, "applyPatch", "")
	if err != nil {
		return PatchReport{}, err
	}
	p := &patching{call: c, o: o, codex: o.Compat == CompatCodex}
	p.atomic = (o.Atomic == nil || *o.Atomic) && !p.codex
	p.overwrite = o.Overwrite || p.codex
	if err := p.parse(text); err != nil {
		return PatchReport{}, err
	}
	if err := p.run(); err != nil {
		return PatchReport{}, p.rejected(err)
	}
	return p.result(), nil
}

func (p *patching) parse(text string) error {
	if p.o.Compat != "" && !p.codex {
		return p.failed(CodeIOError, "compat must be codex or empty", syscall.EINVAL)
	}
	if int64(len(text)) > p.editMax {
		return p.tooLarge(p.editMax)
	}
	ops, err := patch.Parse(text, patch.Options{Codex: p.codex})
	if err != nil {
		return &Error{Code: CodePatchMismatch, Op: p.op, Cause: err}
	}
	switch {
	case len(ops) == 0:
		return p.fail(CodePatchMismatch, "the patch has no operations")
	case len(ops) > patchMaxOperations:
		return p.fail(CodeTooLarge, fmt.Sprintf("the patch has %d operations, more than %d", len(ops), patchMaxOperations))
	}
	for _, op := range ops {
		s := &step{op: op, report: ApplyOperation{Kind: string(op.Kind), Path: op.Path, Destination: op.MoveTo, LineNumber: op.LineNumber, State: ApplySkipped}}
		if op.MoveTo != "" {
			s.report.Kind = kindMove
		}
		p.steps = append(p.steps, s)
	}
	return nil
}

// Kinds of [ApplyOperation] that the language has no word of its own for.
const (
	kindMove    = "move"
	kindReplace = "replace"
)

// run does all of it. Everything that can be refused is refused before the
// first change, as far as the form of the call lets it.
func (p *patching) run() error {
	if err := p.prepare(); err != nil {
		return err
	}
	if p.atomic {
		return p.transact(p.steps)
	}
	if p.o.DryRun {
		return p.rehearse()
	}
	if err := p.askAll(); err != nil {
		return err
	}
	for _, s := range p.steps {
		for _, e := range s.paths() {
			e.aimed = false // the steps before it may have made directories
		}
		if err := p.transact([]*step{s}); err != nil {
			p.failing = s
			if err = p.mapped(err); CodeOf(err) == CodeAborted {
				return err
			}
			p.blame(err)
			break
		}
	}
	return nil
}

// rehearse is the dry run of a patch whose operations are committed one by one:
// that an operation would fail is its result.
func (p *patching) rehearse() error {
	err := p.transact(p.steps)
	if err == nil {
		return nil
	}
	if err = p.mapped(err); CodeOf(err) == CodeAborted {
		return err
	}
	p.blame(err)
	return nil
}

// prepare resolves every path and asks the fence for every one, and makes one
// replace of a delete and an add. It looks at no content.
func (p *patching) prepare() error {
	for _, s := range p.steps {
		p.on(s)
		var err error
		if s.from, err = p.newPath(s.op.Path); err != nil {
			return err
		}
		s.from.removed = s.op.Kind == patch.Delete || s.op.MoveTo != ""
		if s.op.MoveTo != "" {
			if s.to, err = p.newPath(s.op.MoveTo); err != nil {
				return err
			}
		}
		for _, e := range s.paths() {
			if err := p.find(e); err != nil {
				return err
			}
		}
	}
	p.mergeReplaces()
	return nil
}

func (p *patching) newPath(path string) (*stepPath, error) {
	p.shown = path
	way, shown, err := p.absolute(path, ResolveOptions{Cwd: p.o.Cwd})
	return &stepPath{way: way, shown: shown}, err
}

// find resolves one path and asks the fence, unless that was done just now.
func (p *patching) find(e *stepPath) error {
	p.shown = e.shown
	if e.aimed {
		return nil
	}
	t := Target{DisplayPath: e.shown}
	if p.fence.Mode() == fence.FullAccess {
		r, err := p.canonical(e.way, fence.Read)
		if err != nil {
			return err
		}
		t.TargetKey = TargetKey(r.Path)
	}
	a, err := p.aim(t)
	if err != nil {
		return err
	}
	if e.removed {
		if err := p.may(a.path, fence.Delete); err != nil {
			return err
		}
	}
	e.a, e.aimed = a, true
	return nil
}

// mergeReplaces makes one replace of a delete and the next operation on the
// same path, when that is an add.
func (p *patching) mergeReplaces() {
	last := map[string]*step{}
	gone := map[*step]bool{}
	for _, s := range p.steps {
		if d := last[s.from.a.path]; s.op.Kind == patch.Add && d != nil && d.op.Kind == patch.Delete {
			s.replace = true
			s.report.Kind = kindReplace
			gone[d] = true
		}
		for _, e := range s.paths() {
			last[e.a.path] = s
		}
	}
	kept := p.steps[:0]
	for _, s := range p.steps {
		if !gone[s] {
			kept = append(kept, s)
		}
	}
	p.steps = kept
}

// on makes s the step that errors are about.
func (p *patching) on(s *step) {
	p.failing = s
	p.shown = s.op.Path
}

// transact does steps as one, all or nothing, and begins anew when something
// changed before the first of them was published.
func (p *patching) transact(steps []*step) error {
	return p.again(func() error {
		t := &transaction{patching: p, steps: steps, files: map[string]*file{}, dirs: map[string]*parents{}}
		defer t.close()
		return t.try()
	})
}

// askAll asks the guards of a patch that is committed one by one, before
// anything is done. What they say is looked at when they are asked again.
func (p *patching) askAll() error {
	if p.o.Guards == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, s := range p.steps {
		p.on(s)
		for _, e := range s.paths() {
			if seen[e.a.path] {
				continue
			}
			seen[e.a.path] = true
			p.shown = e.shown
			if _, err := p.ask(s.intent(e), Target{TargetKey: TargetKey(e.a.path), DisplayPath: e.shown}); err != nil {
				return err
			}
		}
	}
	return nil
}

// intent is which guard an operation asks for one of its paths.
type intent int

const (
	intentWrite intent = iota
	intentEdit
	intentDelete
)

func (s *step) intent(e *stepPath) intent {
	switch {
	case s.op.Kind == patch.Delete, s.replace:
		return intentDelete
	case s.op.Kind == patch.Add, e == s.to:
		return intentWrite
	}
	return intentEdit
}

// ask gives the guard of a path in the form of a write; nil for none.
func (p *patching) ask(i intent, t Target) (*WriteIntent, error) {
	g := p.o.Guards
	if g == nil {
		return nil, nil
	}
	var v *VersionGuard
	var err error
	switch i {
	case intentWrite:
		return g.WriteIntent(t)
	case intentEdit:
		v, err = g.EditIntent(t)
	case intentDelete:
		v, err = g.DeleteIntent(t)
	}
	if v == nil || err != nil {
		return nil, err
	}
	return &WriteIntent{Kind: ReplaceIfVersion, Version: v.Version}, nil
}

// blame records why the step that is worked on failed.
func (p *patching) blame(err error) {
	f := &ApplyFailure{Code: CodeOf(err), Message: err.Error()}
	if r := p.failing.report; r.State == ApplyLeft {
		f.Message += "; left: " + r.Failure.Message
	}
	var h *patch.Failure
	if errors.As(err, &h) {
		f.Hunk = h
	}
	p.failing.report.State = ApplyFailed
	p.failing.report.Failure = f
}
