package sandbox

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// The cause of a failure is looked for in this order (DESIGN section 3.4):
// what the kernel says of the name itself (ENOENT, ENOTDIR, EEXIST, EROFS, and
// EXDEV between mounts); then the fence; then ordinary permissions. So a call
// goes on whenever the kernel would answer it by the name alone, or when the
// fence allows it: what follows then is the kernel's own answer and never a
// denial.

// decide judges one call.
func (s *supervisor) decide(n *notify.Notif, c *fence.Call) verdict {
	switch c.Kind {
	case fence.CallOpen, fence.CallOpenat2, fence.CallCreat:
		return s.open(n, c)
	case fence.CallUnlink, fence.CallRmdir:
		return s.unlink(n, c)
	case fence.CallMkdir, fence.CallMknod, fence.CallSymlink:
		return s.create(n, c)
	case fence.CallTruncate:
		return s.truncate(n, c)
	case fence.CallRename:
		return s.rename(n, c)
	case fence.CallLink:
		return s.link(n, c)
	case fence.CallMeta, fence.CallMetaFD, fence.CallIoctl:
		return s.metadata(n, c)
	case fence.CallConnect, fence.CallBind:
		return s.socket(n, c)
	}
	return refuse(unix.ENOSYS)
}

func dirArg(n *notify.Notif, i int) int32 {
	if i < 0 {
		return unix.AT_FDCWD
	}
	return int32(n.Args[i])
}

// pathArg copies a path. When it cannot be read the kernel cannot read it
// either (EFAULT), unless the process hides its memory from us: such a call
// must not go on unseen, so it is refused.
func (s *supervisor) pathArg(n *notify.Notif, i int) (string, bool) {
	return readString(int(n.PID), n.Args[i], &s.buf)
}

// unreadable is the answer to a call whose arguments cannot be read.
var unreadable = refuse(unix.EFAULT)

// openFlags gives the flags of an open and, of openat2, how to resolve.
func (s *supervisor) openFlags(n *notify.Notif, c *fence.Call) (flags, resolve uint64, ok bool) {
	switch c.Kind {
	case fence.CallCreat:
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, 0, true
	case fence.CallOpenat2:
		// struct open_how is flags, mode, resolve (openat2(2)).
		var b [24]byte
		if n.Args[3] < 24 || !readMemory(int(n.PID), n.Args[2], b[:]) {
			return 0, 0, false
		}
		return binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[16:]), true
	}
	return n.Args[c.Flags], 0, true
}

func (s *supervisor) open(n *notify.Notif, c *fence.Call) verdict {
	flags, resolve, ok := s.openFlags(n, c)
	if !ok {
		return unreadable
	}
	if flags&unix.O_PATH != 0 || flags&fence.OpenWriteFlags == 0 {
		return goOn
	}
	path, ok := s.pathArg(n, c.Path)
	if !ok {
		return unreadable
	}
	exclusive := flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
	follow := flags&unix.O_NOFOLLOW == 0 && !exclusive
	p, errno := s.loc.locateAs(int(n.PID), dirArg(n, c.Dir), path, follow, resolve)
	if errno == errUnsure {
		return refuse(unix.EXDEV)
	}
	if errno != 0 {
		return goOn
	}
	if flags&unix.O_TMPFILE == unix.O_TMPFILE {
		if !p.isDir() || p.readOnly {
			return goOn
		}
		return s.check(p.child("#unnamed"), path, fence.Create)
	}
	if !p.exists {
		if flags&unix.O_CREAT == 0 || p.readOnly {
			return goOn // ENOENT, EROFS
		}
		return s.making(p, s.check(p, path, fence.Create))
	}
	writes := flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0
	switch {
	case exclusive, p.isDir(), p.isLink(): // EEXIST, EISDIR, ELOOP
		return goOn
	case !writes: // O_CREAT on a file that is there opens it for reading
		return goOn
	case p.readOnly && p.isReg(): // EROFS
		return goOn
	case p.path == "" || p.path[0] != '/' || p.gone(): // pipes and the like
		return goOn
	}
	return s.check(p, path, fence.Write)
}

func (s *supervisor) unlink(n *notify.Notif, c *fence.Call) verdict {
	path, ok := s.pathArg(n, c.Path)
	if !ok {
		return unreadable
	}
	p, errno := s.locateRemoved(int(n.PID), dirArg(n, c.Dir), path)
	if errno != 0 || !p.exists || p.readOnly {
		return goOn
	}
	v := s.check(p, path, fence.Delete)
	wantsDir := c.Kind == fence.CallRmdir || c.Flags >= 0 && n.Args[c.Flags]&unix.AT_REMOVEDIR != 0
	if v.denial != nil && wantsDir && !p.isDir() {
		return refuse(unix.ENOTDIR)
	}
	if v.errno == 0 {
		s.removing(p, wantsDir)
	}
	return v
}

func (s *supervisor) create(n *notify.Notif, c *fence.Call) verdict {
	dir, arg, access := c.Dir, c.Path, fence.Create
	switch c.Kind {
	case fence.CallMkdir:
		access = fence.Mkdir
	case fence.CallSymlink:
		dir, arg = c.Dir2, c.Path2
	}
	path, ok := s.pathArg(n, arg)
	if !ok {
		return unreadable
	}
	p, errno := s.loc.locate(int(n.PID), dirArg(n, dir), path, false)
	if errno != 0 || p.exists || p.readOnly { // ENOENT…, EEXIST, EROFS
		return goOn
	}
	v := s.check(p, path, access)
	if v.errno == 0 && c.Kind == fence.CallMknod {
		if t := n.Args[c.Mode] & unix.S_IFMT; t == unix.S_IFCHR || t == unix.S_IFBLK {
			// A command has no CAP_MKNOD: what the kernel says to anybody.
			return refuse(unix.EPERM)
		}
	}
	return s.making(p, v)
}

func (s *supervisor) truncate(n *notify.Notif, c *fence.Call) verdict {
	path, ok := s.pathArg(n, c.Path)
	if !ok {
		return unreadable
	}
	p, errno := s.loc.locate(int(n.PID), unix.AT_FDCWD, path, true)
	if errno != 0 || !p.exists || !p.isReg() || p.readOnly {
		return goOn
	}
	return s.check(p, path, fence.Write)
}

func (s *supervisor) rename(n *notify.Notif, c *fence.Call) verdict {
	oldPath, ok := s.pathArg(n, c.Path)
	if !ok {
		return unreadable
	}
	from, errno := s.loc.locate(int(n.PID), dirArg(n, c.Dir), oldPath, false)
	if errno != 0 || !from.exists || from.readOnly {
		return goOn
	}
	newPath, ok := s.pathArg(n, c.Path2)
	if !ok {
		return unreadable
	}
	to, errno := s.locateRemoved(int(n.PID), dirArg(n, c.Dir2), newPath)
	if errno != 0 {
		return goOn
	}
	const noReplace, exchange = 1, 2
	var flags uint64
	if c.Flags >= 0 {
		flags = n.Args[c.Flags]
	}
	if flags&noReplace != 0 && to.exists || flags&exchange != 0 && !to.exists { // EEXIST, ENOENT
		return goOn
	}
	if from.mount != to.mount { // EXDEV, said before anybody is asked
		return goOn
	}
	v := s.mayRename(from, to, oldPath, newPath, flags&exchange != 0)
	if v.errno == 0 {
		s.renaming(from, to, flags&exchange != 0)
	}
	return v
}

// mayRename asks the fence about both ends of a rename, or exchange.
func (s *supervisor) mayRename(from, to place, oldPath, newPath string, exchange bool) verdict {
	if v := s.check(from, oldPath, fence.Rename); v.errno != 0 {
		return v
	}
	if v := s.guardedConfig(from, to, newPath, exchange); v != nil {
		return *v
	}
	if v := s.check(to, newPath, fence.Rename); v.errno != 0 {
		return v
	}
	if from.isDir() || exchange && to.isDir() {
		if v := s.checkMove(from, oldPath); v.errno != 0 {
			return v
		}
		if v := s.checkMove(to, newPath); v.errno != 0 {
			return v
		}
	}
	if from.isDir() && s.fence.Looser(from.path, to.path) || exchange && to.isDir() && s.fence.Looser(to.path, from.path) {
		// What is moved from where less is protected may hold anything.
		// The answer makes the mover copy it, and each file is judged by its name.
		return refuse(unix.EXDEV)
	}
	return goOn
}

func (s *supervisor) link(n *notify.Notif, c *fence.Call) verdict {
	newPath, ok := s.pathArg(n, c.Path2)
	if !ok {
		return unreadable
	}
	to, errno := s.loc.locate(int(n.PID), dirArg(n, c.Dir2), newPath, false)
	if errno != 0 || to.exists || to.readOnly {
		return goOn
	}
	oldPath, ok := s.pathArg(n, c.Path)
	if !ok {
		return unreadable
	}
	var flags uint64
	if c.Flags >= 0 {
		flags = n.Args[c.Flags]
	}
	var from place
	if oldPath == "" && flags&unix.AT_EMPTY_PATH != 0 {
		from, errno = s.loc.ofDescriptor(int(n.PID), dirArg(n, c.Dir))
	} else {
		from, errno = s.loc.locate(int(n.PID), dirArg(n, c.Dir), oldPath, flags&unix.AT_SYMLINK_FOLLOW != 0)
	}
	if errno != 0 || !from.exists || from.isDir() {
		return goOn
	}
	if from.gone() { // an unnamed file gets its first name
		return s.making(to, s.check(to, newPath, fence.Create))
	}
	if from.mount != to.mount {
		return goOn
	}
	if v := s.check(to, newPath, fence.Link); v.errno != 0 {
		return v
	}
	v := s.check(from, oldPath, fence.Link)
	if v.denial != nil && v.denial.Rule != fence.RuleProtected && v.denial.Rule != fence.RuleHidden {
		// A link from outside into a root is what the kernel refuses with
		// EXDEV; package managers copy then. It is no denial.
		return refuse(unix.EXDEV)
	}
	return v
}

func (s *supervisor) metadata(n *notify.Notif, c *fence.Call) verdict {
	var p place
	var errno unix.Errno
	requested := ""
	byFD := c.Kind != fence.CallMeta || n.Args[c.Path] == 0 // utimensat(fd, NULL)
	if !byFD {
		path, ok := s.pathArg(n, c.Path)
		if !ok {
			return unreadable
		}
		var flags uint64
		if c.Flags >= 0 {
			flags = n.Args[c.Flags]
		}
		if path == "" {
			if flags&unix.AT_EMPTY_PATH == 0 {
				return goOn // ENOENT
			}
			byFD = true
		} else {
			follow := !c.NoFollow && flags&unix.AT_SYMLINK_NOFOLLOW == 0
			p, errno = s.loc.locate(int(n.PID), dirArg(n, c.Dir), path, follow)
			requested = path
		}
	}
	if byFD {
		if c.Dir < 0 {
			return goOn // EFAULT
		}
		fd := int32(n.Args[c.Dir])
		if fd == unix.AT_FDCWD {
			p, errno = s.loc.locate(int(n.PID), fd, ".", true)
		} else {
			p, errno = s.loc.ofDescriptor(int(n.PID), fd)
		}
		requested = p.path
	}
	if errno != 0 || !p.exists || p.readOnly || p.gone() || p.path == "" || p.path[0] != '/' {
		return goOn
	}
	v := s.check(p, requested, fence.Metadata)
	if v.denial != nil && v.denial.Rule == fence.RuleProtected && fence.IsGitConfig(p.path) && probesFileMode(n, c, p.mode) {
		return goOn
	}
	return v
}

// probesFileMode: `git init` turns the owner's execute bit of a new config on
// and off to learn whether the file system keeps it. That changes nobody's
// access, and refusing it would record core.fileMode=false.
func probesFileMode(n *notify.Notif, c *fence.Call, mode uint32) bool {
	var next uint64
	switch c.Name {
	case "chmod", "fchmod":
		next = n.Args[1]
	case "fchmodat", "fchmodat2":
		next = n.Args[2]
	default:
		return false
	}
	return uint32(next)&0o7777|unix.S_IXUSR == mode&0o7777|unix.S_IXUSR
}

func (s *supervisor) socket(n *notify.Notif, c *fence.Call) verdict {
	a, ok := readSockaddr(int(n.PID), n.Args[1], n.Args[2])
	if !ok || a.family != unix.AF_UNIX || a.path == "" {
		return goOn // not by path; abstract names are the scope's
	}
	p, errno := s.loc.locate(int(n.PID), unix.AT_FDCWD, a.path, c.Kind == fence.CallConnect)
	if errno != 0 {
		return goOn
	}
	if c.Kind == fence.CallBind {
		if p.exists || p.readOnly {
			return goOn // EADDRINUSE, EROFS
		}
		return s.check(p, a.path, fence.Bind)
	}
	if !p.exists || !p.isSocket() {
		return goOn // ENOENT, ECONNREFUSED
	}
	return s.check(p, a.path, fence.Connect)
}
