package provider

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/trash/record"
)

// file is one path that a patch touches: what is there on disk, and what the
// operations so far have made of it.
type file struct {
	c   *call // its errors name this path
	t   Target
	a   aim
	ask intent // the guard of the operation that touched it first

	// On disk, when it was looked at; p is nil when nothing is there.
	dir *anchor.Dir
	p   *pin
	// The content, if it had to be read: text is empty unless it was kept.
	text   string
	kept   bool
	sum    digest
	hashed bool

	// now is what is there after the operations so far; nil for nothing. by is
	// the one that made it so; nil when none has.
	now *body
	by  *step
	// trashed: the content that is on disk is one that was deleted, so that it
	// must not be lost. Otherwise it lives on elsewhere, or was replaced.
	trashed bool

	commit effect
}

// body is the content of a file in the overlay.
type body struct {
	mark, text string
	// known: text is the content. A file that was not read has none.
	known bool
	// like is whose metadata the file has; nil for a new file.
	like *file
}

// onlyLF is the text for a report.
func (b *body) onlyLF(c *call) *string {
	if b == nil || !b.known || strings.IndexByte(b.text, 0) >= 0 || invalidUTF8(b.text) >= 0 {
		return nil
	}
	return c.bounded(b.text)
}

// simulate does one operation in the overlay.
func (t *transaction) simulate(s *step) error {
	t.on(s)
	s.report.State, s.report.Failure = ApplySkipped, nil
	var err error
	switch {
	case s.op.Kind == patch.Add:
		err = t.add(s)
	case s.op.Kind == patch.Delete:
		err = t.remove(s)
	default:
		err = t.update(s)
	}
	if err == nil {
		s.report.State = ApplyPlanned
	}
	return err
}

func (t *transaction) add(s *step) error {
	f, err := t.touch(s, s.from)
	if err != nil {
		return err
	}
	switch {
	case s.replace && f.now == nil:
		return f.c.stale(saysGone)
	case !s.replace && f.now != nil && !t.overwrite:
		return f.c.fail(CodeAlreadyExists, "it exists already; overwriting must be asked for")
	}
	b := &body{text: s.op.Content, known: true}
	return t.put(s, f, b)
}

// put makes b the content of f, which may have one.
func (t *transaction) put(s *step, f *file, b *body) error {
	if old := f.now; old != nil {
		if err := t.mayReplace(f); err != nil {
			return err
		}
		if err := t.look(f, false); err != nil {
			return err
		}
		if b.like == nil { // an add: a write over the file
			b.like = old.like
			if _, own := cutBOM(b.text); !own {
				b.mark = old.mark
			}
		}
	}
	if err := t.nested(f); err != nil {
		return err
	}
	if t.fresh += int64(len(b.text)); t.fresh > t.editMax {
		return f.c.tooLarge(t.editMax)
	}
	if s.to == nil {
		s.report.Before = f.now.onlyLF(f.c)
	}
	s.report.After = b.onlyLF(f.c)
	f.now, f.by = b, s
	return nil
}

// update is an update with or without a destination.
func (t *transaction) update(s *step) error {
	f, err := t.touch(s, s.from)
	if err != nil {
		return err
	}
	if f.now == nil {
		return f.c.stale(saysGone)
	}
	if err := t.mayReplace(f); err != nil {
		return err
	}
	g := f
	if s.to != nil {
		if s.to.f == f {
			return f.c.fail(CodeSameTarget, "source and destination are the same file")
		}
		if g, err = t.touch(s, s.to); err != nil {
			return err
		}
		if g.now != nil && !t.overwrite {
			return g.c.fail(CodeAlreadyExists, "the destination exists already; overwriting must be asked for")
		}
	}
	if err := t.look(f, true); err != nil {
		return err
	}
	b := *f.now
	if b.like == nil && g.now != nil && g != f {
		b.like = g.now.like // a file that the patch made, over one that is there
	}
	s.report.Before = f.now.onlyLF(f.c)
	if len(s.op.Hunks) > 0 {
		if b.text, s.report.InsertedAt, err = f.c.patched(b.text, int64(len(b.mark)), s.op.Hunks, t.codex); err != nil {
			return err
		}
	}
	if g == f {
		if t.fresh += int64(len(b.text)); t.fresh > t.editMax {
			return f.c.tooLarge(t.editMax)
		}
		s.report.After = b.onlyLF(f.c)
		f.now, f.by = &b, s
		return nil
	}
	if err := t.put(s, g, &b); err != nil {
		return err
	}
	f.now, f.by = nil, s
	return nil
}

// patched applies hunks to the text of a file.
func (c *call) patched(text string, mark int64, hunks []patch.Hunk, codex bool) (string, []int, error) {
	if i := strings.IndexByte(text, 0); i >= 0 {
		return "", nil, c.fail(CodeNotText, fmt.Sprintf("binary: a NUL byte at offset %d", i))
	}
	if err := c.utf8(text); err != nil {
		return "", nil, err
	}
	r, err := patch.Apply(text, hunks, patch.Options{Codex: codex, MaxBytes: c.editMax - mark})
	if err != nil {
		return "", nil, c.mismatch(err)
	}
	return r.Text, r.InsertedAt, nil
}

// mismatch is the error of hunks that could not be applied.
func (c *call) mismatch(err error) error {
	var f *patch.Failure
	if !errors.As(err, &f) {
		return c.tooLarge(c.editMax)
	}
	return &Error{Code: CodePatchMismatch, Op: c.op, Path: c.shown, Cause: f}
}

func (t *transaction) remove(s *step) error {
	f, err := t.touch(s, s.from)
	if err != nil {
		return err
	}
	if f.now == nil {
		return f.c.stale(saysGone)
	}
	if err := t.mayReplace(f); err != nil {
		return err
	}
	if err := t.mayTrash(f); err != nil {
		return err
	}
	if err := t.look(f, false); err != nil {
		return err
	}
	s.report.Before = f.now.onlyLF(f.c)
	// What is deleted may have been moved here: then the file that it was
	// moved from is the one to keep.
	if from := f.now.like; from != nil && from.now == nil {
		from.trashed, from.by = true, s
	}
	f.now, f.by, f.trashed = nil, s, true
	return nil
}

// mayTrash refuses a delete that will not be possible at the end of the commit.
func (t *transaction) mayTrash(f *file) error {
	switch {
	case f.c.trash != nil && f.c.trash.Holds(f.a.path):
		return &Error{Code: record.CodeRejected, Op: t.op, Path: f.c.shown, Outcome: record.Rejected, Reason: record.ReasonProtected,
			Detail: "it is part of a trash"}
	case f.c.trash == nil && !f.c.outright(f.a.path, t.o.Permanent):
		return &Error{Code: record.CodeUnavailable, Op: t.op, Path: f.c.shown, Outcome: record.Failed, Reason: record.ReasonBackend,
			Detail: "there is no trash for it; deleting it for good must be asked for"}
	}
	return nil
}

// mayReplace is writable for the file on disk, while it is still the one that
// is meant.
func (t *transaction) mayReplace(f *file) error {
	if f.p == nil || f.by != nil {
		return nil
	}
	return f.c.writable(f.p, t.o.OverrideReadOnly)
}

// touch gives the file at one end of an operation. At the first time it is
// looked at on disk, and its guard is asked.
func (t *transaction) touch(s *step, e *end) (*file, error) {
	f := e.f
	t.shown = f.c.shown
	if f.t.TargetKey != "" {
		return f, nil
	}
	f.t = Target{TargetKey: TargetKey(f.a.path), DisplayPath: f.c.shown}
	f.ask = s.intent(e)
	if err := t.open(f); err != nil {
		return nil, err
	}
	if f.p != nil {
		f.now = &body{like: f}
	}
	// An add that may not overwrite is refused for that first: reading the
	// file would not help.
	if f.ask == intentWrite && f.p != nil && !t.overwrite {
		return f, nil
	}
	return f, t.guard(f)
}

// open pins what is at the path.
func (t *transaction) open(f *file) error {
	switch {
	case f.a.name == "":
		return f.c.notRegular()
	case f.a.link:
		return t.link(f)
	case len(f.a.missing) > 0:
		return nil
	}
	d, err := t.parent(f)
	if err != nil {
		return err
	}
	f.dir = d.dir
	p, err := f.c.pin(f.dir, f.a.name)
	switch {
	case absent(err):
		return nil
	case err != nil:
		return err
	}
	t.pins = append(t.pins, p)
	switch {
	case p.Info.IsSymlink() && t.fence.Mode() != fence.FullAccess:
		return errMoved{err: errBecameLink}
	case p.Info.IsSymlink():
		return t.link(f)
	case !p.Info.IsRegular():
		return f.c.notRegular()
	}
	f.p = p
	return nil
}

// link refuses a link that leads to nothing, as writeText and editText do.
func (t *transaction) link(f *file) error {
	if f.ask == intentWrite {
		return f.c.fail(CodeNotRegularFile, "a symbolic link stands in its place")
	}
	return f.c.stale("a symbolic link stands in its place")
}

// guard asks the guard of a file and holds the state on disk to it.
func (t *transaction) guard(f *file) error {
	g, err := t.ask(f.ask, f.t)
	switch {
	case err != nil || g == nil:
		return err
	case g.Kind == CreateIfAbsent && f.p != nil:
		return f.c.fail(CodeNotObserved, "it exists and has not been read")
	case g.Kind == CreateIfAbsent:
		return nil
	case f.p == nil:
		return f.c.stale(saysGone)
	}
	how, sum := f.c.judge(g.Version, stampOf(f.c.clock, f.p.Info))
	if how == byHash && !f.hashed {
		if err := t.read(f, reading{keep: t.room(f), toEnd: true}); err != nil {
			return err
		}
	}
	if how == stale || how == byHash && f.sum != sum {
		return f.c.stale(saysChanged)
	}
	return nil
}

// room is how much of a file may be kept.
func (t *transaction) room(f *file) int64 { return max(0, t.editMax-t.held) }

// look makes the content of what is there known. Without need that is tried
// for the report alone, and only with small files.
func (t *transaction) look(f *file, need bool) error {
	b := f.now
	if b.known || b.like != f || f.by != nil {
		return nil
	}
	size, keep := f.p.Info.Size, t.room(f)
	switch {
	case !f.kept && need && size > keep:
		return f.c.tooLarge(t.editMax)
	case !f.kept && (need || size < min(t.basisMax, keep)):
		if err := t.read(f, reading{keep: keep}); err != nil {
			if aborted := f.c.alive(); aborted != nil {
				return aborted
			}
			if need {
				return err
			}
		}
	}
	if need && !f.kept {
		return f.c.tooLarge(t.editMax)
	}
	var had bool
	if b.text, had = cutBOM(f.text); had || !f.kept && hasBOM(f.p) {
		b.mark = bom
	}
	b.known = f.kept
	return nil
}

// read passes over the file on disk.
func (t *transaction) read(f *file, r reading) error {
	got, err := f.c.read(f.p, r)
	if err != nil {
		return moved(err)
	}
	if got.over && !r.toEnd {
		return nil
	}
	if !got.stable {
		return errMoved{err: errChanged, code: CodeStaleVersion}
	}
	f.sum, f.hashed = got.sum, true
	if !got.over {
		f.text, f.kept = got.text, true
		t.held += int64(len(got.text))
	}
	return nil
}

// nested refuses a path below a file of the overlay, and a file in the place of
// a directory that the patch makes.
func (t *transaction) nested(f *file) error {
	if t.folders[f.a.path] {
		return f.c.notRegular()
	}
	at := f.a.path
	for range f.a.missing {
		at = filepath.Dir(at)
		if g := t.files[at]; g != nil && g.now != nil {
			return f.c.fail(CodeNotFound, "a parent is not a directory")
		}
		t.folders[at] = true
	}
	return nil
}
