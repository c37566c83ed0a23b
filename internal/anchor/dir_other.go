//go:build !linux || portable

package anchor

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Dir is an open directory, here on os.Root, which keeps every operation
// beneath it. What this half does not do: os.Root follows a link that stays
// beneath, so links are refused by looking first and comparing identities
// afterwards; there are no unnamed files, no exchange and no mount identities;
// Rename and Link between two directories resolve both from their deepest
// common directory; Chmod looks first and then acts.
type Dir struct {
	root *os.Root
	path string
}

// OpenDir opens the directory at an absolute, clean path. A link anywhere is
// ELOOP, so the path must be canonical. Any goroutine may call it.
func OpenDir(path string) (*Dir, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.IndexByte(path, 0) >= 0 {
		return nil, &fs.PathError{Op: "open directory", Path: path, Err: syscall.EINVAL}
	}
	top := filepath.VolumeName(path) + string(filepath.Separator)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, pathError("open directory", path, err)
	}
	d := &Dir{root: root, path: top}
	if path == top {
		return d, nil
	}
	defer d.Close()
	sub, err := d.Walk(path[len(top):])
	if err != nil {
		return nil, pathError("open directory", path, err)
	}
	return sub, nil
}

// Close releases the handle. Later calls fail with fs.ErrClosed.
func (d *Dir) Close() error { return d.root.Close() }

// Path is the path with which the directory was opened, for messages. It says
// nothing about where the directory is now.
func (d *Dir) Path() string { return d.path }

// File gives a handle of its own, to be closed by the caller.
func (d *Dir) File() (*os.File, error) {
	f, err := d.root.Open(".")
	return f, pathError("duplicate", d.path, err)
}

// Walk opens a directory beneath this one. rel is a clean relative path, "."
// the directory itself. A link anywhere is ELOOP, a file ENOTDIR, "..", an
// absolute or an empty path EINVAL.
func (d *Dir) Walk(rel string) (*Dir, error) {
	parts, err := splitRel(rel)
	if err != nil {
		return nil, err
	}
	cur, err := d.root.OpenRoot(".")
	if err != nil {
		return nil, pathError("walk", d.path, err)
	}
	path := d.path
	for _, p := range parts {
		path = filepath.Join(path, p)
		next, err := step(cur, p)
		cur.Close()
		if err != nil {
			return nil, pathError("walk", path, err)
		}
		cur = next
	}
	return &Dir{root: cur, path: path}, nil
}

// step opens one directory and makes sure that it is what lay there, no link.
func step(r *os.Root, name string) (*os.Root, error) {
	before, err := r.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case before.Mode()&fs.ModeSymlink != 0 || before.Mode()&fs.ModeIrregular != 0:
		return nil, syscall.ELOOP
	case !before.IsDir():
		return nil, syscall.ENOTDIR
	}
	next, err := r.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = syscall.ELOOP
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// Open opens the entry called name, never through a link (ELOOP). Truncation
// is done after that is certain. perm is used with O_CREATE.
func (d *Dir) Open(name string, flags int, perm uint32) (*os.File, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	for range openTries {
		f, err := d.openOnce(name, flags, perm)
		if err == nil && flags&os.O_TRUNC != 0 {
			if err = f.Truncate(0); err != nil {
				f.Close()
			}
		}
		if errors.Is(err, errOther) {
			continue
		}
		if err != nil {
			return nil, pathError("open", path, err)
		}
		return f, nil
	}
	return nil, pathError("open", path, syscall.ELOOP)
}

// openTries bounds how often an entry may be replaced while it is opened.
const openTries = 64

// errOther: what was opened is not what lay there a moment before. It was
// replaced, or a link led to something else.
var errOther = errors.New("another file took its place")

func (d *Dir) openOnce(name string, flags int, perm uint32) (*os.File, error) {
	before, err := d.root.Lstat(name)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && flags&os.O_CREATE != 0:
	case err != nil:
		return nil, err
	case before.Mode()&fs.ModeSymlink != 0:
		return nil, syscall.ELOOP
	}
	exclusive := flags&os.O_EXCL != 0
	if missing {
		flags |= os.O_EXCL
	}
	f, err := d.root.OpenFile(name, flags&^os.O_TRUNC, fs.FileMode(perm&0o777))
	switch {
	case missing && !exclusive && errors.Is(err, fs.ErrExist):
		return nil, errOther
	case err != nil:
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !missing && !os.SameFile(before, after) {
		err = errOther
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Sync makes the directory's entries durable where the system can; Windows
// cannot and says nothing.
func (d *Dir) Sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return pathError("sync", d.path, err)
	}
	defer f.Close()
	return pathError("sync", d.path, syncDir(f))
}

// Stat describes the directory itself.
func (d *Dir) Stat() (Info, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return Info{}, pathError("stat", d.path, err)
	}
	defer f.Close()
	return StatFile(f)
}

// Lstat describes an entry without following it if it is a link.
func (d *Dir) Lstat(name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	fi, err := d.root.Lstat(name)
	if err != nil {
		return Info{}, pathError("stat", filepath.Join(d.path, name), err)
	}
	return fromFileInfo(fi), nil
}

// StatFile describes an open file.
func StatFile(f *os.File) (Info, error) {
	fi, err := f.Stat()
	if err != nil {
		return Info{}, pathError("stat", f.Name(), err)
	}
	i := fromFileInfo(fi)
	identify(f, &i)
	return i, nil
}

// IsMountPoint compares devices; a mount of the same file system is not seen.
func (d *Dir) IsMountPoint(name string) (bool, error) {
	self, err := d.Stat()
	if err != nil {
		return false, err
	}
	i, err := d.Lstat(name)
	if err != nil {
		return false, err
	}
	return i.Dev != 0 && !self.SameMount(i), nil
}

// CanWrite is not known here before it is tried: nil.
func (d *Dir) CanWrite() error { return nil }

// Stream reads a directory piece by piece. Several can read one [Dir] at once.
type Stream struct {
	mu   sync.Mutex
	path string
	f    *os.File // nil after Close
}

// Stream begins to read the directory. The caller closes the stream.
func (d *Dir) Stream() (*Stream, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, pathError("read directory", d.path, err)
	}
	return &Stream{path: d.path, f: f}, nil
}

// Next returns up to n entries (n < 1 is 1) in the directory's own order, and
// io.EOF, with no entries, at the end.
func (s *Stream) Next(n int) ([]Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return nil, pathError("read directory", s.path, fs.ErrClosed)
	}
	des, err := s.f.ReadDir(max(n, 1))
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, pathError("read directory", s.path, err)
	}
	out := make([]Entry, len(des))
	for i, de := range des {
		out[i] = Entry{Name: de.Name(), Type: typeBits(de.Type())}
	}
	return out, nil
}

// Close ends the stream; more than once is allowed.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return f.Close()
}

// pathError gives err our operation and path; nil stays nil.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func fromFileInfo(fi fs.FileInfo) Info {
	i := Info{Mode: typeBits(fi.Mode()) | permBits(fi.Mode()), Nlink: 1, Size: fi.Size(), Mtime: fi.ModTime().UnixNano()}
	fromSys(fi, &i)
	return i
}

func permBits(m fs.FileMode) uint32 {
	p := uint32(m.Perm())
	if m&fs.ModeSetuid != 0 {
		p |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		p |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		p |= 0o1000
	}
	return p
}

func typeBits(m fs.FileMode) uint32 {
	switch {
	case m&fs.ModeSymlink != 0:
		return TypeSymlink
	case m.IsDir():
		return TypeDir
	case m&fs.ModeNamedPipe != 0:
		return TypeFIFO
	case m&fs.ModeSocket != 0:
		return TypeSocket
	case m&fs.ModeCharDevice != 0:
		return TypeChar
	case m&fs.ModeDevice != 0:
		return TypeBlock
	case m.IsRegular():
		return TypeRegular
	}
	return 0
}
