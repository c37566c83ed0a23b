package provider

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
)

// making is one makeDir.
type making struct {
	*call
	o MakeDirOptions
}

// MakeDir implements [Mover].
func (l *Local) MakeDir(ctx context.Context, f *fence.Fence, path string, o MakeDirOptions) (MakeDirOutcome, error) {
	c, err := l.begin(ctx, f, "makeDir", path)
	if err != nil {
		return MakeDirOutcome{}, err
	}
	way, shown, err := c.absolute(path, ResolveOptions{Cwd: o.Cwd})
	if err != nil {
		return MakeDirOutcome{}, err
	}
	c.shown = shown
	m := making{call: c, o: o}
	var out MakeDirOutcome
	err = c.again(func() error {
		a, err := m.find(way)
		if err == nil {
			out, err = m.try(a)
		}
		return err
	})
	if err != nil {
		return MakeDirOutcome{}, c.mapped(err)
	}
	return out, nil
}

// find asks the fence about every directory that would be made.
func (m *making) find(way string) (aim, error) {
	a, err := m.aimAt(way, fence.Mkdir)
	if err != nil {
		return aim{}, err
	}
	at := a.dir
	for _, name := range a.missing {
		at = filepath.Join(at, name)
		if err := m.may(at, fence.Mkdir); err != nil {
			return aim{}, err
		}
	}
	return a, m.may(a.path, fence.Mkdir)
}

func (m *making) try(a aim) (MakeDirOutcome, error) {
	if a.name == "" {
		return m.there(a, true)
	}
	if len(a.missing) > 0 && !m.o.Parents {
		return MakeDirOutcome{}, m.fail(CodeNotFound, "a parent is missing")
	}
	m.at("found")
	p, err := m.openParents(a)
	if err != nil {
		return MakeDirOutcome{}, err
	}
	defer p.close()
	if err = m.alive(); err == nil {
		err = p.dir.Mkdir(a.name, 0o777)
	}
	if errors.Is(err, syscall.EEXIST) {
		p.undo()
		i, err := p.dir.Lstat(a.name)
		if err != nil {
			return MakeDirOutcome{}, moved(err)
		}
		return m.there(a, i.IsDir() || i.IsSymlink() && m.leadsToDir(a.path))
	}
	if err != nil {
		p.undo()
		return MakeDirOutcome{}, moved(err)
	}
	p.sync()
	syncDir(p.dir)
	out := MakeDirOutcome{Path: a.path}
	at := a.dir
	for i, name := range a.missing {
		at = filepath.Join(at, name)
		if p.made[i] != "" {
			out.Made = append(out.Made, at)
		}
	}
	out.Made = append(out.Made, a.path)
	return out, nil
}

// there is the result when something has the name already.
func (m *making) there(a aim, isDir bool) (MakeDirOutcome, error) {
	switch {
	case !m.o.Parents:
		return MakeDirOutcome{}, m.fail(CodeAlreadyExists, "something is there")
	case !isDir:
		return MakeDirOutcome{}, m.fail(CodeAlreadyExists, "something that is no directory is there")
	}
	return MakeDirOutcome{Path: a.path, Made: []string{}}, nil
}

// leadsToDir tells whether a link leads to a directory. It is not made and not
// entered; only its type is told, as stat tells it.
func (m *making) leadsToDir(path string) bool {
	r, err := m.fence.Resolve(path)
	if err != nil || !r.Exists || m.may(r.Path, fence.Read) != nil {
		return false
	}
	d, err := m.openDir(r.Path)
	if err != nil {
		return false
	}
	d.Close()
	return true
}
