package provider

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// deletingPath is one deletePath.
type deletingPath struct {
	*call
	o DeletePathOptions
}

// DeletePath implements [Mover].
func (l *Local) DeletePath(ctx context.Context, f *fence.Fence, path string, o DeletePathOptions) (DeleteOutcome, error) {
	c, err := l.begin(ctx, f, "deletePath", path)
	if err != nil {
		return DeleteOutcome{}, undeleted(err)
	}
	d := deletingPath{call: c, o: o}
	out, err := d.run(path)
	if err != nil {
		return DeleteOutcome{}, undeleted(err)
	}
	return out, nil
}

func (d *deletingPath) run(path string) (DeleteOutcome, error) {
	if d.o.Links != "" && d.o.Links != LinksReject {
		return DeleteOutcome{}, d.refused(CodeIOError, record.ReasonInvalidPath, "links is neither empty nor reject")
	}
	way, shown, err := d.absolute(path, ResolveOptions{Cwd: d.o.Cwd})
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Outcome, e.Reason = record.Rejected, record.ReasonInvalidPath
		}
		return DeleteOutcome{}, err
	}
	d.shown = shown
	var out DeleteOutcome
	err = d.mutateAt(func() (aim, error) { return d.find(way) }, func(a aim) (err error) {
		out, err = d.try(a)
		return err
	})
	return out, err
}

// find decides by names alone.
func (d *deletingPath) find(way string) (aim, error) {
	a, err := d.aimAt(way, fence.Delete)
	if err != nil {
		return aim{}, err
	}
	if err := d.undeletable(a.path); err != nil {
		return aim{}, err
	}
	return a, d.may(a.path, fence.Delete)
}

// try is one attempt, with the lock of the path held.
func (d *deletingPath) try(a aim) (DeleteOutcome, error) {
	gone := DeleteOutcome{Outcome: record.AlreadyAbsent}
	if len(a.missing) > 0 {
		return gone, nil
	}
	dir, err := d.openAim(a.dir)
	if err != nil {
		return DeleteOutcome{}, err
	}
	defer dir.Close()
	p, err := d.pin(dir, a.name)
	if absent(err) {
		return gone, nil
	}
	if err != nil {
		return DeleteOutcome{}, err
	}
	defer p.Close()
	if err := d.fits(dir, a, p.Info); err != nil {
		return DeleteOutcome{}, err
	}
	outright := d.outright(a.path, d.o.Permanent)
	if p.Info.IsRegular() {
		return d.deleteRegular(dir, a, p, d.o.Expected, regularDelete{permanent: outright, copyAcross: d.o.CopyAcross})
	}
	del := deletion{
		call: d.call, dir: dir, a: a, permanent: outright, copyAcross: d.o.CopyAcross,
		want: expected{p: p, info: p.Info, strict: p.Info.IsSymlink()},
	}
	if p.Info.IsDir() {
		return d.directory(&del)
	}
	d.at("judged")
	out, err := del.do(func() (DeleteOutcome, error) {
		return DeleteOutcome{Outcome: record.Deleted, Entries: 1}, del.unlink()
	})
	out.Type = TypeSymlink
	return out, err
}

// fits refuses by type.
func (d *deletingPath) fits(dir *anchor.Dir, a aim, i anchor.Info) error {
	mount, err := dir.IsMountPoint(a.name)
	switch {
	case err != nil:
		return moved(err)
	case mount:
		return d.never(record.ReasonProtected, "a file system is mounted there")
	case i.IsSymlink() && d.o.Links == LinksReject:
		return d.refused(CodeNotRegularFile, record.ReasonSymlink, "it is a symbolic link")
	case !i.IsRegular() && !i.IsDir() && !i.IsSymlink():
		return d.refused(CodeNotRegularFile, record.ReasonUnsupportedType, "neither a file nor a directory nor a link")
	case a.slash && !i.IsDir():
		return d.refused(CodeNotDirectory, record.ReasonInvalidPath, "not a directory")
	case d.o.Expected != nil && !i.IsRegular():
		return d.refused(CodeNotRegularFile, record.ReasonUnsupportedType, "only a regular file has a version to be compared")
	}
	return nil
}

// directory deletes one. What the fence keeps from being deleted in it keeps the
// whole; so does a file system that is mounted in it.
func (d *deletingPath) directory(del *deletion) (DeleteOutcome, error) {
	var s survey
	if d.o.Recursive || !del.permanent {
		var err error
		if s, err = d.survey(del.dir, del.a, del.want.info); err != nil {
			return DeleteOutcome{}, err
		}
	}
	d.at("judged")
	out, err := del.do(func() (DeleteOutcome, error) {
		if !d.o.Recursive {
			return d.empty(del)
		}
		return d.tree(del, s)
	})
	out.Type = TypeDirectory
	return out, err
}

// empty removes a directory that must be empty.
func (d *deletingPath) empty(del *deletion) (DeleteOutcome, error) {
	err := del.dir.Rmdir(del.a.name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		e := d.failed(CodeIOError, "the directory is not empty; recursive must be asked for", syscall.ENOTEMPTY)
		e.Outcome = record.Rejected
		return DeleteOutcome{}, e
	}
	if err != nil {
		return DeleteOutcome{}, moved(err)
	}
	return DeleteOutcome{Outcome: record.Deleted, Entries: 1}, nil
}

// tree removes a directory and all in it. Once it has begun nothing cancels it:
// half a tree is nobody's wish.
func (d *deletingPath) tree(del *deletion, s survey) (DeleteOutcome, error) {
	if err := del.dir.CanWrite(); err != nil {
		return DeleteOutcome{}, err // or all in it would go, and it would stay
	}
	files, _, err := del.dir.RemoveTree(context.WithoutCancel(d.ctx), del.a.name, anchor.RemoveOptions{Expect: &del.want.info})
	if err == nil {
		return DeleteOutcome{Outcome: record.Deleted, Entries: int(files) + s.dirs}, nil
	}
	if files == 0 && changedPath(err) {
		return DeleteOutcome{}, errMoved{err: err, code: CodeStaleVersion}
	}
	var e *Error
	errors.As(d.mapped(err), &e)
	e.Detail = "not all of it could be deleted" + d.where(err, del.a)
	// Parts of it may be gone.
	e.Outcome, e.Reason = record.Unknown, ""
	return DeleteOutcome{}, e
}

// where names the entry of a tree that an error is about.
func (d *deletingPath) where(err error, a aim) string {
	if p, ok := pathOf(err); ok {
		if rel, ok := strings.CutPrefix(p, a.name); ok && rel != "" {
			return ": " + rel[1:]
		}
	}
	return ""
}
