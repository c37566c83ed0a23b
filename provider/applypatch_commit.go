package provider

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
	"github.com/wattle-dev/wattle/trash/record"
)

// transaction is one try to do some steps of a patch, all or nothing.
//
// The order is: lock every file; simulate; stage every new content beside its
// target; ask every guard and look at every file again; publish one by one,
// with each replaced file kept under a hidden name; take away what goes; put
// into the trash what was deleted; then, when nothing can fail any more, remove
// what was kept. A failure before that undoes what was done, last first.
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
	locks   []func()
	// Bytes held: held of files that were read, fresh of new ones.
	held, fresh int64
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
	if err != nil {
		published := len(t.done) > 0
		t.undo()
		t.settle()
		var again errMoved
		if errors.As(err, &again) && published {
			// Trying again would show others the old content in between.
			code := again.code
			if code == "" {
				code = CodeStaleVersion
			}
			err = t.failed(code, "it changed while the patch was applied", again.err)
		}
		return err
	}
	t.settle()
	return nil
}

// gather resolves and fences every path as it leads now, and locks all files.
func (t *transaction) gather() error {
	t.folders = map[string]bool{}
	for _, s := range t.steps {
		t.on(s)
		for _, e := range s.ends() {
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
	keys := make([]string, 0, len(t.files))
	for path := range t.files {
		keys = append(keys, path)
	}
	slices.Sort(keys)
	for _, path := range keys {
		release, err := t.call.files.lock(t.ctx, path)
		if err != nil {
			return err
		}
		t.locks = append(t.locks, release)
	}
	return nil
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
	for _, f := range removals {
		if f.trashed && !f.c.outright(f.a.path, t.o.Permanent) {
			trash = append(trash, f)
			continue
		}
		t.at("removing")
		if err := t.do(f, t.takeFile); err != nil {
			return err
		}
		t.changed(f)
	}
	for i, f := range trash {
		t.at("trashing")
		last := i == len(trash)-1
		if err := t.do(f, func(f *file) error { return t.trashFile(f, last) }); err != nil {
			return err
		}
		t.changed(f)
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

// parent opens the directory of a file, and makes the missing ones.
func (t *transaction) parent(f *file) (*parents, error) {
	path := filepath.Dir(f.a.path)
	if p := t.dirs[path]; p != nil {
		return p, nil
	}
	p, err := f.c.openParents(f.a)
	if err != nil {
		return nil, err
	}
	t.dirs[path] = p
	t.made = append(t.made, p)
	return p, nil
}

// stageFile makes the new file, complete and with its metadata, beside its
// target.
func (t *transaction) stageFile(f *file) error {
	p, err := t.parent(f)
	if err != nil {
		return err
	}
	f.dir = p.dir
	var dress func(*os.File) error
	like := f.now.like
	if like == nil && f.p != nil {
		like = f
	}
	if like != nil {
		dress = func(to *os.File) (err error) {
			f.commit.r.lost, err = like.p.Carry(like.p.Info, to)
			return err
		}
	}
	f.commit.s, err = t.stageBeside(f, f.p == nil, dress)
	return moved(err)
}

func (t *transaction) stageBeside(f *file, unnamed bool, dress func(*os.File) error) (*staged, error) {
	var mode *uint32
	if f.c.mode != 0 {
		mode = &f.c.mode
	}
	s, err := f.c.stageNew(f.dir, mode, unnamed, dress, f.now.mark, f.now.text)
	if unnamed && noUnnamed(err) {
		s, err = f.c.stageNew(f.dir, mode, false, dress, f.now.mark, f.now.text)
	}
	if err == nil {
		s.keep = true
	}
	return s, err
}

// recheck asks the guard once more and looks whether the file is still what the
// patch was made for.
func (t *transaction) recheck(f *file) error {
	if err := t.guard(f); err != nil {
		return err
	}
	switch {
	case f.p != nil:
		return f.c.unchanged(f.dir, f.a.name, f.expected())
	case f.dir == nil: // in the end nothing is there either
		return nil
	}
	if _, err := pinned.Look(f.dir, f.a.name); !absent(err) {
		return errMoved{err: errors.Join(errChanged, err)}
	}
	return nil
}

func (f *file) expected() expected {
	e := expected{p: f.p, info: f.p.Info, sum: f.sum, hashed: f.hashed, strict: true}
	e.dressed = f.now != nil && f.now.like != nil && f.now.like != f
	return e
}

// publishFile gives the staged file its name.
func (t *transaction) publishFile(f *file) error {
	k := &f.commit
	if f.p == nil {
		return t.publishCreated(f)
	}
	t.relinked(f)
	lost := k.r.lost
	held, err := f.c.publish(f.dir, f.a, k.s, f.expected(), nil, &k.r)
	if err != nil {
		return err
	}
	held.Close()
	if k.r.lost == nil {
		k.r.lost = lost
	}
	k.r.version = f.c.published(k.s, f.a.path)
	return nil
}

func (t *transaction) publishCreated(f *file) error {
	k := &f.commit
	if err := f.c.alive(); err != nil {
		return err
	}
	err := f.c.giveName(k.s, f.a.name)
	if err != nil && k.s.name == "" && !final(err) {
		// A file without a name that cannot be linked: with a hidden one then.
		like := f.now.like
		var dress func(*os.File) error
		if like != nil {
			dress = func(to *os.File) (err error) {
				k.r.lost, err = like.p.Carry(like.p.Info, to)
				return err
			}
		}
		k.s.discard()
		if k.s, err = t.stageBeside(f, false, dress); err != nil {
			return err
		}
		err = f.c.giveName(k.s, f.a.name)
	}
	switch {
	case errors.Is(err, syscall.EEXIST) && !t.overwrite:
		return errMoved{err: err, code: CodeAlreadyExists}
	case errors.Is(err, syscall.EEXIST):
		return errMoved{err: err, code: CodeStaleVersion}
	case err != nil:
		return moved(err)
	}
	k.created = true
	k.r.version = f.c.published(k.s, f.a.path)
	return nil
}

// relinked: when another name of the same file was replaced or removed by this
// patch, that changed the file's ctime, and nobody else may have done anything.
func (t *transaction) relinked(f *file) {
	for _, g := range t.done {
		if g.p != nil && g.p.Info.SameFile(f.p.Info) {
			if now, err := f.p.Stat(); err == nil && now.Size == f.p.Info.Size && now.Mtime == f.p.Info.Mtime {
				f.p.Info.Ctime = now.Ctime
			}
			return
		}
	}
}

// takeFile takes away a file that was moved, or deleted outright.
func (t *transaction) takeFile(f *file) (err error) {
	t.relinked(f)
	f.commit.hidden, err = f.c.takeAway(f.dir, f.a, f.expected())
	return err
}

// trashFile puts a deleted file into the trash. All but the last get a second
// name first, so that they can be brought back when a later one is refused.
func (t *transaction) trashFile(f *file, last bool) error {
	t.relinked(f)
	if err := f.c.unchanged(f.dir, f.a.name, f.expected()); err != nil {
		return err
	}
	if err := f.c.alive(); err != nil {
		return err
	}
	if !last {
		spare := hiddenName()
		if f.dir.Link(f.a.name, f.dir, spare) == nil {
			f.commit.spare = spare
		}
	}
	now, err := f.p.Stat()
	if err != nil {
		return err
	}
	e, err := f.c.trash.Put(f.c.ctx, f.dir, f.a.name, f.a.path, now, false)
	if err != nil {
		if f.commit.spare != "" {
			_ = f.dir.Unlink(f.commit.spare)
		}
		return f.c.notTrashed(err)
	}
	f.commit.entry = &e
	return nil
}

// undo takes back what was done, last first, and removes the directories that
// were made.
func (t *transaction) undo() {
	for _, f := range slices.Backward(t.done) {
		k := &f.commit
		switch {
		case k.created:
			k.why = f.c.uncreate(f.a, k.s)
		case k.s != nil:
			k.why = f.c.unreplace(f.a, k.s)
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
func (t *transaction) settle() {
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
	for _, p := range t.made {
		p.sync()
	}
	t.tell()
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
	for _, release := range slices.Backward(t.locks) {
		release()
	}
}
