package provider

import (
	"context"
	"errors"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// writing is one writeText.
type writing struct {
	*call
	content string
	o       WriteOptions
	mode    *uint32 // of a new file
}

// WriteText implements [Provider].
func (l *Local) WriteText(ctx context.Context, f *fence.Fence, t Target, content string, o WriteOptions) (WriteOutcome, error) {
	c, err := l.begin(ctx, f, "writeText", t.DisplayPath)
	if err != nil {
		return WriteOutcome{}, err
	}
	w := writing{call: c, content: content, o: o, mode: o.Mode}
	if w.mode == nil && l.mode != 0 {
		w.mode = &l.mode
	}
	if err := w.check(); err != nil {
		return WriteOutcome{}, err
	}
	var out WriteOutcome
	err = c.mutate(t, func(a aim) (err error) {
		out, err = w.try(a)
		return err
	})
	if err != nil {
		return WriteOutcome{}, err
	}
	return out, nil
}

// check refuses options that mean nothing. They are programming errors of the
// caller, for which the contract has no code of their own.
func (w *writing) check() error {
	if e := w.o.Expected; e != nil {
		if e.Kind != CreateIfAbsent && e.Kind != ReplaceIfVersion {
			return w.failed(CodeIOError, "the intent is neither createIfAbsent nor replaceIfVersion", syscall.EINVAL)
		}
	}
	if w.mode != nil && *w.mode > 0o777 {
		return w.failed(CodeIOError, "the mode must be at most 0777", syscall.EINVAL)
	}
	return nil
}

func (w *writing) replaces() bool {
	return w.o.Expected != nil && w.o.Expected.Kind == ReplaceIfVersion
}

// guard is the version that may be replaced, nil for any.
func (w *writing) guard() *VersionGuard {
	if !w.replaces() {
		return nil
	}
	return &VersionGuard{Version: w.o.Expected.Version}
}

func (w *writing) creates() bool {
	return w.o.Expected != nil && w.o.Expected.Kind == CreateIfAbsent
}

// try is one attempt, with the lock of the target held.
func (w *writing) try(a aim) (WriteOutcome, error) {
	switch {
	case a.name == "":
		return WriteOutcome{}, w.notRegular()
	case a.link:
		return WriteOutcome{}, w.refuseLink()
	case len(a.missing) > 0:
		return w.create(a)
	}
	dir, err := w.openAim(a.dir)
	if err != nil {
		return WriteOutcome{}, err
	}
	defer dir.Close()
	p, err := w.pin(dir, a.name)
	if absent(err) {
		w.at("absent")
		return w.createIn(dir, a)
	}
	if err != nil {
		return WriteOutcome{}, err
	}
	defer p.Close()
	switch {
	case p.Info.IsSymlink() && w.fence.Mode() != fence.FullAccess:
		// It came after the path was resolved.
		return WriteOutcome{}, errMoved{err: errBecameLink}
	case p.Info.IsSymlink():
		return WriteOutcome{}, w.refuseLink()
	case !p.Info.IsRegular():
		return WriteOutcome{}, w.notRegular()
	case w.creates():
		return WriteOutcome{}, w.fail(CodeNotObserved, "it exists and has not been read")
	}
	return w.update(dir, a, p)
}

func (c *call) notRegular() error { return c.fail(CodeNotRegularFile, "not a regular file") }

// refuseLink keeps a link that leads to nothing, or that took the place of the
// file: writing through it would follow it, writing over it would lose it.
func (w *writing) refuseLink() error {
	if w.replaces() {
		return w.stale(saysGone)
	}
	return w.fail(CodeNotRegularFile, "a symbolic link stands in its place")
}

// create makes the missing parents too.
func (w *writing) create(a aim) (WriteOutcome, error) {
	if w.replaces() {
		return WriteOutcome{}, w.stale(saysGone)
	}
	p, err := w.openParents(a)
	if err != nil {
		return WriteOutcome{}, err
	}
	defer p.close()
	out, err := w.createIn(p.dir, a)
	if err != nil {
		p.undo()
		return WriteOutcome{}, err
	}
	p.sync()
	return out, nil
}

func (w *writing) createIn(dir *anchor.Dir, a aim) (WriteOutcome, error) {
	if w.replaces() {
		return WriteOutcome{}, w.stale(saysGone)
	}
	if err := w.alive(); err != nil {
		return WriteOutcome{}, err
	}
	s, err := w.publishNew(dir, a.name, w.mode, w.content)
	if errors.Is(err, syscall.EEXIST) {
		return WriteOutcome{}, w.competitor(dir, a.name, err)
	}
	if err != nil {
		return WriteOutcome{}, moved(err)
	}
	defer s.f.Close()
	out := WriteOutcome{Operation: OperationCreate, Version: w.published(s, a.path), After: w.after()}
	syncDir(dir)
	return out, nil
}

// competitor decides what it means that the name was taken after we had looked.
func (w *writing) competitor(dir *anchor.Dir, name string, err error) error {
	if !w.creates() {
		return errMoved{err: err} // then it is a replacement
	}
	i, lerr := dir.Lstat(name)
	if lerr == nil && !i.IsRegular() {
		return w.notRegular()
	}
	return w.fail(CodeNotObserved, "it was made meanwhile and has not been read")
}

// update replaces a regular file.
func (w *writing) update(dir *anchor.Dir, a aim, p *pin) (WriteOutcome, error) {
	size := int64(len(w.content))
	want, old, err := w.judged(p, w.guard(), w.replaces(), size)
	if err != nil {
		return WriteOutcome{}, err
	}
	if err := w.writable(p, w.o.OverrideReadOnly); err != nil {
		return WriteOutcome{}, err
	}
	if want.kept, err = w.keepsOverwritten(a.path); err != nil {
		return WriteOutcome{}, err
	}
	parts := []string{w.content}
	if _, own := cutBOM(w.content); old.bom && !own && !w.o.DropBOM {
		parts = []string{bom, w.content}
	}
	before := old.before
	r, err := w.replace(dir, a, want, func(out *pin) { before = w.basisOf(out, size) }, parts...)
	if err != nil {
		return WriteOutcome{}, err
	}
	return WriteOutcome{
		Operation: OperationUpdate, Version: r.version, Before: before, After: w.after(),
		LinksBroken: r.links, MetadataLost: r.lost, Trashed: r.trashed,
	}, nil
}

// after is the text of the new content, as the outcome has it.
func (w *writing) after() string {
	text, _ := cutBOM(w.content)
	return toLF(text)
}

// writable refuses a file that could not be opened for writing, which a rename
// would replace all the same: one without any write bit, for root too, and one
// that the kernel would not let this process write.
func (c *call) writable(p *pin, override bool) error {
	if override {
		return nil
	}
	if p.Info.Perm()&0o222 == 0 {
		return c.failed(CodePermissionDenied, "the file is read-only; replacing it must be asked for", syscall.EACCES)
	}
	if err := p.CanWrite(); err != nil {
		return c.mapped(err)
	}
	return nil
}
