//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

func (f *freedesktop) restore(ctx context.Context, id string, o RestoreOptions) (Restored, error) {
	p, e, err := f.find(ctx, opRestore, id)
	if err != nil {
		return Restored{}, err
	}
	defer p.close()
	r := Restored{Entry: e.entry(p, nil)}
	path, err := f.destination(e, o)
	if err != nil {
		return Restored{}, err
	}
	r.Path = path
	if o.Allow != nil {
		if err := o.Allow(r.Entry, path); err != nil {
			return Restored{}, err
		}
	}
	to, err := openTarget(path, o.Parents)
	if err != nil {
		return Restored{}, err
	}
	defer to.close()
	r.Made = to.paths()
	if err := f.bringBack(ctx, p, e, to, o, &r); err != nil {
		if re := (*record.Error)(nil); !errors.As(err, &re) || re.Outcome != record.Unknown {
			to.undo()
		}
		return Restored{}, err
	}
	return r, nil
}

// destination is where an entry goes, canonical. Nothing is there, as far as
// can be seen now.
func (f *freedesktop) destination(e *found, o RestoreOptions) (string, error) {
	shown := e.original
	if shown == "" {
		shown = e.name
	}
	broken := func(why string, err error) (string, error) {
		return "", failure(record.CodeBroken, record.ReasonOperationFailed, opRestore, shown, why, err)
	}
	if !e.hasData {
		return broken("there is no data", nil)
	}
	path := o.Destination
	switch {
	case path != "":
		if !filepath.IsAbs(path) {
			return "", failure(record.CodeRejected, record.ReasonInvalidPath, opRestore, path, "the destination is not absolute", nil)
		}
	case !e.hasRecord:
		return broken("there is no record of where it was; name a destination", nil)
	case e.bad != nil:
		return broken("its record cannot be read; name a destination", e.bad)
	default:
		path = e.original
	}
	path = filepath.Clean(path)
	if path == "/" {
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
		if !errors.Is(err, fs.ErrNotExist) || there == "/" {
			return "", failed(opRestore, path, "", err)
		}
		there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest)
	}
	if f.inTrash(path) {
		return "", failure(record.CodeRejected, record.ReasonProtected, opRestore, path, "the destination lies in a trash", nil)
	}
	return path, nil
}

// inTrash asks about the deepest directory of a path that is there.
func (f *freedesktop) inTrash(path string) bool {
	s, _ := f.around()
	if within(path, s.path) {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if inside, last := s.along(dir); inside || last != nil || dir == "/" {
			return inside
		}
	}
}

// bringBack moves the data, and then takes the record away.
func (f *freedesktop) bringBack(ctx context.Context, p *place, e *found, to *target, o RestoreOptions, r *Restored) error {
	pin, err := pinEntry(p.files, e.name)
	if err != nil {
		return failed(opRestore, r.Path, "", err)
	}
	defer pin.close()
	if now, err := pin.stat(); err != nil || !now.SameFile(e.data) {
		return failure(codeStale, record.ReasonOperationFailed, opRestore, r.Path, "the entry is another thing now", err)
	}
	f.at("restoring")
	err = f.move(p.files, e.name, to.dir, to.name, e.data.IsDir())
	switch {
	case errors.Is(err, fs.ErrExist):
		return failure(codeExists, record.ReasonOperationFailed, opRestore, r.Path, "something is there; it is never replaced", err)
	case errors.Is(err, syscall.EXDEV):
		if !o.CopyAcross {
			return failure(record.CodeUnavailable, record.ReasonBackend, opRestore, r.Path,
				"it is in another mount than the trash; choose another destination, or allow a copy (copyAcross)", err)
		}
		return f.copyBack(ctx, p, e, to, r)
	case errors.As(err, new(*moveBroken)):
		return unknown(opRestore, r.Path, "", &r.Entry, err)
	case err != nil:
		return failed(opRestore, r.Path, whyBack(e, to, err), err)
	}
	f.at("restored")
	now, err := to.dir.Lstat(to.name)
	want, perr := pin.stat()
	if err = errors.Join(err, perr); err != nil || !now.SameFile(want) {
		if back := f.move(to.dir, to.name, p.files, e.name, e.data.IsDir()); back != nil {
			return unknown(opRestore, r.Path, "another thing was moved, and cannot be moved back", &r.Entry, back)
		}
		return failure(codeStale, record.ReasonOperationFailed, opRestore, r.Path, "the entry is another thing now", err)
	}
	return f.forgetEntry(p, e, to, r)
}

func whyBack(e *found, to *target, err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return "it cannot be moved"
	}
	if err := to.dir.CanWrite(); err != nil {
		return "the directory " + to.dir.Path() + " is not writable"
	}
	if e.data.IsDir() {
		return fmt.Sprintf("it cannot be moved (a directory of mode %04o must be writable itself)", e.data.Perm())
	}
	return "it cannot be moved"
}

// copyBack copies under a hidden name, so that the destination is whole when it
// appears.
func (f *freedesktop) copyBack(ctx context.Context, p *place, e *found, to *target, r *Restored) error {
	// The place is looked at first: a long copy for nothing helps nobody.
	if _, err := to.dir.Lstat(to.name); err == nil {
		return failure(codeExists, record.ReasonOperationFailed, opRestore, r.Path, "something is there; it is never replaced", fs.ErrExist)
	}
	c := &copying{ctx: ctx}
	hidden := ".wattle-restore-" + whereOf(p.self, e.name)
	data, err := f.copyTo(c, p.files, e.name, to.dir, hidden)
	if err == nil {
		err = f.move(to.dir, hidden, to.dir, to.name, data.IsDir())
	}
	if err != nil {
		_ = c.undo(to.dir, hidden) // the first error says more
		if errors.Is(err, fs.ErrExist) {
			return failure(codeExists, record.ReasonOperationFailed, opRestore, r.Path, "something is there; it is never replaced", err)
		}
		return failed(opRestore, r.Path, "it cannot be copied", err)
	}
	r.Copied, r.MetadataLost = true, c.lost
	if f.sync {
		_ = to.dir.Sync() // the copy itself is on the disk
	}
	if _, _, err := remove(ctx, p.files, e.name, e.data); err != nil {
		return unknown(opRestore, r.Path, "it was restored, and its data is still in the trash", &r.Entry, err)
	}
	return f.forgetEntry(p, e, to, r)
}

// forgetEntry takes the record away after the data has left.
func (f *freedesktop) forgetEntry(p *place, e *found, to *target, r *Restored) error {
	if e.hasRecord {
		if f.sync {
			_ = to.dir.Sync() // not durable is no failure: it is there
		}
		err := p.info.Unlink(e.name + record.InfoSuffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unknown(opRestore, r.Path, "it was restored, and its record is still in the trash", &r.Entry, err)
		}
	}
	f.at("forgotten")
	if f.sync {
		for _, d := range []*anchor.Dir{p.files, p.info} {
			if d != nil {
				_ = d.Sync()
			}
		}
	}
	if e.data.IsDir() {
		f.sizes.forget(p, map[string]bool{e.name: true})
	}
	return nil
}
