package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/wattle-dev/wattle/sandbox"
)

// relay stands between the signals of this process and the command of run,
// from before its start to after its end, so that no signal ends this process
// and leaves the command or its scratch behind.
//
// SIGTERM and SIGHUP are passed on; a second SIGTERM ends the whole tree and
// cuts the cleaning short. SIGINT and SIGQUIT of a terminal reach the command
// without us, for it is in our process group; sent to us alone, by somebody
// who has no terminal or while we are in the background, they are passed on.
// SIGPIPE does nothing: a reader of our stderr that went away must not keep us
// from cleaning.
//
// They are caught, not ignored: what is ignored stays so in the command. What
// our own caller ignores is left alone for the same reason (nohup(1)).
type relay struct {
	signals chan os.Signal
	quit    chan struct{}
	done    chan struct{}
	cancel  context.CancelFunc // of everything but the command

	mu      sync.Mutex
	process *sandbox.Process // nil before the start
	waiting []os.Signal      // those that came before
	terms   int
}

// newRelay begins to catch. Its goroutine ends with stop.
func newRelay(cancel context.CancelFunc) *relay {
	r := &relay{signals: make(chan os.Signal, 16), quit: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE} {
		if !signal.Ignored(s) {
			signal.Notify(r.signals, s)
		}
	}
	go r.watch()
	return r
}

// stop gives the signals back. The command is over.
func (r *relay) stop() {
	signal.Stop(r.signals)
	close(r.quit)
	<-r.done
}

// to names the command, once, and passes on what came before it.
func (r *relay) to(p *sandbox.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process = p
	for _, s := range r.waiting {
		r.pass(s)
	}
	r.waiting = nil
}

func (r *relay) watch() {
	defer close(r.done)
	for {
		select {
		case s := <-r.signals:
			r.took(s)
		case <-r.quit:
			return
		}
	}
}

func (r *relay) took(s os.Signal) {
	if s == syscall.SIGPIPE || (s == syscall.SIGINT || s == syscall.SIGQUIT) && fromTerminal() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == syscall.SIGTERM {
		if r.terms++; r.terms == 2 {
			r.cancel()
			if r.process != nil {
				r.process.Kill()
			}
			return
		}
	}
	if r.process == nil {
		if len(r.waiting) < cap(r.signals) {
			r.waiting = append(r.waiting, s)
		}
		return
	}
	r.pass(s)
}

// pass sends to the command alone. An error means that it has ended.
func (r *relay) pass(s os.Signal) { _ = r.process.Signal(signalName(s)) }
