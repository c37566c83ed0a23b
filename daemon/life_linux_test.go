package daemon_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/scratch"
)

// A daemon is killed; the next one sweeps the orphan and only the orphan: not
// what is to stay, not what a living daemon owns, not what is not ours.
func TestKilledDaemonLeavesOneOrphan(t *testing.T) {
	h := newHouse(t)
	other := *h // a second daemon of the same user, which lives on
	other.socket = filepath.Join(h.dir, "run2", "c.sock")
	other.env = []string{"HOME=" + h.home, "PATH=" + os.Getenv("PATH"), "TEST_DAEMON_SOCKET=" + other.socket}
	other.start()
	alive := other.open(other.dial(), fence.WorkspaceWrite)

	h.start()
	c := h.dial()
	off := scratch.CleanOff
	gone := h.open(c, fence.WorkspaceWrite)
	kept := h.open(c, fence.WorkspaceWrite, func(p *api.SessionOpenParams) { p.Scratch = &scratch.Overrides{AutoClean: &off} })
	text := "x"
	for _, s := range []api.SessionOpenResult{gone, kept} {
		do(h, c, api.ScratchWrite, api.ScratchWriteParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, Name: "f", Content: &text})
	}
	foreign := filepath.Join(h.scratch, "shop-0123456")
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "precious"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: gone.SessionID, Command: "echo $$ > pid; sleep 1000"})
	until(t, "the command's start", func() bool { _, err := os.Stat(filepath.Join(h.ws, "pid")); return err == nil })
	h.kill()
	// A command in a fence dies with its daemon.
	until(t, "the command's end", func() bool { return errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH) || zombie(p.PID) })

	h.start()
	absent(t, gone.Scratch.Path)
	holds(t, filepath.Join(kept.Scratch.Path, "f"), "x")
	holds(t, filepath.Join(foreign, "precious"), "x")
	if alive.Scratch == nil {
		t.Fatal("the other daemon's session has no scratch")
	}
	refused(h, h.dial(), api.SessionResume, api.SessionResumeParams{SessionRef: api.SessionRef{SessionID: gone.SessionID}, ResumeToken: gone.ResumeToken}, api.CodeSessionNotFound)
}

func TestSweepLeavesALivingDaemonsScratch(t *testing.T) {
	h := newHouse(t)
	first := *h
	first.start()
	c := first.dial()
	s := first.open(c, fence.WorkspaceWrite)
	text := "x"
	w := do(&first, c, api.ScratchWrite, api.ScratchWriteParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, Name: "f", Content: &text})
	second := *h
	second.socket = filepath.Join(h.dir, "run2", "c.sock")
	second.env = []string{"HOME=" + h.home, "PATH=" + os.Getenv("PATH"), "TEST_DAEMON_SOCKET=" + second.socket}
	second.start()
	second.dial()
	holds(t, w.Path, "x")
}

// Two daemons cannot serve one socket, and a socket that a killed one left is
// taken.
func TestOneDaemonASocket(t *testing.T) {
	h := newHouse(t).start()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = h.env
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "already running") {
		t.Errorf("a second daemon: %v, %s", err, out)
	}
	h.dial() // the first one serves on
	h.kill()
	h.start()
	h.dial()
	fi, err := os.Stat(h.socket)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v", fi.Mode(), err)
	}
	if fi, _ := os.Stat(filepath.Dir(h.socket)); fi.Mode().Perm() != 0o700 {
		t.Errorf("its directory %v", fi.Mode())
	}
}

// A session whose client is gone ends when its time is over, with everything
// in it; one that is to end at once does.
func TestDetachedSessionsEnd(t *testing.T) {
	h := newHouse(t).start()
	watch := h.dial()
	sub, err := watch.Subscribe(h.ctx(), api.EventsSubscribeParams{Types: []string{"session.closed", "process.closed", "scratch.cleaned"}})
	if err != nil {
		t.Fatal(err)
	}
	ms := int64(50)
	for reason, change := range map[api.CloseReason]func(*api.SessionOpenParams){
		api.ClosedExpired:    func(p *api.SessionOpenParams) { p.DetachedTTLMs = &ms },
		api.ClosedDisconnect: func(p *api.SessionOpenParams) { p.OnDisconnect = api.DisconnectTerminate },
	} {
		c := h.dial()
		s := h.open(c, fence.WorkspaceWrite, change)
		p := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: `trap '' TERM HUP; (setsid sleep 999 &); touch "$TMPDIR/up"; while :; do sleep 1; done`})
		until(t, "the command's start", func() bool { _, err := os.Stat(filepath.Join(s.Scratch.Path, "tmp", "up")); return err == nil })
		_ = c.Close()
		seen := map[string]bool{}
		for !seen["session.closed"] {
			e, err := sub.Next(h.ctx())
			if err != nil {
				t.Fatal(err)
			}
			seen[e.Type] = true
			if e.Type == "session.closed" {
				d, err := api.EventSessionClosed.Decode(e)
				if err != nil || d.Reason != reason || !seen["process.closed"] || !seen["scratch.cleaned"] {
					t.Errorf("%+v, %v, after %v", d, err, seen)
				}
			}
		}
		absent(t, s.Scratch.Path)
		if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the command lives: %v", err)
		}
	}
	if n := sleepers("999"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// zombie tells whether a process is dead and not yet reaped: whoever adopted it
// may take its time.
func zombie(pid int) bool {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}

// sleepers counts processes `sleep ARG`.
func sleepers(arg string) int {
	n := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, d := range dirs {
		if b, _ := os.ReadFile(d); string(b) == "sleep\x00"+arg+"\x00" {
			n++
		}
	}
	return n
}

// The end of a turn ends the commands that it started, kept ones too, before
// it cleans; what was started outside of it lives on.
func TestTurnEndsItsCommands(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	ref := api.SessionRef{SessionID: s.SessionID}
	outside := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "sleep 998"})
	turn := do(h, c, api.TurnBegin, ref)
	kept := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: `sh -c 'while :; do echo x >> "$TMPDIR/server.log"; sleep 0.01; done' & echo started`, OnExit: "keep"})
	do(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: api.ProcessRef{ProcessID: kept.ProcessID}})
	log := filepath.Join(s.Scratch.Path, "tmp", "server.log")
	until(t, "the server's log", func() bool { _, err := os.Stat(log); return err == nil })
	l := do(h, c, api.ProcessList, ref)
	if len(l.Processes) != 2 || !l.Processes[1].Closed || l.Processes[0].Exited {
		t.Errorf("%+v", l.Processes)
	}
	end := do(h, c, api.TurnEnd, api.TurnEndParams{SessionRef: ref, TurnID: turn.TurnID, Outcome: api.TurnAborted})
	if end.Warning != "" || end.Cleaned == nil {
		t.Errorf("%+v", end)
	}
	absent(t, s.Scratch.Path)
	if err := syscall.Kill(outside.PID, 0); err != nil {
		t.Errorf("the command of no turn: %v", err)
	}
	// A command after the clean has a temporary directory again.
	if _, st := h.run(c, s.SessionID, `echo again > "$TMPDIR/a" && cat "$TMPDIR/a"`); st.text != "again\n" {
		t.Errorf("%+v", st)
	}
	do(h, c, api.SessionClose, ref)
	absent(t, s.Scratch.Path)
	if err := syscall.Kill(outside.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command of no turn after the session: %v", err)
	}
}

// SIGTERM: clients are told, commands end, scratch is cleaned.
func TestStop(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	s := h.open(c, fence.WorkspaceWrite)
	p := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "trap '' TERM; sleep 997"})
	h.stop()
	var types []string
	for {
		e, err := sub.Next(h.ctx())
		if err != nil {
			if !strings.Contains(err.Error(), "1001") {
				t.Errorf("the connection ended with %v", err)
			}
			break
		}
		types = append(types, e.Type)
	}
	all := strings.Join(types, " ")
	for _, want := range []string{"server.stopping", "process.closed", "scratch.cleaned", "session.closed"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s among %s", want, all)
		}
	}
	absent(t, s.Scratch.Path)
	if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command lives: %v", err)
	}
}

// A client that comes and goes ten thousand times leaves nothing behind.
func TestConnectionsLeaveNothing(t *testing.T) {
	h := newHouse(t).start()
	keep := h.dial()
	descriptors := func() int {
		d, _ := os.ReadDir("/proc/" + strconv.Itoa(h.cmd.Process.Pid) + "/fd")
		return len(d)
	}
	cycle := func() {
		c, err := client.Dial(h.ctx(), h.socket, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Initialize(h.ctx(), api.Implementation{Name: "t", Version: "1"}); err != nil {
			t.Fatal(err)
		}
		s := h.open(c, fence.WorkspaceWrite, func(p *api.SessionOpenParams) { p.OnDisconnect = api.DisconnectTerminate })
		h.run(c, s.SessionID, "true")
		_ = c.Close()
	}
	for range 20 {
		cycle()
	}
	idle := func() bool {
		st := do(h, keep, api.ServerStatus, api.Empty{})
		return st.Sessions == 0 && st.Connections == 1
	}
	until(t, "the end of the sessions", idle)
	fds := descriptors()
	before := do(h, keep, api.ServerStatus, api.Empty{})
	n := 200
	if testing.Short() {
		n = 40
	}
	for range n {
		cycle()
	}
	until(t, "the end of the sessions", idle)
	until(t, "the descriptors", func() bool { return descriptors() <= fds+2 })
	until(t, "the goroutines", func() bool {
		return do(h, keep, api.ServerStatus, api.Empty{}).Sizes["goroutines"] <= before.Sizes["goroutines"]+2
	})
}

// Limits are the client's, not the machine's.
func TestSessionLimit(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	for range 64 {
		h.open(c, fence.ReadOnly)
	}
	refused(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: h.ws}, api.CodeSessionLimit)
	l := do(h, c, api.SessionList, api.Empty{})
	do(h, c, api.SessionClose, api.SessionRef{SessionID: l.Sessions[0].SessionID})
	h.open(c, fence.ReadOnly)
}

// What a command can be asked over the wire.
func TestProcessMethods(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	start := func(p api.ProcessStartParams) api.ProcessRef {
		p.SessionID = s.SessionID
		return api.ProcessRef{ProcessID: do(h, c, api.ProcessStart, p).ProcessID}
	}
	// S09: a time limit is no denial, and ends the tree.
	ref := start(api.ProcessStartParams{Command: "(setsid sleep 996 &); sleep 996", TimeoutMs: 50})
	st := do(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: ref})
	if !st.TimedOut || len(st.Denials) != 0 || sleepers("996") != 0 {
		t.Errorf("timeout: %+v, %d left", st, sleepers("996"))
	}
	// A terminal of its own.
	ref = start(api.ProcessStartParams{Command: "stty size; read x; stty size", TTY: ttyOf(100, 40)})
	until(t, "the first size", func() bool {
		return strings.Contains(textOf(do(h, c, api.ProcessRead, api.ProcessReadParams{ProcessRef: ref, WaitMs: 100})), "40 100")
	})
	do(h, c, api.ProcessResize, api.ProcessResizeParams{ProcessRef: ref, TTY: *ttyOf(90, 30)})
	do(h, c, api.ProcessWrite, api.ProcessWriteParams{ProcessRef: ref, Data: []byte("\n")})
	do(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: ref})
	if out := textOf(do(h, c, api.ProcessRead, api.ProcessReadParams{ProcessRef: ref})); !strings.Contains(out, "30 90") {
		t.Errorf("terminal: %q", out)
	}
	// Input and its end.
	ref = start(api.ProcessStartParams{Argv: []string{"cat"}, Stdin: true})
	do(h, c, api.ProcessWrite, api.ProcessWriteParams{ProcessRef: ref, Data: []byte("abc")})
	do(h, c, api.ProcessCloseStdin, ref)
	if st := do(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: ref}); st.ExitCode == nil || *st.ExitCode != 0 {
		t.Errorf("cat: %+v", st)
	}
	refused(h, c, api.ProcessWrite, api.ProcessWriteParams{ProcessRef: ref, Data: []byte("x")}, "PROCESS_STDIN_CLOSED")
	// Waiting, signals, an end by force.
	ref = start(api.ProcessStartParams{Command: "trap '' TERM; echo up; while :; do sleep 1; done"})
	until(t, "the trap", func() bool {
		return textOf(do(h, c, api.ProcessRead, api.ProcessReadParams{ProcessRef: ref, WaitMs: 100})) != ""
	})
	short := int64(30)
	refused(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: ref, TimeoutMs: &short}, api.CodeProcessTimeout)
	refused(h, c, api.ProcessSignal, api.ProcessSignalParams{ProcessRef: ref, Signal: "SIGNOTHING"}, "PROCESS_INVALID")
	do(h, c, api.ProcessSignal, api.ProcessSignalParams{ProcessRef: ref, Signal: "SIGTERM"})
	do(h, c, api.ProcessTerminate, api.ProcessTerminateParams{ProcessRef: ref, GraceMs: &short})
	if st := do(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: ref}); st.Signal != "SIGKILL" {
		t.Errorf("terminate: %+v", st)
	}
	refused(h, c, api.ProcessSignal, api.ProcessSignalParams{ProcessRef: ref, Signal: "SIGTERM"}, "PROCESS_NOT_RUNNING")
	// A network that is off, for one command.
	_, on := h.run(c, s.SessionID, `echo $WATTLE_SANDBOX_NETWORK; python3 -c 'import socket; socket.socket(socket.AF_INET)' && echo made`)
	if on.text != "1\nmade\n" {
		t.Errorf("network on: %+v", on)
	}
	p := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Network: fence.NetworkOff, Command: `echo $WATTLE_SANDBOX_NETWORK; python3 -c 'import socket; socket.socket(socket.AF_INET)' 2>/dev/null || echo refused`})
	do(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}})
	if out := textOf(do(h, c, api.ProcessRead, api.ProcessReadParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}})); out != "0\nrefused\n" {
		t.Errorf("network off: %q", out)
	}
}

// Many clients at once, each with its own sessions, under the race detector.
func TestManyAtOnce(t *testing.T) {
	h := newHouse(t).start()
	const clients = 8
	errs := make(chan error, clients)
	for i := range clients {
		go func() {
			errs <- func() error {
				c, err := client.Dial(h.ctx(), h.socket, client.Options{})
				if err != nil {
					return err
				}
				defer c.Close()
				if _, err := c.Initialize(h.ctx(), api.Implementation{Name: "t", Version: "1"}); err != nil {
					return err
				}
				for j := range 5 {
					s, err := client.Do(h.ctx(), c, api.SessionOpen, api.SessionOpenParams{Workspace: h.ws, Mode: fence.WorkspaceWrite})
					if err != nil {
						return err
					}
					name := "f" + strconv.Itoa(i) + "-" + strconv.Itoa(j)
					if _, err := client.Do(h.ctx(), c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: name}, Content: name}); err != nil {
						return err
					}
					p, err := client.Do(h.ctx(), c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "cat " + name + "; echo $$ > $TMPDIR/x"})
					if err != nil {
						return err
					}
					if _, err := client.Do(h.ctx(), c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}}); err != nil {
						return err
					}
					out, err := client.Do(h.ctx(), c, api.ProcessRead, api.ProcessReadParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}})
					if err != nil {
						return err
					}
					if textOf(out) != name {
						return errors.New("output of another command: " + textOf(out))
					}
					if _, err := client.Do(h.ctx(), c, api.SessionClose, api.SessionRef{SessionID: s.SessionID}); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	absent(t, h.scratch)
}

// A command that is started while its turn ends is ended with it, or refused:
// none lives on, and none writes where scratch has been cleaned.
func TestNoCommandSlipsThroughTheEndOfATurn(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	ref := api.SessionRef{SessionID: s.SessionID}
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		turn := do(h, c, api.TurnBegin, ref)
		// Something to end and to clean, so that the end takes a moment.
		do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: `for i in $(seq 200); do : > "$TMPDIR/$i"; done; sleep 995`})
		const starters = 6
		done := make(chan struct{}, starters)
		ended := make(chan struct{})
		for range starters {
			go func() {
				defer func() { done <- struct{}{} }()
				for {
					select {
					case <-ended:
						return
					default:
						_, _ = client.Do(h.ctx(), c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "sleep 995"})
					}
				}
			}()
		}
		do(h, c, api.TurnEnd, api.TurnEndParams{SessionRef: ref, TurnID: turn.TurnID, Outcome: api.TurnCompleted})
		close(ended)
		for range starters {
			<-done
		}
		for _, p := range do(h, c, api.ProcessList, ref).Processes {
			if p.TurnID == turn.TurnID && !p.Exited {
				t.Fatalf("command %s of the turn lives after its end", p.ProcessID)
			}
			if p.TurnID == "" { // started after the end
				_, _ = client.Do(h.ctx(), c, api.ProcessTerminate, api.ProcessTerminateParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}, GraceMs: new(int64)})
			}
		}
	}
}
