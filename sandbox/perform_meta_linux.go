package sandbox

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// Calls that change what is there: contents by path, mode, owner, times,
// attributes. Each acts on the handle of the object.

func (s *supervisor) doTruncate(n *notify.Notif, c *fence.Call) verdict {
	path, ok := s.pathArg(n, c.Path)
	if !ok {
		return unreadable
	}
	size := int64(n.Args[c.Path+1])
	if size < 0 {
		return refuse(unix.EINVAL)
	}
	p, errno := s.perform.pins.object(int(n.PID), unix.AT_FDCWD, path, true, 0)
	switch {
	case errno != 0:
		return refuse(errno)
	case !p.exists:
		return refuse(unix.ENOENT)
	case p.isDir():
		return refuse(unix.EISDIR)
	case !p.isReg():
		return refuse(unix.EINVAL)
	case p.readOnly:
		return refuse(unix.EROFS)
	case p.pathless() && p.foreign:
		return refuse(unix.EACCES)
	}
	if !p.pathless() {
		if v := s.ask(p.place, path, fence.Write); v.errno != 0 {
			return v
		}
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(int(n.PID), unix.RLIMIT_FSIZE, nil, &limit); err == nil && uint64(size) > limit.Cur {
		return refuse(unix.EFBIG) // this thread has a limit of its own
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	return result(unix.Truncate(handlePath(p.obj), size))
}

// target finds what a metadata call changes, by path or by descriptor.
func (s *supervisor) target(n *notify.Notif, c *fence.Call) (p spot, requested string, errno unix.Errno) {
	if c.Kind == fence.CallMeta && n.Args[c.Path] != 0 { // else utimensat(fd, NULL)
		path, ok := s.pathArg(n, c.Path)
		if !ok {
			return spot{}, "", unix.EFAULT
		}
		var flags uint64
		if c.Flags >= 0 {
			flags = uint64(uint32(n.Args[c.Flags]))
		}
		if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
			return spot{}, "", unix.EINVAL
		}
		if path != "" || flags&unix.AT_EMPTY_PATH == 0 {
			follow := !c.NoFollow && flags&unix.AT_SYMLINK_NOFOLLOW == 0
			p, errno = s.perform.pins.object(int(n.PID), dirArg(n, c.Dir), path, follow, 0)
			if errno == 0 && !p.exists {
				errno = unix.ENOENT
			}
			return p, path, errno
		}
	}
	if c.Dir < 0 {
		return spot{}, "", unix.EFAULT
	}
	p, errno = s.perform.pins.descriptor(int(n.PID), int32(n.Args[c.Dir]))
	return p, p.path, errno
}

func (s *supervisor) doMetadata(n *notify.Notif, c *fence.Call) verdict {
	p, requested, errno := s.target(n, c)
	switch {
	case errno != 0:
		return refuse(errno)
	case p.readOnly:
		return refuse(unix.EROFS)
	case p.pathless():
		if p.foreign {
			return refuse(unix.EACCES)
		}
	default:
		v := s.ask(p.place, requested, fence.Metadata)
		if v.denial != nil && (v.denial.Rule != fence.RuleProtected || !fence.IsGitConfig(p.path) || !probesFileMode(n, c, p.mode)) {
			return v
		}
	}
	change, errno := s.change(n, c, p.obj)
	if errno != 0 {
		return refuse(errno)
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	return result(change())
}

// change prepares a metadata call: everything that it needs of the caller's
// memory is copied before it is made.
func (s *supervisor) change(n *notify.Notif, c *fence.Call, obj int) (do func() error, errno unix.Errno) {
	a := n.Args
	mode := func(m uint64) (func() error, unix.Errno) {
		return func() error { return unix.Fchmodat(unix.AT_FDCWD, handlePath(obj), uint32(m)&0o7777, 0) }, 0
	}
	owner := func(u, g uint64) (func() error, unix.Errno) {
		return func() error { return unix.Fchownat(obj, "", int(int32(u)), int(int32(g)), unix.AT_EMPTY_PATH) }, 0
	}
	switch c.Name {
	case "chmod", "fchmod":
		return mode(a[1])
	case "fchmodat", "fchmodat2":
		return mode(a[2])
	case "chown", "lchown", "fchown":
		return owner(a[1], a[2])
	case "fchownat":
		return owner(a[2], a[3])
	case "utime":
		return s.times(n, a[1], obj, 16, func(b []byte, ts *[2]unix.Timespec) bool {
			for i := range ts {
				ts[i].Sec = int64(binary.NativeEndian.Uint64(b[8*i:]))
			}
			return true
		})
	case "utimes":
		return s.times(n, a[1], obj, 32, microseconds)
	case "futimesat":
		return s.times(n, a[2], obj, 32, microseconds)
	case "utimensat":
		return s.times(n, a[2], obj, 32, func(b []byte, ts *[2]unix.Timespec) bool {
			for i := range ts {
				ts[i].Sec, ts[i].Nsec = int64(binary.NativeEndian.Uint64(b[16*i:])), int64(binary.NativeEndian.Uint64(b[16*i+8:]))
			}
			return true
		})
	case "setxattr", "lsetxattr", "fsetxattr":
		return s.setAttribute(n, obj)
	case "removexattr", "lremovexattr", "fremovexattr":
		name, ok := s.pathArg(n, 1)
		if !ok {
			return nil, unix.EFAULT
		}
		return func() error { return unix.Removexattr(handlePath(obj), name) }, 0
	case "ioctl":
		return s.fileFlags(n, obj)
	}
	return nil, unix.ENOSYS
}

func microseconds(b []byte, ts *[2]unix.Timespec) bool {
	for i := range ts {
		us := int64(binary.NativeEndian.Uint64(b[16*i+8:]))
		if us < 0 || us >= 1e6 {
			return false
		}
		ts[i].Sec, ts[i].Nsec = int64(binary.NativeEndian.Uint64(b[16*i:])), us*1000
	}
	return true
}

// times sets access and modification time; no times at all mean now, for which
// the right to write is enough.
func (s *supervisor) times(n *notify.Notif, addr uint64, obj, size int, read func([]byte, *[2]unix.Timespec) bool) (func() error, unix.Errno) {
	var at *[2]unix.Timespec
	if addr != 0 {
		var b [32]byte
		if !readMemory(int(n.PID), addr, b[:size]) {
			return nil, unix.EFAULT
		}
		at = new([2]unix.Timespec)
		if !read(b[:size], at) {
			return nil, unix.EINVAL
		}
	}
	return func() error {
		path, err := unix.BytePtrFromString(handlePath(obj))
		if err != nil {
			return err
		}
		dir := unix.AT_FDCWD
		_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(dir), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(at)), 0, 0, 0)
		if e != 0 {
			return e
		}
		return nil
	}, 0
}

// maxAttribute is the kernel's limit for a value (limits.h, XATTR_SIZE_MAX).
const maxAttribute = 65536

func (s *supervisor) setAttribute(n *notify.Notif, obj int) (func() error, unix.Errno) {
	name, ok := s.pathArg(n, 1)
	if !ok {
		return nil, unix.EFAULT
	}
	if n.Args[3] > maxAttribute {
		return nil, unix.E2BIG
	}
	value := make([]byte, n.Args[3])
	if !readMemory(int(n.PID), n.Args[2], value) {
		return nil, unix.EFAULT
	}
	flags := int(int32(n.Args[4]))
	return func() error { return unix.Setxattr(handlePath(obj), name, value, flags) }, 0
}

// fileFlags makes the ioctls of the filter that change file flags.
func (s *supervisor) fileFlags(n *notify.Notif, obj int) (func() error, unix.Errno) {
	cmd := uint32(n.Args[1])
	size := cmd >> 16 & 0x3fff // _IOC_SIZE
	if size < 28 {
		size = 4 // the kernel reads an int, whatever the number says
	}
	var b [28]byte // struct fsxattr
	if !readMemory(int(n.PID), n.Args[2], b[:size]) {
		return nil, unix.EFAULT
	}
	return func() error {
		var st unix.Stat_t
		if err := unix.Fstat(obj, &st); err != nil {
			return err
		}
		if t := st.Mode & unix.S_IFMT; t != unix.S_IFREG && t != unix.S_IFDIR {
			return unix.ENOTTY
		}
		fd, err := reopen(obj, unix.O_RDONLY|unix.O_NONBLOCK)
		if err == unix.EACCES {
			fd, err = reopen(obj, unix.O_WRONLY|unix.O_NONBLOCK)
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(cmd), uintptr(unsafe.Pointer(&b))); e != 0 {
			return e
		}
		return nil
	}, 0
}
