package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// post is a locked operating system thread that was restricted and has started
// a command. It stays parked in the command's domain: it can signal exactly
// that domain, and it can ask whether a process belongs to it. It dies when
// released.
type post struct {
	requests chan func() // run on the thread, one after another
	quit     chan struct{}
	once     sync.Once
	gone     chan struct{} // closed when the thread no longer answers
}

// release lets the thread die. Again has no effect.
func (p *post) release() { p.once.Do(func() { close(p.quit) }) }

// do runs f on the thread and waits; false when the thread was released.
func (p *post) do(f func()) bool {
	done := make(chan struct{})
	select {
	case p.requests <- func() { defer close(done); f() }:
		<-done
		return true
	case <-p.gone:
		return false
	}
}

// killAll sends SIGKILL to every process of the domain. Call it only when the
// signal scope is really in force: without it the call reaches every process
// of the user (facts/kernels section 4).
func (p *post) killAll() {
	p.do(func() { _, _, _ = unix.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0) })
}

// owns tells which of the processes belong to the domain.
func (p *post) owns(pids []int) []int {
	var out []int
	p.do(func() {
		for _, pid := range pids {
			if unix.Kill(pid, 0) == nil {
				out = append(out, pid)
			}
		}
	})
	return out
}

// onFreshThread runs f on a goroutine that is locked to a thread which is not
// the process's first one: that thread lives for ever, and so would its
// restrictions. The goroutine never unlocks: the thread dies with it.
func onFreshThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// Keep the first thread occupied until another thread has taken over.
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			f()
		}()
		<-taken
		runtime.UnlockOSThread()
	}()
}

// launch is what a restricted thread needs to start one command.
type launch struct {
	path  string
	argv  []string
	env   []string
	dir   int // open directory to start in
	files [3]*os.File
	tty   bool
	// newSession: the command gets a session of its own. Not when it shares
	// the caller's terminal.
	newSession bool

	rulesetFD    int // -1: no Landlock
	rulesetFlags uint32
	fence        *fence.Fence
	denials      *denialLog
	supervise    bool
	noNetwork    bool
	keep         *keeping // nil when nothing is kept
}

// launched is what came of it.
type launched struct {
	pid        int
	pidfd      int
	post       *post       // nil when nothing was restricted
	supervisor *supervisor // nil when there is none
	seccomp    bool
	nested     bool // another supervisor is above us
}

// start restricts a fresh thread and starts the command from it. The order is
// fixed: no_new_privs first (both others need it), capabilities, Landlock,
// seccomp last, so that nothing of the setup is filtered; then the command.
// Nothing may be opened on that thread: the fence might refuse it.
func (l *launch) start() (*launched, error) {
	type result struct {
		l   *launched
		err error
	}
	ch := make(chan result, 1)
	p := &post{requests: make(chan func()), quit: make(chan struct{}), gone: make(chan struct{})}
	onFreshThread(func() {
		defer close(p.gone)
		out := &launched{post: p}
		err := l.onThread(out)
		ch <- result{out, err}
		for err == nil {
			select {
			case f := <-p.requests:
				f()
			case <-p.quit:
				return
			}
		}
	})
	r := <-ch
	if r.err != nil {
		if r.l.supervisor != nil {
			r.l.supervisor.stop()
		}
		return nil, r.err
	}
	return r.l, nil
}

// errRestrict wraps failures that are the fence's, not the command's.
type errRestrict struct{ err error }

func (e *errRestrict) Error() string { return e.err.Error() }
func (e *errRestrict) Unwrap() error { return e.err }

func (l *launch) onThread(out *launched) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &errRestrict{fmt.Errorf("set no_new_privs: %w", err)}
	}
	if err := dropBounding(); err != nil {
		return &errRestrict{err}
	}
	if l.rulesetFD >= 0 {
		if err := ll.LandlockRestrictSelf(l.rulesetFD, l.rulesetFlags); err != nil {
			if errors.Is(err, unix.E2BIG) {
				// The kernel's text for this is "argument list too long".
				err = errors.New("16 nested Landlock layers are in force already, the kernel allows no more")
			}
			return &errRestrict{fmt.Errorf("restrict thread: %w", err)}
		}
	}
	if err := l.filter(out); err != nil {
		return &errRestrict{err}
	}
	return l.exec(out)
}

// exec forks and executes the command on the calling thread, with what that
// thread is restricted to.
func (l *launch) exec(out *launched) error {
	pidfd := -1
	var onDeath syscall.Signal
	if out.post != nil {
		// The signal comes when the starting *thread* dies (prctl(2),
		// PR_SET_PDEATHSIG): that one is parked until the command has ended, so
		// it dies earlier only with all of us.
		onDeath = unix.SIGKILL
	}
	attr := &syscall.ProcAttr{
		// The directory is entered by its handle, so that a rename in between
		// cannot lead elsewhere.
		Dir: fmt.Sprintf("/proc/self/fd/%d", l.dir),
		Env: l.env,
		Sys: &syscall.SysProcAttr{Setsid: l.newSession, Setctty: l.tty, Ctty: 0, PidFD: &pidfd, Pdeathsig: onDeath},
	}
	for _, f := range l.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(l.path, l.argv, attr)
	if err != nil {
		return err
	}
	out.pid, out.pidfd = pid, pidfd
	return nil
}

// filter installs the seccomp program and starts its supervisor, which must be
// there before the first filtered call.
func (l *launch) filter(out *launched) error {
	o := fence.SeccompOptions{Notify: l.supervise, NoNetwork: l.noNetwork}
	if l.supervise {
		fd, err := notify.Install(fence.CompileSeccomp(o))
		if err == nil {
			s, err := newSupervisor(l.fence, fd, l.denials, l.keep)
			if err != nil {
				unix.Close(fd)
				return err
			}
			go s.serve()
			out.supervisor, out.seccomp = s, true
			return nil
		}
		if !errors.Is(err, notify.ErrBusy) {
			return err
		}
		out.nested = true
	}
	o.Notify = false
	o.NoMetadata = l.fence.Mode() == fence.ReadOnly
	if err := notify.InstallPlain(fence.CompileSeccomp(o)); err != nil {
		return err
	}
	out.seccomp = true
	return nil
}

// dropBounding makes sure that the command has no capability: what execve(2)
// gives to root comes from the bounding and inheritable sets, and both are
// empty then. The thread itself keeps its own: it needs CAP_KILL to end the
// tree. Where this process cannot drop them it has none to pass on either.
func dropBounding() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	if data[0].Inheritable|data[1].Inheritable != 0 {
		data[0].Inheritable, data[1].Inheritable = 0, 0
		if err := unix.Capset(&hdr, &data[0]); err != nil {
			return fmt.Errorf("drop inheritable capabilities: %w", err)
		}
	}
	if data[0].Permitted|data[1].Permitted == 0 {
		return nil // nothing to pass on; no_new_privs keeps it so
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // beyond the last capability of this kernel
		}
		if errors.Is(err, unix.EPERM) && unix.Geteuid() != 0 && unix.Getuid() != 0 {
			return nil // execve gives a user without root nothing from the bounding set
		}
		if err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
}
