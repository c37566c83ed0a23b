package sandbox

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// Calls that make, move or remove names. Each acts on the directory's handle
// and on one component, which the kernel follows nowhere.

func (s *supervisor) entryArg(n *notify.Notif, dir, arg int) (p spot, path string, errno unix.Errno) {
	path, ok := s.pathArg(n, arg)
	if !ok {
		return spot{}, "", unix.EFAULT
	}
	p, errno = s.perform.pins.entry(int(n.PID), dirArg(n, dir), path)
	return p, path, errno
}

// keepPinned makes the handle of what is about to go the one by which it is
// kept, where things are. What the keeper makes does not get the caller's umask.
func (s *supervisor) keepPinned(obj int) {
	if s.keep == nil || obj < 0 {
		return
	}
	if s.perform.ownFS && s.perform.umask != 0o077 {
		unix.Umask(0o077)
		s.perform.umask = 0o077
	}
	s.loc.drop()
	if fd, err := unix.FcntlInt(uintptr(obj), unix.F_DUPFD_CLOEXEC, 3); err == nil {
		s.loc.held = fd
	}
}

func (s *supervisor) doUnlink(n *notify.Notif, c *fence.Call) verdict {
	var flags uint64
	switch {
	case c.Kind == fence.CallRmdir:
		flags = unix.AT_REMOVEDIR
	case c.Flags >= 0:
		flags = uint64(uint32(n.Args[c.Flags]))
	}
	if flags&^unix.AT_REMOVEDIR != 0 {
		return refuse(unix.EINVAL)
	}
	p, path, errno := s.entryArg(n, c.Dir, c.Path)
	switch {
	case errno != 0:
		return refuse(errno)
	case dots(path) != "" && flags == 0:
		return refuse(unix.EISDIR)
	case dots(path) == ".":
		return refuse(unix.EINVAL)
	case dots(path) == "..":
		return refuse(unix.ENOTEMPTY)
	case dots(path) == "/":
		return refuse(unix.EBUSY)
	case !p.exists:
		return refuse(unix.ENOENT)
	case p.readOnly:
		return refuse(unix.EROFS)
	}
	v := s.ask(p.place, path, fence.Delete)
	if v.denial != nil && flags != 0 && !p.isDir() {
		return refuse(unix.ENOTDIR)
	}
	if v.errno != 0 {
		return v
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	s.keepPinned(p.obj)
	s.removing(p.place, flags != 0)
	return result(unix.Unlinkat(p.dir, p.name, int(flags)))
}

func (s *supervisor) doCreate(n *notify.Notif, c *fence.Call) verdict {
	dir, arg, access := c.Dir, c.Path, fence.Create
	text := ""
	switch c.Kind {
	case fence.CallMkdir:
		access = fence.Mkdir
	case fence.CallSymlink:
		dir, arg = c.Dir2, c.Path2
		t, ok := s.pathArg(n, c.Path)
		if !ok {
			return unreadable
		}
		switch len(t) {
		case 0:
			return refuse(unix.ENOENT)
		case unix.PathMax:
			return refuse(unix.ENAMETOOLONG)
		}
		text = t
	}
	p, path, errno := s.entryArg(n, dir, arg)
	switch {
	case errno != 0:
		return refuse(errno)
	case p.exists:
		return refuse(unix.EEXIST)
	case p.readOnly:
		return refuse(unix.EROFS)
	}
	if v := s.making(p.place, s.ask(p.place, path, access)); v.errno != 0 {
		return v
	}
	umask, errno := s.as(n)
	if errno != 0 {
		return refuse(errno)
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	switch c.Kind {
	case fence.CallSymlink:
		return result(unix.Symlinkat(text, p.dir, p.name))
	case fence.CallMkdir:
		mode := s.newMode(uint32(n.Args[c.Path+1])&0o1777, umask)
		err := unix.Mkdirat(p.dir, p.name, mode)
		if err == nil {
			s.madeMode(p.dir, strings.TrimSuffix(p.name, "/"), mode, umask)
		}
		return result(err)
	}
	mode := uint32(n.Args[c.Mode])
	switch mode & unix.S_IFMT {
	case 0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK:
	case unix.S_IFDIR:
		return refuse(unix.EPERM)
	case unix.S_IFCHR, unix.S_IFBLK:
		return refuse(unix.EPERM) // a command has no CAP_MKNOD
	default:
		return refuse(unix.EINVAL)
	}
	mode = s.newMode(mode, umask)
	err := unix.Mknodat(p.dir, p.name, mode, 0)
	if err == nil {
		s.madeMode(p.dir, p.name, mode, umask)
	}
	return result(err)
}

// newMode is what to ask the kernel for: it takes the umask off where this
// thread has the caller's.
func (s *supervisor) newMode(mode, umask uint32) uint32 {
	if s.perform.ownFS {
		return mode
	}
	return mode &^ umask
}

func (s *supervisor) doRename(n *notify.Notif, c *fence.Call) verdict {
	const noReplace, exchange, whiteout = unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE, unix.RENAME_WHITEOUT
	var flags uint64
	if c.Flags >= 0 {
		flags = uint64(uint32(n.Args[c.Flags]))
	}
	switch {
	case flags&^(noReplace|exchange|whiteout) != 0, flags&exchange != 0 && flags != exchange:
		return refuse(unix.EINVAL)
	case flags&whiteout != 0:
		return refuse(unix.EPERM) // makes a device
	}
	from, oldPath, errno := s.entryArg(n, c.Dir, c.Path)
	if errno != 0 {
		return refuse(errno)
	}
	to, newPath, errno := s.entryArg(n, c.Dir2, c.Path2)
	swap := flags&exchange != 0
	switch {
	case errno == unix.ENAMETOOLONG && len(newPath) < unix.PathMax && !from.exists:
		return refuse(unix.ENOENT) // the old name is looked up first
	case errno != 0:
		return refuse(errno)
	case dots(oldPath) != "", dots(newPath) != "" && flags&noReplace == 0:
		return refuse(unix.EBUSY)
	case !from.exists:
		return refuse(unix.ENOENT)
	case from.readOnly:
		return refuse(unix.EROFS)
	case flags&noReplace != 0 && to.exists:
		return refuse(unix.EEXIST)
	case swap && !to.exists:
		return refuse(unix.ENOENT)
	case from.mount != to.mount: // said before anybody is asked
		return refuse(unix.EXDEV)
	}
	if v := s.ask(from.place, oldPath, fence.Rename); v.errno != 0 {
		return v
	}
	if v := s.replaceConfig(n, &from, &to, newPath, swap); v != nil {
		return *v
	}
	if v := s.ask(to.place, newPath, fence.Rename); v.errno != 0 {
		return v
	}
	if from.isDir() || swap && to.isDir() {
		if v := s.checkMove(from.place, oldPath); v.errno != 0 {
			return v
		}
		if v := s.checkMove(to.place, newPath); v.errno != 0 {
			return v
		}
	}
	if from.isDir() && s.fence.Looser(from.path, to.path) || swap && to.isDir() && s.fence.Looser(to.path, from.path) {
		// What is moved from where less is protected may hold anything.
		// The answer makes the mover copy it, and each file is judged by its name.
		return refuse(unix.EXDEV)
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	s.keepPinned(to.obj)
	s.renaming(from.place, to.place, swap)
	return result(unix.Renameat2(from.dir, from.name, to.dir, to.name, uint(flags)))
}

func (s *supervisor) doLink(n *notify.Notif, c *fence.Call) verdict {
	var flags uint64
	if c.Flags >= 0 {
		flags = uint64(uint32(n.Args[c.Flags]))
	}
	if flags&^(unix.AT_EMPTY_PATH|unix.AT_SYMLINK_FOLLOW) != 0 {
		return refuse(unix.EINVAL)
	}
	oldPath, ok := s.pathArg(n, c.Path)
	if !ok {
		return unreadable
	}
	var from spot
	var errno unix.Errno
	if oldPath == "" && flags&unix.AT_EMPTY_PATH != 0 {
		from, errno = s.perform.pins.descriptor(int(n.PID), dirArg(n, c.Dir))
	} else {
		from, errno = s.perform.pins.object(int(n.PID), dirArg(n, c.Dir), oldPath, flags&unix.AT_SYMLINK_FOLLOW != 0, 0)
	}
	switch {
	case errno != 0:
		return refuse(errno)
	case !from.exists:
		return refuse(unix.ENOENT)
	}
	to, newPath, errno := s.entryArg(n, c.Dir2, c.Path2)
	switch {
	case errno != 0:
		return refuse(errno)
	case to.exists:
		return refuse(unix.EEXIST)
	case to.readOnly:
		return refuse(unix.EROFS)
	case from.isDir():
		return refuse(unix.EPERM)
	case from.foreign && from.pathless():
		return refuse(unix.EACCES) // not the caller's
	case strings.HasSuffix(to.name, "/"):
		return refuse(unix.ENOENT)
	}
	if from.gone() { // an unnamed file gets its first name
		if v := s.making(to.place, s.ask(to.place, newPath, fence.Create)); v.errno != 0 {
			return v
		}
	} else {
		if from.mount != to.mount {
			return refuse(unix.EXDEV)
		}
		if v := s.ask(to.place, newPath, fence.Link); v.errno != 0 {
			return v
		}
		v := s.ask(from.place, oldPath, fence.Link)
		if v.denial != nil && v.denial.Rule != fence.RuleProtected && v.denial.Rule != fence.RuleHidden {
			// A link from outside into a root is what the kernel refuses with
			// EXDEV; package managers copy then. It is no denial.
			return refuse(unix.EXDEV)
		}
		if v.errno != 0 {
			return v
		}
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	return result(unix.Linkat(unix.AT_FDCWD, handlePath(from.obj), to.dir, to.name, unix.AT_SYMLINK_FOLLOW))
}

// doBind binds the caller's own socket, taken from it, to an address that lies
// in our memory. ok is false where sockets cannot be taken; the report says so.
//
// The path is used as a path, because the address stays readable in the socket.
// While this thread is here no call of the tree moves anything, and moves keeps
// others from it.
func (s *supervisor) doBind(n *notify.Notif) (v verdict, ok bool) {
	if !canTakeSockets() {
		return verdict{}, false
	}
	if n.Args[2] > 128 {
		return refuse(unix.EINVAL), true
	}
	b := make([]byte, 128)[:n.Args[2]]
	if !readMemory(int(n.PID), n.Args[1], b) {
		return unreadable, true
	}
	pidfd, err := unix.PidfdOpen(threadGroup(int(n.PID)), 0)
	if err != nil {
		return refuse(unix.EACCES), true
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, int(int32(n.Args[0])), 0)
	if err != nil {
		return refuse(errnoOf(err)), true
	}
	defer unix.Close(fd)
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil {
		return refuse(errnoOf(err)), true
	}
	if domain, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); domain != unix.AF_UNIX && domain != unix.AF_NETLINK && s.fence.Policy().Network != fence.NetworkOn {
		return refuse(unix.EACCES), true // Landlock would say so to the caller
	}
	a, _ := parseSockaddr(b)
	var umask uint32
	if a.family == unix.AF_UNIX && a.path != "" {
		p, errno := s.perform.pins.entry(int(n.PID), unix.AT_FDCWD, a.path)
		switch {
		case errno != 0:
			return refuse(errno), true
		case p.exists:
			return refuse(unix.EADDRINUSE), true
		case p.readOnly:
			return refuse(unix.EROFS), true
		}
		if v := s.ask(p.place, a.path, fence.Bind); v.errno != 0 {
			return v, true
		}
		if a.path[0] != '/' {
			// Relative to the caller's directory, which this thread does not have.
			if len(p.path) >= 108 {
				return refuse(unix.ENAMETOOLONG), true
			}
			b = append(b[:2:2], p.path...)
			b = append(b, 0)
		}
		if umask, errno = s.as(n); errno != 0 {
			return refuse(errno), true
		}
		if !s.waits(n) {
			return nobodyWaits, true
		}
		err := rawBind(fd, b)
		if err == nil {
			s.madeMode(p.dir, p.name, 0o777, umask)
		}
		return result(err), true
	}
	if !s.waits(n) {
		return nobodyWaits, true
	}
	return result(rawBind(fd, b)), true
}

func rawBind(fd int, addr []byte) error {
	var at unsafe.Pointer
	if len(addr) > 0 {
		at = unsafe.Pointer(&addr[0])
	}
	_, _, e := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(at), uintptr(len(addr)))
	if e != 0 {
		return e
	}
	return nil
}

// replaceConfig is guardedConfig, performed: what takes the place of the
// configuration is a copy that this thread made of what it read and judged, an
// inode that no other process ever had a descriptor or a name of. The lock file
// itself goes.
func (s *supervisor) replaceConfig(n *notify.Notif, from, to *spot, requested string, exchange bool) *verdict {
	if exchange || !from.isReg() || from.path != to.path+".lock" {
		return nil
	}
	d := s.fence.CheckAs(to.path, requested, fence.Rename)
	if d == nil || d.Rule != fence.RuleProtected || !fence.IsGitConfig(to.path) {
		return nil
	}
	refused := &verdict{errno: unix.EACCES, denial: d}
	next, err := readPinned(from.obj, true)
	if err != nil {
		return refused
	}
	var prev []byte
	if to.exists {
		if prev, err = readPinned(to.obj, false); err != nil {
			return refused
		}
	}
	if keys := fence.GuardGitConfig(prev, next); len(keys) > 0 {
		d.Hint = "git configuration may change, but not these keys, which run programs or lead elsewhere: " + strings.Join(keys, ", ")
		return refused
	}
	if !s.waits(n) {
		return &nobodyWaits
	}
	s.keepPinned(to.obj)
	s.renaming(from.place, to.place, false)
	v := result(swapConfig(from, to, next))
	return &v
}

// swapConfig writes the copy under a name of its own, which nobody may open
// before it is in place, and renames it over the configuration.
func swapConfig(from, to *spot, content []byte) error {
	name := "." + strings.TrimSuffix(to.name, "/") + ".wattle-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(nextCopy(), 10)
	fd, err := open(to.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if _, err = f.Write(content); err == nil {
		err = unix.Renameat2(to.dir, name, to.dir, to.name, 0)
	}
	if err != nil {
		_ = unix.Unlinkat(to.dir, name, 0)
		return err
	}
	_ = unix.Fchmod(fd, from.mode&0o7777)
	_ = unix.Unlinkat(from.dir, from.name, 0)
	return nil
}

// readPinned reads a small regular file by its handle; alone: only one that has
// one name and no writer.
func readPinned(obj int, alone bool) ([]byte, error) {
	fd, err := reopen(obj, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return readSmall(os.NewFile(uintptr(fd), "config"), alone)
}

// copies counts the copies of configurations, for their names.
var copies atomic.Uint64

func nextCopy() uint64 { return copies.Add(1) }
