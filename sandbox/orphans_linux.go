package sandbox

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// runnerSys is what a Runner keeps of this system.
type runnerSys struct {
	own bool // Options.OwnChildren

	// mu is held over every fork until the child is on record, and over every
	// reaping of an unknown child, so that a command is never taken for an
	// orphan. Taken before nothing else.
	mu     sync.Mutex
	direct map[int]*tree // children that we started, until reaped

	chldMu sync.Mutex
	ended  chan struct{} // closed and replaced at each SIGCHLD
	stop   chan struct{}

	rules rulesetCache
	// ending are trees whose thread and supervisor are on their way out.
	ending sync.WaitGroup
}

func (s *runnerSys) init(r *Runner) {
	s.own = r.opts.OwnChildren
	s.direct = map[int]*tree{}
	s.ended, s.stop = make(chan struct{}), make(chan struct{})
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if r.opts.TempRoot != "" {
		sweepTemp(r.opts.TempRoot)
	}
	go s.watchChildren(r)
}

func (s *runnerSys) forget(f *fence.Fence) { s.rules.forget(f) }

func (s *runnerSys) close() {
	s.ending.Wait()
	close(s.stop)
	s.rules.close()
}

// watchChildren reaps orphans as they end. It ends when the Runner is closed.
func (s *runnerSys) watchChildren(r *Runner) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGCHLD)
	defer signal.Stop(c)
	for {
		select {
		case <-c:
			s.reapOrphans()
			s.chldMu.Lock()
			close(s.ended)
			s.ended = make(chan struct{})
			s.chldMu.Unlock()
		case <-s.stop:
			return
		}
	}
}

func (s *runnerSys) childEnded() <-chan struct{} {
	s.chldMu.Lock()
	defer s.chldMu.Unlock()
	return s.ended
}

// settle waits for the next child to end, or a moment.
func (s *runnerSys) settle() {
	select {
	case <-s.childEnded():
	case <-time.After(2 * time.Millisecond):
	}
}

// reapOrphans collects zombies that are nobody's command.
func (s *runnerSys) reapOrphans() {
	pids := s.orphans()
	if len(pids) == 0 {
		return
	}
	s.mu.Lock()
	trees := make([]*tree, 0, len(s.direct))
	for _, t := range s.direct {
		if t.scoped {
			trees = append(trees, t)
		}
	}
	s.mu.Unlock()
	for _, pid := range pids {
		if st, ok := statOf(pid); !ok || st.state != 'Z' {
			continue
		}
		mine := s.own
		for i := 0; !mine && i < len(trees); i++ {
			mine = len(trees[i].post.owns([]int{pid})) == 1
		}
		if !mine {
			continue
		}
		s.mu.Lock()
		if _, direct := s.direct[pid]; !direct {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		s.mu.Unlock()
	}
}

// orphans lists children of this process that it did not start here.
func (s *runnerSys) orphans() []int {
	all := adopted()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := all[:0]
	for _, pid := range all {
		if _, direct := s.direct[pid]; !direct {
			out = append(out, pid)
		}
	}
	return out
}

// fork starts a child and puts it on record before anybody can take it for an
// orphan.
func (s *runnerSys) fork(t *tree, start func() (*launched, error)) (*launched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := start()
	if err != nil {
		return nil, err
	}
	t.pid, t.pidfd, t.post, t.sup = out.pid, out.pidfd, out.post, out.supervisor
	s.direct[t.pid] = t
	return out, nil
}

// reaped: the command itself is gone; its number may be used again.
func (s *runnerSys) reaped(pid int) {
	s.mu.Lock()
	delete(s.direct, pid)
	s.mu.Unlock()
}
