//go:build !portable

package anchor

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// Stream reads a directory piece by piece. One goroutine at a time gets the
// next piece; the state is the stream's own, so that several can read one
// [Dir] at once.
type Stream struct {
	mu   sync.Mutex
	d    *Dir
	fd   int // -1 after Close
	rest direntReader
}

// Stream begins to read the directory, which needs read permission. The caller
// closes the stream.
func (d *Dir) Stream() (*Stream, error) {
	s := &Stream{d: d, fd: -1}
	err := d.use("read directory", ".", func(fd int) (err error) {
		s.fd, err = reopen(fd)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.rest.buf = make([]byte, 32<<10)
	return s, nil
}

// Next returns up to n entries (n < 1 is 1) in the directory's own order, and
// io.EOF, with no entries, at the end. "." and ".." are left out. Entries that
// come or go meanwhile may or may not be seen, as with readdir(3).
func (s *Stream) Next(n int) ([]Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return nil, &fs.PathError{Op: "read directory", Path: s.d.path, Err: fs.ErrClosed}
	}
	var out []Entry
	for n = max(n, 1); len(out) < n; {
		e, err := s.rest.next(s.fd)
		if err == io.EOF {
			break
		}
		if err != nil {
			return out, &fs.PathError{Op: "read directory", Path: s.d.path, Err: err}
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}

// Close ends the stream; more than once is allowed.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	return nil
}

// direntReader cuts getdents64(2) records.
type direntReader struct {
	buf  []byte
	left []byte
}

// next returns io.EOF at the end.
func (r *direntReader) next(fd int) (Entry, error) {
	for {
		if len(r.left) == 0 {
			n, err := retry(func() (int, error) { return unix.Getdents(fd, r.buf) })
			if err != nil {
				return Entry{}, err
			}
			if n <= 0 {
				return Entry{}, io.EOF
			}
			r.left = r.buf[:n]
		}
		// struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name.
		const head = 19
		if len(r.left) < head {
			return Entry{}, unix.EIO
		}
		size := int(binary.NativeEndian.Uint16(r.left[16:]))
		if size < head || size > len(r.left) {
			return Entry{}, unix.EIO
		}
		rec := r.left[:size]
		r.left = r.left[size:]
		name, _, _ := bytes.Cut(rec[head:], []byte{0})
		if s := string(name); s != "." && s != ".." {
			e := Entry{Name: s, Type: uint32(rec[18]) << 12, Ino: binary.NativeEndian.Uint64(rec)}
			if e.Type == 0 { // DT_UNKNOWN: some file systems do not keep the type
				if i, err := statAt(fd, s); err == nil {
					e.Type = i.Type()
				}
			}
			return e, nil
		}
	}
}
