package sandbox

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is a command with everything that descends from it.
//
// Which processes belong to it: under a signal scope the kernel is asked, from
// the parked thread, and the answer is exact. Without one (full-access, kernels
// before ABI 6) it is what descends from the command, or bears its mark in the
// environment, or its session, or was seen before to belong to it; a program
// that empties its environment and leaves its session right away can hide
// there, and full-access claims nothing against such a one.
type tree struct {
	r      *Runner
	pid    int
	pidfd  int
	post   *post       // nil without a fence
	sup    *supervisor // nil without one
	scoped bool
	mark   string // "NAME=value" in the environment of an unscoped tree

	mu     sync.Mutex
	reaped bool // the command itself; pidfd is closed then
	known  map[int]struct{}
}

// markName is in the environment of commands whose tree the kernel cannot tell.
const markName = "WATTLE_COMMAND"

func newMark() string { return markName + "=" + rand.Text() }

// wait waits for the command itself and reaps it.
func (t *tree) wait() exitStatus {
	for {
		err := unix.Waitid(unix.P_PIDFD, t.pidfd, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	var ws unix.WaitStatus
	var ru unix.Rusage
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if _, err := unix.Wait4(t.pid, &ws, 0, &ru); err != unix.EINTR {
			break
		}
	}
	t.reaped = true
	_ = unix.Close(t.pidfd)
	t.r.sys.reaped(t.pid)
	end := exitStatus{usage: Usage{
		UserMs: ru.Utime.Nano() / 1e6, SystemMs: ru.Stime.Nano() / 1e6, MaxRSSBytes: ru.Maxrss * 1024,
	}}
	if ws.Signaled() {
		end.signal = signalName(ws.Signal())
	} else {
		code := ws.ExitStatus()
		end.exitCode = &code
	}
	return end
}

// signalName is the name of a signal, SIG34 for the real-time ones, which have
// none (signal(7)).
func signalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return fmt.Sprintf("SIG%d", int(s))
}

// members lists the processes of the tree that are left, without the command
// itself. Zombies that can be reaped are reaped on the way.
//
// A process whose parent ends while the list is read is handed to us after it:
// nobody is left only when a second list has no new name in it.
func (t *tree) members() []int {
	seen := t.r.sys.orphans()
	for look := 1; ; look++ {
		out, unsure := t.among(seen)
		if len(out) > 0 || len(seen) == 0 && !unsure || look == maxLooks {
			return out
		}
		if unsure {
			t.r.sys.settle()
		}
		now := t.r.sys.orphans()
		if !unsure && !slices.ContainsFunc(now, func(pid int) bool { return !slices.Contains(seen, pid) }) {
			return nil
		}
		seen = now
	}
}

// maxLooks bounds how often members looks again when nobody was found but not
// all could be told.
const maxLooks = 10

// among is members, given the orphans of this process. unsure: there are
// zombies of the tree that are not yet ours to reap, or processes that cannot
// be told at this moment.
func (t *tree) among(orphans []int) (out []int, unsure bool) {
	if len(orphans) == 0 && (t.scoped || t.isReaped()) {
		return nil, false // whoever is left would have been handed to us
	}
	if t.scoped {
		orphans = t.post.owns(orphans)
	} else {
		orphans, unsure = t.ours(orphans)
	}
	var zombies []int
	seen := map[int]bool{}
	var descend func(pids []int)
	descend = func(pids []int) {
		for _, pid := range pids {
			if seen[pid] || pid == t.pid {
				continue
			}
			seen[pid] = true
			st, ok := statOf(pid)
			if !ok {
				continue
			}
			if st.state == 'Z' {
				if !t.reap(pid) {
					zombies = append(zombies, pid)
				}
				continue
			}
			out = append(out, pid)
			descend(childrenOf(pid))
		}
	}
	descend(orphans)
	if !t.isReaped() {
		descend(childrenOf(t.pid))
	}
	t.remember(append(zombies, out...))
	return out, unsure || len(zombies) > 0
}

// reap collects a zombie that is our own child; others are not ours to reap
// before their parents have ended.
func (t *tree) reap(pid int) bool {
	t.r.sys.mu.Lock()
	defer t.r.sys.mu.Unlock()
	if _, direct := t.r.sys.direct[pid]; direct {
		return true // a command, which its own tree reaps
	}
	got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return got == pid
}

func (t *tree) isReaped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reaped
}

func (t *tree) remember(pids []int) {
	if t.scoped {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = make(map[int]struct{}, len(pids))
	for _, p := range pids {
		t.known[p] = struct{}{}
	}
}

// ours tells which orphans belong to an unscoped tree. unsure: one of the
// others shows no environment, as a process does while it executes a program.
func (t *tree) ours(pids []int) (out []int, unsure bool) {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	for _, pid := range pids {
		_, k := known[pid]
		st, ok := statOf(pid)
		if k || ok && st.session == t.pid {
			out = append(out, pid)
			continue
		}
		if !ok || st.state == 'Z' || t.mark == "" {
			continue
		}
		env := procFile(pid, "environ")
		switch {
		case len(env) == 0:
			unsure = true
		case hasMark(env, t.mark):
			out = append(out, pid)
		}
	}
	return out, unsure
}

func hasMark(env []byte, mark string) bool {
	for len(env) > 0 {
		var kv []byte
		kv, env, _ = bytes.Cut(env, []byte{0})
		if string(kv) == mark {
			return true
		}
	}
	return false
}

// survivors lists what the command left running.
func (t *tree) survivors() []Survivor {
	out := []Survivor{}
	for _, pid := range t.members() {
		out = append(out, Survivor{PID: pid, Process: processName(pid)})
	}
	return out
}

// kill ends everything that is in the tree now. It may be called at any time,
// from any goroutine.
func (t *tree) kill() {
	if t.scoped {
		t.post.killAll()
		return
	}
	t.mu.Lock()
	if !t.reaped {
		_ = unix.PidfdSendSignal(t.pidfd, unix.SIGKILL, nil, 0)
	}
	t.mu.Unlock()
	t.sweep()
}

// sweepLimit bounds how long an unscoped tree is fought.
const sweepLimit = 5 * time.Second

// sweep kills until nothing of an unscoped tree is left.
func (t *tree) sweep() {
	for end := time.Now().Add(sweepLimit); time.Now().Before(end); {
		m := t.members()
		if len(m) == 0 {
			return
		}
		for _, pid := range m {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		t.r.sys.settle()
	}
}

// finish ends what is left of the tree after the command itself has ended.
//
// Under a scope everything is killed once in any case: the list of orphans can
// miss one that forked while it was read, kill(-1) cannot. What remains, to let
// the parked thread go and to see the listener hang up, needs nobody to wait.
func (t *tree) finish() {
	if !t.scoped {
		t.sweep()
		t.letGo()
		return
	}
	t.post.killAll()
	for end := time.Now().Add(sweepLimit); len(t.members()) > 0 && time.Now().Before(end); {
		t.post.killAll()
		t.r.sys.settle()
	}
	t.r.sys.ending.Add(1)
	go func() {
		defer t.r.sys.ending.Done()
		t.letGo()
	}()
}

// letGo lets the parked thread die and ends the supervisor: by itself, when the
// last process of the tree has left, or after a second.
func (t *tree) letGo() {
	if t.post != nil {
		t.post.release()
		<-t.post.gone
	}
	if t.sup == nil {
		return
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-t.sup.done: // the listener hung up: the tree is empty
	case <-late.C:
		t.sup.stop() // later calls of whoever is left fail
	}
}

// waitEmpty waits until a tree that was kept has ended by itself or was killed.
func (t *tree) waitEmpty() {
	for {
		ch := t.r.sys.childEnded()
		if len(t.members()) == 0 {
			return
		}
		select {
		case <-ch:
		case <-time.After(time.Second): // a grandchild's end tells us nothing
		}
	}
}

// signal sends to the command's process group, or to the command alone when it
// shares the caller's.
func (t *tree) signal(sig unix.Signal, group bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return os.ErrProcessDone
	}
	if group {
		// The command is not reaped, so the number is still its group's.
		return unix.Kill(-t.pid, sig)
	}
	return unix.PidfdSendSignal(t.pidfd, sig, nil, 0)
}
