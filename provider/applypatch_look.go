package provider

import (
	"github.com/wattle-dev/wattle/fence"
)

// touch gives the file at one path of an operation. At the first time it is
// looked at on disk, and its guard is asked.
func (t *transaction) touch(s *step, e *stepPath) (*file, error) {
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
		if err := t.read(f, reading{keep: t.room(false), toEnd: true}, false); err != nil {
			return err
		}
	}
	if how == stale || how == byHash && f.sum != sum {
		return f.c.stale(saysChanged)
	}
	return nil
}

// room is how many bytes of a file may be kept: of one that must be read, or of
// one that is read for the report and the guard alone.
func (t *transaction) room(need bool) int64 {
	if need {
		return max(0, t.editMax-t.held)
	}
	return max(0, t.editMax-t.shownBytes)
}

// look makes the content of what is there known. Without need that is tried
// for the report alone, and only with small files.
func (t *transaction) look(f *file, need bool) error {
	b := f.now
	if b.known || b.like != f || f.by != nil {
		return nil
	}
	size, keep := f.p.Info.Size, t.room(need)
	switch {
	case !f.kept && need && size > keep:
		return f.c.tooLarge(t.editMax)
	case !f.kept && (need || size < min(t.basisMax, keep)):
		if err := t.read(f, reading{keep: keep}, need); err != nil {
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
func (t *transaction) read(f *file, r reading, need bool) error {
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
		if need {
			t.held += int64(len(got.text))
		} else {
			t.shownBytes += int64(len(got.text))
		}
	}
	return nil
}
