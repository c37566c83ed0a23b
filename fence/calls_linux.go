package fence

import "golang.org/x/sys/unix"

// CallKind says how a system call names what it changes.
type CallKind int

const (
	CallOpen     CallKind = iota // flags decide whether it changes anything
	CallOpenat2                  // flags behind a pointer
	CallCreat                    // always creates or truncates
	CallUnlink                   // a name goes; AT_REMOVEDIR in Flags
	CallRmdir                    // an empty directory goes
	CallRename                   // two names
	CallLink                     // two names
	CallSymlink                  // Path2 is the new name, Path its text
	CallMkdir                    // a new directory
	CallMknod                    // a new file, FIFO, socket or device; Mode decides
	CallTruncate                 // contents, by path
	CallMeta                     // mode, owner, times, attributes by path
	CallMetaFD                   // the same by descriptor
	CallIoctl                    // file flags by descriptor
	CallConnect                  // a socket address
	CallBind                     // a socket address
)

// Call is a system call that can change something outside the process, with
// the indexes of its arguments, -1 where it has none. It is the one list from
// which the seccomp program is made and by which the supervisor reads the
// notifications, so that a call cannot be in one and not in the other.
type Call struct {
	NR    uint32
	Name  string
	Kind  CallKind
	Dir   int // directory descriptor of Path
	Path  int
	Dir2  int
	Path2 int
	// Flags is the index of open flags or AT_* flags.
	Flags int
	// Mode is the index of a file mode, for mknod and open.
	Mode int
	// NoFollow: the last component is never followed (lchown and the like).
	NoFollow bool
}

func at(nr uint32, name string, kind CallKind, dir, path, flags int) Call {
	return Call{NR: nr, Name: name, Kind: kind, Dir: dir, Path: path, Dir2: -1, Path2: -1, Flags: flags, Mode: -1}
}

func (c Call) mode(i int) Call { c.Mode = i; return c }

func (c Call) nofollow() Call { c.NoFollow = true; return c }

func two(nr uint32, name string, kind CallKind, dir, path, dir2, path2, flags int) Call {
	return Call{NR: nr, Name: name, Kind: kind, Dir: dir, Path: path, Dir2: dir2, Path2: path2, Flags: flags, Mode: -1}
}

// callsEverywhere exist on every Linux architecture that is supported.
var callsEverywhere = []Call{
	at(unix.SYS_OPENAT, "openat", CallOpen, 0, 1, 2).mode(3),
	at(unix.SYS_OPENAT2, "openat2", CallOpenat2, 0, 1, -1),
	at(unix.SYS_UNLINKAT, "unlinkat", CallUnlink, 0, 1, 2),
	two(unix.SYS_RENAMEAT2, "renameat2", CallRename, 0, 1, 2, 3, 4),
	two(unix.SYS_RENAMEAT, "renameat", CallRename, 0, 1, 2, 3, -1),
	two(unix.SYS_LINKAT, "linkat", CallLink, 0, 1, 2, 3, 4),
	two(unix.SYS_SYMLINKAT, "symlinkat", CallSymlink, -1, 0, 1, 2, -1),
	at(unix.SYS_MKDIRAT, "mkdirat", CallMkdir, 0, 1, -1),
	at(unix.SYS_MKNODAT, "mknodat", CallMknod, 0, 1, -1).mode(2),
	at(unix.SYS_TRUNCATE, "truncate", CallTruncate, -1, 0, -1),
	at(unix.SYS_FCHMODAT, "fchmodat", CallMeta, 0, 1, -1),
	at(unix.SYS_FCHMODAT2, "fchmodat2", CallMeta, 0, 1, 3),
	at(unix.SYS_FCHMOD, "fchmod", CallMetaFD, 0, -1, -1),
	at(unix.SYS_FCHOWNAT, "fchownat", CallMeta, 0, 1, 4),
	at(unix.SYS_FCHOWN, "fchown", CallMetaFD, 0, -1, -1),
	at(unix.SYS_UTIMENSAT, "utimensat", CallMeta, 0, 1, 3),
	at(unix.SYS_SETXATTR, "setxattr", CallMeta, -1, 0, -1),
	at(unix.SYS_LSETXATTR, "lsetxattr", CallMeta, -1, 0, -1).nofollow(),
	at(unix.SYS_FSETXATTR, "fsetxattr", CallMetaFD, 0, -1, -1),
	at(unix.SYS_REMOVEXATTR, "removexattr", CallMeta, -1, 0, -1),
	at(unix.SYS_LREMOVEXATTR, "lremovexattr", CallMeta, -1, 0, -1).nofollow(),
	at(unix.SYS_FREMOVEXATTR, "fremovexattr", CallMetaFD, 0, -1, -1),
	at(unix.SYS_CONNECT, "connect", CallConnect, 0, -1, -1),
	at(unix.SYS_BIND, "bind", CallBind, 0, -1, -1),
}

// ioctlCall is notified for the two commands that change file flags only.
var ioctlCall = at(unix.SYS_IOCTL, "ioctl", CallIoctl, 0, -1, 1)

// Calls returns the list for this architecture, in the order of the filter.
func Calls() []Call {
	out := append([]Call{}, callsEverywhere...)
	out = append(out, callsOfArch...)
	return append(out, ioctlCall)
}

// Numbers of system calls that x/sys may lack. They are the same on every
// architecture (include/uapi/asm-generic/unistd.h).
const (
	sysSetxattrat    = 463 // Linux 6.13
	sysRemovexattrat = 466 // Linux 6.13
	sysOpenTreeAttr  = 467 // Linux 6.15
	sysFileSetattr   = 469 // Linux 6.17
)

// callsUnknown change metadata and are answered ENOSYS: programs fall back to
// the older calls, which the supervisor reads (facts/kernels section 4).
var callsUnknown = []uint32{sysSetxattrat, sysRemovexattrat, sysOpenTreeAttr, sysFileSetattr}

// Device controls by which a program types into the terminal it shares with
// the user's shell (ioctl_tty(2), ioctl_console(2)).
const (
	ioctlTIOCSTI   = 0x5412
	ioctlTIOCLINUX = 0x541C
)

// Controls that change file flags (linux/fs.h).
const (
	ioctlFSSetFlags  = 0x40086602 // FS_IOC_SETFLAGS
	ioctlFSSetXattr  = 0x401c5820 // FS_IOC_FSSETXATTR
	ioctlFSSetFlag32 = 0x40046602 // FS_IOC32_SETFLAGS
)

// OpenWriteFlags are the open(2) flags that make an open a change: writing,
// creating, truncating (with any access mode: kernels before ABI 3 empty a
// file that is opened O_RDONLY|O_TRUNC), and unnamed files.
const OpenWriteFlags = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | 0o20000000
