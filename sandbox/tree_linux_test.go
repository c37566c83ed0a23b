package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// hostile leaves children of every kind: in the background, in sessions of
// their own, deaf to TERM and HUP, twice forked with closed descriptors and an
// empty environment, and a respawner whose parents exit at once. $K marks them.
const hostile = `
sleep 1001.$K &
setsid sleep 1002.$K &
( setsid sh -c 'trap "" TERM HUP INT; (sleep 1003.'$K' & sleep 1003.'$K') & exec sleep 1003.'$K & )
python3 -B - <<'P' &
import os
k = os.environ["K"]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for f in range(3, 64):
            try: os.close(f)
            except OSError: pass
        os.chdir("/")
        os.execve("/bin/sleep", ["sleep", "1004." + k], {})
    os._exit(0)
P
setsid sh -c 'while :; do ( setsid sleep 1005.'$K' & ); sleep 0.003; done' &
`

var lastMark atomic.Int64

// newMark marks the processes of one test: a fraction of a second to sleep.
func newMark() string { return fmt.Sprintf("%d%04d", os.Getpid(), lastMark.Add(1)) }

func hostileRuns(k string) bool {
	for _, s := range []string{"1001.", "1002.", "1003.", "1004.", "1005."} {
		if len(running("sleep "+s+k)) == 0 {
			return false
		}
	}
	return len(running("sleep 1005."+k)) > 20
}

func alive(k string) []int { return running("." + k) }

// TestHostileTree: nothing of it survives, however the command ends, and
// nobody else is touched: not an unfenced neighbour of the same user, not a
// second fenced command.
func TestHostileTree(t *testing.T) {
	need(t, "python3", "setsid")
	needABI(t, 6)
	l := newLab(t)
	neighbour := exec.Command("sleep", "1000."+newMark())
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- neighbour.Wait() }()
	second := l.start(l.spec(l.fence(fence.WorkspaceWrite), "sleep 1000 & sleep 1000"))
	third := l.start(l.spec(l.fence(fence.FullAccess), "sleep 1000 & sleep 1000"))
	for _, m := range []fence.Mode{fence.WorkspaceWrite, fence.ReadOnly} {
		for _, end := range []struct {
			name string
			wait string // what the command itself does after leaving its children
			do   func(*sandbox.Process)
		}{
			{"killed", "wait", (*sandbox.Process).Kill},
			{"terminated", "wait", func(p *sandbox.Process) { p.Terminate(10 * time.Millisecond) }},
			{"deaf and terminated", `trap "" TERM; while :; do wait; done`, func(p *sandbox.Process) { p.Terminate(50 * time.Millisecond) }},
			{"timed out", "wait", nil},
			{"exits by itself", "read x", func(p *sandbox.Process) { _, _ = p.Write([]byte("\n"), "") }},
		} {
			t.Run(string(m)+" "+end.name, func(t *testing.T) {
				k := newMark()
				timeout := time.Duration(0)
				if end.do == nil {
					timeout = 3 * time.Second
				}
				p := l.start(l.spec(l.fence(m), hostile+end.wait, withVars(map[string]string{"K": k}), func(s *sandbox.Spec) { s.Timeout, s.Stdin = timeout, true }))
				eventually(t, "the tree has grown", func() bool { return hostileRuns(k) })
				before := len(alive(k))
				begin := time.Now()
				if end.do != nil {
					end.do(p)
				}
				<-p.Over()
				took := time.Since(begin)
				if left := alive(k); len(left) > 0 {
					t.Errorf("%d survive: %v", len(left), left)
					for _, pid := range left {
						_ = unix.Kill(pid, unix.SIGKILL)
					}
				}
				st := p.State()
				if st.TimedOut != (end.do == nil) || len(st.Denials) != 0 {
					t.Errorf("%+v", st)
				}
				if end.name == "exits by itself" && (len(st.Survivors) < 5 || *st.ExitCode != 0) {
					t.Errorf("survivors: %+v", st.Survivors)
				}
				t.Logf("%d processes, ended in %v", before, took)
			})
		}
	}
	select {
	case err := <-ended:
		t.Errorf("the neighbour was ended: %v", err)
	case <-second.Exited():
		t.Error("the second command was ended")
	case <-third.Exited():
		t.Error("the third command was ended")
	default:
	}
	_ = neighbour.Process.Kill()
	<-ended
}

// TestSignalScope: a fenced command cannot signal anybody outside its fence.
func TestSignalScope(t *testing.T) {
	needABI(t, 6)
	l := newLab(t)
	neighbour := exec.Command("sleep", "1000")
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = neighbour.Process.Kill(); _ = neighbour.Wait() }()
	second := l.start(l.spec(l.fence(fence.WorkspaceWrite), "sleep 1000"))
	r := l.ws(fmt.Sprintf("for p in %d %d %d; do kill -9 $p && echo killed; kill -0 $p && echo seen; done; kill -9 -1; exit 1", os.Getpid(), neighbour.Process.Pid, second.PID()))
	if strings.Contains(r.stdout, "killed") || strings.Contains(r.stdout, "seen") {
		t.Errorf("%v", r)
	}
	if err := unix.Kill(neighbour.Process.Pid, 0); err != nil {
		t.Errorf("the neighbour: %v", err)
	}
	if st, ok := second.State(), true; ok && (st.Signal != "" || st.ExitCode != nil) {
		t.Errorf("the second command: %+v", st)
	}
}

// TestTimeout is S09: the limit ends the whole tree, and is no denial.
func TestTimeout(t *testing.T) {
	l := newLab(t)
	for _, m := range modes {
		k := newMark()
		r := l.run(l.fence(m), `sleep 1000.`+k+` & setsid sleep 1000.`+k+` & sleep 1000.`+k, func(s *sandbox.Spec) { s.Timeout = 50 * time.Millisecond })
		if !r.TimedOut || r.Signal != "SIGKILL" || r.ExitCode != nil || len(r.Denials) != 0 {
			t.Errorf("%s: %v", m, r)
		}
		if left := alive(k); len(left) > 0 {
			t.Errorf("%s: left running: %v", m, left)
		}
		if r := l.run(l.fence(m), "exit 4", func(s *sandbox.Spec) { s.Timeout = patience }); r.TimedOut || r.code() != 4 {
			t.Errorf("%s: %v", m, r)
		}
	}
}

func TestSignals(t *testing.T) {
	l := newLab(t)
	for _, m := range modes {
		p := l.start(l.spec(l.fence(m), `trap 'echo usr1' USR1; trap 'echo int; exit 5' INT; echo ready; while :; do sleep 0.01; done`))
		has := func(text string) {
			t.Helper()
			eventually(t, text, func() bool { out, _ := outputOf(p); return strings.Contains(out, text) })
		}
		has("ready")
		for _, name := range []string{"SIGNONE", "", "SIG", "9"} {
			wantCode(t, p.Signal(name), sandbox.CodeInvalid)
		}
		if err := p.Signal("usr1"); err != nil {
			t.Error(err)
		}
		has("usr1")
		if err := p.Signal("SIGINT"); err != nil {
			t.Error(err)
		}
		if r := l.finish(p, time.Now()); r.code() != 5 || r.Signal != "" {
			t.Errorf("%s: %v", m, r)
		}
		wantCode(t, p.Signal("SIGTERM"), sandbox.CodeNotRunning)
		p.Kill()
		p.Terminate(time.Hour)
		if r := l.run(l.fence(m), "kill -SEGV $$"); r.Signal != "SIGSEGV" || r.ExitCode != nil {
			t.Errorf("%s: %v", m, r)
		}
	}
	// Before TERM is ignored the command has its time.
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `trap 'echo bye; exit 6' TERM; echo ready; while :; do sleep 0.01; done`))
	eventually(t, "it is ready", func() bool { out, _ := outputOf(p); return out != "" })
	p.Terminate(patience)
	if r := l.finish(p, time.Now()); r.code() != 6 || r.stdout != "ready\nbye\n" {
		t.Errorf("%v", r)
	}
}

// TestKeep: a development server lives on, listed, with its output, until it is
// ended; then its whole tree goes.
func TestKeep(t *testing.T) {
	l := newLab(t)
	for _, m := range modes {
		k := newMark()
		rec := &recorder{}
		p := l.start(l.spec(l.fence(m), `(exec 2>/dev/null; trap 'echo asked' USR1; while :; do sleep 0.01; done) & server=$!; setsid sleep 1000.`+k+` & until grep -q '^sleep' /proc/$!/comm; do :; done; echo $server; exit 2`,
			observed(rec), func(s *sandbox.Spec) { s.OnExit = sandbox.ExitKeep }))
		select {
		case <-p.Closed():
		case <-time.After(patience):
			t.Fatal("not closed")
		}
		st := p.State()
		if *st.ExitCode != 2 || len(st.Survivors) < 2 {
			t.Errorf("%s: %+v", m, st)
		}
		names := map[string]bool{}
		for _, s := range st.Survivors {
			names[s.Process] = true
			if s.PID <= 1 {
				t.Errorf("%+v", s)
			}
		}
		if !names["sleep"] || !names["bash"] {
			t.Errorf("%s: survivors %+v", m, st.Survivors)
		}
		select {
		case <-p.Over():
			t.Errorf("%s: over while its server runs", m)
		default:
		}
		out, _ := outputOf(p)
		var server int
		if _, err := fmt.Sscan(out, &server); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(server, unix.SIGUSR1); err != nil {
			t.Error(err)
		}
		eventually(t, "what the server says is read", func() bool { out, _ := outputOf(p); return strings.Contains(out, "asked") })
		begin := time.Now()
		p.Kill()
		<-p.Over()
		if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("%s: ended after %v", m, d)
		}
		if left := alive(k); len(left) > 0 || unix.Kill(server, 0) == nil {
			t.Errorf("%s: left running: %v", m, left)
		}
	}
	// A kept tree that ends by itself is over without anybody's help.
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `(sleep 0.3; echo last) & exit 0`, func(s *sandbox.Spec) { s.OnExit = sandbox.ExitKeep }))
	<-p.Over()
	if out, _ := outputOf(p); out != "last\n" {
		t.Errorf("%q", out)
	}
	// Nothing left running: keep is like kill.
	if r := l.ws("true", func(s *sandbox.Spec) { s.OnExit = sandbox.ExitKeep }); len(r.Survivors) != 0 {
		t.Errorf("%v", r)
	}
}

// TestKeptCommandStaysFenced: what lives on is still refused, and on record.
func TestKeptCommandStaysFenced(t *testing.T) {
	l := newLab(t)
	_ = unix.Mkfifo(l.W+"/go", 0o600)
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `(read x < go; echo x > $O/late; echo done) & exit 0`, func(s *sandbox.Spec) { s.OnExit = sandbox.ExitKeep }))
	<-p.Closed()
	f, err := os.OpenFile(l.W+"/go", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "go")
	_ = f.Close()
	<-p.Over()
	absent(t, l.O+"/late")
	if got := denialsOf(p.State().Denials); len(got) != 1 || got[0] != "create "+l.O+"/late" {
		t.Errorf("%q", got)
	}
}
