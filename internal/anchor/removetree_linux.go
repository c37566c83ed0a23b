//go:build !portable

package anchor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxHeld is how many levels of a tree are held open at once. A directory that
// lies deeper is first moved up to the top of the tree and removed from there,
// so that depth costs neither descriptors nor memory nor stack, and no step
// ever goes through "..", which a concurrent rename can point elsewhere.
const maxHeld = 48

// maxPasses bounds how often one directory is read again because something
// new appeared in it.
const maxPasses = 8

// RemoveTree removes the directory called name and everything beneath it,
// permanently. It descends by handles, unlinks links without following them,
// and leaves whatever lies on another mount (EBUSY). Directories that are not
// writable, and ours, are opened up with u+rwx. It goes on after a failure and
// removes what it can; the error is the first one, with a count.
//
// Absent is success. A link is ELOOP, another file ENOTDIR; neither is
// removed. It returns the number of removed entries that were no directories
// and the bytes of regular files whose last name went, also with an error.
// An interrupted removal can be repeated.
//
// A concurrent writer in the tree may keep it from becoming empty: ENOTEMPTY,
// with Last perhaps gone. One that keeps up can prolong the removal; the
// context ends it. Memory and descriptors are bounded: 48 levels, 32 KiB each.
func (d *Dir) RemoveTree(ctx context.Context, name string, o RemoveOptions) (files, bytes int64, err error) {
	if o.Last != "" {
		if err := CheckName(o.Last); err != nil {
			return 0, 0, err
		}
	}
	if err := CheckName(name); err != nil {
		return 0, 0, err
	}
	r := removal{ctx: ctx, last: o.Last, prefix: ".wattle-lifted-" + rand.Text() + "-"}
	defer r.close()
	err = d.use("remove tree", name, func(fd int) error {
		return r.run(fd, name, o.Expect)
	})
	if err == nil && r.left.count > 0 {
		err = r.left.err()
	}
	return r.files, r.bytes, err
}

// level is one open directory of the path that is being removed.
type level struct {
	fd     int
	name   string
	mode   uint32
	dents  direntReader
	passes int
	// kept: something beneath stays, so the directory stays.
	kept bool
	// seen: the present pass met an entry.
	seen bool
}

type removal struct {
	ctx    context.Context
	parent int // not ours to close
	mount  Info
	last   string
	prefix string
	// Directories prefix+[next, lifted) were moved up and wait at the top.
	lifted, next int64
	stack        []level
	spare        [][]byte
	files, bytes int64
	steps        uint
	left         leftovers
}

func (r *removal) run(parent int, name string, expect *Info) error {
	self, err := statAt(parent, "")
	if err != nil {
		return err
	}
	r.parent = parent
	r.mount = self
	fd, info, err := r.open(parent, name, expect)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR):
		if i, err := statAt(parent, name); err == nil && i.IsSymlink() {
			return unix.ELOOP
		}
		return err
	case err != nil:
		return err
	}
	r.push(fd, name, info)
	for len(r.stack) > 0 {
		if r.steps++; r.steps%256 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if r.left.count >= maxFailures {
			return nil
		}
		r.step()
	}
	return nil
}

// step handles the next entry of the innermost directory, or leaves it.
func (r *removal) step() {
	top := &r.stack[len(r.stack)-1]
	e, err := top.dents.next(top.fd)
	switch {
	case err == io.EOF:
		if len(r.stack) == 1 && r.next < r.lifted {
			r.next++
			r.descend(top, fmt.Sprint(r.prefix, r.next-1))
			return
		}
		r.leave()
	case err != nil:
		r.keep(top, "", err)
		r.pop()
	case len(r.stack) == 1 && r.last != "" && e.Name == r.last:
	case e.IsDir():
		top.seen = true
		r.descend(top, e.Name)
	default:
		top.seen = true
		r.unlink(top, e.Name)
	}
}

// unlink removes an entry that was read as no directory.
func (r *removal) unlink(top *level, name string) {
	var st unix.Stat_t
	known := unix.Fstatat(top.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	err := unix.Unlinkat(top.fd, name, 0)
	if errors.Is(err, unix.EACCES) && top.openUp() {
		err = unix.Unlinkat(top.fd, name, 0)
	}
	switch {
	case err == nil:
		r.files++
		if known && st.Mode&TypeMask == TypeRegular && st.Nlink == 1 {
			r.bytes += st.Size
		}
	case errors.Is(err, unix.ENOENT):
	case errors.Is(err, unix.EISDIR): // it was exchanged for one
		r.descend(top, name)
	default:
		r.keep(top, name, err)
	}
}

// descend opens a directory of top and makes it the innermost level.
func (r *removal) descend(top *level, name string) {
	fd, info, err := r.open(top.fd, name, nil)
	if errors.Is(err, unix.EACCES) && top.openUp() {
		fd, info, err = r.open(top.fd, name, nil)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return
	case errors.Is(err, unix.ENOTDIR): // it was exchanged for a file or a link
		if uerr := unix.Unlinkat(top.fd, name, 0); uerr == nil {
			r.files++
		} else if !errors.Is(uerr, unix.ENOENT) {
			r.keep(top, name, uerr)
		}
		return
	case err != nil:
		r.keep(top, name, err)
		return
	}
	if len(r.stack) < maxHeld {
		r.push(fd, name, info)
		return
	}
	r.lift(top, name, fd, info)
}

// lift moves a directory that lies too deep to the top of the tree, unless it
// is empty already.
func (r *removal) lift(top *level, name string, fd int, info Info) {
	defer unix.Close(fd)
	if unix.Unlinkat(top.fd, name, unix.AT_REMOVEDIR) == nil {
		return
	}
	first := &r.stack[0]
	to := fmt.Sprint(r.prefix, r.lifted)
	err := unix.Renameat(top.fd, name, first.fd, to)
	if errors.Is(err, unix.EACCES) {
		// Moving a directory writes its "..": it must be writable as well.
		top.openUp()
		first.openUp()
		l := level{fd: fd, mode: info.Mode}
		l.openUp()
		err = unix.Renameat(top.fd, name, first.fd, to)
	}
	switch {
	case err == nil:
		r.lifted++
	case !errors.Is(err, unix.ENOENT):
		r.keep(top, name, err)
	}
}

// open opens a directory for reading, makes sure that it lies on the mount of
// the tree and is the expected one, and only then opens up what cannot be read.
func (r *removal) open(at int, name string, expect *Info) (int, Info, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := retry(func() (int, error) { return unix.Openat(at, name, flags|unix.O_RDONLY, 0) })
	closed := errors.Is(err, unix.EACCES)
	if closed {
		fd, err = retry(func() (int, error) { return unix.Openat(at, name, flags|unix.O_PATH, 0) })
	}
	if err != nil {
		return -1, Info{}, err
	}
	info, err := statAt(fd, "")
	switch {
	case err != nil:
	case !info.SameMount(r.mount):
		err = unix.EBUSY
	case expect != nil && !expect.SameFile(info):
		err = unix.ESTALE
	case closed:
		if err = chmodPinned(fd, info.Perm()|0o700); err != nil {
			break
		}
		info.Mode |= 0o700
		pin := fd
		fd, err = reopen(pin)
		unix.Close(pin)
		if err != nil {
			return -1, Info{}, err
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, Info{}, err
	}
	return fd, info, nil
}

// openUp gives the owner all rights on a directory after an EACCES; the kernel
// decides whether it is ours. It tells whether that changed anything.
func (l *level) openUp() bool {
	if l.mode&0o700 == 0o700 || unix.Fchmod(l.fd, l.mode&0o7777|0o700) != nil {
		return false
	}
	l.mode |= 0o700
	return true
}

// leave removes the innermost directory, which has been read to its end, or
// reads it again when something new is in it.
func (r *removal) leave() {
	n := len(r.stack) - 1
	top := &r.stack[n]
	if top.kept {
		r.pop()
		return
	}
	if n == 0 && r.last != "" {
		// The last name goes only after a pass that met nothing else.
		if top.seen {
			if !r.again(top) {
				r.keep(top, "", unix.ENOTEMPTY)
				r.pop()
			}
			return
		}
		if err := unix.Unlinkat(top.fd, r.last, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			if !errors.Is(err, unix.EACCES) || !top.openUp() || unix.Unlinkat(top.fd, r.last, 0) != nil {
				r.keep(top, r.last, err)
				r.pop()
				return
			}
		}
	}
	at := r.parent
	if n > 0 {
		at = r.stack[n-1].fd
	}
	err := unix.Unlinkat(at, top.name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.EACCES) && n > 0 && r.stack[n-1].openUp() {
		err = unix.Unlinkat(at, top.name, unix.AT_REMOVEDIR)
	}
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
	case errors.Is(err, unix.ENOTDIR) && n > 0: // it was exchanged
		if unix.Unlinkat(at, top.name, 0) == nil {
			r.files++
		}
	case errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST):
		if r.again(top) {
			return
		}
		r.keep(top, "", err)
	default:
		r.keep(top, "", err)
	}
	r.pop()
}

// again starts another pass over a directory, within bounds.
func (r *removal) again(top *level) bool {
	if top.passes++; top.passes > maxPasses {
		return false
	}
	if _, err := unix.Seek(top.fd, 0, io.SeekStart); err != nil {
		return false
	}
	top.dents.left = nil
	top.seen = false
	return true
}

func (r *removal) push(fd int, name string, info Info) {
	l := level{fd: fd, name: name, mode: info.Mode}
	if n := len(r.spare); n > 0 {
		l.dents.buf, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		l.dents.buf = make([]byte, 32<<10)
	}
	r.stack = append(r.stack, l)
}

// pop closes the innermost level. What keeps it keeps its parent.
func (r *removal) pop() {
	n := len(r.stack) - 1
	l := r.stack[n]
	unix.Close(l.fd)
	r.spare = append(r.spare, l.dents.buf)
	r.stack = r.stack[:n]
	if l.kept && n > 0 {
		r.stack[n-1].kept = true
	}
}

// keep notes that an entry of top, or top itself, stays.
func (r *removal) keep(top *level, name string, err error) {
	top.kept = true
	path := ""
	for i := range r.stack {
		path = filepath.Join(path, r.stack[i].name)
	}
	r.left.add(filepath.Join(path, name), err)
}

func (r *removal) close() {
	for i := range r.stack {
		unix.Close(r.stack[i].fd)
	}
}
