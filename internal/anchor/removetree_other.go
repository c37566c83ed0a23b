//go:build !linux || portable

package anchor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
)

// maxHeld is how many levels are held open; os.Root removes what is deeper.
const maxHeld = 48

// RemoveTree removes the directory called name and everything beneath it,
// permanently, as on Linux, except that mounts are told apart by device, and
// that directories more than 48 levels deep are removed without being counted.
func (d *Dir) RemoveTree(ctx context.Context, name string, o RemoveOptions) (files, bytes int64, err error) {
	if o.Last != "" {
		if err := CheckName(o.Last); err != nil {
			return 0, 0, err
		}
	}
	i, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	case i.IsSymlink():
		return 0, 0, pathError("remove tree", filepath.Join(d.path, name), syscall.ELOOP)
	case !i.IsDir():
		return 0, 0, pathError("remove tree", filepath.Join(d.path, name), syscall.ENOTDIR)
	}
	self, err := d.Stat()
	if err != nil {
		return 0, 0, err
	}
	r := removal{ctx: ctx, mount: self}
	if !r.tree(d, name, o, 0) && r.left.count == 0 {
		return r.files, r.bytes, ctx.Err()
	}
	return r.files, r.bytes, r.left.err()
}

type removal struct {
	ctx          context.Context
	mount        Info
	files, bytes int64
	left         leftovers
}

// tree removes name in d and tells whether it is gone.
func (r *removal) tree(d *Dir, name string, o RemoveOptions, depth int) bool {
	path := filepath.Join(d.path, name)
	if depth >= maxHeld {
		if err := d.root.RemoveAll(name); err != nil {
			r.left.add(path, err)
			return false
		}
		return true
	}
	sub, err := d.Walk(name)
	if err != nil {
		r.left.add(path, err)
		return false
	}
	defer sub.Close()
	self, err := sub.Stat()
	switch {
	case err != nil:
	case !self.SameMount(r.mount):
		err = syscall.EBUSY
	case o.Expect != nil && !o.Expect.SameFile(self):
		err = errStale
	}
	if err != nil {
		r.left.add(path, err)
		return false
	}
	if self.Perm()&0o700 != 0o700 {
		// Opening up what is not ours fails, and so will removing it.
		_ = sub.root.Chmod(".", fs.FileMode(self.Perm()|0o700).Perm())
	}
	if !r.contents(sub, o.Last, depth) {
		return false
	}
	if o.Last != "" {
		if err := sub.Unlink(o.Last); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.left.add(filepath.Join(path, o.Last), err)
			return false
		}
	}
	if err := d.Rmdir(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.left.add(path, err)
		return false
	}
	return true
}

// contents removes every entry but last and tells whether all are gone. It
// reads again until a pass finds nothing, at most a few times.
func (r *removal) contents(d *Dir, last string, depth int) bool {
	for range 8 {
		s, err := d.Stream()
		if err != nil {
			r.left.add(d.path, err)
			return false
		}
		seen, gone := false, true
		for {
			es, err := s.Next(1024)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					r.left.add(d.path, err)
					gone = false
				}
				break
			}
			for _, e := range es {
				if r.ctx.Err() != nil || r.left.count >= maxFailures {
					s.Close()
					return false
				}
				if e.Name == last {
					continue
				}
				seen = true
				gone = r.entry(d, e, depth) && gone
			}
		}
		s.Close()
		if !gone || !seen {
			return gone
		}
	}
	r.left.add(d.path, syscall.ENOTEMPTY)
	return false
}

func (r *removal) entry(d *Dir, e Entry, depth int) bool {
	if e.IsDir() {
		return r.tree(d, e.Name, RemoveOptions{}, depth+1)
	}
	i, ierr := d.Lstat(e.Name)
	err := d.Unlink(e.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		r.left.add(filepath.Join(d.path, e.Name), err)
		return false
	}
	r.files++
	if ierr == nil && i.IsRegular() && i.Nlink <= 1 {
		r.bytes += i.Size
	}
	return true
}
