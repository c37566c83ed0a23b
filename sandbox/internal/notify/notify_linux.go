package notify

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Notif is struct seccomp_notif: a system call that waits for an answer. PID
// is the thread id of the caller as our pid namespace sees it.
type Notif struct {
	ID    uint64
	PID   uint32
	Flags uint32
	NR    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// Resp is struct seccomp_notif_resp. Error is a negative errno or 0.
type Resp struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// FlagContinue lets the kernel run the call as it was made
// (SECCOMP_USER_NOTIF_FLAG_CONTINUE). The caller's memory may have changed
// since it was read: never a decision that something else does not hold too.
const FlagContinue = 1

const (
	setModeFilter  = 1
	flagListener   = 1 << 3 // SECCOMP_FILTER_FLAG_NEW_LISTENER
	flagKillable   = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19
	ioctlRecv      = 0xc0502100
	ioctlSend      = 0xc0182101
	ioctlIDValid   = 0x40082102
	ioctlSetFlags  = 0x40082104
	flagSyncWakeUp = 1 // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6
)

// Layouts that the ioctl numbers encode.
var (
	_ [80]byte = [unsafe.Sizeof(Notif{})]byte{}
	_ [24]byte = [unsafe.Sizeof(Resp{})]byte{}
)

// ErrBusy: a filter with a listener is already above this thread; the kernel
// allows one listener in a tree (EBUSY).
var ErrBusy = errors.New("a supervisor is already above this process")

// Install puts the program on the calling thread, which must be locked and
// have no_new_privs, and returns the listener, close-on-exec. The thread and
// all it starts are filtered from then on.
func Install(prog []unix.SockFilter) (listener int, err error) {
	fd, err := install(prog, flagListener|flagKillable)
	if errors.Is(err, unix.EINVAL) { // before 5.19
		fd, err = install(prog, flagListener)
	}
	if errors.Is(err, unix.EBUSY) {
		return -1, ErrBusy
	}
	if err != nil {
		return -1, fmt.Errorf("install seccomp program: %w", err)
	}
	// Worth a factor of several in round-trip time; EINVAL before 6.6.
	_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), ioctlSetFlags, flagSyncWakeUp)
	return fd, nil
}

// InstallPlain puts a program without notifications on the calling thread.
func InstallPlain(prog []unix.SockFilter) error {
	if _, err := install(prog, 0); err != nil {
		return fmt.Errorf("install seccomp program: %w", err)
	}
	return nil
}

func install(prog []unix.SockFilter, flags uintptr) (int, error) {
	fp := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	r, _, e := unix.RawSyscall(unix.SYS_SECCOMP, setModeFilter, flags, uintptr(unsafe.Pointer(&fp)))
	if e != 0 {
		return -1, e
	}
	return int(r), nil
}

// Receive takes the next notification and blocks until there is one: poll the
// listener first. ENOENT: the caller died meanwhile.
func Receive(listener int, n *Notif) error {
	*n = Notif{} // the kernel refuses a structure that is not zeroed
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), ioctlRecv, uintptr(unsafe.Pointer(n)))
	if e != 0 {
		return e
	}
	return nil
}

// Send answers. ENOENT: the caller is gone, nobody waits for the answer.
func Send(listener int, r *Resp) error {
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(listener), ioctlSend, uintptr(unsafe.Pointer(r)))
	if e != 0 {
		return e
	}
	return nil
}

// Valid tells whether the call still waits: only then did what was read of the
// caller under its thread id belong to the caller.
func Valid(listener int, id uint64) bool {
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(listener), ioctlIDValid, uintptr(unsafe.Pointer(&id)))
	return e == 0
}
