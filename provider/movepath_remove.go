package provider

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// maxKept ends a removal in which this many entries had to stay.
const maxKept = 1000

// removeSource removes what a copy was made of, entry by entry, and only what
// the copy has: same type, size and time of modification. What was changed or
// made meanwhile stays, and so does what the kernel does not let go; then the
// error says where everything is.
func (y *copying) removeSource() error {
	sure := *y.from.call
	sure.ctx = context.WithoutCancel(sure.ctx)
	y.from.call = &sure
	r := remover{y: y}
	if y.p.Info.IsDir() {
		twin, err := y.dst.Walk(y.to.name)
		if err == nil {
			err = y.walk(twin, &r)
			twin.Close()
		}
		if err != nil {
			r.keep("", err)
		}
	} else {
		r.remove(y.src, y.from.name, "", y.dst, y.to.name)
	}
	if r.kept == 0 {
		return nil
	}
	code := CodeIOError
	if errors.Is(r.first, syscall.EACCES) || errors.Is(r.first, syscall.EPERM) {
		code = CodePermissionDenied
	}
	what := "the source"
	if r.at != "" {
		what = fmt.Sprintf("%s of the source", r.at)
	}
	if r.kept > 1 {
		what += fmt.Sprintf(" (and %d more)", r.kept-1)
	}
	return y.from.failed(code, "the copy is complete at "+y.to.shown+", but "+what+" could not be removed", r.first)
}

// remover is the visitor that removes. Its twin is the copy.
type remover struct {
	y     *copying
	kept  int
	at    string
	first error
}

func (r *remover) keep(rel string, err error) {
	if r.kept++; r.kept == 1 {
		r.at, r.first = rel, err
	}
}

func (r *remover) enter(*walk, *level) error { return r.enough() }

// enough ends a removal that does not get on.
func (r *remover) enough() error {
	if r.kept > maxKept {
		return r.first
	}
	return nil
}

func (r *remover) twin(up, l *level) (*anchor.Dir, error) {
	d, err := up.twin.Walk(l.name)
	if err != nil {
		r.keep(l.rel, errChanged)
		return nil, nil
	}
	return d, nil
}

func (r *remover) entry(_ *walk, l *level, e anchor.Entry) (bool, error) {
	r.remove(l.dir, e.Name, filepath.Join(l.rel, e.Name), l.twin, e.Name)
	return false, r.enough()
}

func (r *remover) leave(_ *walk, up, l *level) error {
	dir, name := r.y.src, r.y.from.name
	if up != nil {
		dir, name = up.dir, l.name
	}
	now, err := look(dir, name)
	if err == nil && l.info.Ino != 0 && !now.SameFile(l.info) {
		err = errChanged
	}
	if err == nil {
		err = dir.Rmdir(name)
	}
	// A directory that holds what was kept is no news.
	if err != nil && !absent(err) && (r.kept == 0 || !errors.Is(err, syscall.ENOTEMPTY)) {
		r.keep(l.rel, err)
	}
	return nil
}

// remove removes one entry that is no directory, if the copy has it.
func (r *remover) remove(dir *anchor.Dir, name, rel string, twin *anchor.Dir, as string) {
	now, err := look(dir, name)
	if absent(err) {
		return
	}
	var has anchor.Info
	if err == nil {
		has, err = look(twin, as)
	}
	if absent(err) || err == nil && !sameState(now, has) {
		err = errChanged
	}
	if err == nil && rel == "" && r.y.p.Info.Ino != 0 && !now.SameFile(r.y.p.Info) {
		err = errChanged
	}
	if err == nil && now.IsSymlink() {
		err = sameText(dir, name, twin, as)
	}
	if err == nil {
		err = dir.Unlink(name)
	}
	if err != nil && !absent(err) {
		r.keep(rel, err)
	}
}

// sameState: a copy has the size and the time of its source; a link's time is
// not kept everywhere.
func sameState(source, copied anchor.Info) bool {
	return source.Type() == copied.Type() && source.Size == copied.Size &&
		(source.IsSymlink() || sameTime(source.Mtime, copied.Mtime))
}

// sameTime allows for file systems that keep times in larger steps.
func sameTime(source, copied int64) bool {
	for _, step := range []int64{1, 100, 1e3, 1e6, 1e7, 1e9, 2e9} {
		if copied == source-source%step {
			return true
		}
	}
	return false
}

func sameText(dir *anchor.Dir, name string, twin *anchor.Dir, as string) error {
	a, err := dir.Readlink(name)
	if err != nil {
		return err
	}
	b, err := twin.Readlink(as)
	if err == nil && a != b {
		err = errChanged
	}
	return err
}
