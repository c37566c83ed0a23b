package sandbox

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// place is where a path of a command leads, as of now.
type place struct {
	// path is canonical. It does not start with / for things without a path:
	// pipes, sockets, anonymous files.
	path   string
	exists bool
	mode   uint32 // of the object, type and permissions; 0 when missing
	nlink  uint64
	dev    uint64
	ino    uint64
	// dir is the canonical directory of path, for a missing object or one that
	// was reached by name.
	readOnly bool // the mount that would be changed is read-only
	mount    int64
}

func (p place) isDir() bool    { return p.mode&unix.S_IFMT == unix.S_IFDIR }
func (p place) isReg() bool    { return p.mode&unix.S_IFMT == unix.S_IFREG }
func (p place) isLink() bool   { return p.mode&unix.S_IFMT == unix.S_IFLNK }
func (p place) isSocket() bool { return p.mode&unix.S_IFMT == unix.S_IFSOCK }

// gone: an open file without a name left; changing it changes nothing that
// anybody can reach.
func (p place) gone() bool { return p.exists && p.nlink == 0 }

// maxLinks is the kernel's own limit (path_resolution(7)).
const maxLinks = 40

// locator resolves paths as a given thread would. It is used by one goroutine.
//
// It resolves with the rights of this process, on handles, and refuses to
// follow magic links by itself: /proc/self is the caller's there, not ours.
type locator struct {
	tid  int
	ways uint64 // RESOLVE_* that the thread asked for
	// hold: the handle of what is found is kept in held, -1 for none.
	hold bool
	held int
}

// end closes the handle of what was found, or holds it.
func (l *locator) end(fd int) {
	if !l.hold {
		unix.Close(fd)
		return
	}
	l.drop()
	l.held = fd
}

// take gives away the handle that is held, -1 when there is none.
func (l *locator) take() int {
	fd := l.held
	l.held = -1
	return fd
}

// drop closes the handle that is held.
func (l *locator) drop() {
	if fd := l.take(); fd >= 0 {
		unix.Close(fd)
	}
}

// locate resolves path against the descriptor dirfd of thread tid. follow: a
// link as last component is followed. The errno is the kernel's own answer to
// the same resolution; the call then goes on and gets it.
func (l *locator) locate(tid int, dirfd int32, path string, follow bool) (place, unix.Errno) {
	return l.locateAs(tid, dirfd, path, follow, 0)
}

// scoped are the ways of openat2(2) to resolve that change where a path leads,
// not only whether it is taken. The kernel follows no magic link under them.
const scoped = unix.RESOLVE_BENEATH | unix.RESOLVE_IN_ROOT

// resolveCached only asks not to wait (linux/openat2.h, RESOLVE_CACHED).
const resolveCached = 0x20

// errUnsure: a scoped path ends in a dangling link or in a proc file system.
// Where it leads for the thread cannot be told from here, so the call must not
// go on.
const errUnsure = unix.Errno(0xfff)

// locateAs is locate for a thread that asked openat2 to resolve in its own way.
func (l *locator) locateAs(tid int, dirfd int32, path string, follow bool, ways uint64) (place, unix.Errno) {
	if path == "" {
		return place{}, unix.ENOENT
	}
	l.tid, l.ways = tid, ways&^resolveCached
	base, errno := l.base(dirfd, path)
	if errno != 0 {
		return place{}, errno
	}
	if base >= 0 {
		defer unix.Close(base)
	}
	return l.resolve(base, path, follow, 0)
}

// base opens the directory that a relative path starts from; -1 for absolute
// paths: chroot is refused in a fence, the root is shared.
func (l *locator) base(dirfd int32, path string) (int, unix.Errno) {
	if path[0] == '/' && l.ways&unix.RESOLVE_IN_ROOT == 0 {
		return -1, 0
	}
	from := "/proc/" + strconv.Itoa(l.tid) + "/cwd"
	if dirfd != unix.AT_FDCWD {
		from = "/proc/" + strconv.Itoa(l.tid) + "/fd/" + strconv.Itoa(int(dirfd))
	}
	fd, err := unix.Open(from, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err == unix.ENOENT && dirfd != unix.AT_FDCWD {
		return -1, unix.EBADF
	}
	return fd, errnoOf(err)
}

func (l *locator) resolve(base int, path string, follow bool, links int) (place, unix.Errno) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS | l.ways}
	if !follow {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, err := openat2(base, path, &how)
	switch err {
	case nil:
		p, mixed := l.describe(fd)
		if mixed {
			unix.Close(fd)
			return l.byHand(base, path, follow)
		}
		l.end(fd)
		return p, 0
	case unix.ELOOP:
		if l.ways&(scoped|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS) == 0 {
			return l.walk(base, path, follow)
		}
	case unix.ENOSYS:
		return l.byHand(base, path, follow)
	case unix.ENOENT:
		return l.missing(base, path, follow, links)
	}
	return place{}, errnoOf(err)
}

// openat2 with base -1 resolves an absolute path.
func openat2(base int, path string, how *unix.OpenHow) (int, error) {
	if base < 0 {
		base = unix.AT_FDCWD
	}
	for {
		fd, err := unix.Openat2(base, path, how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// missing describes a name that does not exist in a directory that does, and
// follows a dangling link to the name that a creation would make.
func (l *locator) missing(base int, path string, follow bool, links int) (place, unix.Errno) {
	dir, name := splitLast(path)
	if name == "" || name == "." || name == ".." {
		return place{}, unix.ENOENT
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: unix.RESOLVE_NO_MAGICLINKS | l.ways}
	fd, err := openat2(base, dir, &how)
	if l.ways&scoped == 0 && (err == unix.ELOOP || err == unix.ENOENT) {
		// ENOENT: below /proc/self this process may lack what the thread has.
		return l.walk(base, path, follow)
	}
	if err != nil {
		return place{}, errnoOf(err)
	}
	defer unix.Close(fd)
	p, mixed := l.describe(fd)
	if mixed {
		return l.byHand(base, path, follow)
	}
	if p.gone() {
		return place{}, unix.ENOENT // a directory that was removed takes no names
	}
	if follow {
		if t, ok := readlinkAt(fd, name); ok {
			if l.ways&scoped != 0 {
				return place{}, errUnsure
			}
			if links >= maxLinks {
				return place{}, unix.ELOOP
			}
			return l.resolve(fd, t, true, links+1)
		}
	}
	return p.child(name), 0
}

// child is the place of a missing name in the directory p.
func (p place) child(name string) place {
	d := p.path
	if d == "/" {
		d = ""
	}
	return place{path: d + "/" + name, readOnly: p.readOnly, mount: p.mount}
}

// describe tells what an O_PATH descriptor stands for. mixed: it ends in a
// proc file system, so the resolution may have gone through our own /proc/self
// and must be done by hand.
func (l *locator) describe(fd int) (p place, mixed bool) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return place{}, false
	}
	p = place{path: fdPath(fd), exists: true, mode: st.Mode, nlink: uint64(st.Nlink), dev: uint64(st.Dev), ino: st.Ino}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err == nil {
		p.readOnly = fs.Flags&unix.ST_RDONLY != 0
		mixed = fs.Type == unix.PROC_SUPER_MAGIC
	}
	var sx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &sx); err == nil && sx.Mask&unix.STATX_MNT_ID != 0 {
		p.mount = int64(sx.Mnt_id)
	}
	return p, mixed
}

// ofDescriptor describes an open file of a thread: the very file, whatever its
// name is now.
func (l *locator) ofDescriptor(tid int, fd int32) (place, unix.Errno) {
	l.tid = tid
	h, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/fd/"+strconv.Itoa(int(fd)), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return place{}, unix.EBADF
	}
	defer unix.Close(h)
	p, _ := l.describe(h)
	return p, 0
}

// byHand is walk where the thread did not ask for a scope.
func (l *locator) byHand(base int, path string, follow bool) (place, unix.Errno) {
	if l.ways&scoped != 0 {
		return place{}, errUnsure
	}
	return l.walk(base, path, follow)
}

// walk resolves component by component, with /proc/self and magic links as the
// thread sees them. It is the exact way, used where openat2 cannot tell.
func (l *locator) walk(base int, path string, follow bool) (place, unix.Errno) {
	cur, err := l.dupStart(base, path)
	if err != nil {
		return place{}, errnoOf(err)
	}
	found := false
	defer func() {
		if found {
			l.end(cur)
		} else {
			unix.Close(cur)
		}
	}()
	pending := strings.Split(path, "/")
	links := 0
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		if name == "" || name == "." {
			continue
		}
		last := allEmpty(pending)
		if t := l.procSelf(cur, name); t != "" {
			pending = append(strings.Split(t, "/"), pending...)
			continue
		}
		next, err := unix.Openat(cur, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err == unix.ENOENT && last {
			p, _ := l.describe(cur)
			return p.child(name), 0
		}
		if err != nil {
			return place{}, errnoOf(err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(next, &st); err != nil {
			unix.Close(next)
			return place{}, errnoOf(err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK || last && !follow {
			unix.Close(cur)
			cur = next
			continue
		}
		if links++; links > maxLinks {
			unix.Close(next)
			return place{}, unix.ELOOP
		}
		if isProc(cur) {
			// A magic link (fd/N, cwd, root, exe): the kernel jumps; so do we.
			jumped, err := unix.Openat(cur, name, unix.O_PATH|unix.O_CLOEXEC, 0)
			unix.Close(next)
			if err != nil {
				return place{}, errnoOf(err)
			}
			unix.Close(cur)
			cur = jumped
			continue
		}
		t, ok := readlinkAt(cur, name)
		unix.Close(next)
		if !ok {
			return place{}, unix.ENOENT
		}
		if strings.HasPrefix(t, "/") {
			root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
			if err != nil {
				return place{}, errnoOf(err)
			}
			unix.Close(cur)
			cur = root
		}
		pending = append(strings.Split(t, "/"), pending...)
	}
	found = true
	p, _ := l.describe(cur)
	return p, 0
}

func (l *locator) dupStart(base int, path string) (int, error) {
	if path[0] == '/' || base < 0 {
		return unix.Open("/", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	}
	return unix.FcntlInt(uintptr(base), unix.F_DUPFD_CLOEXEC, 3)
}

// procRoot is the inode number of the root of every proc file system
// (linux/proc_ns.h, PROC_ROOT_INO), wherever it is mounted.
const procRoot = 1

// procSelf gives what self and thread-self in the root of a proc file system
// are for the thread.
func (l *locator) procSelf(dir int, name string) string {
	if name != "self" && name != "thread-self" || !isProc(dir) {
		return ""
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil || st.Ino != procRoot {
		return ""
	}
	tgid := strconv.Itoa(threadGroup(l.tid))
	if name == "self" {
		return tgid
	}
	return tgid + "/task/" + strconv.Itoa(l.tid)
}

func isProc(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}

func fdPath(fd int) string {
	var b [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), b[:])
	if err != nil {
		return ""
	}
	return string(b[:n])
}

func readlinkAt(dir int, name string) (string, bool) {
	var b [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, name, b[:])
	if err != nil || n == 0 {
		return "", false
	}
	return string(b[:n]), true
}

// splitLast parts a path into its directory, as written, and its last name;
// trailing slashes do not count.
func splitLast(p string) (dir, name string) {
	t := strings.TrimRight(p, "/")
	i := strings.LastIndexByte(t, '/')
	if i < 0 {
		return ".", t
	}
	return t[:i+1], t[i+1:]
}

func allEmpty(parts []string) bool {
	for _, p := range parts {
		if p != "" {
			return false
		}
	}
	return true
}

func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(unix.Errno); ok {
		return e
	}
	return unix.EIO
}
