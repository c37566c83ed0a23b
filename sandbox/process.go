package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/fence"
)

// drainTime is how long output is awaited after a command has exited and its
// tree is ended: something outside the tree may hold the pipe.
const drainTime = 2 * time.Second

// Process is one started command and its whole tree. All methods may be called
// at once and after the end.
//
// Life: running → exited (the command itself) → closed (its tree is ended, or
// kept and listed; its output is drained) → over (nothing of it is left). The
// goroutine started by Start owns it until over.
type Process struct {
	spec        Spec
	pid         int
	enforcement fence.Enforcement
	out         *output
	in          *stdin
	denials     *denialLog
	tree        *tree
	started     time.Time
	kept        func() *Kept // nil when nothing is kept
	temp        *Temp        // of a read-only command; nil for others
	master      *os.File     // of the command's own terminal; nil without one

	// events serialises the observer; taken before nothing else but inside
	// out.mu-free code: no other lock is held while it is called.
	events sync.Mutex

	mu       sync.Mutex // guards state below; never held during a call out
	state    State
	timedOut bool

	exited chan struct{} // closed after state has exit code or signal
	closed chan struct{} // closed after state is final
	over   chan struct{} // closed when nothing of the tree is left
}

// PID is the process id of the command itself.
func (p *Process) PID() int { return p.pid }

// Enforcement reports what was really applied to this start.
func (p *Process) Enforcement() fence.Enforcement { return p.enforcement }

// Exited is closed when the command itself has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Closed is closed when the final state stands.
func (p *Process) Closed() <-chan struct{} { return p.closed }

// Over is closed when nothing of the tree is left: at once with Closed, unless
// the command was started with ExitKeep.
func (p *Process) Over() <-chan struct{} { return p.over }

// State is the state so far; final once Closed is closed.
func (p *Process) State() State {
	list, truncated := p.denials.snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	s.Denials, s.DenialsTruncated = list, truncated
	s.Survivors = append([]Survivor{}, s.Survivors...)
	s.TimedOut = p.timedOut
	if p.kept != nil {
		s.Kept = p.kept()
	}
	return s
}

// Read returns output after a sequence number, at most about maxBytes of it (at
// least one chunk; 0 means all). With wait > 0 and nothing to return it waits
// that long for output, exit or close. Denials are those so far.
func (p *Process) Read(ctx context.Context, after int64, maxBytes int, wait time.Duration) Output {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	before := p.progress()
	for {
		chunks, next, truncated, changed := p.out.read(after, maxBytes)
		o := Output{Chunks: chunks, NextSeq: next, Truncated: truncated}
		now := p.fill(&o)
		if len(chunks) > 0 || o.Closed || wait <= 0 || now != before {
			return o
		}
		select {
		case <-changed:
		case <-deadline.C:
			wait = 0
		case <-ctx.Done():
			wait = 0
		}
	}
}

// progress is 0 running, 1 exited, 2 closed.
func (p *Process) progress() int {
	if isClosed(p.closed) {
		return 2
	}
	if isClosed(p.exited) {
		return 1
	}
	return 0
}

func (p *Process) fill(o *Output) int {
	n := p.progress()
	o.Denials, _ = p.denials.snapshot()
	o.Exited, o.Closed = n >= 1, n == 2
	if o.Exited {
		p.mu.Lock()
		o.ExitCode, o.Signal = p.state.ExitCode, p.state.Signal
		p.mu.Unlock()
	}
	return n
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Write queues input. A writeID that was accepted before is a duplicate and has
// no effect again. CodeStdinClosed: the command has no input, or it ended;
// ErrStdinFull: it does not read, try again later.
func (p *Process) Write(data []byte, writeID string) (duplicate bool, err error) {
	if p.in == nil {
		return false, &Error{Code: CodeStdinClosed, Op: "write to command", Err: errors.New("it was started without standard input")}
	}
	duplicate, err = p.in.write(data, writeID)
	if errors.Is(err, os.ErrClosed) {
		return false, &Error{Code: CodeStdinClosed, Op: "write to command", Err: errors.New("its standard input is closed")}
	}
	return duplicate, err
}

// CloseStdin ends the input after what was written; again has no effect.
func (p *Process) CloseStdin() error {
	if p.in == nil {
		return &Error{Code: CodeStdinClosed, Op: "close input of command", Err: errors.New("it was started without standard input")}
	}
	p.in.close()
	return nil
}

// Terminate asks the command to end (SIGTERM) and ends the whole tree when it
// has not done so within grace. It returns at once.
func (p *Process) Terminate(grace time.Duration) {
	if grace <= 0 {
		p.Kill()
		return
	}
	if err := p.Signal("SIGTERM"); err != nil {
		p.Kill() // the command is gone; what it left is to go too
		return
	}
	go func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-p.over:
		case <-t.C:
		case <-p.exited:
		}
		p.Kill()
	}()
}

// Kill ends the whole tree at once. It may be called at any time.
func (p *Process) Kill() { p.tree.kill() }

// Wait waits for the final state or for the context.
func (p *Process) Wait(ctx context.Context) (State, error) {
	select {
	case <-p.closed:
		return p.State(), nil
	case <-ctx.Done():
		return p.State(), fmt.Errorf("wait for command: %w", ctx.Err())
	}
}

func (p *Process) observe(f func(Observer)) {
	if p.spec.Observer == nil {
		return
	}
	p.events.Lock()
	defer p.events.Unlock()
	f(p.spec.Observer)
}

// emit keeps a piece of output and tells the observer, in one step, so that
// the observer sees chunks in the order of their numbers.
func (p *Process) emit(s Stream, data []byte) {
	p.events.Lock()
	defer p.events.Unlock()
	c := p.out.add(s, data)
	if p.spec.Observer != nil {
		p.spec.Observer.Output(c)
	}
}

// pump copies one stream until its end. The caller owns the goroutine.
func (p *Process) pump(f *os.File, s Stream) {
	buf := make([]byte, maxChunk)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			p.emit(s, buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// run owns the process from its start to its end.
func (p *Process) run(r *Runner, readers []reader) {
	defer r.forget(p)
	var wg sync.WaitGroup
	for _, rd := range readers {
		wg.Add(1)
		go func() { defer wg.Done(); p.pump(rd.file, rd.stream) }()
	}
	var timer *time.Timer
	if p.spec.Timeout > 0 {
		timer = time.AfterFunc(p.spec.Timeout, func() {
			p.mu.Lock()
			p.timedOut = !isClosed(p.exited)
			p.mu.Unlock()
			p.Kill()
		})
	}
	end := p.tree.wait()
	if timer != nil {
		timer.Stop()
	}
	survivors := p.tree.survivors()
	p.mu.Lock()
	p.state.ExitCode, p.state.Signal, p.state.Usage = end.exitCode, end.signal, end.usage
	p.state.Usage.WallMs = time.Since(p.started).Milliseconds()
	p.state.Survivors = survivors
	p.mu.Unlock()
	close(p.exited)
	p.observe(func(o Observer) { o.Exited(p.State()) })
	p.out.poke()
	if p.in != nil {
		p.in.abandon()
	}
	keep := p.spec.OnExit == ExitKeep && len(survivors) > 0
	if !keep {
		p.tree.finish()
	}
	p.drain(readers, &wg, keep)
	close(p.closed)
	p.observe(func(o Observer) { o.Closed(p.State()) })
	p.out.poke()
	if keep {
		p.tree.waitEmpty()
		p.tree.finish()
		p.drain(readers, &wg, false)
	}
	if p.temp != nil {
		p.temp.Remove()
	}
	close(p.over)
}

// drain waits for the streams to end, at most drainTime, and then closes them.
// A kept tree goes on writing: its streams stay open.
func (p *Process) drain(readers []reader, wg *sync.WaitGroup, keep bool) {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	t := time.NewTimer(drainTime)
	defer t.Stop()
	if keep {
		select {
		case <-done:
		case <-t.C:
		}
		return
	}
	select {
	case <-done:
	case <-t.C:
	}
	for _, rd := range readers {
		_ = rd.file.Close() // wakes a pump that still waits
	}
	<-done
}

type reader struct {
	file   *os.File
	stream Stream
}

// exitStatus is how the command itself ended.
type exitStatus struct {
	exitCode *int
	signal   string
	usage    Usage
}
