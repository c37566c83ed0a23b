//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

const (
	// copyPiece is how much is copied between two looks at the context.
	copyPiece = 16 << 20
	// maxCopyDepth bounds the handles held: five a level.
	maxCopyDepth = 128
)

// copying is one copy of a file, a directory or a link, into another mount.
type copying struct {
	ctx  context.Context
	lost []string
	// made: the new name exists, and we made it.
	made bool
}

// lose remembers what the copy does not have, each once.
func (c *copying) lose(what ...string) {
	for _, w := range what {
		if !slices.Contains(c.lost, w) {
			c.lost = append(c.lost, w)
		}
	}
}

// entry copies one entry, with mode, times, extended attributes, and owner
// where permitted. The new name must be free. What changes while it is read is
// ESTALE, special files and mounts are refused. After an error a part may be
// there.
func (c *copying) entry(from *anchor.Dir, name string, to *anchor.Dir, newName string, depth int) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	path := filepath.Join(from.Path(), name)
	i, err := from.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case i.IsRegular():
		return c.file(from, name, to, newName, i)
	case i.IsSymlink():
		return c.link(from, name, to, newName, i)
	case i.IsDir():
		if depth > maxCopyDepth {
			return fmt.Errorf("copy %s: more than %d directories deep", path, maxCopyDepth)
		}
		return c.tree(from, name, to, newName, depth)
	}
	return fmt.Errorf("copy %s: it is neither file nor directory nor link", path)
}

func (c *copying) link(from *anchor.Dir, name string, to *anchor.Dir, newName string, i anchor.Info) error {
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	if err := to.Symlink(target, newName); err != nil {
		return err
	}
	c.made = true
	c.lose(carryLink(to, newName, i)...)
	return nil
}

func (c *copying) file(from *anchor.Dir, name string, to *anchor.Dir, newName string, i anchor.Info) error {
	src, err := from.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	before, err := anchor.StatFile(src)
	if err != nil {
		return err
	}
	if !before.SameFile(i) || !before.IsRegular() {
		return stale(from, name)
	}
	dst, err := to.Open(newName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c.made = true
	err = c.content(src, dst)
	if err == nil {
		var after anchor.Info
		if after, err = anchor.StatFile(src); err == nil && (after.Ctime != before.Ctime || after.Mtime != before.Mtime || after.Size != before.Size) {
			err = stale(from, name)
		}
	}
	if err == nil {
		var lost []string
		lost, err = carry(src, dst, before)
		c.lose(lost...)
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	return err
}

func (c *copying) content(src io.Reader, dst io.Writer) error {
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(dst, src, copyPiece); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (c *copying) tree(from *anchor.Dir, name string, to *anchor.Dir, newName string, depth int) error {
	src, err := from.Walk(name)
	if err != nil {
		return err
	}
	defer src.Close()
	i, err := src.Stat()
	if err != nil {
		return err
	}
	if up, err := from.Stat(); err != nil || !up.SameMount(i) {
		return errors.Join(err, fmt.Errorf("copy %s: something is mounted there", src.Path()))
	}
	if err := to.Mkdir(newName, 0o700); err != nil {
		return err
	}
	c.made = true
	dst, err := to.Walk(newName)
	if err != nil {
		return err
	}
	defer dst.Close()
	s, err := src.Stream()
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		es, err := s.Next(1024)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, e := range es {
			if err := c.entry(src, e.Name, dst, e.Name, depth+1); err != nil {
				return err
			}
		}
	}
	// What it is comes last: it may not be writable.
	return c.carryDir(from, name, to, newName, i)
}

func (c *copying) carryDir(from *anchor.Dir, name string, to *anchor.Dir, newName string, i anchor.Info) error {
	src, err := from.Open(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.Open(newName, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dst.Close()
	lost, err := carry(src, dst, i)
	c.lose(lost...)
	return err
}

// undo removes what was copied, also when the caller has given up.
func (c *copying) undo(to *anchor.Dir, newName string) error {
	if !c.made {
		return nil
	}
	i, err := to.Lstat(newName)
	if err == nil {
		_, _, err = remove(context.WithoutCancel(c.ctx), to, newName, i)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

func stale(d *anchor.Dir, name string) error {
	return &os.PathError{Op: "copy", Path: filepath.Join(d.Path(), name), Err: syscall.ESTALE}
}

// remove removes one entry of a known identity, whatever it is.
func remove(ctx context.Context, d *anchor.Dir, name string, i anchor.Info) (files, bytes int64, err error) {
	if i.IsDir() {
		return d.RemoveTree(ctx, name, anchor.RemoveOptions{Expect: &i})
	}
	now, err := d.Lstat(name)
	if err != nil {
		return 0, 0, err
	}
	if !now.SameFile(i) {
		return 0, 0, stale(d, name)
	}
	if err := d.Unlink(name); err != nil {
		return 0, 0, err
	}
	if now.IsRegular() && now.Nlink <= 1 {
		bytes = now.Size
	}
	return 1, bytes, nil
}
