package trash

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// madeDir is a directory that was made: its name, and the one that holds it.
type madeDir struct {
	in   *anchor.Dir
	name string
}

// target is the opened directory in which something gets the name.
type target struct {
	dir  *anchor.Dir
	name string
	// made are the directories that were made on the way, with the one that
	// holds each.
	made []madeDir
}

// openTarget opens the parent of a canonical path, following no link, and makes
// what is missing when it was asked for.
func openTarget(path string, parents bool) (*target, error) {
	t := &target{name: filepath.Base(path)}
	parent := filepath.Dir(path)
	var err error
	if t.dir, err = anchor.OpenDir(parent); err == nil {
		return t, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, failed(opRestore, path, "", err)
	}
	if !parents {
		return nil, failure(codeNotFound, record.ReasonOperationFailed, opRestore, path, "the directory "+parent+" is missing (parents makes it)", err)
	}
	var missing []string
	for errors.Is(err, fs.ErrNotExist) && parent != filepath.Dir(parent) {
		missing = append(missing, filepath.Base(parent))
		parent = filepath.Dir(parent)
		t.dir, err = anchor.OpenDir(parent)
	}
	if err != nil {
		return nil, failed(opRestore, path, "", err)
	}
	for _, name := range slices.Backward(missing) {
		holder := t.dir
		err := holder.Mkdir(name, 0o777)
		if err == nil {
			t.made = append(t.made, madeDir{holder, name})
		} else if !errors.Is(err, fs.ErrExist) {
			t.undo()
			t.close()
			return nil, failed(opRestore, path, "the directory "+filepath.Join(holder.Path(), name)+" cannot be made", err)
		}
		next, err := holder.Walk(name)
		if err != nil {
			t.undo()
			t.close()
			return nil, failed(opRestore, path, "", err)
		}
		if len(t.made) == 0 || t.made[len(t.made)-1].in != holder {
			holder.Close()
		}
		t.dir = next
	}
	return t, nil
}

func (t *target) paths() []string {
	var all []string
	for _, m := range t.made {
		all = append(all, filepath.Join(m.in.Path(), m.name))
	}
	return all
}

func (t *target) close() {
	t.dir.Close()
	for _, m := range t.made {
		m.in.Close()
	}
}

// undo removes the directories that were made and are still empty.
func (t *target) undo() {
	for _, m := range slices.Backward(t.made) {
		if m.in.Rmdir(m.name) != nil {
			return
		}
	}
}
