package sandbox

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// supervisor answers the system calls of one command tree before they happen:
// it asks the fence, records what the fence refuses, and lets the rest go on.
//
// One locked thread serves one tree, so that checks do not interleave. It ends
// when the last process of the tree is gone or when stop is called. If it dies,
// the kernel answers every waiting and later call with ENOSYS: nothing passes.
type supervisor struct {
	fence    *fence.Fence
	listener int
	stopFD   int // eventfd; written once by stop
	denials  *denialLog
	loc      *locator
	keep     *keeping // nil when nothing is kept
	buf      [unix.PathMax]byte
	done     chan struct{} // closed when the loop has ended
}

// calls is the table of what can be notified, by number. Written once.
var calls = func() map[int32]*fence.Call {
	m := map[int32]*fence.Call{}
	for _, c := range fence.Calls() {
		m[int32(c.NR)] = &c
	}
	return m
}()

func newSupervisor(f *fence.Fence, listener int, d *denialLog, k *keeping) (*supervisor, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	return &supervisor{fence: f, listener: listener, stopFD: fd, denials: d, loc: &locator{held: -1}, keep: k, done: make(chan struct{})}, nil
}

// serve runs the loop on a thread of its own and closes the descriptors at the
// end. The owner is the tree that started it.
func (s *supervisor) serve() {
	runtime.LockOSThread() // dies with the goroutine: its signal mask is not for others
	defer close(s.done)
	defer s.keep.end()
	defer s.loc.drop()
	defer unix.Close(s.stopFD)
	defer unix.Close(s.listener)
	// A preemption signal of our own runtime in the middle of an answer would
	// make the waiting call see a wrong result (facts/supervisor section 2).
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil)
	var n notify.Notif
	fds := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}, {Fd: int32(s.stopFD), Events: unix.POLLIN}}
	for {
		fds[0].Revents, fds[1].Revents = 0, 0
		if _, err := unix.Poll(fds, -1); err != nil {
			if err == unix.EINTR {
				continue
			}
			return
		}
		if fds[1].Revents != 0 {
			return
		}
		if fds[0].Revents&unix.POLLIN != 0 {
			if err := notify.Receive(s.listener, &n); err != nil {
				if err == unix.ENOENT || err == unix.EINTR {
					continue
				}
				return
			}
			s.answer(&n)
			continue
		}
		if fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
			return // nobody of the tree is left
		}
	}
}

// stop ends the loop; calls that still come fail with ENOSYS.
func (s *supervisor) stop() {
	b := [8]byte{0: 1}
	_, _ = unix.Write(s.stopFD, b[:])
	<-s.done
}

// verdict is the answer to one call. The zero verdict lets it go on.
type verdict struct {
	errno  unix.Errno    // refused with this, if not 0
	denial *fence.Denial // why, when the fence refused
}

var goOn = verdict{}

func refuse(e unix.Errno) verdict { return verdict{errno: e} }

func (s *supervisor) answer(n *notify.Notif) {
	v := s.decideSafely(n)
	r := notify.Resp{ID: n.ID, Flags: notify.FlagContinue}
	if v.errno != 0 {
		r.Flags, r.Error = 0, -int32(v.errno)
	}
	// What was read under this thread id is the caller's only if it still
	// waits; else nobody gets the answer and nothing is recorded.
	if v.denial != nil && notify.Valid(s.listener, n.ID) {
		s.record(n, v)
	}
	_ = notify.Send(s.listener, &r)
}

// decideSafely turns a panic into a refusal: one bad call must not open the
// fence or end the daemon.
func (s *supervisor) decideSafely(n *notify.Notif) (v verdict) {
	defer func() {
		if recover() != nil {
			v = refuse(unix.EACCES)
		}
	}()
	c := calls[n.NR]
	if c == nil {
		return refuse(unix.ENOSYS)
	}
	return s.decide(n, c)
}

// record completes a denial with who made the call, and stores it.
func (s *supervisor) record(n *notify.Notif, v verdict) {
	d := *v.denial
	d.PID = threadGroup(int(n.PID))
	d.Process = processName(int(n.PID))
	d.Syscall = calls[n.NR].Name
	d.Errno = unix.ErrnoName(v.errno)
	d.Evidence = fence.EvidenceSupervisor
	s.denials.add(d)
}

// check asks the fence about a place, by name and then by identity: a bind
// mount or another case of a writable root is that root.
func (s *supervisor) check(p place, requested string, access fence.Access) verdict {
	return s.checkWith(p, requested, access, s.fence.CheckAs)
}

// checkMove is check for a name that a directory leaves or gets: with it goes
// what may be protected somewhere in it.
func (s *supervisor) checkMove(p place, requested string) verdict {
	return s.checkWith(p, requested, fence.Rename, s.fence.CheckDirectory)
}

func (s *supervisor) checkWith(p place, requested string, access fence.Access, ask func(canonical, requested string, access fence.Access) *fence.Denial) verdict {
	path := strings.TrimSuffix(p.path, " (deleted)")
	d := ask(path, requested, access)
	if d == nil {
		return goOn
	}
	if d.Rule == fence.RuleOutside {
		if alias := s.fence.Unalias(path); alias != path {
			if d = ask(alias, requested, access); d == nil {
				return goOn
			}
		}
	}
	return verdict{errno: unix.EACCES, denial: d}
}
