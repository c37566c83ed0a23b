package daemon

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// Bounds of one session's commands.
const (
	maxRunning = 256 // that run at once
	// maxFinished is how many that are over can still be asked about.
	maxFinished = 32
	// maxKeptOutput is the most that a client may have kept for process/read.
	maxKeptOutput     = 16 << 20
	defaultKeptOutput = 1 << 20
)

// Command is a command of a session.
type Command struct {
	id      string
	session *Session
	turn    string
	argv    []string
	cwd     string
	onExit  sandbox.OnExit
	started time.Time
	process *sandbox.Process
}

// ID names the command. Process is the running command.
func (c *Command) ID() string                { return c.id }
func (c *Command) Process() *sandbox.Process { return c.process }

// running: something of the command's tree may still be there.
func (c *Command) running() bool { return !isClosed(c.process.Over()) }

func (c *Command) info() api.ProcessInfo {
	st := c.process.State()
	return api.ProcessInfo{
		ProcessID: c.id, SessionID: c.session.id, TurnID: c.turn, PID: c.process.PID(), Argv: c.argv, Cwd: c.cwd,
		OnExit: c.onExit, StartedAt: c.started, Exited: isClosed(c.process.Exited()),
		ExitCode: st.ExitCode, Signal: st.Signal, Closed: isClosed(c.process.Closed()),
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// StartRequest is a command to be started in a session.
type StartRequest struct {
	ID        string // of the client's choice, or ""
	Argv      []string
	Cwd       string // relative to the workspace, or absolute
	Env       map[string]string
	TTY       *sandbox.TTY
	Stdin     bool
	Inherit   *[3]*os.File
	Timeout   time.Duration
	MaxOutput int
	Network   fence.Network
	OnExit    sandbox.OnExit
	Policy    *api.SandboxPolicy
}

// Start starts a command under the fence of the moment; running commands keep
// theirs when the mode changes. Grants for one call are used up by it.
func (s *Session) Start(ctx context.Context, req StartRequest) (*Command, error) {
	s.starts.RLock()
	defer s.starts.RUnlock()
	if err := s.alive(); err != nil {
		return nil, err
	}
	f, err := s.commandFence(req)
	if err != nil {
		return nil, err
	}
	cwd := s.workspace
	if req.Cwd != "" {
		if cwd, err = s.directory(f, req.Cwd); err != nil {
			return nil, err
		}
	}
	tmp, err := s.ensureTemp()
	if err != nil {
		return nil, err
	}
	c := &Command{id: req.ID, session: s, argv: req.Argv, cwd: cwd, onExit: req.OnExit, started: time.Now()}
	if c.id == "" {
		c.id = newID()
	}
	if c.onExit == "" {
		c.onExit = sandbox.ExitKill
	}
	if req.MaxOutput <= 0 {
		req.MaxOutput = defaultKeptOutput
	}
	o := &observer{c: c}
	// Nothing that the command does is told before it is known to have started.
	o.mu.Lock()
	defer o.mu.Unlock()
	s.mu.Lock()
	c.turn = s.turn
	running := 0
	for _, x := range s.commands {
		if x.running() {
			running++
		}
	}
	s.mu.Unlock()
	if running >= maxRunning {
		return nil, api.NewError(api.CodeProcessLimit, "start command: the session runs too many commands", "limit", maxRunning)
	}
	p, err := s.host.runner.Start(ctx, sandbox.Spec{
		ID: c.id, Argv: req.Argv, Dir: cwd, Caller: s.host.environ, SetEnv: req.Env, TempDir: tmp, Fence: f,
		TTY: req.TTY, Stdin: req.Stdin, Inherit: req.Inherit, Timeout: req.Timeout,
		MaxOutput: min(req.MaxOutput, maxKeptOutput), OnExit: c.onExit, Observer: o,
	})
	if err != nil {
		return nil, err
	}
	c.process = p
	s.addCommand(c)
	emit(s, c.turn, api.EventProcessStarted, api.ProcessStartedData{ProcessID: c.id, PID: p.PID(), Argv: c.argv, Cwd: cwd})
	return c, nil
}

// addCommand puts a command on record and forgets the oldest that are over.
// Called with starts held: neither turn nor session has ended meanwhile.
func (s *Session) addCommand(c *Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[c.id] = c
	s.order = append(s.order, c.id)
	finished := 0
	for i := len(s.order) - 1; i >= 0; i-- {
		old := s.commands[s.order[i]]
		if old.running() {
			continue
		}
		if finished++; finished > maxFinished {
			delete(s.commands, old.id)
			s.order = slices.Delete(s.order, i, i+1)
		}
	}
}

// commandFence is the fence of a command: the call's, with grants for one call
// and the network that was asked for.
func (s *Session) commandFence(req StartRequest) (*fence.Fence, error) {
	once := s.takeOnce(nil)
	if len(once) == 0 && req.Network == "" {
		return s.fenceFor(req.Policy)
	}
	s.mu.Lock()
	mode, ws := s.mode, s.workspace
	grants := append(append([]api.SessionGrantParams{}, s.granted...), once...)
	s.mu.Unlock()
	if req.Policy != nil {
		mode = req.Policy.Mode
		if req.Policy.WorkspaceRoot != "" {
			var err error
			if ws, err = workspace(req.Policy.WorkspaceRoot); err != nil {
				return nil, err
			}
		}
	}
	f, err := s.compile(mode, ws, grants)
	if err != nil || req.Network == "" || req.Network == f.Policy().Network {
		return f, err
	}
	p := f.Policy()
	p.Network = req.Network
	return fence.New(p)
}

// directory makes the working directory of a command canonical.
func (s *Session) directory(f *fence.Fence, cwd string) (string, error) {
	bad := func(why string) (string, error) {
		return "", &sandbox.Error{Code: codeBadCommand, Op: "start command", Err: &os.PathError{Op: "enter", Path: cwd, Err: errText(why)}}
	}
	p := cwd
	if !filepath.IsAbs(p) {
		p = s.workspace + string(filepath.Separator) + p
	}
	r, err := f.Resolve(p)
	if err != nil {
		return bad(rootCause(err))
	}
	if !r.Exists {
		return bad("it does not exist")
	}
	if fi, err := os.Stat(r.Path); err != nil || !fi.IsDir() {
		return bad("it is not a directory")
	}
	if d := f.CheckAs(r.Path, cwd, fence.Read); d != nil {
		return "", d
	}
	return r.Path, nil
}

type errText string

func (e errText) Error() string { return string(e) }

// endCommands ends the commands that which selects, with everything they left
// running, and waits until nothing of them is left.
func (s *Session) endCommands(which func(*Command) bool) {
	s.mu.Lock()
	var end []*Command
	for _, id := range s.order {
		if c := s.commands[id]; which(c) {
			end = append(end, c)
		}
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range end {
		if c.running() {
			c.process.Kill()
			wg.Add(1)
			go func() { defer wg.Done(); <-c.process.Over() }()
		}
	}
	wg.Wait()
}

// Commands lists the commands of the session, oldest first.
func (s *Session) Commands() []*Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Command, 0, len(s.order))
	for _, id := range s.order {
		out = append(out, s.commands[id])
	}
	return out
}

// observer turns what happens to a command into events.
type observer struct {
	mu sync.Mutex // held until the start has been published
	c  *Command
}

func (o *observer) started() {
	o.mu.Lock()
	defer o.mu.Unlock()
}

func (o *observer) Output(ch sandbox.Chunk) {
	o.started()
	emit(o.c.session, o.c.turn, api.EventProcessOutput, api.ProcessOutputData{ProcessID: o.c.id, Chunk: ch})
}

func (o *observer) Denied(d fence.Denial) {
	o.started()
	emit(o.c.session, o.c.turn, api.EventProcessDenied, api.ProcessDeniedData{ProcessID: o.c.id, Denial: d})
}

func (o *observer) Exited(st sandbox.State) {
	o.started()
	emit(o.c.session, o.c.turn, api.EventProcessExited, api.ProcessExitedData{ProcessID: o.c.id, ExitCode: st.ExitCode, Signal: st.Signal, TimedOut: st.TimedOut})
}

func (o *observer) Closed(st sandbox.State) {
	o.started()
	emit(o.c.session, o.c.turn, api.EventProcessClosed, api.ProcessClosedData{ProcessID: o.c.id, State: st})
}
