package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// performer makes the calls of a tree itself, under protect "strict", on
// handles that it pinned and the fence allowed. Nothing that the command
// changes afterwards, in its memory, among its descriptors or on disk, makes
// the call reach something else. No call that could change anything is let go
// on, not even one whose own path is harmless or whose answer is known: it
// could be rewritten to a protected name, which Landlock allows.
//
// The supervisor's thread acts with no more than the command has. The user and
// the groups are the same (a fenced process cannot change them: it has neither
// capabilities nor a way to map other users). The capabilities of a daemon that
// is root are dropped from this thread for good. The umask is the caller's.
// Landlock does not hold this thread; the fence's decision stands in its place,
// and the descriptors that it hands over carry no Landlock rights of their own:
// what is opened for writing may be truncated, and a device's ioctls are free.
//
// One goroutine, locked to its thread, owns it.
type performer struct {
	pins  pinner
	creds [3]string // Uid, Gid and Groups of this thread, as /proc tells them
	// all: every call that can change something is performed. Otherwise, in a
	// fence without protected names, metadata calls alone are: Landlock holds
	// the others where they must be held.
	all bool
	// ownFS: this thread has a umask of its own. Where it cannot have one
	// (unshare is refused in default containers) modes are put right afterwards.
	ownFS bool
	umask uint32 // of this thread, or of this process
	// waiting are opens that wait; bounded by maxWaiting.
	waiting []waiter
	tried   time.Time // when they were tried last
	// roots are the writable roots as they were when the command started.
	roots  []rootID
	caller status
	mounts mountTable
}

// rootID is which directory, or file, a writable root was.
type rootID struct {
	path     string
	dev, ino uint64
}

// pinRoots notes what the writable roots are.
func (p *performer) pinRoots(f *fence.Fence) {
	for _, r := range f.WritableRoots() {
		var st unix.Stat_t
		if unix.Lstat(r, &st) == nil {
			p.roots = append(p.roots, rootID{r, uint64(st.Dev), st.Ino})
		} else {
			p.roots = append(p.roots, rootID{path: r})
		}
	}
}

// current tells whether a path lies in a root that is still what it was, as
// Landlock's rules would have it, which are bound to the directory; or in none.
func (p *performer) current(path string) bool {
	covered := false
	for i := range p.roots {
		r := &p.roots[i]
		if !fence.PathCovers(r.path, path) {
			continue
		}
		covered = true
		var st unix.Stat_t
		if r.ino != 0 && unix.Lstat(r.path, &st) == nil && uint64(st.Dev) == r.dev && st.Ino == r.ino {
			return true
		}
	}
	return !covered
}

// ask is check for a call that is about to be performed.
func (s *supervisor) ask(p place, requested string, access fence.Access) verdict {
	v := s.check(p, requested, access)
	if v.errno != 0 {
		return v
	}
	switch {
	case !s.perform.mounts.have(p.mount):
		// Of another mount namespace, or of none: its path is not one of ours.
		return refuse(unix.EACCES)
	case !s.perform.current(p.path):
		return refuse(unix.EACCES) // the user put another directory in its place
	case strings.HasSuffix(p.path, " (deleted)"):
		// A name like any other here; check takes it for what readlink appends.
		if d := s.fence.CheckAs(p.path, requested, access); d != nil {
			return verdict{errno: unix.EACCES, denial: d}
		}
	}
	return v
}

// moves orders the performed renames of all trees of this process. A rename is
// judged by whether it moves a directory; nobody may put one in the place of a
// file in between.
var moves sync.RWMutex

// errNotStrict says why protect "strict" cannot be held on this machine.
var errNotStrict = errors.New("protect \"strict\" cannot be held")

// refuseUnshare makes tests meet a machine where unshare is refused.
var refuseUnshare = false

// enter prepares the calling thread, which must be locked and must die with its
// goroutine.
func (p *performer) enter(f *fence.Fence) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("%w: drop capabilities of the supervisor: %w", errNotStrict, err)
	}
	p.ownFS = !refuseUnshare && unix.Unshare(unix.CLONE_FS) == nil
	creds, umask, ok := credentials(procFile(unix.Gettid(), "status"))
	if !ok {
		return fmt.Errorf("%w: the supervisor cannot read its own credentials", errNotStrict)
	}
	p.creds, p.umask = creds, umask
	p.pinRoots(f)
	return nil
}

// credentials picks from /proc/PID/status who a thread is and its umask.
func credentials(status []byte) (who [3]string, umask uint32, ok bool) {
	found := 0
	for len(status) > 0 && found < 4 {
		var line []byte
		line, status, _ = bytes.Cut(status, []byte{'\n'})
		key, val, _ := bytes.Cut(line, []byte{':'})
		switch string(key) {
		case "Umask":
			n, err := strconv.ParseUint(string(bytes.TrimSpace(val)), 8, 32)
			if err != nil {
				return who, 0, false
			}
			umask = uint32(n)
		case "Uid":
			who[0] = string(val)
		case "Gid":
			who[1] = string(val)
		case "Groups":
			who[2] = string(val)
		default:
			continue
		}
		found++
	}
	return who, umask, found == 4
}

// status is an open /proc/TID/status. It belongs to that very thread: once the
// thread is gone it reads nothing, although the number may be in use again.
type status struct {
	tid uint32
	fd  int
	buf [4096]byte
}

// of reads the status of a thread; the one before stays open, for calls of one
// program come in rows.
func (s *status) of(tid uint32) []byte {
	for range 2 {
		if s.fd > 0 && s.tid == tid {
			if n, err := unix.Pread(s.fd, s.buf[:], 0); err == nil && n > 0 {
				return s.buf[:n]
			}
		}
		s.close()
		fd, err := unix.Open("/proc/"+strconv.Itoa(int(tid))+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil
		}
		s.tid, s.fd = tid, fd
	}
	return nil
}

func (s *status) close() {
	if s.fd > 0 {
		unix.Close(s.fd)
		s.fd = 0
	}
}

// same tells whether a thread is who this one is, and its umask; it is
// credentials without a copy.
func (p *performer) same(tid uint32) (umask uint32, ok bool) {
	b := p.caller.of(tid)
	found := 0
	for len(b) > 0 && found < 4 {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte{'\n'})
		key, val, _ := bytes.Cut(line, []byte{':'})
		i := 0
		switch string(key) {
		case "Umask":
			for _, c := range bytes.TrimSpace(val) {
				umask = umask<<3 | uint32(c-'0')&7
			}
			found++
			continue
		case "Uid":
		case "Gid":
			i = 1
		case "Groups":
			i = 2
		default:
			continue
		}
		if string(val) != p.creds[i] {
			return 0, false
		}
		found++
	}
	return umask, found == 4
}

// as takes on the caller's umask for what is about to be made. A caller that is
// somebody else is refused: none can be, and nobody acts for one.
func (s *supervisor) as(n *notify.Notif) (umask uint32, errno unix.Errno) {
	umask, ok := s.perform.same(n.PID)
	if !ok {
		return 0, unix.EACCES
	}
	if s.perform.ownFS && s.perform.umask != umask {
		unix.Umask(int(umask))
		s.perform.umask = umask
	}
	return umask, 0
}

// madeMode gives a new object the mode that the caller's umask leaves, where
// this thread has only the umask of the whole process. The name was made by
// this thread a moment ago.
func (s *supervisor) madeMode(dir int, name string, mode, umask uint32) {
	want := mode & 0o7777 &^ umask
	if s.perform.ownFS || want == mode&0o7777&^s.perform.umask {
		return
	}
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Fchmodat(unix.AT_FDCWD, handlePath(fd), want, 0)
		unix.Close(fd)
	}
}

// waits tells whether the caller still waits: what was read under its thread id
// was its own, and nobody else gets what is done for it. It is asked after the
// last look at the caller and before the first change.
func (s *supervisor) waits(n *notify.Notif) bool { return notify.Valid(s.listener, n.ID) }

// nobodyWaits is the answer that nobody gets.
var nobodyWaits = refuse(unix.EINTR)

// performed is decide under protect "strict". ok is false when the call is
// decided as under "checked".
func (s *supervisor) performed(n *notify.Notif, c *fence.Call) (v verdict, ok bool) {
	switch c.Kind {
	case fence.CallMeta, fence.CallMetaFD, fence.CallIoctl:
		return s.doMetadata(n, c), true
	}
	if !s.perform.all {
		return verdict{}, false
	}
	switch c.Kind {
	case fence.CallOpen, fence.CallOpenat2, fence.CallCreat:
		return s.doOpen(n, c), true
	case fence.CallUnlink, fence.CallRmdir:
		return s.doUnlink(n, c), true
	case fence.CallMkdir, fence.CallMknod:
		moves.RLock()
		defer moves.RUnlock()
		return s.doCreate(n, c), true
	case fence.CallSymlink:
		moves.Lock()
		defer moves.Unlock()
		return s.doCreate(n, c), true
	case fence.CallTruncate:
		return s.doTruncate(n, c), true
	case fence.CallRename:
		moves.Lock()
		defer moves.Unlock()
		return s.doRename(n, c), true
	case fence.CallLink:
		return s.doLink(n, c), true
	case fence.CallBind:
		moves.RLock()
		defer moves.RUnlock()
		return s.doBind(n)
	}
	return verdict{}, false
}

// result is the answer to a call that was made, with its error.
func result(err error) verdict {
	if err != nil {
		return refuse(errnoOf(err))
	}
	return verdict{done: true}
}

// injected is the answer that hands over a descriptor, which it owns.
func injected(fd int, flags uint64) verdict {
	return verdict{done: true, fd: fd, hasFD: true, cloexec: flags&unix.O_CLOEXEC != 0}
}

// deliver answers one call. A descriptor is handed over first and the answer is
// sent second, never in one: a signal in between would leave the caller with a
// number that is no descriptor of its (facts/supervisor section 2).
func (s *supervisor) deliver(id uint64, v verdict) {
	r := notify.Resp{ID: id}
	switch {
	case v.errno != 0:
		r.Error = -int32(v.errno)
	case v.hasFD:
		nr, err := notify.AddFD(s.listener, id, v.fd, v.cloexec)
		// Ours is closed before the caller goes on, which may execute the file.
		unix.Close(v.fd)
		if err != nil {
			r.Error = -int32(errnoOf(err)) // EMFILE is the caller's own limit
		}
		r.Val = int64(nr)
	case !v.done:
		r.Flags = notify.FlagContinue
	}
	_ = notify.Send(s.listener, &r)
}

// waiter is an open that waits, as the kernel would have the caller wait: of a
// FIFO for writing, for its reader; of a file under a lease, for its holder.
type waiter struct {
	id    uint64
	obj   int // O_PATH handle
	flags uint64
}

const (
	maxWaiting = 1024
	// retryWaiting is how often they are looked at: nothing tells when a FIFO
	// gets its reader.
	retryWaiting = 2 * time.Millisecond
)

// await makes an open wait; the thread goes on with the rest of the tree.
func (s *supervisor) await(n *notify.Notif, obj int, flags uint64) verdict {
	if len(s.perform.waiting) >= maxWaiting {
		return refuse(unix.ENFILE)
	}
	fd, err := unix.FcntlInt(uintptr(obj), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return refuse(errnoOf(err))
	}
	s.perform.waiting = append(s.perform.waiting, waiter{n.ID, fd, flags})
	return verdict{later: true}
}

// retry looks at the opens that wait, not more often than it should,
// and forgets callers that are gone.
func (s *supervisor) retry() {
	p := s.perform
	if len(p.waiting) == 0 || time.Since(p.tried) < retryWaiting {
		return
	}
	p.tried = time.Now()
	left := p.waiting[:0]
	for _, w := range p.waiting {
		if !notify.Valid(s.listener, w.id) {
			unix.Close(w.obj)
			continue
		}
		v := openWithoutWaiting(w.obj, w.flags)
		if mustWait(v.errno, w.flags) {
			left = append(left, w)
			continue
		}
		s.deliver(w.id, v)
		unix.Close(w.obj)
	}
	p.waiting = left
}

// timeout is how long the thread may sleep, in milliseconds.
func (p *performer) timeout() int {
	if p == nil || len(p.waiting) == 0 {
		return -1
	}
	return int(retryWaiting / time.Millisecond)
}

// leave closes what is still held.
func (p *performer) leave() {
	if p == nil {
		return
	}
	p.pins.release()
	p.caller.close()
	p.mounts.close()
	for _, w := range p.waiting {
		unix.Close(w.obj)
	}
}

// openWithoutWaiting opens an object at once or not at all, and gives back a
// file that waits, if the caller asked for one.
func openWithoutWaiting(obj int, flags uint64) verdict {
	fd, err := reopen(obj, flags|unix.O_NONBLOCK)
	if err != nil {
		return refuse(errnoOf(err))
	}
	if flags&unix.O_NONBLOCK == 0 {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, int(flags)&^unix.O_NONBLOCK)
	}
	return injected(fd, flags)
}

// mustWait tells whether an open that did not wait says that it would have to:
// nobody reads the FIFO, or somebody has a lease of the file.
func mustWait(e unix.Errno, flags uint64) bool {
	return flags&unix.O_NONBLOCK == 0 && (e == unix.ENXIO || e == unix.EAGAIN)
}

// reopen opens the object of a handle. The kernel asks the ordinary permissions
// of this thread, which are the caller's.
func reopen(obj int, flags uint64) (int, error) {
	flags = flags&^(unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW) | unix.O_CLOEXEC | unix.O_NOCTTY
	return open(unix.AT_FDCWD, handlePath(obj), flags, 0)
}

func open(dir int, name string, flags uint64, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, int(flags), mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// strictly tells whether the supervisor, if there is one, makes the calls itself.
func (s *supervisor) strictly() bool { return s != nil && s.perform != nil }

// canTakeSockets: this process may take a descriptor of another. Default
// containers refuse it.
var canTakeSockets = sync.OnceValue(func() bool {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, pidfd, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
})
