package sandbox

import (
	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// RunUnsupervised runs a command to the end of its tree under Landlock alone,
// without a supervisor and without streams: for benchmarks, which want to know
// what each layer costs.
func (r *Runner) RunUnsupervised(f *fence.Fence, spec Spec) error {
	rs, fd, flags, err := r.sys.ruleset(r, f, f)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	dir, err := unix.Open(spec.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	io, err := openStdio(&spec)
	if err != nil {
		return err
	}
	defer io.closeParent()
	l := &launch{path: spec.Argv[0], argv: spec.Argv, env: Environment(f, spec.Caller, spec.SetEnv, spec.TempDir), dir: dir, files: io.child,
		newSession: true, rulesetFD: fd, rulesetFlags: flags, fence: f, denials: newDenialLog(nil)}
	t := &tree{r: r, scoped: rs.SignalScoped()}
	_, err = r.sys.fork(t, l.start)
	io.closeChild()
	if err != nil {
		return err
	}
	t.wait()
	t.finish()
	return nil
}

// StopSupervisor ends the supervisor of a process, as its death would.
func StopSupervisor(p *Process) { p.tree.sup.stop() }
