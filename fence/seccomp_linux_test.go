package fence_test

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// Actions of a program, by linux/seccomp.h.
const (
	allow  = 0x7fff0000
	notify = 0x7fc00000
)

func refusal(e unix.Errno) uint32 { return 0x00050000 | uint32(e) }

// call is struct seccomp_data.
type call struct {
	nr, arch uint32
	args     [6]uint64
}

// word is what BPF_ABS loads at an offset (little-endian).
func (c call) word(off uint32) (uint32, error) {
	switch {
	case off == 0:
		return c.nr, nil
	case off == 4:
		return c.arch, nil
	case off >= 16 && off < 64 && off%4 == 0:
		return uint32(c.args[(off-16)/8] >> (8 * (off % 8))), nil
	}
	return 0, fmt.Errorf("load at %d", off)
}

// simulate runs a classic BPF program as the kernel does, and refuses what the
// kernel's checker would refuse (kernel/seccomp.c, seccomp_check_filter).
func simulate(prog []unix.SockFilter, c call) (uint32, error) {
	var a uint32
	for pc := 0; ; {
		if pc >= len(prog) {
			return 0, fmt.Errorf("ran over the end")
		}
		in := prog[pc]
		pc++
		jump := func(taken bool) {
			if taken {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			v, err := c.word(in.K)
			if err != nil {
				return 0, err
			}
			a = v
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K, nil
		default:
			return 0, fmt.Errorf("instruction %#x", in.Code)
		}
	}
}

var archValue = map[string]uint32{"amd64": 0xC000003E, "arm64": 0xC00000B7}

var callsByNumber = func() map[uint32]fence.Call {
	m := map[uint32]fence.Call{}
	for _, c := range fence.Calls() {
		m[c.NR] = c
	}
	return m
}()

// wanted is what the program must answer, written from the documentation of
// CompileSeccomp and not from its code.
func wanted(o fence.SeccompOptions, c call) uint32 {
	if c.arch != archValue[runtime.GOARCH] {
		return refusal(unix.ENOSYS)
	}
	if runtime.GOARCH == "amd64" && c.nr >= 0x40000000 {
		return refusal(unix.ENOSYS)
	}
	low := func(i int) uint32 { return uint32(c.args[i]) }
	switch c.nr {
	case unix.SYS_IO_URING_SETUP, unix.SYS_CHROOT:
		return refusal(unix.EPERM)
	case 463, 466, 467, 469: // setxattrat, removexattrat, open_tree_attr, file_setattr
		return refusal(unix.ENOSYS)
	case unix.SYS_SOCKET:
		if o.NoNetwork && low(0) != unix.AF_UNIX && low(0) != unix.AF_NETLINK {
			return refusal(unix.EACCES)
		}
		return allow
	case unix.SYS_IOCTL:
		switch low(1) {
		case 0x5412, 0x541C:
			return refusal(unix.EPERM)
		case 0x40086602, 0x401c5820, 0x40046602:
			switch {
			case o.Notify:
				return notify
			case o.NoMetadata:
				return refusal(unix.EACCES)
			}
		}
		return allow
	}
	if k, ok := callsByNumber[c.nr]; ok {
		meta := k.Kind == fence.CallMeta || k.Kind == fence.CallMetaFD
		switch {
		case o.Notify && k.Kind == fence.CallOpen:
			f := low(k.Flags)
			if f&unix.O_ACCMODE != unix.O_RDONLY || f&(unix.O_CREAT|unix.O_TRUNC) != 0 || f&unix.O_TMPFILE == unix.O_TMPFILE || f&0o20000000 != 0 {
				return notify
			}
			return allow
		case o.Notify:
			return notify
		case o.NoMetadata && meta:
			return refusal(unix.EACCES)
		}
	}
	return allow
}

// TestSeccompProgram answers every call number with every argument that counts
// as documented, for every combination of options.
func TestSeccompProgram(t *testing.T) {
	home := archValue[runtime.GOARCH]
	if home == 0 {
		t.Skip("SKIP: no such architecture")
	}
	var numbers []uint32
	for nr := range uint32(600) {
		numbers = append(numbers, nr, 0x40000000|nr)
	}
	numbers = append(numbers, 0x3fffffff, 0x80000000, 0xffffffff)
	values := []uint64{
		0, 1, 2, 3, unix.O_CREAT, unix.O_TRUNC, unix.O_TMPFILE, 0o20000000, unix.O_APPEND, unix.O_CREAT | unix.O_EXCL | unix.O_RDWR, unix.O_PATH, unix.O_DIRECTORY | unix.O_CLOEXEC,
		0x5412, 0x541C, 0x5413, 0x5401, 0x40086602, 0x80086601, 0x401c5820, 0x40046602,
		unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, 1 << 32, 0x5412 | 1<<32, 0x541C | 0xffffffff<<32, 0x40086602 | 7<<32, ^uint64(0),
	}
	for i := range 8 {
		o := fence.SeccompOptions{Notify: i&1 != 0, NoNetwork: i&2 != 0, NoMetadata: i&4 != 0}
		prog := fence.CompileSeccomp(o)
		if len(prog) > 4096 {
			t.Errorf("%+v: %d instructions", o, len(prog))
		}
		try := func(c call) {
			got, err := simulate(prog, c)
			if want := wanted(o, c); err != nil || got != want {
				t.Fatalf("%+v: call %d on %#x with %#x: %#x, %v; want %#x", o, c.nr, c.arch, c.args, got, err, want)
			}
		}
		for _, nr := range numbers {
			for _, v := range values {
				for _, at := range []int{0, 1, 2} { // where flags, requests and families are
					c := call{nr: nr, arch: home}
					c.args[at] = v
					try(c)
				}
			}
			for _, arch := range []uint32{0x40000003, 0xC000003E, 0xC00000B7, 0x40000028, 0, 0xffffffff} {
				try(call{nr: nr, arch: arch})
			}
		}
	}
}

// TestSeccompOptionsAreIndependent: what one option holds does not depend on
// another, but for metadata, which a supervisor takes over.
func TestSeccompOptionsAreIndependent(t *testing.T) {
	c := call{nr: unix.SYS_FCHMOD, arch: archValue[runtime.GOARCH]}
	for o, want := range map[fence.SeccompOptions]uint32{
		{}: allow, {NoMetadata: true}: refusal(unix.EACCES), {Notify: true}: notify, {Notify: true, NoMetadata: true}: notify,
	} {
		if got, err := simulate(fence.CompileSeccomp(o), c); err != nil || got != want {
			t.Errorf("%+v: %#x, %v", o, got, err)
		}
	}
}

// TestSeccompInTheKernel: the kernel takes the program, and what it refuses at
// once is refused.
func TestSeccompInTheKernel(t *testing.T) {
	w := newWorld(t)
	for _, o := range []fence.SeccompOptions{{}, {NoNetwork: true}, {NoMetadata: true}, {NoNetwork: true, NoMetadata: true}} {
		prog := fence.CompileSeccomp(o)
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // dies with the filter
			if unix.Gettid() == unix.Getpid() {
				done <- nil // the first thread must stay as it is
				runtime.UnlockOSThread()
				return
			}
			done <- filtered(t, w, o, prog)
		}()
		if err := <-done; err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func filtered(t *testing.T, w world, o fence.SeccompOptions, prog []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := installFilter(prog); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	_, _, ring := unix.RawSyscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	fd, inet := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if inet == nil {
		_ = unix.Close(fd)
	}
	local, sock := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if sock == nil {
		_ = unix.Close(local)
	}
	_, _, attr := unix.RawSyscall(469, 0, 0, 0)
	chmod := unix.Chmod(w.ws+"/f", 0o600)
	for _, c := range []struct {
		what      string
		got, want error
	}{
		{"io_uring", ring, unix.EPERM},
		{"chroot", unix.Chroot(w.ws), unix.EPERM},
		{"file_setattr", attr, unix.ENOSYS},
		{"unix socket", sock, nil},
		{"internet socket", inet, map[bool]error{true: unix.EACCES, false: nil}[o.NoNetwork]},
		{"chmod", chmod, map[bool]error{true: unix.EACCES, false: nil}[o.NoMetadata]},
	} {
		if c.got != c.want {
			t.Errorf("%+v: %s: %v, want %v", o, c.what, c.got, c.want)
		}
	}
	return nil
}

func installFilter(prog []unix.SockFilter) error {
	fp := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, 1, 0, uintptr(unsafe.Pointer(&fp)))
	if e != 0 {
		return e
	}
	return nil
}
