package dirwatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// mask: IN_CLOSE_WRITE is for writers that changed the file through a mapping,
// which makes no IN_MODIFY. IN_EXCL_UNLINK leaves out writes to files that
// have lost their name, and to those that never had one.
const mask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// inotify is a Source on one inotify instance, see inotify(7).
type inotify struct {
	f    *os.File
	conn syscall.RawConn
	done chan struct{}
}

// Open begins a Source. tell gets its events, one at a time, from a goroutine
// of the Source that ends after Close.
func Open(tell func(Event)) (Source, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, &fs.PathError{Op: "inotify_init1", Path: "inotify", Err: err}
	}
	// Not blocking, so that the runtime waits for it and Close ends a read.
	f := os.NewFile(uintptr(fd), "inotify")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &inotify{f: f, conn: conn, done: make(chan struct{})}
	go s.read(tell)
	return s, nil
}

// Add implements [Source]. The link in /proc leads to the directory of the
// handle and nowhere else.
func (s *inotify) Add(dir *anchor.Dir) (ID, error) {
	h, err := dir.File()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	wd := -1
	err = control(h, func(fd int) error {
		return s.control(func(queue int) (err error) {
			wd, err = unix.InotifyAddWatch(queue, fmt.Sprintf("/proc/self/fd/%d", fd), mask)
			for errors.Is(err, unix.EINTR) {
				wd, err = unix.InotifyAddWatch(queue, fmt.Sprintf("/proc/self/fd/%d", fd), mask)
			}
			return err
		})
	})
	if errors.Is(err, unix.ENOENT) {
		// A handle leads somewhere even when its directory was removed.
		err = ErrNoProc
	}
	if err != nil {
		return 0, &fs.PathError{Op: "inotify_add_watch", Path: dir.Path(), Err: err}
	}
	return ID(wd), nil
}

// Remove implements [Source]. It fails when the kernel has ended the watch
// already, and then there is nothing to do.
func (s *inotify) Remove(id ID) {
	_ = s.control(func(queue int) error {
		_, err := unix.InotifyRmWatch(queue, uint32(id))
		return err
	})
}

// Close implements [Source].
func (s *inotify) Close() { s.f.Close() }

// Done implements [Source].
func (s *inotify) Done() <-chan struct{} { return s.done }

func (s *inotify) control(f func(queue int) error) error { return raw(s.conn, f) }

func control(f *os.File, use func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw(conn, use)
}

func raw(conn syscall.RawConn, use func(fd int) error) error {
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = use(int(fd)) }); err != nil { // only: closed
		return fs.ErrClosed
	}
	return inner
}

// read passes events on until the queue is closed.
func (s *inotify) read(tell func(Event)) {
	defer close(s.done)
	buf := make([]byte, 64<<10) // some hundreds to thousands of events
	for {
		n, err := s.f.Read(buf)
		if errors.Is(err, fs.ErrClosed) {
			return
		}
		if err != nil {
			tell(Event{Kind: Broken, Err: err})
			return
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(b))
			bits := binary.NativeEndian.Uint32(b[4:])
			// The name is padded with NULs to its length.
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
			if e, ok := event(wd, bits, string(name)); ok {
				tell(e)
			}
			b = b[end:]
		}
	}
}

func event(wd int32, bits uint32, name string) (Event, bool) {
	e := Event{ID: ID(wd), Name: name}
	switch {
	case bits&unix.IN_Q_OVERFLOW != 0:
		return Event{Kind: Lost}, true
	case bits&(unix.IN_DELETE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
		e.Kind = Gone
	case bits&unix.IN_MOVE_SELF != 0:
		e.Kind = Moved
	case name == "":
		e.Kind = Self
		return e, bits&unix.IN_ATTRIB != 0
	case bits&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
		e.Kind = Entry
	default:
		e.Kind = Content
	}
	return e, true
}
