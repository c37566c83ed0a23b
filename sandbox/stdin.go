package sandbox

import (
	"errors"
	"os"
	"sync"
)

// writeWindow is how many write ids are remembered, so that a client that
// repeats a write after a lost connection has it accepted once.
const writeWindow = 4096

// maxStdin bounds what waits for a command that does not read.
const maxStdin = 1 << 20

// ErrStdinFull: the command does not read its standard input fast enough.
var ErrStdinFull = errors.New("standard input is full: the command does not read it")

// stdin feeds a command. A goroutine of its own writes, so that no client
// waits for a command that does not read; it ends when the file is closed.
type stdin struct {
	mu      sync.Mutex
	cond    *sync.Cond
	pending []byte // len ≤ maxStdin
	closing bool
	failed  bool
	seen    map[string]struct{}
	order   []string // of seen, oldest first; len ≤ writeWindow
	file    *os.File
	tty     bool
}

func newStdin(f *os.File, tty bool) *stdin {
	s := &stdin{file: f, seen: map[string]struct{}{}, tty: tty}
	s.cond = sync.NewCond(&s.mu)
	go s.feed()
	return s
}

// write queues data. A write id that was accepted before is a duplicate:
// accepted again without effect. ErrStdinFull queues nothing and forgets the id.
func (s *stdin) write(data []byte, id string) (duplicate bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[id]; ok && id != "" {
		return true, nil // also when the command is over by now
	}
	if s.closing || s.failed {
		return false, os.ErrClosed
	}
	if len(s.pending)+len(data) > maxStdin {
		return false, ErrStdinFull
	}
	if id != "" {
		if len(s.order) >= writeWindow {
			delete(s.seen, s.order[0])
			s.order = s.order[1:]
		}
		s.seen[id] = struct{}{}
		s.order = append(s.order, id)
	}
	s.pending = append(s.pending, data...)
	s.cond.Signal()
	return false, nil
}

// close ends the input after what is queued has been written. On a terminal
// the end is the character that ends input there (termios(3), VEOF).
func (s *stdin) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.closing = true
	if s.tty {
		s.pending = append(s.pending, 4)
	}
	s.cond.Signal()
}

// abandon drops what is queued: the command is gone.
func (s *stdin) abandon() {
	s.mu.Lock()
	s.closing, s.failed, s.pending = true, true, nil
	s.cond.Signal()
	s.mu.Unlock()
	if !s.tty {
		_ = s.file.Close() // wakes a write that waits
	}
}

func (s *stdin) feed() {
	for {
		s.mu.Lock()
		for len(s.pending) == 0 && !s.closing {
			s.cond.Wait()
		}
		b := s.pending
		s.pending = nil
		closing := s.closing
		s.mu.Unlock()
		if len(b) > 0 {
			if _, err := s.file.Write(b); err != nil {
				s.mu.Lock()
				s.failed, s.pending = true, nil
				s.mu.Unlock()
				closing = true
			}
		}
		if closing {
			s.mu.Lock()
			rest := len(s.pending)
			s.mu.Unlock()
			if rest == 0 {
				break
			}
		}
	}
	if !s.tty { // a terminal's file belongs to the reader of its output
		_ = s.file.Close()
	}
}
