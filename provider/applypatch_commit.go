package provider

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/wattle-dev/wattle/trash/record"
)

// transaction is one try to do some steps of a patch, all or nothing.
//
// The order is: lock every file; simulate; stage every new content beside its
// target; ask every guard and look at every file again; publish one by one,
// with each replaced file kept under a hidden name; take away what goes; put
// into the trash what was deleted, and what was overwritten when the policy
// keeps that; then, when nothing can fail any more, remove what was kept. A
// failure before that undoes what was done, last first.
//
// "All or nothing" is about failures that this process lives to see. When it is
// killed, each file is its old or its new one, and hidden files may be left.
type transaction struct {
	*patching
	steps   []*step
	files   map[string]*file    // by path
	touched []*file             // in the order of the steps
	dirs    map[string]*parents // by path of the directory
	made    []*parents          // of dirs, those that may have made some
	folders map[string]bool     // directories that are to be made
	pins    []*pin
	release func() // of the locks of all files; nil before that
	// Bytes held: of files that had to be read, of files that were read for the
	// report and the guard alone, and of new contents. Each is bounded by the
	// limit of edits.
	held, shownBytes, fresh int64
	// done are the files whose change is visible, in that order.
	done []*file
}

// effect is what the commit did to one file.
type effect struct {
	s       *staged // of a file that has content in the end
	r       replaced
	created bool
	hidden  string // where a file that went is, until the end
	spare   string // a second name of a file that was put into the trash
	entry   *record.Entry
	state   ApplyState // done, undone or left; empty: nothing was done
	why     error      // of left
}

// try does all of it once. errMoved means that nothing was published and that
// it may be tried again.
func (t *transaction) try() error {
	if err := t.gather(); err != nil {
		return err
	}
	t.at("locked")
	for _, s := range t.steps {
		if err := t.alive(); err != nil {
			return err
		}
		if err := t.simulate(s); err != nil {
			return err
		}
	}
	if t.o.DryRun {
		return nil
	}
	err := t.apply()
	if err == nil {
		t.settle(false)
		return nil
	}
	published := len(t.done) > 0
	t.undo()
	t.settle(true)
	var again errMoved
	if published && errors.As(err, &again) {
		// Trying again would show others the old content in between.
		code := again.code
		if code == "" {
			code = CodeStaleVersion
		}
		err = t.failed(code, "it changed while the patch was applied", again.err)
	}
	return err
}

// gather resolves and fences every path as it leads now, and locks all files.
func (t *transaction) gather() error {
	t.folders = map[string]bool{}
	for _, s := range t.steps {
		t.on(s)
		for _, e := range s.paths() {
			if err := t.find(e); err != nil {
				return err
			}
			e.aimed = false
			f := t.files[e.a.path]
			if f == nil {
				c := *t.call
				c.shown = e.shown
				f = &file{c: &c, a: e.a}
				t.files[e.a.path] = f
				t.touched = append(t.touched, f)
			}
			e.f = f
		}
	}
	t.on(t.steps[0]) // a lock that is not had is nobody's in particular
	var err error
	t.release, err = t.lockFiles(slices.Collect(maps.Keys(t.files))...)
	return err
}

// apply is the commit, as far as it can fail.
func (t *transaction) apply() error {
	writes, removals := t.plan()
	for _, f := range writes {
		t.at("staging")
		if err := t.do(f, t.stageFile); err != nil {
			return err
		}
		t.at("staged")
	}
	for _, f := range t.touched {
		if err := t.do(f, t.recheck); err != nil {
			return err
		}
	}
	if err := t.alive(); err != nil {
		return err
	}
	for _, f := range writes {
		t.at("publishing")
		if err := t.do(f, t.publishFile); err != nil {
			return err
		}
		t.changed(f)
		t.at("published")
	}
	var trash []*file
	for _, f := range writes {
		if f.overwritten != nil {
			trash = append(trash, f)
		}
	}
	for _, f := range removals {
		if f.overwritten != nil || f.trashed && !f.c.outright(f.a.path, t.o.Permanent) {
			trash = append(trash, f)
			continue
		}
		t.at("removing")
		if err := t.do(f, t.takeFile); err != nil {
			return err
		}
		t.changed(f)
	}
	if len(trash) > 0 {
		t.at("trashing")
	}
	// All are looked at before the first one goes: what was put into the trash
	// comes back less well than everything else.
	for _, f := range trash {
		if f.now == nil {
			if err := t.do(f, t.stillThere); err != nil {
				return err
			}
		}
	}
	for i, f := range trash {
		last := i == len(trash)-1
		work := t.trashFile
		if f.now != nil {
			work = t.trashReplaced
		}
		if err := t.do(f, func(f *file) error { return work(f, last) }); err != nil {
			return err
		}
		if f.now == nil {
			t.changed(f)
		}
	}
	return nil
}

// do works on one file; an error is one of the operation that made it so.
func (t *transaction) do(f *file, work func(*file) error) error {
	if f.by != nil {
		t.failing = f.by
	}
	t.shown = f.c.shown
	return work(f)
}

// changed: others can see what was done to f. From here on nothing is
// cancelled.
func (t *transaction) changed(f *file) {
	f.commit.state = ApplyDone
	t.done = append(t.done, f)
	if len(t.done) == 1 {
		sure := context.WithoutCancel(t.ctx)
		for _, g := range t.touched {
			g.c.ctx = sure
		}
	}
}

// plan gives the files that have content in the end and those that go, in the
// order of the operations that made them so.
func (t *transaction) plan() (writes, removals []*file) {
	order := map[*step]int{}
	for i, s := range t.steps {
		order[s] = i
	}
	for _, f := range t.touched {
		switch {
		case f.by == nil:
		case f.now != nil:
			writes = append(writes, f)
		case f.p != nil:
			removals = append(removals, f)
		}
	}
	by := func(a, b *file) int { return order[a.by] - order[b.by] }
	slices.SortStableFunc(writes, by)
	slices.SortStableFunc(removals, by)
	return writes, removals
}
