package trash

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// restore moves the data back by one rename, by handles, and replaces nothing.
// There is no copy to another volume.
func (n *native) restore(ctx context.Context, id string, o RestoreOptions) (Restored, error) {
	if err := ctx.Err(); err != nil {
		return Restored{}, failed(opRestore, "", "", err)
	}
	r, err := n.openRecords(false)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Restored{}, failure(record.CodeNotFound, record.ReasonOperationFailed, opRestore, "", "no entry "+id, nil)
		}
		return Restored{}, failed(opRestore, n.recordsPath(), "", err)
	}
	defer r.close()
	e, err := r.find(opRestore, id)
	if err != nil {
		return Restored{}, err
	}
	defer e.close()
	path, err := n.destination(e, o.Destination)
	if err != nil {
		return Restored{}, err
	}
	if o.Allow != nil {
		if err := o.Allow(e.shown(), path); err != nil {
			return Restored{}, err
		}
	}
	to, err := openTarget(path, o.Parents)
	if err != nil {
		return Restored{}, err
	}
	defer to.close()
	done := Restored{Path: path, Entry: e.shown(), Made: to.paths()}
	if err := n.bringBack(r, e, to, path); err != nil {
		if err.Outcome != record.Unknown {
			to.undo()
		}
		return Restored{}, err
	}
	return done, nil
}

// destination is where an entry goes, canonical, after what must be true of the
// entry.
func (n *native) destination(e *opened, path string) (string, error) {
	shown := e.info.Path
	broken := func() (string, error) {
		return "", failure(record.CodeBroken, record.ReasonOperationFailed, opRestore, shown, e.broken(), nil)
	}
	switch {
	case e.unread, e.landing == "", e.at == gone:
		return broken()
	case e.at == hidden:
		return "", failed(opRestore, shown, e.landing+" cannot be looked at", e.err)
	case e.at == other:
		return "", failure(codeStale, record.ReasonOperationFailed, opRestore, shown, "the entry is another thing now", nil)
	}
	if path == "" {
		path = shown
	}
	if !filepath.IsAbs(path) {
		return "", failure(record.CodeRejected, record.ReasonInvalidPath, opRestore, path, "the destination is not absolute", nil)
	}
	path = filepath.Clean(path)
	if filepath.Dir(path) == path {
		return "", failure(codeExists, record.ReasonOperationFailed, opRestore, path, "", nil)
	}
	// Links on the way lead where they lead; only then the fence is asked.
	there, rest := filepath.Dir(path), filepath.Base(path)
	for {
		real, err := filepath.EvalSymlinks(there)
		if err == nil {
			path = filepath.Join(real, rest)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(there) == there {
			return "", failed(opRestore, path, "", err)
		}
		there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest)
	}
	if n.inTrash(path) {
		return "", failure(record.CodeRejected, record.ReasonProtected, opRestore, path, "the destination lies in a trash", nil)
	}
	return path, nil
}

func (n *native) inTrash(path string) bool {
	if covers(n.recordsReal(), path) {
		return true
	}
	for _, part := range parts(path) {
		if n.trashName(part) {
			return true
		}
	}
	return false
}

func (n *native) bringBack(r *records, e *opened, to *target, path string) *record.Error {
	landed := filepath.Base(e.landing)
	err := moveNoReplace(e.dir, landed, to.dir, to.name)
	entry := e.shown()
	switch {
	case errors.Is(err, fs.ErrExist):
		return failure(codeExists, record.ReasonOperationFailed, opRestore, path, "something is there; it is never replaced", err)
	case errors.Is(err, errOtherVolume):
		return failure(record.CodeUnavailable, record.ReasonBackend, opRestore, path, "it is on another volume than the trash; choose another destination", err)
	case errors.Is(err, errors.ErrUnsupported):
		return failure(record.CodeUnavailable, record.ReasonBackend, opRestore, path, "this file system cannot move without replacing", err)
	case err != nil:
		return failed(opRestore, path, "it cannot be moved", err)
	}
	if now, err := lookAt(to.dir, to.name); err != nil || !sameThing(now, e.data) {
		if back := moveNoReplace(to.dir, to.name, e.dir, landed); back != nil {
			return unknown(opRestore, path, "another thing was moved, and cannot be moved back", &entry, back)
		}
		return failure(codeStale, record.ReasonOperationFailed, opRestore, path, "the entry is another thing now", err)
	}
	if n.sync {
		for _, d := range []*anchor.Dir{to.dir, e.dir} {
			_ = d.Sync() // not durable is no failure: it is there
		}
	}
	n.dropCompanion(e.dir, landed)
	if err := r.drop(e.id); err != nil {
		return unknown(opRestore, path, "it was restored, and its record cannot be removed", &entry, err)
	}
	return nil
}
