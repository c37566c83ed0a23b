package provider

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// undo takes back what was done, last first, and removes the directories that
// were made.
func (t *transaction) undo() {
	for _, f := range slices.Backward(t.done) {
		k := &f.commit
		switch {
		case k.created:
			k.why = f.c.uncreate(f.a, k.s)
		case k.s != nil:
			k.why = f.c.keepUnless(k.s, f.c.unreplace(f.a, k.s))
		case k.hidden != "":
			k.why = f.c.nameBack(f.dir, k.hidden, f.a.name)
			k.hidden = ""
		case k.spare != "":
			k.why = f.c.nameBack(f.dir, k.spare, f.a.name)
			k.spare = ""
		default:
			k.why = errInTheTrash
		}
		if k.state = ApplyUndone; k.why != nil {
			k.state = ApplyLeft
		}
	}
	for _, f := range t.touched {
		if k := &f.commit; k.s != nil && k.state == "" {
			k.s.discard()
			k.s = nil
		}
	}
	for _, p := range slices.Backward(t.made) {
		p.undo()
	}
}

// settle ends a commit, done or undone: what was kept for undoing goes.
func (t *transaction) settle(failed bool) {
	synced := map[*anchor.Dir]bool{}
	for _, f := range t.touched {
		k := &f.commit
		if k.s != nil {
			k.s.discard()
		}
		for _, name := range []string{k.hidden, k.spare} {
			if name != "" {
				_ = f.dir.Unlink(name)
			}
		}
		if k.state != "" && !synced[f.dir] {
			synced[f.dir] = true
			syncDir(f.dir)
		}
	}
	if !failed {
		for _, p := range t.made {
			p.sync()
		}
	}
	t.tell(failed)
}

// close gives everything back.
func (t *transaction) close() {
	for _, p := range t.pins {
		p.Close()
	}
	for _, p := range t.made {
		p.close()
	}
	for _, f := range t.touched {
		if s := f.commit.s; s != nil {
			s.f.Close()
		}
	}
	if t.release != nil {
		t.release()
	}
}

// keepUnless keeps the replaced file when it is not known that others have
// replaced or changed the new one: it may be the only copy.
func (c *call) keepUnless(s *staged, err error) error {
	for _, since := range []error{nil, errReplacedSince, errWrittenSince, errRemovedSince} {
		if errors.Is(err, since) {
			return err
		}
	}
	if s.name == "" {
		return err
	}
	kept := s.name
	s.name = ""
	return fmt.Errorf("the file that was there is kept as %s: %w", kept, bare(err))
}

// tell writes into the report of every step what became of it, and tells the
// guards what is known now.
func (t *transaction) tell(failed bool) {
	for _, s := range t.steps {
		if s.report.State != ApplyPlanned {
			continue
		}
		if failed {
			s.tellFailed()
			continue
		}
		s.report.State = ApplyDone
		if f := s.target().f; f.by == s && f.now != nil {
			s.report.Version = f.commit.r.version
			s.report.LinksBroken, s.report.MetadataLost = f.commit.r.links, f.commit.r.lost
		}
		for _, f := range t.touched {
			if f.lostBy() == s && f.commit.entry != nil {
				s.report.Trashed = f.commit.entry
			}
		}
		if g := t.o.Guards; g != nil {
			for _, e := range s.paths() {
				g.Observed(e.f.t, Observation{Version: e.f.version()})
			}
		}
	}
}

// lostBy is the step that the content on disk was lost by.
func (f *file) lostBy() *step {
	if f.overwritten != nil {
		return f.overwritten
	}
	return f.by
}

// version is that of the file in the end, empty when there is none.
func (f *file) version() Version {
	if f.now == nil {
		return ""
	}
	return f.commit.r.version
}

// tellFailed: what is worst of the step's files. A file that was left says why.
func (s *step) tellFailed() {
	s.report.State = ApplySkipped
	for _, e := range s.paths() {
		switch k := e.f.commit; {
		case k.state == ApplyLeft:
			s.report.State = ApplyLeft
			s.report.Failure = &ApplyFailure{Code: CodeIOError, Message: e.shown + ": " + k.why.Error()}
			s.report.Trashed = k.entry
			return
		case k.state == ApplyUndone:
			s.report.State = ApplyUndone
			s.report.Trashed = k.entry
		}
	}
}
