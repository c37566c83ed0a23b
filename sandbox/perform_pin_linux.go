package sandbox

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// spot is a place with the handles by which it was found. What is judged and
// what is acted on are the same then: a path that leads elsewhere a moment
// later changes nothing.
type spot struct {
	place
	obj int // O_PATH handle of the object, -1 when it is missing
	// dir and name are where a new object goes, or the name that goes: dir is
	// an O_PATH handle, -1 where the object was reached as such. name is the
	// last component, with one slash when the caller wrote any.
	dir  int
	name string
	// foreign: it was reached through a descriptor of another process. What
	// has no path of its own is not the caller's then.
	foreign bool
	proc    bool // in a proc file system
}

// pathless: nothing that can be asked about by path: pipes, sockets, memory,
// and files without a name left.
func (p *spot) pathless() bool { return p.path == "" || p.path[0] != '/' || p.gone() }

func (p *spot) isDevice() bool {
	t := p.mode & unix.S_IFMT
	return t == unix.S_IFCHR || t == unix.S_IFBLK
}

// handlePath names a handle of ours: the kernel goes to the very object.
func handlePath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// pinner finds spots as a given thread would. Its handles stay open until
// release. It is used by one goroutine.
type pinner struct {
	loc  locator
	open []int
}

func (p *pinner) release() {
	for _, fd := range p.open {
		unix.Close(fd)
	}
	p.open = p.open[:0]
}

func (p *pinner) hold(fd int) int {
	p.open = append(p.open, fd)
	return fd
}

// step gives up the handle old for next: a path may have any number of
// components, and this process has its descriptors to share.
func (p *pinner) step(old, next int) int {
	for i, fd := range p.open {
		if fd == old {
			p.open[i] = next
			unix.Close(old)
			return next
		}
	}
	return p.hold(next)
}

// object finds what a path leads to. follow: a link as last component is
// followed; then a dangling one leads to the name that a creation would make.
// A missing object is no error when its directory is there.
func (p *pinner) object(tid int, dirfd int32, path string, follow bool, ways uint64) (spot, unix.Errno) {
	if path == "" {
		return spot{}, unix.ENOENT
	}
	if len(path) >= unix.PathMax {
		return spot{}, unix.ENAMETOOLONG
	}
	l := &p.loc
	l.tid, l.ways = tid, ways&^resolveCached
	base, errno := l.base(dirfd, path)
	if errno != 0 {
		return spot{}, errno
	}
	if base >= 0 {
		p.hold(base)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS | l.ways}
	if !follow {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, err := openat2(base, path, &how)
	switch err {
	case nil:
		p.hold(fd)
		pl, mixed := l.describe(fd)
		if mixed {
			return p.byHand(base, path, follow)
		}
		return spot{place: pl, obj: fd, dir: -1}, 0
	case unix.ELOOP:
		if l.ways&(scoped|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS) == 0 {
			return p.walk(base, path, follow)
		}
	case unix.ENOSYS:
		return p.byHand(base, path, follow)
	case unix.ENOENT:
		return p.missing(base, path, follow)
	}
	return spot{}, errnoOf(err)
}

// missing finds the directory that lacks the last name of a path.
func (p *pinner) missing(base int, path string, follow bool) (spot, unix.Errno) {
	l := &p.loc
	dir, name := splitLast(path)
	if name == "" || name == "." || name == ".." {
		return p.unlessProc(base, path, follow)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: unix.RESOLVE_NO_MAGICLINKS | l.ways}
	fd, err := openat2(base, dir, &how)
	if err == unix.ELOOP || err == unix.ENOENT {
		// Below /proc/self this process may lack what the thread has.
		return p.unlessProc(base, path, follow)
	}
	if err != nil {
		return spot{}, errnoOf(err)
	}
	p.hold(fd)
	pl, mixed := l.describe(fd)
	if mixed {
		return p.byHand(base, path, follow)
	}
	if pl.gone() {
		return spot{}, unix.ENOENT
	}
	if _, ok := readlinkAt(fd, name); ok && follow {
		return p.byHand(base, path, follow)
	}
	return spot{place: pl.child(name), obj: -1, dir: fd, name: withSlash(name, path)}, 0
}

func withSlash(name, path string) string {
	if strings.HasSuffix(path, "/") {
		return name + "/"
	}
	return name
}

func (p *pinner) unlessProc(base int, path string, follow bool) (spot, unix.Errno) {
	if p.loc.ways&scoped != 0 {
		return spot{}, unix.ENOENT
	}
	return p.walk(base, path, follow)
}

// byHand is walk where the thread did not ask for a scope.
func (p *pinner) byHand(base int, path string, follow bool) (spot, unix.Errno) {
	if p.loc.ways&scoped != 0 {
		return spot{}, errUnsure
	}
	return p.walk(base, path, follow)
}

// walk is locator.walk that keeps its handles and notes whose descriptors it
// went through.
func (p *pinner) walk(base int, path string, follow bool) (spot, unix.Errno) {
	l := &p.loc
	start, err := l.dupStart(base, path)
	if err != nil {
		return spot{}, errnoOf(err)
	}
	cur := p.hold(start)
	pending := strings.Split(path, "/")
	slash := strings.HasSuffix(path, "/")
	links, foreign := 0, false
	for steps := 0; len(pending) > 0; steps++ {
		if steps > unix.PathMax {
			return spot{}, unix.ELOOP
		}
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
		if err == unix.ENOENT && last && name != ".." {
			pl, _ := l.describe(cur)
			if pl.gone() {
				return spot{}, unix.ENOENT
			}
			if slash {
				name += "/"
			}
			return spot{place: pl.child(strings.TrimSuffix(name, "/")), obj: -1, dir: cur, name: name, proc: isProc(cur)}, 0
		}
		if err != nil {
			return spot{}, errnoOf(err)
		}
		var st unix.Stat_t
		err = unix.Fstat(next, &st)
		if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFLNK || last && !follow && !slash) {
			cur = p.step(cur, next)
			continue
		}
		unix.Close(next)
		if err != nil {
			return spot{}, errnoOf(err)
		}
		if links++; links > maxLinks {
			return spot{}, unix.ELOOP
		}
		if isProc(cur) {
			// A magic link (fd/N, cwd, root, exe): the kernel jumps; so do we.
			jumped, err := unix.Openat(cur, name, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return spot{}, errnoOf(err)
			}
			foreign = foreign || !p.own(fdPath(cur))
			cur = p.step(cur, jumped)
			continue
		}
		t, ok := readlinkAt(cur, name)
		if !ok {
			return spot{}, unix.ENOENT
		}
		if strings.HasPrefix(t, "/") {
			root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
			if err != nil {
				return spot{}, errnoOf(err)
			}
			cur = p.step(cur, root)
		}
		pending = append(strings.Split(t, "/"), pending...)
	}
	pl, proc := l.describe(cur)
	if slash && !pl.isDir() {
		return spot{}, unix.ENOTDIR
	}
	return spot{place: pl, obj: cur, dir: -1, foreign: foreign, proc: proc}, 0
}

// own tells whether a directory of a proc file system is one of the thread's
// own process.
func (p *pinner) own(dir string) bool {
	tgid := strconv.Itoa(threadGroup(p.loc.tid))
	return fence.PathCovers("/proc/"+tgid, dir)
}

// entry finds a name in a directory, which may be there or not; it is never
// followed.
func (p *pinner) entry(tid int, dirfd int32, path string) (spot, unix.Errno) {
	if path == "" {
		return spot{}, unix.ENOENT
	}
	dir, name := splitLast(path)
	if name == "" {
		name = "."
	}
	d, errno := p.object(tid, dirfd, dir, true, 0)
	if errno != 0 {
		return spot{}, errno
	}
	switch {
	case !d.exists:
		return spot{}, unix.ENOENT
	case !d.isDir():
		return spot{}, unix.ENOTDIR
	}
	fd, err := unix.Openat(d.obj, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT {
		if d.gone() {
			return spot{}, unix.ENOENT
		}
		return spot{place: d.child(name), obj: -1, dir: d.obj, name: withSlash(name, path), proc: d.proc}, 0
	}
	if err != nil {
		return spot{}, errnoOf(err)
	}
	pl, proc := p.loc.describe(p.hold(fd))
	return spot{place: pl, obj: fd, dir: d.obj, name: withSlash(name, path), proc: proc}, 0
}

// dots gives the last component of a path when it is not a name: ".", "..", or
// "/" where there is none.
func dots(path string) string {
	switch _, name := splitLast(path); name {
	case ".", "..":
		return name
	case "":
		if path != "" {
			return "/"
		}
	}
	return ""
}

// descriptor pins an open file of a thread.
func (p *pinner) descriptor(tid int, fd int32) (spot, unix.Errno) {
	p.loc.tid = tid
	if fd == unix.AT_FDCWD {
		return p.object(tid, fd, ".", true, 0)
	}
	h, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/fd/"+strconv.Itoa(int(fd)), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return spot{}, unix.EBADF
	}
	pl, proc := p.loc.describe(p.hold(h))
	return spot{place: pl, obj: h, dir: -1, proc: proc}, 0
}
