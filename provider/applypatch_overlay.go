package provider

import (
	"path/filepath"
	"strings"

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
	// overwritten is the step that wrote over the content on disk, here or
	// where it had been moved to, when the policy keeps what is overwritten.
	overwritten *step

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
		if err := t.writeOver(s, f); err != nil {
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

// writeOver refuses to write over the content of f, or notes whose content on
// disk is to be kept: that of the file that it was moved from, if it was.
func (t *transaction) writeOver(s *step, f *file) error {
	from := f.now.like
	if from == nil || from.overwritten != nil {
		return nil // the patch itself made it
	}
	keep, err := f.c.keepsOverwritten(from.a.path)
	if keep {
		from.overwritten = s
	}
	return err
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
		if _, _, err := f.c.wholeText(b.text); err != nil {
			return err
		}
		r, err := f.c.patched(b.text, s.op.Hunks, t.codex, t.editMax-int64(len(b.mark)))
		if err != nil {
			return err
		}
		b.text, s.report.InsertedAt = r.Text, r.InsertedAt
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

func (t *transaction) remove(s *step) error {
	f, err := t.touch(s, s.from)
	if err != nil {
		return err
	}
	if f.now == nil {
		return f.c.stale(saysGone)
	}
	if f.p != nil && f.by == nil && !t.o.OverrideReadOnly {
		if err := f.c.removable(f.p); err != nil {
			return err
		}
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

// mayTrash refuses a delete that is never done, or that will not be possible at
// the end of the commit.
func (t *transaction) mayTrash(f *file) error {
	if err := f.c.undeletable(f.a.path); err != nil {
		return err
	}
	if f.c.trash == nil && !f.c.outright(f.a.path, t.o.Permanent) {
		e := f.c.fail(Code(record.CodeUnavailable), "there is no trash; permanent deletes it outright")
		e.Outcome, e.Reason = record.Failed, record.ReasonBackend
		return e
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
