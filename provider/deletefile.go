package provider

import (
	"context"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// deletingFile is one deleteFile.
type deletingFile struct {
	*call
	o DeleteOptions
}

// DeleteFile implements [Mover].
func (l *Local) DeleteFile(ctx context.Context, f *fence.Fence, t Target, o DeleteOptions) (DeleteOutcome, error) {
	c, err := l.begin(ctx, f, "deleteFile", t.DisplayPath)
	if err != nil {
		return DeleteOutcome{}, undeleted(err)
	}
	d := deletingFile{call: c, o: o}
	var out DeleteOutcome
	err = c.mutate(t, func(a aim) (err error) {
		out, err = d.try(a)
		return err
	})
	if err != nil {
		return DeleteOutcome{}, undeleted(err)
	}
	return out, nil
}

func (d *deletingFile) try(a aim) (DeleteOutcome, error) {
	if err := d.may(a.path, fence.Delete); err != nil {
		return DeleteOutcome{}, err
	}
	switch {
	case a.name == "":
		return DeleteOutcome{}, d.notRegular()
	case a.link, len(a.missing) > 0:
		return DeleteOutcome{}, d.stale(saysGone)
	}
	dir, err := d.openAim(a.dir)
	if err != nil {
		return DeleteOutcome{}, err
	}
	defer dir.Close()
	p, err := d.pinSource(dir, a.name)
	if err != nil {
		return DeleteOutcome{}, err
	}
	defer p.Close()
	if err := d.undeletable(a.path); err != nil {
		return DeleteOutcome{}, err
	}
	return d.deleteRegular(dir, a, p, d.o.Expected, regularDelete{
		permanent: d.outright(a.path, d.o.Permanent), checkMode: !d.o.OverrideReadOnly,
	})
}

// pinSource pins the regular file that is to be changed, deleted or moved away;
// absent is stale.
func (c *call) pinSource(dir *anchor.Dir, name string) (*pin, error) {
	p, err := c.pin(dir, name)
	if absent(err) {
		return nil, c.stale(saysGone)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case p.Info.IsSymlink() && c.fence.Mode() != fence.FullAccess:
		err = errMoved{err: errBecameLink}
	case p.Info.IsSymlink():
		err = c.stale("a symbolic link stands in its place")
	case !p.Info.IsRegular():
		err = c.notRegular()
	default:
		return p, nil
	}
	p.Close()
	return nil, err
}

// regularDelete is how a regular file is deleted.
type regularDelete struct {
	permanent, copyAcross bool
	// checkMode refuses a file that could not be opened for writing.
	checkMode bool
}

// deleteRegular judges the guard, keeps the text, and deletes.
func (c *call) deleteRegular(dir *anchor.Dir, a aim, p *pin, guard *VersionGuard, how regularDelete) (DeleteOutcome, error) {
	want, old, err := c.judged(p, guard, true, 0)
	if err != nil {
		return DeleteOutcome{}, err
	}
	if how.checkMode {
		if err := c.removable(p); err != nil {
			return DeleteOutcome{}, err
		}
	}
	d := deletion{call: c, dir: dir, a: a, want: want, permanent: how.permanent, copyAcross: how.copyAcross}
	out, err := d.do(func() (DeleteOutcome, error) {
		return DeleteOutcome{Outcome: record.Deleted, Entries: 1}, d.unlink()
	})
	if err != nil {
		return DeleteOutcome{}, err
	}
	out.Type, out.Before = TypeFile, old.before
	return out, nil
}

// removable is writable for a file that goes: its directory decides for the
// kernel, but a file that is read-only was meant to stay.
func (c *call) removable(p *pin) error {
	if p.Info.Perm()&0o222 == 0 {
		e := c.failed(CodePermissionDenied, "the file is read-only; removing it must be asked for", syscall.EACCES)
		e.Outcome = record.Rejected
		return e
	}
	if err := p.CanWrite(); err != nil {
		return c.mapped(err)
	}
	return nil
}
