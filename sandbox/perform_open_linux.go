package sandbox

import (
	"encoding/binary"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// opening is what an open asks for.
type opening struct {
	dir     int32
	path    string
	flags   uint64
	mode    uint32
	resolve uint64
	pointed bool // the flags lie in the caller's memory (openat2)
}

// openFlagsKnown are the flags that openat2 takes (fcntl.h, VALID_OPEN_FLAGS).
const openFlagsKnown = unix.O_ACCMODE | unix.O_CREAT | unix.O_EXCL | unix.O_NOCTTY | unix.O_TRUNC | unix.O_APPEND | unix.O_NONBLOCK |
	unix.O_SYNC | unix.O_DSYNC | unix.O_ASYNC | unix.O_DIRECT | unix.O_LARGEFILE | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NOATIME |
	unix.O_CLOEXEC | unix.O_PATH | unix.O_TMPFILE | 0o100000

func (s *supervisor) openArgs(n *notify.Notif, c *fence.Call) (opening, unix.Errno) {
	o := opening{dir: dirArg(n, c.Dir)}
	switch c.Kind {
	case fence.CallCreat:
		o.flags, o.mode = unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, uint32(n.Args[1])
	case fence.CallOpenat2:
		size := n.Args[3]
		var b [64]byte
		switch {
		case size < 24:
			return o, unix.EINVAL
		case size > uint64(len(b)):
			return o, unix.E2BIG
		case !readMemory(int(n.PID), n.Args[2], b[:size]):
			return o, unix.EFAULT
		}
		for _, x := range b[24:] {
			if x != 0 {
				return o, unix.E2BIG
			}
		}
		mode := binary.NativeEndian.Uint64(b[8:])
		o.flags, o.resolve, o.pointed = binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[16:]), true
		makes := o.flags&unix.O_CREAT != 0 || o.flags&unix.O_TMPFILE == unix.O_TMPFILE
		switch {
		case o.flags&^openFlagsKnown != 0, mode&^0o7777 != 0, mode != 0 && !makes, o.resolve&^0x3f != 0, o.resolve&scoped == scoped:
			return o, unix.EINVAL
		case o.resolve&resolveCached != 0:
			return o, unix.EAGAIN // the caller asks again without it
		}
		o.mode = uint32(mode)
	default:
		o.flags, o.mode = uint64(uint32(n.Args[c.Flags])), uint32(n.Args[c.Mode])
	}
	path, ok := s.pathArg(n, c.Path)
	if !ok {
		return o, unix.EFAULT
	}
	o.path = path
	o.mode &= 0o7777
	return o, 0
}

// openTries bounds how often an open starts again because its name came or went
// between the look and the act. Another command, or the user, did that: the
// calls of one tree come one after another.
const openTries = 16

func (s *supervisor) doOpen(n *notify.Notif, c *fence.Call) verdict {
	o, errno := s.openArgs(n, c)
	if errno != 0 {
		return refuse(errno)
	}
	if o.flags&unix.O_PATH != 0 && !o.pointed {
		return goOn // changes nothing, whatever its path says by now
	}
	for range openTries {
		if v, again := s.openOnce(n, &o); !again {
			return v
		}
	}
	return refuse(unix.EACCES)
}

func (s *supervisor) openOnce(n *notify.Notif, o *opening) (v verdict, again bool) {
	exclusive := o.flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
	follow := o.flags&unix.O_NOFOLLOW == 0 && !exclusive
	if o.flags&(unix.O_CREAT|unix.O_PATH) == unix.O_CREAT && strings.HasSuffix(o.path, "/") && dots(o.path) == "" {
		_, errno := s.perform.pins.entry(int(n.PID), o.dir, strings.TrimRight(o.path, "/"))
		if errno == 0 {
			errno = unix.EISDIR // whatever is there
		}
		return refuse(errno), false
	}
	p, errno := s.perform.pins.object(int(n.PID), o.dir, o.path, follow, o.resolve)
	switch {
	case errno == errUnsure:
		return refuse(unix.EXDEV), false
	case errno != 0:
		return refuse(errno), false
	case o.flags&unix.O_PATH != 0 || o.flags&fence.OpenWriteFlags == 0:
		return s.openHarmless(n, o, &p), false
	case o.flags&unix.O_TMPFILE == unix.O_TMPFILE:
		return s.openUnnamed(n, o, &p), false
	case !p.exists:
		return s.openNew(n, o, &p, exclusive)
	}
	return s.openThere(n, o, &p, exclusive), false
}

// openNew makes the file. Whatever came to that name meanwhile is not opened:
// it was not judged.
func (s *supervisor) openNew(n *notify.Notif, o *opening, p *spot, exclusive bool) (v verdict, again bool) {
	switch {
	case o.flags&unix.O_CREAT == 0:
		return refuse(unix.ENOENT), false
	case p.readOnly:
		return refuse(unix.EROFS), false
	}
	if v := s.making(p.place, s.ask(p.place, o.path, fence.Create)); v.errno != 0 {
		return v, false
	}
	umask, errno := s.as(n)
	if errno != 0 {
		return refuse(errno), false
	}
	if !s.waits(n) {
		return nobodyWaits, false
	}
	mode := o.mode
	if !s.perform.ownFS {
		mode &^= umask
	}
	defer forkless()()
	fd, err := open(p.dir, p.name, o.flags|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, mode)
	if err == unix.EEXIST && !exclusive {
		return verdict{}, true
	}
	if err != nil {
		return refuse(errnoOf(err)), false
	}
	s.madeMode(p.dir, p.name, mode, umask)
	return s.hand(n, injected(fd, o.flags)), false
}

// hand hands the descriptor over while no other command is being started: its
// copy of it would keep the caller from executing the file (ETXTBSY).
func (s *supervisor) hand(n *notify.Notif, v verdict) verdict {
	s.deliver(n.ID, v)
	return verdict{later: true}
}

// forkless keeps this process from starting others until the function that it
// returns is called.
func forkless() func() {
	syscall.ForkLock.RLock()
	return syscall.ForkLock.RUnlock
}

func (s *supervisor) openThere(n *notify.Notif, o *opening, p *spot, exclusive bool) verdict {
	writes := o.flags&unix.O_ACCMODE != unix.O_RDONLY || o.flags&unix.O_TRUNC != 0
	switch {
	case exclusive:
		return refuse(unix.EEXIST)
	case p.isLink():
		return refuse(unix.ELOOP)
	case p.isDir():
		return refuse(unix.EISDIR)
	case o.flags&unix.O_DIRECTORY != 0:
		return refuse(unix.ENOTDIR)
	case writes && p.readOnly && p.isReg():
		return refuse(unix.EROFS)
	case p.isSocket():
		return refuse(unix.ENXIO)
	case p.pathless():
		if p.foreign {
			return refuse(unix.EACCES) // not the caller's
		}
	case writes:
		if v := s.ask(p.place, o.path, fence.Write); v.errno != 0 {
			return v
		}
		if p.proc {
			// Who may use a file of proc is asked when it is opened, and of the
			// one who opens.
			return refuse(unix.EACCES)
		}
	default: // O_CREAT on what is there opens it for reading
		if p.proc || s.ask(p.place, o.path, fence.Read).errno != 0 {
			return refuse(unix.EACCES)
		}
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	if p.isDevice() {
		return s.openDevice(n, o, p)
	}
	defer forkless()()
	v := openWithoutWaiting(p.obj, o.flags)
	switch {
	case mustWait(v.errno, o.flags):
		return s.await(n, p.obj, o.flags)
	case v.errno != 0:
		return v
	}
	return s.hand(n, v)
}

// openUnnamed makes a file without a name (O_TMPFILE).
func (s *supervisor) openUnnamed(n *notify.Notif, o *opening, p *spot) verdict {
	switch {
	case !p.exists:
		return refuse(unix.ENOENT)
	case !p.isDir():
		return refuse(unix.ENOTDIR)
	case o.flags&unix.O_ACCMODE == unix.O_RDONLY:
		return refuse(unix.EINVAL)
	case p.readOnly:
		return refuse(unix.EROFS)
	case p.gone():
		return refuse(unix.ENOENT)
	}
	if v := s.ask(p.child("#unnamed"), o.path, fence.Create); v.errno != 0 {
		return v
	}
	umask, errno := s.as(n)
	if errno != 0 {
		return refuse(errno)
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	mode := o.mode &^ umask
	// O_EXCL stays: it says that the file can get no name.
	fd, err := open(unix.AT_FDCWD, handlePath(p.obj), o.flags&^unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return refuse(errnoOf(err))
	}
	if !s.perform.ownFS {
		_ = unix.Fchmod(fd, mode)
	}
	return injected(fd, o.flags)
}

// openHarmless is an openat2 that changes nothing. It must not go on: its flags
// lie in memory. Programs that get ENOSYS use openat, whose flags do not.
func (s *supervisor) openHarmless(n *notify.Notif, o *opening, p *spot) verdict {
	switch {
	case !p.exists:
		return refuse(unix.ENOENT)
	case p.foreign:
		return refuse(unix.EACCES)
	case o.flags&unix.O_DIRECTORY != 0 && !p.isDir():
		return refuse(unix.ENOTDIR)
	}
	if o.flags&unix.O_PATH == 0 {
		switch {
		case p.isLink():
			return refuse(unix.ELOOP)
		case p.proc || p.pathless() || !p.isReg() && !p.isDir():
			return refuse(unix.ENOSYS)
		case s.ask(p.place, o.path, fence.Read).errno != 0:
			return refuse(unix.EACCES)
		}
	}
	if !s.waits(n) {
		return nobodyWaits
	}
	if o.flags&unix.O_PATH != 0 {
		fd, err := unix.FcntlInt(uintptr(p.obj), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return refuse(errnoOf(err))
		}
		return injected(fd, o.flags)
	}
	fd, err := reopen(p.obj, o.flags)
	if err != nil {
		return refuse(errnoOf(err))
	}
	return injected(fd, o.flags)
}

// openDevice opens a device that the fence allows, by its handle, without
// waiting. /dev/tty is the caller's own terminal, which is another one for this
// thread. A terminal never becomes the controlling one by being opened here;
// programs say TIOCSCTTY for that.
func (s *supervisor) openDevice(n *notify.Notif, o *opening, p *spot) verdict {
	var st unix.Stat_t
	if err := unix.Fstat(p.obj, &st); err != nil {
		return refuse(errnoOf(err))
	}
	obj := p.obj
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && uint64(st.Rdev) == unix.Mkdev(5, 0) {
		fd, errno := controllingTerminal(int(n.PID))
		if errno != 0 {
			return refuse(errno)
		}
		obj = s.perform.pins.hold(fd)
	}
	return openWithoutWaiting(obj, o.flags)
}

// controllingTerminal pins the terminal of a thread's session: pseudo-terminals
// (major 136 to 143) and virtual consoles (4).
func controllingTerminal(tid int) (int, unix.Errno) {
	b := procFile(tid, "stat")
	_, rest, ok := strings.Cut(string(b[max(0, strings.LastIndexByte(string(b), ')')):]), ")")
	f := strings.Fields(rest)
	if !ok || len(f) < 5 {
		return -1, unix.ENXIO
	}
	nr, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil || nr == 0 {
		return -1, unix.ENXIO
	}
	dev := uint64(uint32(nr))
	major := (dev >> 8) & 0xfff
	minor := dev&0xff | (dev>>12)&0xfff00
	name := ""
	switch {
	case major >= 136 && major <= 143:
		name = "/dev/pts/" + strconv.FormatUint((major-136)<<8|minor, 10)
	case major == 4:
		name = "/dev/tty" + strconv.FormatUint(minor, 10)
	default:
		return -1, unix.ENXIO
	}
	fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, unix.ENXIO
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || uint64(st.Rdev) != unix.Mkdev(uint32(major), uint32(minor)) {
		unix.Close(fd)
		return -1, unix.ENXIO
	}
	return fd, 0
}
