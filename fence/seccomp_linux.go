package fence

import (
	"golang.org/x/sys/unix"
)

// Actions of a seccomp program (linux/seccomp.h).
const (
	retAllow  = 0x7fff0000
	retNotify = 0x7fc00000
	retErrno  = 0x00050000
)

// Offsets in struct seccomp_data (linux/seccomp.h); arguments are 64 bits wide
// and the program sees their low halves: little-endian architectures only.
const (
	dataNR   = 0
	dataArch = 4
	dataArgs = 16
)

// SeccompOptions choose what the program holds.
type SeccompOptions struct {
	// Notify hands the calls of [Calls] to a supervisor. Without one they pass.
	Notify bool
	// NoNetwork refuses sockets of every family but unix and netlink, at once,
	// with EACCES: what Landlock rules do not cover (UDP, raw, MPTCP, vsock).
	NoNetwork bool
	// NoMetadata refuses changes of mode, owner, times and attributes where
	// there is no supervisor to tell them apart: in read-only.
	NoMetadata bool
}

// CompileSeccomp makes the classic BPF program of the fence:
//
//   - foreign architectures and x32 get ENOSYS: the numbers below would mean
//     other calls there;
//   - io_uring_setup gets EPERM: its operations would pass by the filter;
//   - chroot gets EPERM, as it would outside a user namespace: the supervisor
//     resolves paths from the root that it shares with the command;
//   - TIOCSTI and TIOCLINUX get EPERM: they type into the user's terminal. The
//     kernel compares the low 32 bits of the request, so does the program;
//   - metadata calls that the supervisor cannot read get ENOSYS;
//   - calls that change something go to the supervisor; opens for reading are
//     told apart by their flags here and cost nothing.
//
// The program is short enough for one filter (seccomp(2): BPF_MAXINSNS 4096).
func CompileSeccomp(o SeccompOptions) []unix.SockFilter {
	b := &bpf{}
	b.load(dataArch)
	b.retUnless(auditArch, errnoRet(unix.ENOSYS))
	b.load(dataNR)
	if x32Bit != 0 {
		b.retFrom(x32Bit, errnoRet(unix.ENOSYS))
	}
	b.retIf(unix.SYS_IO_URING_SETUP, errnoRet(unix.EPERM))
	b.retIf(unix.SYS_CHROOT, errnoRet(unix.EPERM))
	for _, nr := range callsUnknown {
		b.retIf(nr, errnoRet(unix.ENOSYS))
	}
	if o.NoNetwork {
		b.onCall(unix.SYS_SOCKET, func() {
			b.loadArg(0)
			b.retIf(unix.AF_UNIX, retAllow)
			b.retIf(unix.AF_NETLINK, retAllow)
			b.ret(errnoRet(unix.EACCES))
		})
	}
	b.onCall(unix.SYS_IOCTL, func() {
		b.loadArg(1)
		b.retIf(ioctlTIOCSTI, errnoRet(unix.EPERM))
		b.retIf(ioctlTIOCLINUX, errnoRet(unix.EPERM))
		for _, c := range []uint32{ioctlFSSetFlags, ioctlFSSetXattr, ioctlFSSetFlag32} {
			switch {
			case o.Notify:
				b.retIf(c, retNotify)
			case o.NoMetadata:
				b.retIf(c, errnoRet(unix.EACCES))
			}
		}
		b.ret(retAllow)
	})
	for _, c := range Calls() {
		if c.Kind == CallIoctl {
			continue
		}
		switch {
		case o.Notify && c.Kind == CallOpen:
			b.onCall(c.NR, func() {
				b.loadArg(c.Flags)
				b.retAny(OpenWriteFlags, retNotify)
				b.ret(retAllow)
			})
		case o.Notify:
			b.retIf(c.NR, retNotify)
		case o.NoMetadata && (c.Kind == CallMeta || c.Kind == CallMetaFD):
			b.retIf(c.NR, errnoRet(unix.EACCES))
		}
	}
	b.ret(retAllow)
	return b.prog
}

func errnoRet(e unix.Errno) uint32 { return retErrno | uint32(e) }

// bpf assembles a program of straight tests: every jump goes over what was
// just appended, so no distance is ever counted by hand.
type bpf struct{ prog []unix.SockFilter }

func (b *bpf) load(off uint32) {
	b.prog = append(b.prog, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off})
}

func (b *bpf) loadArg(i int) { b.load(dataArgs + 8*uint32(i)) }

func (b *bpf) ret(k uint32) {
	b.prog = append(b.prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k})
}

func (b *bpf) jump(op uint16, k uint32, t, f uint8) {
	b.prog = append(b.prog, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: t, Jf: f, K: k})
}

func (b *bpf) retIf(k, action uint32) {
	b.jump(unix.BPF_JEQ, k, 0, 1)
	b.ret(action)
}

func (b *bpf) retUnless(k, action uint32) {
	b.jump(unix.BPF_JEQ, k, 1, 0)
	b.ret(action)
}

// retFrom answers action for every value of k and above.
func (b *bpf) retFrom(k, action uint32) {
	b.jump(unix.BPF_JGE, k, 0, 1)
	b.ret(action)
}

// retAny answers action when one of the bits is set.
func (b *bpf) retAny(bits, action uint32) {
	b.jump(unix.BPF_JSET, bits, 0, 1)
	b.ret(action)
}

// onCall runs body for one call number; body must end every path. The number
// is loaded when body starts and when the next test starts.
func (b *bpf) onCall(nr uint32, body func()) {
	at := len(b.prog)
	b.jump(unix.BPF_JEQ, nr, 0, 0)
	body()
	n := len(b.prog) - at - 1
	if n > 255 {
		panic("fence: a seccomp block is longer than a jump")
	}
	b.prog[at].Jf = uint8(n)
}
