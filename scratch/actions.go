package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// Caller is in which mode an action is asked for. The zero value is refused.
type Caller struct {
	Mode fence.Mode
	// InReadOnly is the policy's scratch_in_read_only.
	InReadOnly bool
}

// Permit tells whether the actions may run: nil, or SCRATCH_READ_ONLY.
func (c Caller) Permit(op string) error {
	switch c.Mode {
	case fence.WorkspaceWrite, fence.FullAccess:
		return nil
	case fence.ReadOnly:
		if c.InReadOnly {
			return nil
		}
	}
	return failf(CodeReadOnly, op, "", "the session is read-only; scratch needs workspace-write, or the policy switch scratch_in_read_only")
}

// permit also refuses when there is no scratch at all: a session without a
// workspace has a nil *Dir.
func (d *Dir) permit(op string, c Caller) error {
	if d == nil {
		return failf(CodeNoWorkspace, op, "", "the session has no workspace")
	}
	return c.Permit(op)
}

// Create makes the directory. With a name it makes the directories that lead
// to it, and returns its path; no file is made.
//
// Errors of the actions: SCRATCH_NO_WORKSPACE, SCRATCH_READ_ONLY,
// SCRATCH_NAME_INVALID for names that are not relative and clean, that lead
// through a link, or that are the marker's; SCRATCH_REFUSED, SCRATCH_IO_ERROR.
func (d *Dir) Create(c Caller, name string) (Created, error) {
	if err := d.permit("create", c); err != nil {
		return Created{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if name == "" {
		return Created{Path: d.Path()}, d.ensure("create")
	}
	dir, _, err := d.open("create", name)
	if err != nil {
		return Created{}, err
	}
	dir.Close()
	return Created{Path: filepath.Join(d.Path(), filepath.FromSlash(name))}, nil
}

// open makes sure of the directory and of the parents of name, and opens the
// last of these. The last name itself may be missing or a file, not a link.
func (d *Dir) open(op, name string) (*anchor.Dir, string, error) {
	parents, base, err := entryName(name)
	if err != nil {
		return nil, "", fail(CodeNameInvalid, op, name, err)
	}
	if err := d.ensure(op); err != nil {
		return nil, "", err
	}
	dir, err := d.made.dir.MkdirAll(parents, 0o755)
	if err != nil {
		return nil, "", nameError(op, name, err)
	}
	i, err := dir.Lstat(base)
	switch {
	case err == nil && i.IsSymlink():
		err = syscall.ELOOP
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		dir.Close()
		return nil, "", nameError(op, name, err)
	}
	return dir, base, nil
}

// nameError tells what is wrong with the name from what the system refused.
func nameError(op, name string, err error) error {
	for _, e := range []error{syscall.ELOOP, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EISDIR} {
		if errors.Is(err, e) {
			return fail(CodeNameInvalid, op, name, err)
		}
	}
	return fail(CodeIO, op, name, err)
}

// Write writes a file, whole or not at all: readers see the old content or the
// new one. Parents are made. The file is not flushed to disk; it is scratch.
// An existing file is replaced, a directory of that name is an error.
func (d *Dir) Write(c Caller, name string, content []byte) (Written, error) {
	if err := d.permit("write", c); err != nil {
		return Written{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, base, err := d.open("write", name)
	if err != nil {
		return Written{}, err
	}
	defer dir.Close()
	if err := publish(dir, base, content); err != nil {
		return Written{}, nameError("write", name, err)
	}
	return Written{Path: filepath.Join(d.Path(), filepath.FromSlash(name)), Bytes: int64(len(content))}, nil
}

func publish(dir *anchor.Dir, base string, content []byte) error {
	tmp := ".wattle-" + rand.Text()
	f, err := dir.Open(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = dir.Rename(tmp, dir, base, anchor.Replace)
	}
	if err != nil {
		_ = dir.Unlink(tmp) // it is cleaned with the rest otherwise
	}
	return err
}

const (
	maxListed = 200
	// What a listing reads at most of one directory and how deep it goes;
	// beyond that it says that it is cut.
	maxPerDir = 4096
	maxDepth  = 32
)

// List lists the files of the directory, without making it.
func (d *Dir) List(ctx context.Context, c Caller) (ListResult, error) {
	if err := d.permit("list", c); err != nil {
		return ListResult{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := ListResult{Path: d.Path(), Entries: []Entry{}}
	if d.made == nil || d.closed {
		return out, nil
	}
	there, err := d.check()
	if err == nil && there {
		l := lister{ctx: ctx, out: &out}
		err = l.dir(d.made.dir, "", 0)
	}
	if err != nil {
		return ListResult{}, fail(CodeIO, "list", d.Path(), err)
	}
	return out, nil
}

type lister struct {
	ctx context.Context
	out *ListResult
}

func (l *lister) dir(d *anchor.Dir, rel string, depth int) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	es, err := l.read(d, depth == 0)
	if err != nil {
		return err
	}
	for _, e := range es {
		if len(l.out.Entries) >= maxListed {
			l.out.Truncated = true
			return nil
		}
		name := path.Join(rel, e.Name)
		if e.IsDir() {
			if err := l.sub(d, e.Name, name, depth+1); err != nil {
				return err
			}
			continue
		}
		i, err := d.Lstat(e.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		l.out.Entries = append(l.out.Entries, Entry{Path: strings.ToValidUTF8(name, "\ufffd"), Bytes: i.Size})
	}
	return nil
}

// sub lists a subdirectory. One that went, was exchanged or is closed is left
// out of the listing and counts as cut.
func (l *lister) sub(d *anchor.Dir, name, rel string, depth int) error {
	if depth > maxDepth {
		l.out.Truncated = true
		return nil
	}
	s, err := d.Walk(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer s.Close()
		err = l.dir(s, rel, depth)
	}
	for _, gone := range []error{syscall.ELOOP, syscall.ENOTDIR, fs.ErrPermission} {
		if errors.Is(err, gone) {
			l.out.Truncated = true
			return nil
		}
	}
	return err
}

// read reads and sorts one directory, within bounds.
func (l *lister) read(d *anchor.Dir, top bool) ([]anchor.Entry, error) {
	s, err := d.Stream()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var all []anchor.Entry
	for {
		es, err := s.Next(256)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, es...)
		if len(all) > maxPerDir {
			l.out.Truncated = true
			break
		}
	}
	if top {
		all = slices.DeleteFunc(all, func(e anchor.Entry) bool { return reserved(e.Name) })
	}
	slices.SortFunc(all, func(a, b anchor.Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
