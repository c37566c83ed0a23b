package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
)

// runFlags are the flags of run.
type runFlags struct {
	fence   fenceFlags
	env     []string
	timeout limit
	report  string
	json    bool
	quiet   bool
	verbose bool
}

func newRun(w *world) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   nameRun + " [flags] -- CMD [ARG...]",
		Short: "run one command in a fence, without a daemon",
		Long: `Run one command in a fence, without a daemon. stdin, stdout, stderr and the
terminal are the caller's. When the command has ended, what it left running is
ended too, its scratch is removed, and what the fence refused is told on stderr.

The status is the command's own, 128+n when signal n ended it, 124 on
--timeout, 125 when Wattle failed or the fence cannot be had, 126 when the
command cannot be executed and 127 when it is not found.`,
		Example: `  wattle run -- sh -c 'echo a > in.txt; echo b > ../out.txt'
  wattle run --network off --timeout 10m --report /tmp/report.jsonl -- make test`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "no command given")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := assignments(f.env)
			if err != nil {
				return usage(cmd, "--env: %w", err)
			}
			r := runner{w: w, flags: &f, argv: args, env: env}
			return wrap(r.run(cmd.Context()))
		},
	}
	fl := c.Flags()
	fl.SetInterspersed(false) // what follows the command is the command's
	f.fence.add(c)
	f.fence.addRoots(c)
	fl.StringArrayVar(&f.env, "env", nil, "set a variable of the command, `K=V`; may be repeated")
	fl.Var(&f.timeout, "timeout", "end the command and all that it started after `D`: 90s, 10m, or seconds")
	fl.StringVar(&f.report, "report", "", "write JSON lines to `FILE`: one for each denial, the last for the end; keep it outside\nof the workspace if the command must not change it")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "do not sum up denials on stderr")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "tell on stderr what the kernel holds of the fence")
	jsonFlag(c, &f.json, "tell the end, or the failure, on stderr as JSON lines")
	return c
}

// limit is a duration, or a number of seconds as timeout(1) takes it.
type limit time.Duration

func (l *limit) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}
func (l *limit) Type() string { return "duration" }
func (l *limit) Set(s string) error {
	d, err := time.ParseDuration(s)
	if n, nerr := strconv.ParseFloat(s, 64); nerr == nil {
		ns := n * float64(time.Second)
		if !(ns < math.MaxInt64) { // NaN too
			return errors.New("too long")
		}
		d, err = time.Duration(ns), nil
	}
	if err != nil {
		return errors.New("no duration: write 90s, 10m or a number of seconds")
	}
	if d <= 0 {
		return errors.New("must be above zero")
	}
	*l = limit(d)
	return nil
}

// assignments reads K=V. Names that a fence sets itself would have no effect.
func assignments(list []string) (map[string]string, error) {
	env := map[string]string{}
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		switch {
		case !ok || k == "":
			return nil, fmt.Errorf("%q is not K=V", kv)
		case strings.HasPrefix(k, "WATTLE_"):
			return nil, fmt.Errorf("%s: names that begin with WATTLE_ describe the fence to the command", k)
		}
		env[k] = v
	}
	return env, nil
}

// runner is one call of run.
type runner struct {
	w     *world
	flags *runFlags
	argv  []string
	env   map[string]string

	id     string  // of the command, once it has started
	report *report // nil without --report; set before the command starts
}

// run runs the command and gives its status as an [exitStatus].
func (r *runner) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	relay := newRelay(cancel)
	defer relay.stop()
	h, err := r.w.newHost(r.published)
	if err != nil {
		return err
	}
	defer h.Close()
	r.sweep(ctx, h)
	st, err := r.inSession(ctx, h, relay)
	if err == nil {
		r.tell(st)
		r.report.exited(r.id, st)
	} else {
		r.report.failed(err)
	}
	if err := errors.Join(err, r.report.close()); err != nil {
		return err
	}
	return status(st)
}

// inSession runs the command in a session of its own, which is closed when it
// returns: nothing of the command is left then, nor of its scratch.
func (r *runner) inSession(ctx context.Context, h *daemon.Host, relay *relay) (sandbox.State, error) {
	var none sandbox.State
	req, err := r.flags.fence.request(h)
	if err != nil {
		return none, err
	}
	s, err := h.Open(ctx, req)
	if err != nil {
		return none, err
	}
	defer s.Close(ctx, api.ClosedByClient)
	if r.flags.report != "" {
		if r.report, err = openReport(r.flags.report, s.Fence()); err != nil {
			return none, err
		}
	}
	c, err := s.Start(ctx, daemon.StartRequest{
		Argv: r.argv, Cwd: cwdIn(s.Workspace()), Env: r.env, Timeout: time.Duration(r.flags.timeout),
		Inherit: &[3]*os.File{r.w.stdin, r.w.stdout, r.w.stderr},
	})
	if err != nil {
		return none, err
	}
	p := c.Process()
	r.id = c.ID()
	relay.to(p)
	if r.flags.verbose {
		e := p.Enforcement()
		r.note(enforcedLine{"enforced", e}, func() { r.w.enforced(e) })
	}
	<-p.Over()
	return p.State(), nil
}

// cwdIn is where the command starts: where the caller is, if that is in the
// workspace, else the workspace itself.
func cwdIn(workspace string) string {
	wd, err := os.Getwd()
	if err != nil {
		return ""
	}
	here, err := fence.Canonical(wd)
	if err != nil || !fence.PathCovers(workspace, here.Path) {
		return ""
	}
	return here.Path
}

// sweep removes the scratch of runs that were killed. It is not what the caller
// asked for, so that it fails silently.
func (r *runner) sweep(ctx context.Context, h *daemon.Host) {
	rep, err := h.Sweep(ctx)
	switch {
	case !r.flags.verbose:
	case err != nil:
		r.note(warningLine{"warning", "sweep scratch: " + err.Error()}, func() { r.w.say("sweep scratch: %s", printable(err.Error())) })
	case rep.SweptCount+rep.KeptCount > 0:
		r.note(sweptLine{"swept", rep}, func() { r.w.say("%s", sweptText(rep)) })
	}
}

// Lines of --json beside the end and the failure.
type (
	enforcedLine struct {
		Type string `json:"type"` // "enforced", with --verbose
		fence.Enforcement
	}
	sweptLine struct {
		Type string `json:"type"` // "swept", with --verbose
		scratch.SweepReport
	}
	warningLine struct {
		Type    string `json:"type"` // "warning"
		Message string `json:"message"`
	}
)

// note tells something beside the end on stderr. An error of stderr has nowhere
// to go.
func (r *runner) note(line any, text func()) {
	if r.flags.json {
		_ = r.w.jsonLine(r.w.stderr, line)
		return
	}
	text()
}

// sweptText is a sweep in one line.
func sweptText(rep scratch.SweepReport) string {
	return fmt.Sprintf("swept %d scratch directories of dead owners (%d files, %d bytes), left %d", rep.SweptCount, rep.Files, rep.Bytes, rep.KeptCount)
}

// published takes the events of the session while the command runs.
func (r *runner) published(e api.Event) {
	r.report.published(e)
	if e.Type == api.EventScratchCleanFailed.Name {
		if d, err := api.EventScratchCleanFailed.Decode(e); err == nil {
			text := fmt.Sprintf("scratch is left at %s: %s", d.Path, d.Reason)
			r.note(warningLine{"warning", text}, func() { r.w.say("%s", printable(text)) })
		}
	}
}

// tell sums up the end on stderr.
func (r *runner) tell(st sandbox.State) {
	r.note(exitedOf(r.id, st), func() {
		if r.flags.quiet {
			return
		}
		r.w.sumUp(st)
		r.w.keptBy(r.id, st.Kept)
		if st.TimedOut {
			r.w.say("ended after %s", time.Duration(r.flags.timeout))
		}
	})
}

// keptBy says what became of the things that the command removed.
func (w *world) keptBy(id string, k *sandbox.Kept) {
	if k == nil {
		return
	}
	if k.Count > 0 {
		w.say("%d removals are in the trash; wattle trash restore --process %s brings them back", k.Count, printable(id))
	}
	if k.NotKept > 0 {
		w.say("%d removals could not be kept", k.NotKept)
	}
	for _, x := range k.Examples {
		w.say("not kept: %s: %s", printable(x.Path), printable(x.Why))
	}
}

// status is the exit status that stands for a final state.
func status(st sandbox.State) error {
	switch {
	case st.TimedOut:
		return exitStatus(statusTimeout)
	case st.ExitCode != nil:
		return exitStatus(*st.ExitCode)
	}
	if n := signalNumber(st.Signal); n > 0 {
		return exitStatus(statusSignal + n)
	}
	return fmt.Errorf("the command was ended by a signal without a number here: %q", st.Signal)
}
