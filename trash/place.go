//go:build unix && !darwin

package trash

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// place is one trash directory that passed its checks, opened. info and files
// may be nil when it was opened to look only.
type place struct {
	dir, info, files *anchor.Dir
	// base is what relative paths in records are relative to (T15).
	base string
	home bool
	// self is the identity of dir.
	self anchor.Info
	// made is what was made to open it, innermost last.
	made []madeDir
}

// make makes a directory unless somebody else did, and remembers that.
func (p *place) make(in *anchor.Dir, name string) error {
	err := in.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	held, err := in.Walk(".")
	if err == nil {
		p.made = append(p.made, madeDir{held, name})
	}
	return err
}

func (p *place) close() {
	for _, d := range []*anchor.Dir{p.dir, p.info, p.files} {
		if d != nil {
			d.Close()
		}
	}
	for _, m := range p.made {
		m.in.Close()
	}
}

// undo removes the empty directories that were made, before close. Somebody
// else may use them by now: then they are not empty, or he makes them again. A
// home trash stays: every user has one (T1).
func (p *place) undo() {
	if p.home {
		return
	}
	for _, m := range slices.Backward(p.made) {
		if m.in.Rmdir(m.name) != nil {
			return
		}
	}
}

// unfit says why a trash directory is not used.
type unfit struct {
	path, why string
	err       error
}

func (u *unfit) Error() string {
	s := u.path + ": " + u.why
	if u.err != nil {
		s += ": " + u.err.Error()
	}
	return s
}

func (u *unfit) Unwrap() error { return u.err }

// openHome opens the home trash, and with create makes what is missing of it
// (T1). The data directory, and Trash itself, may be links: what counts is what
// they lead to.
func (f *freedesktop) openHome(create bool) (*place, error) {
	data, err := filepath.EvalSymlinks(f.home)
	if errors.Is(err, fs.ErrNotExist) && create {
		data, err = f.makeData()
	}
	if err != nil {
		return nil, &unfit{f.home, "it cannot be reached", err}
	}
	p := &place{base: data, home: true}
	trash := filepath.Join(data, "Trash")
	real, err := filepath.EvalSymlinks(trash)
	if errors.Is(err, fs.ErrNotExist) && create {
		holder, herr := anchor.OpenDir(data)
		if herr != nil {
			return nil, &unfit{data, "it cannot be opened", herr}
		}
		defer holder.Close()
		err, real = p.make(holder, "Trash"), trash
	}
	if err == nil {
		p.dir, err = anchor.OpenDir(real)
	}
	if err != nil {
		p.undo()
		p.close()
		return nil, &unfit{trash, "it cannot be opened", err}
	}
	return f.fill(p, create)
}

// makeData makes the data directory and what is missing above it.
func (f *freedesktop) makeData() (string, error) {
	there, rest := f.home, ""
	for {
		real, err := filepath.EvalSymlinks(there)
		if err == nil {
			top, err := anchor.OpenDir(real)
			if err != nil {
				return "", err
			}
			defer top.Close()
			d, err := top.MkdirAll(rest, 0o700)
			if err != nil {
				return "", err
			}
			return d.Path(), d.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(there) == there {
			return "", err
		}
		rest = filepath.Join(filepath.Base(there), rest)
		there = filepath.Dir(there)
	}
}

// openShared opens .Trash/$uid in a top directory (T4 to T7). .Trash itself is
// never made.
func (f *freedesktop) openShared(top *anchor.Dir, base string, create bool) (*place, error) {
	path := filepath.Join(base, ".Trash")
	shared, err := top.Walk(".Trash")
	if err != nil {
		return nil, &unfit{path, notOpened(err), err}
	}
	defer shared.Close()
	i, err := shared.Stat()
	switch {
	case err != nil:
		return nil, &unfit{path, "it cannot be looked at", err}
	case i.Perm()&0o1000 == 0:
		return nil, &unfit{path, "it is not sticky", nil}
	}
	return f.openOwn(shared, strconv.FormatUint(uint64(f.uid), 10), base, create)
}

// openSide opens .Trash-$uid in a top directory (T8).
func (f *freedesktop) openSide(top *anchor.Dir, base string, create bool) (*place, error) {
	return f.openOwn(top, fmt.Sprint(".Trash-", f.uid), base, create)
}

func (f *freedesktop) openOwn(in *anchor.Dir, name, base string, create bool) (*place, error) {
	path := filepath.Join(in.Path(), name)
	p := &place{base: base}
	var err error
	p.dir, err = in.Walk(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = p.make(in, name); err != nil {
			p.close()
			return nil, &unfit{path, "it cannot be made", err}
		}
		p.dir, err = in.Walk(name)
	}
	if err != nil {
		p.undo()
		p.close()
		return nil, &unfit{path, notOpened(err), err}
	}
	return f.fill(p, create)
}

func notOpened(err error) string {
	if errors.Is(err, syscall.ELOOP) {
		return "it is a link"
	}
	return "it cannot be opened"
}

// fill checks the trash directory of p and opens its halves, or closes p. Some
// file systems give what is made another owner or mode than asked for, so both
// are looked at after making.
func (f *freedesktop) fill(p *place, create bool) (*place, error) {
	var err error
	if p.self, err = f.checkOwn(p.dir); err == nil {
		p.info, err = f.openHalf(p, "info", create)
	}
	if err == nil {
		p.files, err = f.openHalf(p, "files", create)
	}
	if err != nil {
		p.undo()
		p.close()
		return nil, err
	}
	return p, nil
}

func (f *freedesktop) openHalf(p *place, name string, create bool) (*anchor.Dir, error) {
	path := filepath.Join(p.dir.Path(), name)
	d, err := p.dir.Walk(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, nil
		}
		if err = p.make(p.dir, name); err != nil {
			return nil, &unfit{path, "it cannot be made", err}
		}
		d, err = p.dir.Walk(name)
	}
	if err != nil {
		return nil, &unfit{path, notOpened(err), err}
	}
	i, err := f.checkOwn(d)
	if err == nil && !i.SameMount(p.self) {
		err = &unfit{path, "something is mounted there", nil}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// checkOwn: only a directory of ours, to which nobody else may write.
func (f *freedesktop) checkOwn(d *anchor.Dir) (anchor.Info, error) {
	i, err := d.Stat()
	switch {
	case err != nil:
		return i, &unfit{d.Path(), "it cannot be looked at", err}
	case i.UID != f.uid:
		return i, &unfit{d.Path(), fmt.Sprintf("it belongs to user %d", i.UID), nil}
	case i.Perm()&0o022 != 0:
		return i, &unfit{d.Path(), fmt.Sprintf("others may write to it (mode %04o)", i.Perm()), nil}
	}
	return i, nil
}

// topOf finds the top directory of the mount in which d lies, by handles, and
// how many directories above d that is.
func topOf(d *anchor.Dir) (top *anchor.Dir, ups int, err error) {
	cur, err := d.Walk(".")
	if err != nil {
		return nil, 0, err
	}
	at, err := cur.Stat()
	for err == nil {
		var up *anchor.Dir
		if up, err = cur.Parent(); err != nil {
			break
		}
		var i anchor.Info
		if i, err = up.Stat(); err != nil {
			up.Close()
			break
		}
		if !i.SameMount(at) || i.SameFile(at) {
			up.Close()
			return cur, ups, nil
		}
		cur.Close()
		cur, at = up, i
		ups++
	}
	cur.Close()
	return nil, 0, err
}
