package provider

import (
	"context"
	"errors"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
	"github.com/wattle-dev/wattle/trash/record"
)

// undeletable refuses what is never deleted, whatever was asked for and in every
// mode (trash.md section 6): the root directory, the workspace, home, Wattle's
// own places, all that contains one of these, and the trash. It looks at the
// path alone, and comes before the fence: a grant would not help.
func (c *call) undeletable(path string) error {
	ws := c.fence.Workspace()
	switch {
	case fence.PathCovers(path, "/"), ws != "" && fence.PathCovers(path, ws):
		return c.never(record.ReasonRoot, "the workspace and what contains it is never deleted")
	case c.home != "" && fence.PathCovers(path, c.home):
		return c.never(record.ReasonProtected, "the home directory and what contains it is never deleted")
	case c.trash != nil && c.trash.Holds(path):
		return c.never(record.ReasonProtected, "the trash is emptied, not deleted")
	}
	for _, own := range c.fence.Policy().Own {
		if fence.PathCovers(path, own) {
			return c.never(record.ReasonProtected, "it is or contains a directory of Wattle's own")
		}
	}
	return nil
}

// never is the refusal of something that cannot be deleted at all.
func (c *call) never(why record.Reason, detail string) error {
	return c.refused(Code(record.CodeRejected), why, detail)
}

// refused makes the error of a delete that was turned down before any effect.
func (c *call) refused(code Code, why record.Reason, detail string) *Error {
	e := c.fail(code, detail)
	e.Outcome, e.Reason = record.Rejected, why
	return e
}

// undeleted gives the error of a delete its outcome, if it has none yet: what
// the kernel or the trash did not do is failed, all else was turned down before
// anything was done.
func undeleted(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Outcome != "" {
		return err
	}
	e.Outcome = record.Rejected
	if e.Errno != "" {
		e.Outcome = record.Failed
	}
	return err
}

// deletion is one delete of a file, a link or a directory whose parent is open
// and whose entry is pinned.
type deletion struct {
	*call
	dir        *anchor.Dir
	a          aim
	want       expected
	permanent  bool
	copyAcross bool
}

// do removes the entry, under the lock of its directory, so that no exchange
// of a replacement is under way in it.
func (d *deletion) do(remove func() (DeleteOutcome, error)) (DeleteOutcome, error) {
	held, unlock, err := d.lockDir(d.dir, d.a.path)
	if err != nil {
		return DeleteOutcome{}, err
	}
	defer held.Close()
	out, err := func() (DeleteOutcome, error) {
		defer unlock()
		if err := d.still(d.a.name); err != nil {
			return DeleteOutcome{}, err
		}
		d.at("checked")
		if err := d.alive(); err != nil {
			return DeleteOutcome{}, err
		}
		if !d.permanent {
			return d.intoTrash()
		}
		return remove()
	}()
	if err != nil {
		return DeleteOutcome{}, err
	}
	_ = held.Sync() // as in syncDir
	return out, nil
}

// still looks whether the entry is the one that was judged. What is not strict
// (a directory) need only be the same one.
func (d *deletion) still(name string) error {
	now, err := pinned.Look(d.dir, name)
	switch i := d.want.info; {
	case err != nil:
		return moved(err)
	case !now.SameFile(i), d.want.strict && (now.Size != i.Size || now.Mtime != i.Mtime || now.Ctime != i.Ctime):
		return errMoved{err: errChanged, code: CodeStaleVersion}
	}
	return nil
}

// intoTrash hands the entry over. The trash looks at the identity of what it
// has got and puts back what is another file; a file that is written to in
// that moment is in the trash with what was written.
func (d *deletion) intoTrash() (DeleteOutcome, error) {
	if d.trash == nil {
		e := d.fail(Code(record.CodeUnavailable), "there is no trash; permanent deletes it outright")
		e.Outcome, e.Reason = record.Failed, record.ReasonBackend
		return DeleteOutcome{}, e
	}
	entry, err := d.trash.Put(d.ctx, d.dir, d.a.name, d.a.path, d.want.info, d.copyAcross)
	if err != nil {
		return DeleteOutcome{}, d.untrashed(err)
	}
	return DeleteOutcome{Outcome: record.Trashed, Trashed: &entry}, nil
}

// untrashed turns an error of the trash into one of this call. A file that was
// exchanged in the last moment and is in its place is decided anew.
func (c *call) untrashed(err error) error {
	var r *record.Error
	if !errors.As(err, &r) {
		return c.mapped(err)
	}
	if r.Outcome != record.Unknown {
		if aborted := c.alive(); aborted != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			return aborted
		}
		if r.Code == string(CodeStaleVersion) {
			return errMoved{err: err, code: CodeStaleVersion}
		}
	}
	e := &Error{
		Code: Code(r.Code), Op: c.op, Path: c.shown, Errno: r.Errno, Syscall: r.Syscall,
		Outcome: r.Outcome, Reason: r.Reason, Cause: r,
	}
	if r.Code == record.CodeUnavailable {
		e.Detail = "the file stays; permanent deletes it outright"
	}
	return e
}

// unlink removes a file or a link so that nobody's change is lost.
func (d *deletion) unlink() error {
	aside, err := d.putAside(d.dir, d.a.name, d.want)
	if err != nil {
		return err
	}
	if err := d.dir.Unlink(aside); err != nil {
		return d.restore(d.dir, aside, d.a.name, err)
	}
	return nil
}
