package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/fence"
)

// Spec is what to run. Argv[0] is looked up in the command's own PATH when it
// has no slash, from Dir.
type Spec struct {
	// ID names the command to the Keeper; nobody else asks.
	ID   string
	Argv []string
	// Dir is the canonical working directory.
	Dir string
	// Caller is the environment that names may pass from, SetEnv what the
	// request sets on top; see [Environment].
	Caller []string
	SetEnv map[string]string
	// TempDir is the session's existing temporary directory, or "". A command
	// in read-only gets one of its own instead.
	TempDir string
	Fence   *fence.Fence
	// TTY gives the command a terminal of its own; its output is all Stdout.
	TTY *TTY
	// Stdin opens a pipe for [Process.Write]; without it input is empty.
	Stdin bool
	// Inherit gives the command these three files instead of pipes: output is
	// not captured. TTY and Stdin are ignored.
	Inherit *[3]*os.File
	// Timeout ends the whole tree after that time; 0 means none.
	Timeout time.Duration
	// MaxOutput is how many bytes of output are kept, DefaultMaxOutput if 0.
	MaxOutput int
	OnExit    OnExit
	// Observer is told what happens; nil is nobody.
	Observer Observer
}

// Observer is told what happens to a process, in order, one call at a time,
// from goroutines of the process. It must not block and must not call the
// process back.
type Observer interface {
	Output(Chunk)
	Denied(fence.Denial)
	Exited(State)
	Closed(State)
}

// Options of a Runner.
type Options struct {
	// Kernel is what the kernel can enforce; nil asks it. Tests give another
	// one to see what happens there.
	Kernel *fence.Kernel
	// TempRoot is an existing private directory (0700) in which commands of
	// read-only sessions get a temporary directory that dies with them. Empty:
	// they get none, and the report of each start says so.
	TempRoot string
	// OwnChildren says that every child of this process is started by this
	// Runner: then orphans that nobody can attribute are reaped too. A program
	// that starts others in another way must leave it false.
	OwnChildren bool
	// Keeper keeps what commands remove where the policy says trash_commands;
	// nil keeps nothing, and the report of each start says so.
	Keeper Keeper
}

// Runner starts commands. Any number of goroutines may use one at once. A
// process needs one Runner: it makes the process a child subreaper, so that
// nothing that a command leaves behind escapes to init.
type Runner struct {
	opts   Options
	kernel fence.Kernel
	sys    runnerSys

	mu        sync.Mutex
	processes map[*Process]struct{}
	closed    bool
}

// NewRunner makes a Runner and asks the kernel what it can enforce.
func NewRunner(o Options) *Runner {
	r := &Runner{opts: o, processes: map[*Process]struct{}{}}
	if o.Kernel != nil {
		r.kernel = *o.Kernel
	} else {
		r.kernel = fence.ProbeKernel()
	}
	r.sys.init(r)
	return r
}

// Kernel is what the running kernel can enforce.
func (r *Runner) Kernel() fence.Kernel { return r.kernel }

// Forget gives back what is kept for a fence between starts. A later start makes
// it again.
func (r *Runner) Forget(f *fence.Fence) { r.sys.forget(f) }

// Close ends every command that still runs, and waits for them. No command can
// be started afterwards. It may be called again, and at once with itself.
func (r *Runner) Close() {
	r.mu.Lock()
	again := r.closed
	r.closed = true
	var all []*Process
	for p := range r.processes {
		all = append(all, p)
	}
	r.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
	for _, p := range all {
		<-p.over
	}
	if !again {
		r.sys.close()
	}
}

// errClosed: no command is started any more.
var errClosed = &Error{Code: CodeUnavailable, Op: "start command", Err: errors.New("the runner is closed")}

func (r *Runner) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// register puts a started process on record; false when the runner was closed.
func (r *Runner) register(p *Process) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.processes[p] = struct{}{}
	return true
}

func (r *Runner) forget(p *Process) {
	r.mu.Lock()
	delete(r.processes, p)
	r.mu.Unlock()
}

func invalid(format string, a ...any) error {
	return &Error{Code: CodeInvalid, Op: "start command", Err: fmt.Errorf(format, a...)}
}

func (s *Spec) validate() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return invalid("argv is empty")
	}
	for _, a := range s.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return invalid("an argument holds a NUL byte")
		}
	}
	if s.Fence == nil {
		return invalid("no fence")
	}
	if !filepath.IsAbs(s.Dir) {
		return invalid("the working directory %q is not absolute", s.Dir)
	}
	if s.TTY != nil && (s.TTY.Cols == 0 || s.TTY.Rows == 0) {
		return invalid("a terminal needs at least one column and one row")
	}
	switch s.OnExit {
	case "":
		s.OnExit = ExitKill
	case ExitKill, ExitKeep:
	default:
		return invalid("onExit %q is neither kill nor keep", s.OnExit)
	}
	return nil
}

// lookPath finds the program as execvp(3) would: in each directory of PATH,
// the first executable regular file; a name with a slash is taken from Dir.
// Not found is CodeCommandNotFound (127 of a shell), found but not executable
// is CodeStartFailed (126).
func lookPath(argv0, dir string, env []string) (string, error) {
	if strings.ContainsRune(argv0, '/') || strings.ContainsRune(argv0, filepath.Separator) {
		p := argv0
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		return p, executable(p, argv0)
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	var denied error
	for _, d := range filepath.SplitList(path) {
		if d == "" {
			d = "."
		}
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		p := filepath.Join(d, argv0)
		err := executable(p, argv0)
		if err == nil {
			return p, nil
		}
		var e *Error
		if errors.As(err, &e) && e.Code == CodeStartFailed {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &Error{Code: CodeCommandNotFound, Op: "start command", Err: fmt.Errorf("%s: not found in PATH", argv0)}
}

func executable(p, asked string) error {
	fi, err := os.Stat(p)
	switch {
	case err != nil && errors.Is(err, os.ErrPermission):
		return &Error{Code: CodeStartFailed, Op: "start command", Err: fmt.Errorf("%s: %w", asked, err)}
	case err != nil:
		return &Error{Code: CodeCommandNotFound, Op: "start command", Err: fmt.Errorf("%s: %w", asked, err)}
	case fi.IsDir():
		return &Error{Code: CodeStartFailed, Op: "start command", Err: fmt.Errorf("%s: is a directory", asked)}
	case fi.Mode()&0o111 == 0:
		return &Error{Code: CodeStartFailed, Op: "start command", Err: fmt.Errorf("%s: permission denied", asked)}
	}
	return nil
}
