//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/wattle-dev/wattle/fence"
)

// This system has no kernel fence that Wattle uses: a fenced command is
// refused, whatever the policy says. A command in full-access runs, with
// pipes; what it leaves running is not tracked, and there are no terminals.

// Start: see the Linux half. A fence is always SANDBOX_UNAVAILABLE here.
func (r *Runner) Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	if spec.Fence.Mode().Fenced() {
		return nil, &Error{Code: CodeUnavailable, Op: "start command", Err: errors.New(r.kernel.Why)}
	}
	if spec.TTY != nil && spec.Inherit == nil {
		return nil, &Error{Code: CodeUnavailable, Op: "start command", Err: errors.New("terminals exist on Linux only")}
	}
	if r.isClosed() {
		return nil, errClosed
	}
	env := Environment(spec.Fence, spec.Caller, spec.SetEnv, spec.TempDir)
	path, err := lookPath(spec.Argv[0], spec.Dir, env)
	if err != nil {
		return nil, err
	}
	p := &Process{spec: spec, out: newOutput(spec.MaxOutput), denials: newDenialLog(nil), enforcement: r.Enforcement(),
		exited: make(chan struct{}), closed: make(chan struct{}), over: make(chan struct{})}
	cmd := &exec.Cmd{Path: path, Args: spec.Argv, Env: env, Dir: spec.Dir}
	var readers []reader
	var childEnds []*os.File
	if spec.Inherit != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = spec.Inherit[0], spec.Inherit[1], spec.Inherit[2]
	} else {
		for _, s := range []Stream{Stdout, Stderr} {
			pr, pw, err := os.Pipe()
			if err != nil {
				return nil, &Error{Code: CodeStartFailed, Op: "start command", Err: err}
			}
			readers, childEnds = append(readers, reader{pr, s}), append(childEnds, pw)
		}
		cmd.Stdout, cmd.Stderr = childEnds[0], childEnds[1]
		if spec.Stdin {
			pr, pw, err := os.Pipe()
			if err != nil {
				return nil, &Error{Code: CodeStartFailed, Op: "start command", Err: err}
			}
			cmd.Stdin, childEnds = pr, append(childEnds, pr)
			p.in = newStdin(pw, false)
		}
	}
	err = cmd.Start()
	for _, f := range childEnds {
		_ = f.Close()
	}
	if err != nil {
		for _, rd := range readers {
			_ = rd.file.Close()
		}
		return nil, &Error{Code: CodeStartFailed, Op: "start command", Err: err}
	}
	p.tree, p.pid, p.started = &tree{cmd: cmd}, cmd.Process.Pid, time.Now()
	ok := r.register(p)
	go p.run(r, readers)
	if !ok {
		p.Kill()
		return nil, errClosed
	}
	return p, nil
}

// Enforcement: nothing is enforced for commands on this system.
func (r *Runner) Enforcement() fence.Enforcement {
	return fence.Enforcement{Level: fence.LevelNone, KillTree: fence.KillTreeSubreaper, Protect: fence.ProtectOff,
		Skipped: []fence.Skipped{}, Governed: []string{},
		NotGoverned: []fence.Gap{{What: "commands", Why: r.kernel.Why}}}
}

// EnforcementOf: the same, whatever the fence.
func (r *Runner) EnforcementOf(*fence.Fence) fence.Enforcement { return r.Enforcement() }

// tree is the command alone.
type tree struct{ cmd *exec.Cmd }

func (t *tree) wait() exitStatus {
	_ = t.cmd.Wait()
	s := t.cmd.ProcessState
	code := s.ExitCode()
	end := exitStatus{usage: Usage{UserMs: s.UserTime().Milliseconds(), SystemMs: s.SystemTime().Milliseconds()}}
	if code >= 0 {
		end.exitCode = &code
	} else {
		end.signal = "SIGKILL"
	}
	return end
}

func (t *tree) survivors() []Survivor { return []Survivor{} }
func (t *tree) kill()                 { _ = t.cmd.Process.Kill() }
func (t *tree) finish()               {}
func (t *tree) waitEmpty()            {}

// Signal: only an end can be asked for here.
func (p *Process) Signal(name string) error {
	if name != "SIGKILL" && name != "KILL" && name != "SIGTERM" && name != "TERM" {
		return &Error{Code: CodeInvalid, Op: "signal command", Err: fmt.Errorf("%q cannot be sent on this system", name)}
	}
	if err := p.tree.cmd.Process.Kill(); err != nil {
		return &Error{Code: CodeNotRunning, Op: "signal command", Err: err}
	}
	return nil
}

// Resize: there are no terminals here.
func (p *Process) Resize(TTY) error {
	return &Error{Code: CodeInvalid, Op: "resize terminal", Err: errors.New("the command has no terminal of its own")}
}

type runnerSys struct{}

func (runnerSys) init(*Runner)        {}
func (runnerSys) forget(*fence.Fence) {}
func (runnerSys) close()              {}
