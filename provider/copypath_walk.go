package provider

import (
	"errors"
	"io"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// walk goes through a directory tree by handles, without following any link and
// without going into another mount. Beside it goes a twin, another tree of the
// same form, if there is one.
//
// What it holds is bounded: heldLevels levels of open directories, whatever the
// depth (a level that is needed again is opened anew from the root, and must be
// the same directory), and the names of the directories that wait, maxNames
// bytes. A path in the tree may have maxTreePath bytes: no program can use a
// longer one.
type walk struct {
	c          *call // of the root
	root, twin *anchor.Dir
	mount      anchor.Info
	limit      int // of entries
	room       int // how long a path in the tree may be

	stack []*level
	count int
	names int
}

const (
	heldLevels  = 24
	maxNames    = 64 << 20
	maxTreePath = 4095
	// pieces is how many entries are read at once.
	pieces = 256
)

// level is one directory on the way to where the walk is.
type level struct {
	rel, name string
	info      anchor.Info
	dir, twin *anchor.Dir // nil while closed; those of the root are the walk's
	more      []string    // directories that wait
}

// visitor is told of everything that a walk meets.
type visitor interface {
	// enter comes before a directory is read.
	enter(w *walk, l *level) error
	// entry is told of an entry that was no directory when it was read. It may
	// say that it is one now.
	entry(w *walk, l *level, e anchor.Entry) (isDir bool, err error)
	// leave comes after everything in a directory; up is nil for the root.
	leave(w *walk, up, l *level) error
}

// twinner is a visitor that opens the twin of a directory. nil leaves the
// directory out.
type twinner interface {
	twin(up, l *level) (*anchor.Dir, error)
}

func (w *walk) run(v visitor) error {
	defer w.close()
	top := &level{info: w.mount, dir: w.root, twin: w.twin}
	w.stack = []*level{top}
	if err := w.read(v, top); err != nil {
		return err
	}
	for len(w.stack) > 0 {
		l := w.stack[len(w.stack)-1]
		if len(l.more) > 0 {
			name := l.more[len(l.more)-1]
			l.more = l.more[:len(l.more)-1]
			w.names -= len(name) + 16
			if err := w.descend(v, l, name); err != nil {
				return err
			}
			continue
		}
		var up *level
		if len(w.stack) > 1 {
			up = w.stack[len(w.stack)-2]
			if err := w.reopen(up); err != nil {
				return err
			}
		}
		if err := v.leave(w, up, l); err != nil {
			return err
		}
		w.shut(l)
		w.stack = w.stack[:len(w.stack)-1]
	}
	return nil
}

// read goes through the entries of a directory that was just entered.
func (w *walk) read(v visitor, l *level) error {
	c := w.c.below(l.rel)
	s, err := l.dir.Stream()
	if err != nil {
		return c.ours(moved(err))
	}
	defer s.Close()
	for {
		if err := w.c.alive(); err != nil {
			return err
		}
		es, err := s.Next(pieces)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.ours(err)
		}
		for _, e := range es {
			if err := w.one(v, l, e); err != nil {
				return err
			}
		}
	}
}

func (w *walk) one(v visitor, l *level, e anchor.Entry) error {
	if w.count++; w.count > w.limit {
		return w.c.fail(CodeTooLarge, "the directory has too many entries to be copied")
	}
	if len(l.rel)+len(e.Name)+2 > w.room {
		return w.c.failed(CodeTooLarge, "a path in the directory is longer than paths can be", syscall.ENAMETOOLONG)
	}
	if !e.IsDir() {
		if err := w.c.alive(); err != nil {
			return err
		}
		isDir, err := v.entry(w, l, e)
		if err != nil || !isDir {
			return err
		}
	}
	if w.names += len(e.Name) + 16; w.names > maxNames {
		return w.c.fail(CodeTooLarge, "the directory has too many directories to be copied")
	}
	l.more = append(l.more, e.Name)
	return nil
}

// descend goes into one directory.
func (w *walk) descend(v visitor, up *level, name string) error {
	if err := w.reopen(up); err != nil {
		return err
	}
	l := &level{rel: filepath.Join(up.rel, name), name: name}
	c := w.c.below(l.rel)
	dir, err := up.dir.Walk(name)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return nil // it went before it was its turn
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		// It is another thing now.
		isDir, err := v.entry(w, up, anchor.Entry{Name: name})
		if err == nil && isDir {
			err = errMoved{err: errChanged}
		}
		return err
	case err != nil:
		return c.ours(err)
	}
	l.dir = dir
	w.stack = append(w.stack, l)
	if n := len(w.stack) - 1 - heldLevels; n > 0 {
		w.shut(w.stack[n])
	}
	if l.info, err = dir.Stat(); err != nil {
		return c.ours(err)
	}
	if !l.info.SameMount(w.mount) {
		return c.failed(CodeIOError, saysMounted, syscall.EXDEV)
	}
	if err := v.enter(w, l); err != nil {
		return err
	}
	if t, ok := v.(twinner); ok {
		if l.twin, err = t.twin(up, l); err != nil {
			return err
		}
		if l.twin == nil {
			w.shut(l)
			w.stack = w.stack[:len(w.stack)-1]
			return nil
		}
	}
	return w.read(v, l)
}

// reopen opens a level that was closed.
func (w *walk) reopen(l *level) (err error) {
	if l.dir != nil {
		return nil
	}
	c := w.c.below(l.rel)
	if l.dir, err = w.root.Walk(l.rel); err != nil {
		return c.ours(moved(err))
	}
	now, err := l.dir.Stat()
	if err != nil {
		return c.ours(err)
	}
	if l.info.Ino != 0 && !now.SameFile(l.info) {
		return errMoved{err: errChanged}
	}
	if w.twin != nil {
		if l.twin, err = w.twin.Walk(l.rel); err != nil {
			return c.ours(moved(err))
		}
	}
	return nil
}

// shut closes the handles of a level; those of the root belong to others.
func (w *walk) shut(l *level) {
	if l.rel == "" {
		return
	}
	if l.dir != nil {
		l.dir.Close()
		l.dir = nil
	}
	if l.twin != nil {
		l.twin.Close()
		l.twin = nil
	}
}

func (w *walk) close() {
	for _, l := range w.stack {
		w.shut(l)
	}
}
