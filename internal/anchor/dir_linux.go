//go:build !portable

package anchor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dir is an open directory. Any number of goroutines may use one at once, also
// while another closes it: calls that began before finish on the handle.
//
// The handle is O_PATH, so that a directory which may be searched but not read
// can still be walked through and written to.
type Dir struct {
	f    *os.File
	conn syscall.RawConn
	path string
}

// noOpenat2 latches when openat2(2) is not to be had: ENOSYS before Linux 5.6,
// EPERM from seccomp filters that are older than the call (containers). The
// latch goes one way only: a filter may be installed while we run but is never
// lifted, and asking again for each walk would cost a system call. Walking
// component by component is as strict, only slower.
var noOpenat2 atomic.Bool

// dirFlags: no O_NOFOLLOW here. With O_PATH it would turn the ELOOP for a link
// in the last place into ENOTDIR, or open the link itself.
const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// OpenDir opens the directory at an absolute, clean path, walking from "/"
// without following any link: a link anywhere is ELOOP, so the path must be
// canonical. Any goroutine may call it.
func OpenDir(path string) (*Dir, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.IndexByte(path, 0) >= 0 {
		return nil, &fs.PathError{Op: "open directory", Path: path, Err: unix.EINVAL}
	}
	fd, err := retry(func() (int, error) { return unix.Open("/", dirFlags, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open directory", Path: path, Err: err}
	}
	if path == "/" {
		return newDir(fd, path)
	}
	sub, err := walk(fd, path[1:])
	unix.Close(fd)
	if err != nil {
		return nil, &fs.PathError{Op: "open directory", Path: path, Err: err}
	}
	return newDir(sub, path)
}

func newDir(fd int, path string) (*Dir, error) {
	f := os.NewFile(uintptr(fd), path)
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open directory", Path: path, Err: err}
	}
	return &Dir{f: f, conn: conn, path: path}, nil
}

// Close releases the handle. Later calls fail with fs.ErrClosed.
func (d *Dir) Close() error { return d.f.Close() }

// Path is the path with which the directory was opened, for messages. It says
// nothing about where the directory is now.
func (d *Dir) Path() string { return d.path }

// File gives a handle of its own for users of raw descriptors, to be closed by
// the caller. It is O_PATH: good for the *at calls and for rules, not for
// reading, locking or fsync.
func (d *Dir) File() (*os.File, error) {
	var f *os.File
	err := d.use("duplicate", ".", func(fd int) error {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err == nil {
			f = os.NewFile(uintptr(n), d.path)
		}
		return err
	})
	return f, err
}

// Walk opens a directory beneath this one. rel is a clean relative path, "."
// the directory itself. A link anywhere is ELOOP, a file ENOTDIR, "..", an
// absolute or an empty path EINVAL.
func (d *Dir) Walk(rel string) (*Dir, error) {
	if _, err := splitRel(rel); err != nil {
		return nil, err
	}
	sub := -1
	err := d.use("walk", rel, func(fd int) (err error) {
		sub, err = walk(fd, rel)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newDir(sub, filepath.Join(d.path, rel))
}

// Open opens the entry called name with O_NOFOLLOW, O_CLOEXEC and O_NONBLOCK
// added to the flags: a link is ELOOP, and a FIFO put there does not hang the
// caller. perm is used with O_CREAT and narrowed by the umask. What was opened
// may be a FIFO or a device: ask [StatFile] before reading.
func (d *Dir) Open(name string, flags int, perm uint32) (*os.File, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	// One component with O_NOFOLLOW needs no openat2: nothing else in the
	// name can be followed.
	n := -1
	err := d.use("open", name, func(fd int) (err error) {
		n, err = retry(func() (int, error) {
			return unix.Openat(fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, perm)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(n), filepath.Join(d.path, name)), nil
}

// Sync makes the directory's entries durable, fsync(2). It needs read
// permission on the directory.
func (d *Dir) Sync() error {
	return d.use("sync", ".", func(fd int) error {
		r, err := reopen(fd)
		if err != nil {
			return err
		}
		defer unix.Close(r)
		_, err = retry(func() (int, error) { return 0, unix.Fsync(r) })
		return err
	})
}

// reopen gives a readable descriptor of an O_PATH directory.
func reopen(fd int) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

// use runs f with the descriptor, which stays open until f returns.
func (d *Dir) use(op, name string, f func(fd int) error) error {
	var inner error
	err := d.conn.Control(func(fd uintptr) { inner = f(int(fd)) })
	if err != nil { // only: closed
		inner = fs.ErrClosed
	}
	if inner == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: inner}
}

// walk opens rel beneath fd.
func walk(fd int, rel string) (int, error) {
	if noOpenat2.Load() {
		return walkSlow(fd, rel)
	}
	how := unix.OpenHow{Flags: dirFlags, Resolve: resolve}
	for try := 0; ; try++ {
		n, err := unix.Openat2(fd, rel, &how)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN) && try < 8:
			// The kernel could not tell whether a concurrent rename led
			// outside; openat2(2) says to try again.
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			// Opening an O_PATH directory has no EPERM of its own.
			noOpenat2.Store(true)
			return walkSlow(fd, rel)
		default:
			return -1, err
		}
	}
}

// walkSlow opens one component after the other. O_NOFOLLOW with O_DIRECTORY
// answers ENOTDIR for a link; the caller is told ELOOP as by openat2.
func walkSlow(fd int, rel string) (int, error) {
	cur, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := retry(func() (int, error) {
			return unix.Openat(cur, name, dirFlags|unix.O_NOFOLLOW, 0)
		})
		if errors.Is(err, unix.ENOTDIR) {
			var st unix.Stat_t
			if unix.Fstatat(cur, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&TypeMask == TypeSymlink {
				err = unix.ELOOP
			}
		}
		unix.Close(cur)
		if err != nil {
			return -1, err
		}
		cur = next
	}
	return cur, nil
}

// retry repeats a call that a signal interrupted (FUSE and network file
// systems do that).
func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
