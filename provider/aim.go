package provider

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// aim is where a mutation will act: the result of the fence's yes.
type aim struct {
	path string // canonical: the key of the file
	dir  string // canonical directory that exists
	// missing are directories to be made in dir, outermost first; the file
	// goes into the last of them.
	missing []string
	name    string // empty for the root of the file system
	// link: a link that leads to nothing stands at path, and the fence would
	// let its destination be written.
	link bool
	// slash: the spelling says that a directory is meant.
	slash bool
}

// aim decides which file a mutation is about and whether the fence lets it
// (fs-contract section 7). In full-access the target is used as given; only
// its parent is resolved, since a directory may have become a link. Otherwise
// displayPath is resolved now, and what it leads to now is what counts.
func (c *call) aim(t Target) (aim, error) {
	if c.fence.Mode() == fence.FullAccess {
		key, err := c.key(t)
		if err != nil {
			return aim{}, err
		}
		if filepath.Dir(key) == key {
			return aim{path: key}, nil
		}
		r, err := c.canonical(filepath.Dir(key)+string(filepath.Separator), fence.Write)
		if err != nil {
			return aim{}, err
		}
		a := aim{path: filepath.Join(r.Path, filepath.Base(key)), name: filepath.Base(key), missing: r.Missing}
		a.dir = above(r.Path, len(r.Missing))
		if r.Dangling != "" {
			return aim{}, c.fail(CodeNotFound, "a parent is a link that leads to nothing")
		}
		return a, nil
	}
	r, err := c.canonical(t.DisplayPath, fence.Create)
	if err != nil {
		return aim{}, err
	}
	access := fence.Create
	if r.Exists {
		access = fence.Write
	}
	if err := c.may(r.Path, access); err != nil {
		return aim{}, err
	}
	a := aim{path: r.Path, dir: filepath.Dir(r.Path), name: filepath.Base(r.Path)}
	if a.dir == a.path {
		a.name = ""
	}
	if r.Dangling != "" {
		a.link = true
		return a, c.may(r.Dangling, fence.Create)
	}
	if len(r.Missing) > 1 {
		a.missing = r.Missing[:len(r.Missing)-1]
		a.dir = above(a.path, len(r.Missing))
		at := a.dir
		for _, m := range a.missing {
			at = filepath.Join(at, m)
			if err := c.may(at, fence.Mkdir); err != nil {
				return aim{}, err
			}
		}
	}
	return a, nil
}

// aimAt finds the place of a path without following its last name: a link there
// is meant itself. A path that ends in dots names a directory, which is found
// as the kernel finds it. The caller asks the fence about what was found;
// access is only for the refusal of a path that leads nowhere.
func (c *call) aimAt(way string, access fence.Access) (aim, error) {
	dir, name := filepath.Split(way)
	slash := name == ""
	if slash {
		dir, name = filepath.Split(strings.TrimRight(way, string(filepath.Separator)))
	}
	if name == "" || name == "." || name == ".." {
		r, err := c.canonical(way, access)
		if err != nil {
			return aim{}, err
		}
		if r.Dangling != "" {
			return aim{}, c.nowhere(r.Dangling, access)
		}
		a := aim{path: r.Path, dir: above(r.Path, max(len(r.Missing), 1)), name: filepath.Base(r.Path), slash: true}
		if len(r.Missing) > 1 {
			a.missing = r.Missing[:len(r.Missing)-1]
		}
		if a.dir == a.path {
			a.name = ""
		}
		return a, nil
	}
	r, err := c.canonical(dir, access)
	if err != nil {
		return aim{}, err
	}
	if r.Dangling != "" {
		return aim{}, c.nowhere(filepath.Join(r.Dangling, name), access)
	}
	return aim{
		path: filepath.Join(r.Path, name), dir: above(r.Path, len(r.Missing)), missing: r.Missing,
		name: name, slash: slash,
	}, nil
}

// nowhere is the error for a parent that is a link which leads to nothing.
func (c *call) nowhere(to string, access fence.Access) error {
	if err := c.may(to, access); err != nil {
		return err
	}
	return c.fail(CodeNotFound, "a parent is a link that leads to nothing")
}

// above goes n directories up.
func above(path string, n int) string {
	for range n {
		path = filepath.Dir(path)
	}
	return path
}

// mutate runs try with the lock of the target held, and again when the path
// changed meanwhile: fence, lock and handles are then all taken anew.
func (c *call) mutate(t Target, try func(aim) error) error {
	return c.mutateAt(func() (aim, error) { return c.aim(t) }, try)
}

// mutateAt is mutate for what find finds.
func (c *call) mutateAt(find func() (aim, error), try func(aim) error) error {
	err := c.again(func() error {
		a, err := find()
		if err != nil {
			return err
		}
		release, err := c.lockFiles(a.path)
		if err != nil {
			return err
		}
		defer release()
		c.at("locked")
		if err := c.alive(); err != nil {
			return err
		}
		return try(a)
	})
	if err != nil {
		return c.mapped(err)
	}
	return nil
}

// openAim opens the directory that aim found; when it is gone or a link now,
// the path changed.
func (c *call) openAim(path string) (*anchor.Dir, error) {
	d, err := c.openDir(path)
	if changedPath(err) {
		return nil, errMoved{err: err}
	}
	return d, err
}

// changedPath: what going along a canonical path says when it is none any more.
func changedPath(err error) bool {
	return absent(err) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ESTALE)
}

// parents makes the missing directories of an aim and opens the last one.
type parents struct {
	dir  *anchor.Dir
	held []*anchor.Dir // all that were opened, outermost first; the last is dir
	made []string      // made[i] was made in held[i]; "" if it was there
}

func (c *call) openParents(a aim) (*parents, error) {
	base, err := c.openAim(a.dir)
	if err != nil {
		return nil, err
	}
	p := &parents{dir: base, held: []*anchor.Dir{base}}
	for _, m := range a.missing {
		err := p.dir.Mkdir(m, 0o777)
		switch {
		case err == nil:
			p.made = append(p.made, m)
		case errors.Is(err, syscall.EEXIST):
			p.made = append(p.made, "")
			err = nil
		case changedPath(err):
			err = errMoved{err: err}
		}
		var next *anchor.Dir
		if err == nil {
			if next, err = p.dir.Walk(m); changedPath(err) {
				err = errMoved{err: err}
			}
		}
		if err != nil {
			p.undo()
			p.close()
			return nil, err
		}
		p.dir = next
		p.held = append(p.held, next)
	}
	return p, nil
}

// undo removes the directories that were made, if nobody has put anything into
// them.
func (p *parents) undo() {
	for i := len(p.made) - 1; i >= 0; i-- {
		if p.made[i] != "" && p.held[i].Rmdir(p.made[i]) != nil {
			return
		}
	}
}

// sync makes the new directories durable in theirs.
func (p *parents) sync() {
	for i, m := range p.made {
		if m != "" {
			syncDir(p.held[i])
		}
	}
}

func (p *parents) close() {
	for _, d := range p.held {
		d.Close()
	}
}

// syncDir makes the entries of a directory durable. It comes after the
// publication, which cannot be taken back, and a call reports its real
// outcome: so its failure (no read permission on the directory, a file system
// without it) is not one of the call.
func syncDir(d *anchor.Dir) { _ = d.Sync() }
