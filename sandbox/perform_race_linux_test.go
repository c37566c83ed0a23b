package sandbox_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// races are the ways in which a second thread changes what a call means while
// the call is under way, with the number of tries.
var races = []struct {
	how   string
	tries int
}{
	{"memory", 6000},      // the path in memory
	{"exchange", 4000},    // names: files, links, FIFOs, devices by link, directories
	{"descriptor", 4000},  // the number of a descriptor
	{"address", 1000},     // the address of a socket
	{"lock", 500},         // what is in the lock file of a configuration
	{"flags", 4000},       // the flags of an openat2
	{"directories", 3000}, // directories by exchange, below which names are made
}

// hammered is the stage of a race: what must not change, and how it is told.
func (l *lab) hammered() (state func() string) {
	l.repository(l.W)
	write(l.t, l.W+"/.git/hooks/existing", "mine\n", 0o755)
	write(l.t, l.O+"/f", "outside\n", 0o644)
	write(l.t, l.O+"/d/f", "outside\n", 0o644)
	return func() string {
		return snapshot(l.t, l.W+"/.git/hooks") + snapshot(l.t, l.W+"/.git/config") + snapshot(l.t, l.O)
	}
}

// TestStrictWinsEveryRace: under protect "strict" not one byte, name, mode,
// time or attribute of a protected path or of one outside changes, however a
// second thread rewrites the call meanwhile.
func TestStrictWinsEveryRace(t *testing.T) {
	for _, c := range races {
		t.Run(c.how, func(t *testing.T) {
			l := newLab(t)
			state := l.hammered()
			before, beside := state(), l.host(`ls -A "$W/.."`)
			n := c.tries
			if soak() {
				n = 1000000
			}
			f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Protect = fence.ProtectStrict })
			p := l.start(l.spec(f, fmt.Sprintf(`"$TOOL" tool hammer %s "$W" "$O" %d`, c.how, n)))
			<-p.Over()
			out, errs := outputOf(p)
			if st := p.State(); st.ExitCode == nil || *st.ExitCode != 0 {
				t.Fatalf("%+v\n%s\n%s", st, out, errs)
			}
			if e := p.Enforcement(); e.Protect != fence.ProtectStrict {
				t.Fatalf("%+v", e)
			}
			t.Log(strings.TrimSpace(out))
			after := state()
			if c.how == "lock" {
				b, err := os.ReadFile(l.W + "/.git/config")
				if err != nil || strings.Contains(string(b), "hooksPath") {
					t.Errorf("the configuration: %q, %v", b, err)
				}
				var st unix.Stat_t
				if err := unix.Lstat(l.W+"/.git/config", &st); err != nil || st.Nlink != 1 || st.Mode&unix.S_IFMT != unix.S_IFREG {
					t.Errorf("the configuration: %+v, %v", st, err)
				}
				before, after = withoutLine(before, ".git/config "), withoutLine(after, ".git/config ")
			}
			if after != before {
				t.Errorf("changed:\n%s\nnow:\n%s", before, after)
			}
			if got := l.host(`ls -A "$W/.."`); got != beside {
				t.Errorf("names beside the workspace: %s", got)
			}
		})
	}
}

func withoutLine(text, part string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(text, "\n") {
		if !strings.Contains(line, part) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestCheckedLosesTheRace: the same program under "checked" changes what is
// protected, as the report of each start says; the test above can fail.
func TestCheckedLosesTheRace(t *testing.T) {
	l := newLab(t)
	state := l.hammered()
	before := state()
	f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Protect = fence.ProtectChecked })
	for range 10 {
		l.run(f, `"$TOOL" tool hammer memory "$W" "$O" 4000`)
		for _, p := range []string{l.W + "/.git/config", l.W + "/.git/hooks", l.O + "/f"} {
			if _, err := os.Lstat(p); err != nil {
				return // removed, even
			}
		}
		if state() != before {
			return
		}
	}
	t.Error("the race was never won: it tests nothing")
}

// padded makes paths of one length.
func padded(paths ...string) [][]byte {
	long := 0
	for _, p := range paths {
		long = max(long, len(p))
	}
	out := make([][]byte, len(paths))
	for i, p := range paths {
		j := strings.LastIndexByte(p, '/')
		out[i] = append([]byte(p[:j]+strings.Repeat("/", long-len(p))+p[j:]), 0)
	}
	return out
}

func init() {
	// hammer HOW W O N: N calls while a second thread changes what they mean.
	tools["hammer"] = func(a []string) error {
		h := hammer{w: a[1], o: a[2], r: rand.New(rand.NewPCG(1, 2))}
		n, err := strconv.Atoi(a[3])
		if err != nil {
			return err
		}
		flip, try := h.stage(a[0])
		if flip == nil {
			return fmt.Errorf("no such race %q", a[0])
		}
		var stop atomic.Bool
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; !stop.Load(); i++ {
				flip(i)
			}
		}()
		passed := 0
		for i := range n {
			if try(i) {
				passed++
			}
		}
		stop.Store(true)
		<-ended
		fmt.Printf("%s: %d tries, %d passed\n", a[0], n, passed)
		return nil
	}
}

type hammer struct {
	w, o string
	r    *rand.Rand
}

func at(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// stage prepares a race: flip changes the meaning, try makes one call.
func (h *hammer) stage(how string) (flip func(int), try func(int) bool) {
	file := func(name string) string {
		p := h.w + "/" + name
		_ = os.WriteFile(p, []byte("mine\n"), 0o644)
		return p
	}
	switch how {
	case "memory":
		paths := padded(h.w+"/mine", h.w+"/.git/config", h.w+"/.git/hooks/x", h.w+"/.git/hooks/existing", h.o+"/f", h.o+"/new", "/dev/null", h.w+"/.git/hooks")
		path := append([]byte(nil), paths[0]...)
		p := unsafe.Pointer(&path[0])
		return func(i int) {
				copy(at(p, len(path)), paths[1+i%(len(paths)-1)])
				copy(at(p, len(path)), paths[0])
			}, func(i int) bool {
				if i%16 == 0 {
					file("mine")
				}
				return h.call(uintptr(p))
			}
	case "exchange":
		_ = os.Symlink(h.w+"/.git/config", h.w+"/c")
		_ = os.Symlink(h.o+"/f", h.w+"/f")
		_ = os.Symlink("/dev/null", h.w+"/null")
		_ = os.Symlink(h.w+"/.git/hooks/x", h.w+"/dangling")
		_ = unix.Mkfifo(h.w+"/fifo", 0o600)
		others := []string{"c", "f", "null", "dangling", "fifo"}
		file("mine")
		path := append([]byte(h.w+"/mine"), 0)
		return func(i int) {
				o := h.w + "/" + others[i%len(others)]
				_ = unix.Renameat2(unix.AT_FDCWD, h.w+"/mine", unix.AT_FDCWD, o, unix.RENAME_EXCHANGE)
				_ = unix.Renameat2(unix.AT_FDCWD, h.w+"/mine", unix.AT_FDCWD, o, unix.RENAME_EXCHANGE)
			}, func(int) bool {
				switch h.r.IntN(4) {
				case 0:
					return unix.Chmod(h.w+"/mine", 0o777) == nil
				case 1:
					return unix.Truncate(h.w+"/mine", 0) == nil
				case 2:
					return unix.UtimesNanoAt(unix.AT_FDCWD, h.w+"/mine", []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0) == nil
				}
				return h.open(uintptr(unsafe.Pointer(&path[0])), unix.O_WRONLY|unix.O_APPEND|unix.O_NONBLOCK|unix.O_CREAT)
			}
	case "descriptor":
		var fds []int
		for _, p := range []string{file("mine"), h.w + "/.git/config", h.o + "/f", h.w + "/.git/hooks/existing", h.w + "/.git/hooks"} {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			if err == nil {
				fds = append(fds, fd)
			}
		}
		const n = 100
		_ = unix.Dup3(fds[0], n, 0)
		return func(i int) {
				_ = unix.Dup3(fds[1+i%(len(fds)-1)], n, 0)
				_ = unix.Dup3(fds[0], n, 0)
			}, func(int) bool {
				switch h.r.IntN(5) {
				case 0:
					return unix.Fchmod(n, 0o777) == nil
				case 1:
					return unix.Futimes(n, []unix.Timeval{{Sec: 1}, {Sec: 1}}) == nil
				case 2:
					return unix.Fsetxattr(n, "user.k", []byte("v"), 0) == nil
				case 3:
					return unix.Fchown(n, os.Getuid(), os.Getgid()) == nil
				}
				_ = unix.Unlink(h.w + "/l")
				return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", n), unix.AT_FDCWD, h.w+"/l", unix.AT_SYMLINK_FOLLOW) == nil
			}
	case "address":
		paths := padded(h.w+"/sock", h.w+"/.git/hooks/s", h.o+"/s")
		addr := append([]byte{unix.AF_UNIX, 0}, paths[0]...)
		p := unsafe.Pointer(&addr[0])
		return func(i int) {
				copy(at(p, len(addr))[2:], paths[1+i%2])
				copy(at(p, len(addr))[2:], paths[0])
			}, func(int) bool {
				fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
				if err != nil {
					return false
				}
				defer unix.Close(fd)
				_ = unix.Unlink(h.w + "/sock")
				_, _, e := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(p), uintptr(len(addr)))
				return e == 0
			}
	case "lock":
		lock := h.w + "/.git/config.lock"
		good, _ := os.ReadFile(h.w + "/.git/config")
		bad := append(append([]byte(nil), good...), "\thooksPath = /x\n"...)
		return func(i int) {
				switch i % 4 {
				case 0:
					_ = os.WriteFile(lock, bad, 0o644)
				case 1:
					_ = os.Link(lock, h.w+"/keep")
				case 2:
					if f, err := os.OpenFile(h.w+"/keep", os.O_WRONLY|os.O_APPEND, 0); err == nil {
						_, _ = f.WriteString("\thooksPath = /x\n")
						_ = f.Close()
					}
				default:
					_ = os.Remove(h.w + "/keep")
				}
			}, func(int) bool {
				_ = os.Remove(lock)
				_ = os.WriteFile(lock, good, 0o644)
				return os.Rename(lock, h.w+"/.git/config") == nil
			}
	case "flags":
		path := append([]byte(h.w+"/.git/config"), 0)
		var how [24]byte
		p := unsafe.Pointer(&how[0])
		return func(i int) {
				binary.NativeEndian.PutUint64(at(p, 8), unix.O_WRONLY|unix.O_APPEND)
				binary.NativeEndian.PutUint64(at(p, 8), unix.O_RDONLY)
			}, func(int) bool {
				fd, _, e := unix.Syscall6(unix.SYS_OPENAT2, ^uintptr(99), uintptr(unsafe.Pointer(&path[0])), uintptr(p), 24, 0, 0)
				if e != 0 {
					return false
				}
				_, err := unix.Write(int(fd), []byte("x"))
				_ = unix.Close(int(fd))
				return err == nil
			}
	case "directories":
		_ = os.Mkdir(h.w+"/dir", 0o755)
		_ = os.Symlink(h.w+"/.git/hooks", h.w+"/hooks")
		_ = os.Symlink(h.o, h.w+"/out")
		_ = os.Symlink(h.w+"/.git", h.w+"/git")
		others := []string{"hooks", "out", "git"}
		path := append([]byte(h.w+"/dir/config"), 0)
		return func(i int) {
				o := h.w + "/" + others[i%len(others)]
				_ = unix.Renameat2(unix.AT_FDCWD, h.w+"/dir", unix.AT_FDCWD, o, unix.RENAME_EXCHANGE)
				_ = unix.Renameat2(unix.AT_FDCWD, h.w+"/dir", unix.AT_FDCWD, o, unix.RENAME_EXCHANGE)
			}, func(int) bool {
				return h.call(uintptr(unsafe.Pointer(&path[0])))
			}
	}
	return nil, nil
}

func (h *hammer) open(path uintptr, flags int) bool {
	fd, _, e := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), path, uintptr(flags), 0o644, 0, 0)
	if e != 0 {
		return false
	}
	_, _ = unix.Write(int(fd), []byte("x"))
	_ = unix.Close(int(fd))
	return true
}

// call makes one of the calls that change something, with path as what changes.
func (h *hammer) call(path uintptr) bool {
	cstr := func(s string) uintptr { b, _ := unix.BytePtrFromString(s); return uintptr(unsafe.Pointer(b)) }
	const cwd = ^uintptr(99)
	var e unix.Errno
	switch h.r.IntN(14) {
	case 0:
		return h.open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND)
	case 1:
		return h.open(path, unix.O_WRONLY|unix.O_TRUNC)
	case 2:
		return h.open(path, unix.O_RDONLY|unix.O_CREAT)
	case 3:
		return h.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	case 4:
		_, _, e = unix.Syscall6(unix.SYS_RENAMEAT2, cwd, path, cwd, cstr(h.w+"/moved"), 0, 0)
	case 5:
		_ = os.WriteFile(h.w+"/moved", []byte("moved\n"), 0o755)
		_, _, e = unix.Syscall6(unix.SYS_RENAMEAT2, cwd, cstr(h.w+"/moved"), cwd, path, 0, 0)
	case 6:
		_, _, e = unix.Syscall(unix.SYS_UNLINKAT, cwd, path, 0)
	case 7:
		_ = unix.Unlink(h.w + "/l")
		_, _, e = unix.Syscall6(unix.SYS_LINKAT, cwd, path, cwd, cstr(h.w+"/l"), 0, 0)
		if e == 0 {
			if f, err := os.OpenFile(h.w+"/l", os.O_WRONLY|os.O_APPEND, 0); err == nil {
				_, _ = f.WriteString("by the link")
				_ = f.Close()
			}
		}
	case 8:
		_ = os.WriteFile(h.w+"/src", []byte("src\n"), 0o755)
		_, _, e = unix.Syscall6(unix.SYS_LINKAT, cwd, cstr(h.w+"/src"), cwd, path, 0, 0)
	case 9:
		_, _, e = unix.Syscall(unix.SYS_FCHMODAT, cwd, path, 0o777)
	case 10:
		_, _, e = unix.Syscall(unix.SYS_TRUNCATE, path, 1, 0)
	case 11:
		_, _, e = unix.Syscall(unix.SYS_SYMLINKAT, cstr("/x"), cwd, path)
	case 12:
		v := []byte("v")
		_, _, e = unix.Syscall6(unix.SYS_SETXATTR, path, cstr("user.k"), uintptr(unsafe.Pointer(&v[0])), 1, 0, 0)
	default:
		_ = os.WriteFile(h.w+"/moved", []byte("moved\n"), 0o755)
		_, _, e = unix.Syscall6(unix.SYS_RENAMEAT2, cwd, path, cwd, cstr(h.w+"/moved"), unix.RENAME_EXCHANGE, 0)
	}
	return e == 0
}
