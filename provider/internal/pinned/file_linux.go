//go:build !portable

package pinned

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// File is one pinned file. One goroutine uses it at a time.
type File struct {
	// Info is what the file was when it was pinned.
	Info anchor.Info

	dir  *anchor.Dir
	name string
	path *os.File // O_PATH
	read int      // -1 until Open; not an os.File, which would poll it
}

// Pin pins the entry called name, of whatever type: a link is pinned itself.
// dir must stay open while the File is used.
func Pin(dir *anchor.Dir, name string) (*File, error) {
	f, err := dir.Open(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	info, err := anchor.StatFile(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{Info: info, dir: dir, name: name, path: f, read: -1}, nil
}

// Look describes the entry called name as [Pin] would, without keeping it.
func Look(dir *anchor.Dir, name string) (anchor.Info, error) { return dir.Lstat(name) }

// Close releases the handles.
func (p *File) Close() {
	p.path.Close()
	if p.read >= 0 {
		unix.Close(p.read)
		p.read = -1
	}
}

// Handle is the handle itself, for [anchor.StatFile] and [anchor.Dir.LinkFile].
// It cannot be read from, and must not be closed.
func (p *File) Handle() *os.File { return p.path }

// Stat describes the pinned file as it is now.
func (p *File) Stat() (anchor.Info, error) { return anchor.StatFile(p.path) }

// Open makes the file readable. The caller has made sure that it is a regular
// one. ESTALE when the pinned file cannot be reached any more.
func (p *File) Open() error {
	if p.read >= 0 {
		return nil
	}
	n := -1
	err := control(p.path, func(fd int) (err error) {
		n, err = retry(func() (int, error) {
			return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		})
		return err
	})
	if err == nil {
		p.read = n
		return nil
	}
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
		return &fs.PathError{Op: "open", Path: p.name, Err: err}
	}
	// /proc is not mounted: by name, and only if it is still the same inode.
	f, err := p.dir.Open(p.name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if i, err := anchor.StatFile(f); err != nil || !i.SameFile(p.Info) {
		return &fs.PathError{Op: "open", Path: p.name, Err: unix.ESTALE}
	}
	return control(f, func(fd int) (err error) {
		p.read, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		return err
	})
}

// ReadAt reads from a place; io.EOF at the end. It never waits: files of the
// kernel that would block are EAGAIN. [File.Open] comes first.
func (p *File) ReadAt(b []byte, off int64) (int, error) {
	n, err := retry(func() (int, error) { return unix.Pread(p.read, b, off) })
	if err != nil {
		return 0, &fs.PathError{Op: "pread64", Path: p.name, Err: err}
	}
	if n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}

// CanWrite tells whether this process could open the file for writing, without
// doing so: EACCES, EPERM (immutable) or EROFS if not. faccessat2(2) on the
// pinned inode, with the effective identity.
func (p *File) CanWrite() error {
	err := control(p.path, func(fd int) error {
		err := unix.Faccessat2(fd, "", unix.W_OK, unix.AT_EACCESS|unix.AT_EMPTY_PATH)
		if errors.Is(err, unix.ENOSYS) { // a filter older than the call
			err = unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.W_OK, 0)
		}
		return err
	})
	if err != nil {
		return &fs.PathError{Op: "faccessat2", Path: p.name, Err: err}
	}
	return nil
}

// control runs f with the descriptor, which stays open until f returns.
func control(f *os.File, fn func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = fn(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
