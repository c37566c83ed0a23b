package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// Start runs a command inside its fence. It returns when the command has been
// executed: from then on the process is the caller's to wait for, and ctx has
// no further meaning. Any number of starts may run at once.
//
// Errors: SANDBOX_UNAVAILABLE when this machine cannot hold the fence,
// PROCESS_COMMAND_NOT_FOUND and PROCESS_START_FAILED when the command cannot
// be executed, PROCESS_INVALID for a request that makes no sense. Nothing is
// left behind by a failed start.
func (r *Runner) Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	p := &Process{spec: spec, out: newOutput(spec.MaxOutput),
		exited: make(chan struct{}), closed: make(chan struct{}), over: make(chan struct{})}
	p.denials = newDenialLog(func(d fence.Denial) { p.observe(func(o Observer) { o.Denied(d) }) })
	if r.isClosed() {
		return nil, errClosed
	}
	readers, err := r.start(p)
	if err != nil {
		return nil, err
	}
	ok := r.register(p)
	go p.run(r, readers)
	if !ok { // closed meanwhile: it must not be left running
		p.Kill()
		return nil, errClosed
	}
	return p, nil
}

// start does the work of Start and undoes what it made when it fails.
func (r *Runner) start(p *Process) (readers []reader, err error) {
	spec := &p.spec
	var undo []func()
	defer func() {
		if err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
		}
	}()
	f := spec.Fence
	tmp := spec.TempDir
	mark := ""
	fenced := f.Mode().Fenced()
	if f.Mode() == fence.ReadOnly && r.opts.TempRoot != "" {
		d, err := MakeTemp(r.opts.TempRoot)
		if err != nil {
			return nil, &Error{Code: CodeUnavailable, Op: "start command", Err: fmt.Errorf("make its temporary directory: %w", err)}
		}
		undo = append(undo, d.Remove)
		p.temp, tmp = d, d.path
		f = f.WithTemp(d.path)
	}
	env := Environment(f, spec.Caller, spec.SetEnv, tmp)
	if !fenced || !r.kernel.Scopes() {
		mark = newMark()
		env = append(env, mark)
	}
	path, err := lookPath(spec.Argv[0], spec.Dir, env)
	if err != nil {
		return nil, err
	}
	dir, err := unix.Open(spec.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &Error{Code: CodeStartFailed, Op: "start command", Err: fmt.Errorf("enter %s: %w", spec.Dir, err)}
	}
	defer unix.Close(dir)
	io, err := openStdio(spec)
	if err != nil {
		return nil, &Error{Code: CodeStartFailed, Op: "start command", Err: err}
	}
	defer io.closeChild()
	undo = append(undo, io.closeParent)
	l := &launch{path: path, argv: spec.Argv, env: env, dir: dir, files: io.child, tty: spec.TTY != nil && spec.Inherit == nil,
		newSession: spec.Inherit == nil, rulesetFD: -1, fence: f, denials: p.denials}
	closeInheritable()
	t := &tree{r: r, mark: mark}
	if fenced {
		err = r.startFenced(p, t, l, f)
	} else {
		err = r.startPlain(t, l)
		p.enforcement = unfenced(f)
	}
	if err != nil {
		return nil, err
	}
	p.tree, p.pid, p.started = t, t.pid, time.Now()
	if io.stdin != nil {
		p.in = newStdin(io.stdin, l.tty)
	}
	p.master = io.master
	return io.readers, nil
}

func (r *Runner) startFenced(p *Process, t *tree, l *launch, f *fence.Fence) error {
	pol := f.Policy()
	bestEffort := pol.Require == fence.RequireBestEffort
	rs, fd, flags, err := r.sys.ruleset(r, p.spec.Fence, f)
	if err != nil {
		if !errors.Is(err, fence.ErrNoLandlock) || !bestEffort {
			return unavailable(r, err)
		}
		fd = -1
	} else {
		defer unix.Close(fd)
	}
	l.rulesetFD, l.rulesetFlags = fd, flags
	l.keep = newKeeping(r.opts.Keeper, &p.spec, f, p.temp)
	l.supervise, l.noNetwork = true, pol.Network == fence.NetworkOff
	t.scoped = fd >= 0 && rs.SignalScoped()
	out, err := r.sys.fork(t, l.start)
	if err != nil {
		var fenceFault *errRestrict
		if errors.As(err, &fenceFault) {
			return &Error{Code: CodeUnavailable, Op: "start command", Err: err}
		}
		return execError(p.spec.Argv[0], err)
	}
	if r.kernel.LandlockABI < 3 && out.supervisor == nil && !bestEffort {
		t.kill()
		t.wait()
		t.finish()
		return &Error{Code: CodeUnavailable, Op: "start command", Err: errors.New("files outside the fence could be emptied: this kernel's Landlock does not see truncation and no supervisor can be had here")}
	}
	if out.supervisor != nil {
		p.kept = l.keep.snapshot
	}
	p.enforcement = report(r.kernel, rs, fd >= 0, out, f, t.scoped)
	if f.Mode() == fence.ReadOnly && p.temp == nil {
		p.enforcement.NotGoverned = append(p.enforcement.NotGoverned, fence.Gap{What: "temporary-directory", Why: "none could be given to the command, so that shells lose large here-documents"})
	}
	return nil
}

// startPlain starts a command without a fence, as its own session.
func (r *Runner) startPlain(t *tree, l *launch) error {
	_, err := r.sys.fork(t, func() (*launched, error) {
		out := &launched{}
		return out, l.exec(out)
	})
	if err != nil {
		return execError(l.argv[0], err)
	}
	return nil
}

// unavailable says why there is no fence and what can be done.
func unavailable(r *Runner, err error) error {
	if errors.Is(err, fence.ErrNoLandlock) {
		err = fmt.Errorf("%s; run it in full-access, or set require = \"best-effort\" in a policy to run it without a kernel fence", r.kernel.Why)
	}
	return &Error{Code: CodeUnavailable, Op: "start command", Err: err}
}

// execError tells a program that is not there from one that cannot be run.
func execError(argv0 string, err error) error {
	code := CodeStartFailed
	if errors.Is(err, syscall.ENOENT) {
		// The file was there a moment ago: its interpreter is what is missing,
		// or it vanished. A shell says 127 for both.
		code = CodeCommandNotFound
	}
	return &Error{Code: code, Op: "start command", Err: fmt.Errorf("%s: %w", argv0, err)}
}

// closeInheritable marks every descriptor above 2 close-on-exec. What this
// program opened is marked already; this is for what its own parent left open.
func closeInheritable() {
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// stdio are the files of a command: the child's ends, and ours.
type stdio struct {
	child   [3]*os.File
	owned   []*os.File // of child, to be closed after the start
	readers []reader
	stdin   *os.File // nil when there is none to write to
	master  *os.File // of a terminal
}

func (s *stdio) closeChild() {
	for _, f := range s.owned {
		_ = f.Close()
	}
}

func (s *stdio) closeParent() {
	for _, r := range s.readers {
		_ = r.file.Close()
	}
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
}

func openStdio(spec *Spec) (*stdio, error) {
	s := &stdio{}
	if spec.Inherit != nil {
		s.child = *spec.Inherit
		return s, nil
	}
	if spec.TTY != nil {
		master, slave, err := openTerminal(*spec.TTY)
		if err != nil {
			return nil, fmt.Errorf("open terminal: %w", err)
		}
		s.child = [3]*os.File{slave, slave, slave}
		s.owned = []*os.File{slave}
		s.readers = []reader{{master, Stdout}}
		s.master = master
		s.stdin = master
		return s, nil
	}
	fail := func(err error) (*stdio, error) {
		s.closeChild()
		s.closeParent()
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	if spec.Stdin {
		r, w, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		s.child[0], s.stdin, s.owned = r, w, append(s.owned, r)
	} else {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return fail(err)
		}
		s.child[0], s.owned = null, append(s.owned, null)
	}
	for i, st := range []Stream{Stdout, Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		s.child[1+i], s.owned = w, append(s.owned, w)
		s.readers = append(s.readers, reader{r, st})
	}
	return s, nil
}
