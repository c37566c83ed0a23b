//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// putAcross copies a thing into the home trash and removes it once the copy is
// on the disk (T3). While the source is in place the record says so.
func (f *freedesktop) putAcross(ctx context.Context, t *thing, refused []string) (record.Entry, error) {
	p, err := f.openHome(true)
	if err != nil {
		return record.Entry{}, failure(record.CodeUnavailable, record.ReasonBackend, opPut, t.path,
			"no trash can take it, not even by a copy ("+strings.Join(append(refused, err.Error()), "; ")+"); delete it permanently", nil)
	}
	defer p.close()
	i := record.Info{Path: p.relative(t.path), Deleted: f.now(), Pending: true}
	r := &reserved{limit: maxName}
	c := &copying{ctx: ctx}
	for {
		if r, err = f.reserve(p, filepath.Base(t.path), r.n, r.limit, i); err != nil {
			return record.Entry{}, failed(opPut, t.path, "its record cannot be written in "+p.dir.Path(), err)
		}
		if _, err = p.files.Lstat(r.name); errors.Is(err, fs.ErrNotExist) {
			break
		}
		r.drop() // data without a record is in the way
		if err != nil {
			return record.Entry{}, failed(opPut, t.path, "", err)
		}
	}
	defer func() { r.file.Close() }()
	f.at("recorded")
	data, err := f.copyTo(c, t.dir, t.name, p.files, r.name)
	if err != nil {
		return record.Entry{}, f.undoCopy(c, r, t, err)
	}
	f.at("copied")
	// Again: it was read by its name.
	if now, lerr := t.dir.Lstat(t.name); lerr != nil || !now.SameFile(t.info) || now.Mtime != t.info.Mtime || now.Ctime != t.info.Ctime && !t.info.IsDir() {
		return record.Entry{}, f.undoCopy(c, r, t, errors.Join(lerr, syscall.ESTALE))
	}
	e := &found{name: r.name, hasData: true, data: data, hasRecord: true, record: i, original: t.path}
	e.record.Pending = false
	entry := e.entry(p, nil)
	if _, _, err := remove(ctx, t.dir, t.name, t.info); err != nil {
		if !t.info.IsDir() {
			return record.Entry{}, f.undoCopy(c, r, t, err)
		}
		return record.Entry{}, unknown(opPut, t.path, "the copy is in the trash, and a part of the directory is still there", &entry, err)
	}
	f.at("removed")
	if err := f.finish(r); err != nil {
		return record.Entry{}, unknown(opPut, t.path, "it was copied, and its record cannot be finished", &entry, err)
	}
	f.settle(p, t)
	if t.info.IsDir() {
		f.sizes.measure(p, r.name, data)
	}
	return entry, nil
}

// copyTo copies and makes the copy durable.
func (f *freedesktop) copyTo(c *copying, from *anchor.Dir, name string, to *anchor.Dir, newName string) (anchor.Info, error) {
	if err := c.entry(from, name, to, newName, 0); err != nil {
		return anchor.Info{}, err
	}
	i, err := to.Lstat(newName)
	if err == nil && f.sync {
		if err = flush(to, newName, i); err == nil {
			err = to.Sync()
		}
	}
	return i, err
}

// undoCopy takes the copy and its record away; the source was not touched.
func (f *freedesktop) undoCopy(c *copying, r *reserved, t *thing, cause error) error {
	if c.undo(r.p.files, r.name) == nil {
		r.drop()
	} // else the record says that the copy is not finished
	if errors.Is(cause, syscall.ESTALE) {
		return failure(codeStale, record.ReasonOperationFailed, opPut, t.path, "it changed while it was copied", cause)
	}
	return failed(opPut, t.path, "it cannot be copied into the home trash", cause)
}
