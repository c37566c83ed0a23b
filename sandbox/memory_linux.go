package sandbox

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noVMRead latches, once and for the life of the process, that
// process_vm_readv is refused: the default seccomp profile of older container
// engines does so. /proc/TID/mem then serves, a few microseconds slower.
var noVMRead atomic.Bool

// readMemory copies n bytes of another thread's memory. It fails when any of
// them is unmapped.
func readMemory(tid int, addr uint64, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if addr == 0 {
		return false
	}
	n, ok := readSome(tid, addr, b)
	return ok && n == len(b)
}

// readString copies a NUL-terminated string of at most PATH_MAX bytes, one
// page at a time so that a string at the end of a mapping can be read. ok is
// false when it is unmapped: the kernel says EFAULT then. Of a longer string
// the first PATH_MAX bytes are returned, which no call takes (ENAMETOOLONG).
func readString(tid int, addr uint64, buf *[unix.PathMax]byte) (string, bool) {
	if addr == 0 {
		return "", false
	}
	got := 0
	for got < len(buf) {
		at := addr + uint64(got)
		chunk := 4096 - int(at&4095)
		if got == 0 && chunk > 256 {
			chunk = 256 // most paths are short
		}
		chunk = min(chunk, len(buf)-got)
		n, ok := readSome(tid, at, buf[got:got+chunk])
		if !ok || n == 0 {
			return "", false
		}
		if i := bytes.IndexByte(buf[got:got+n], 0); i >= 0 {
			return string(buf[:got+i]), true
		}
		got += n
	}
	return string(buf[:]), true
}

func readSome(tid int, addr uint64, b []byte) (int, bool) {
	if !noVMRead.Load() {
		local := unix.Iovec{Base: &b[0]}
		local.SetLen(len(b))
		remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
		n, _, e := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
		switch e {
		case 0:
			return int(n), true
		case unix.EPERM, unix.ENOSYS:
			// EPERM is also what an undumpable process gives: only a refusal
			// of our own memory proves that the call itself is refused.
			if !canReadOurselves() {
				noVMRead.Store(true)
			}
		default:
			return 0, false
		}
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	n, err := unix.Pread(fd, b, int64(addr))
	return n, err == nil
}

func canReadOurselves() bool {
	var from, to [1]byte
	local := unix.Iovec{Base: &to[0]}
	local.SetLen(1)
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&from[0])), Len: 1}
	_, _, e := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid()), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	return e == 0
}

// sockaddr is what a supervisor needs to know of a socket address.
type sockaddr struct {
	family uint16
	path   string // of AF_UNIX; empty for unnamed and abstract ones
}

// readSockaddr copies an address argument: struct sockaddr, at most the size
// of sockaddr_un (unix(7)).
func readSockaddr(tid int, addr, size uint64) (sockaddr, bool) {
	const sockaddrUn = 110
	if size < 2 || size > 128 {
		return sockaddr{}, false
	}
	b := make([]byte, min(size, sockaddrUn))
	if !readMemory(tid, addr, b) {
		return sockaddr{}, false
	}
	a := sockaddr{family: binary.NativeEndian.Uint16(b)}
	if a.family != unix.AF_UNIX || len(b) == 2 || b[2] == 0 {
		return a, true
	}
	p := b[2:]
	if i := bytes.IndexByte(p, 0); i >= 0 {
		p = p[:i]
	}
	a.path = string(p)
	return a, true
}
