package provider

import (
	"context"
	"errors"

	"github.com/wattle-dev/wattle/trash/record"
)

// keepsOverwritten tells whether what is overwritten at a canonical path goes
// into the trash (trash.md section 6): the policy says so, and a delete of the
// path would go there too. Where there is no trash it is not overwritten at all.
//
// An edit, or a patch of the same file, overwrites nothing: it makes the new
// text of the old one.
func (c *call) keepsOverwritten(path string) (bool, error) {
	if !c.fence.KeepOverwritten() || c.outright(path, false) {
		return false, nil
	}
	if c.trash == nil {
		return false, &Error{
			Code: record.CodeUnavailable, Op: c.op, Path: c.shown,
			Outcome: record.Rejected, Reason: record.ReasonBackend, Detail: saysNoTrash,
		}
	}
	return true, nil
}

const saysNoTrash = "the policy keeps what is overwritten, and no trash can take it"

// unkept is the error when the trash has not taken what is overwritten.
func (c *call) unkept(err error) error {
	err = c.untrashed(err)
	var e *Error
	if errors.As(err, &e) && e.Code == record.CodeUnavailable {
		e.Detail = saysNoTrash
	}
	return err
}

// keepReplaced puts the file that s replaced, which lies under its hidden name,
// into the trash. When the trash refuses, the file gets its place back. It runs
// with the directory's lock held, and nothing cancels it.
func (c *call) keepReplaced(s *staged, a aim) (*record.Entry, error) {
	sure := *c
	sure.ctx = context.WithoutCancel(c.ctx)
	entry, err := sure.trash.Put(sure.ctx, s.dir, s.name, a.path, s.old, false)
	if err == nil {
		s.name = ""
		return &entry, nil
	}
	var r *record.Error
	if errors.As(err, &r) && r.Outcome == record.Unknown {
		s.name = "" // it may be there still, and is not ours to remove
		return nil, sure.unkept(err)
	}
	back := sure.takeBack(a, s)
	if back == nil {
		return nil, sure.unkept(err)
	}
	detail := "the trash did not take what was overwritten, and it was not put back: " + back.Error()
	if now, lerr := s.dir.Lstat(s.name); lerr == nil && now.SameFile(s.old) {
		detail += "; it is kept as " + s.name
		s.name = ""
	}
	e := sure.failed(CodeIOError, detail, err)
	e.Outcome = record.Unknown
	return nil, e
}
