package daemon_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/scratch"
)

// The main job on the wire: a turn with scratch and a command, events in order
// without a hole, the connection lost in the middle and resumed.
func TestTurnOverTheSocket(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	s := h.open(c, fence.WorkspaceWrite)
	if s.Scratch == nil || !strings.Contains(s.Prompt, s.Scratch.Path) {
		t.Fatalf("scratch %+v, prompt %q", s.Scratch, s.Prompt)
	}
	turn := do(h, c, api.TurnBegin, api.SessionRef{SessionID: s.SessionID})
	text := "probe"
	w := do(h, c, api.ScratchWrite, api.ScratchWriteParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, Name: "a/probe.txt", Content: &text})
	holds(t, w.Path, "probe")
	p := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID,
		Command: `echo from-command > "$TMPDIR/c.txt"; for i in 1 2 3 4 5; do echo line $i; done; read go; echo after $go`, Stdin: true})

	// The first lines, then the connection goes.
	var got []api.Event
	next := func(sub *client.Subscription) api.Event {
		t.Helper()
		e, err := sub.Next(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
		return e
	}
	for e := next(sub); e.Type != api.EventProcessOutput.Name; e = next(sub) {
	}
	last := got[len(got)-1]
	_ = c.Close()

	c2 := h.dial()
	refused(h, c2, api.ProcessRead, api.ProcessReadParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}}, api.CodeProcessNotFound)
	refused(h, c2, api.SessionResume, api.SessionResumeParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, ResumeToken: "guess"}, api.CodeSessionToken)
	sub2, err := c2.Subscribe(h.ctx(), api.EventsSubscribeParams{After: &api.Place{Epoch: last.Epoch, Seq: last.Seq}})
	if err != nil {
		t.Fatal(err)
	}
	// The daemon learns of the end of a connection in its own time.
	until(t, "the session's being detached", func() bool {
		return do(h, c2, api.SessionGet, api.SessionRef{SessionID: s.SessionID}).State == api.SessionDetached
	})
	r := do(h, c2, api.SessionResume, api.SessionResumeParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, ResumeToken: s.ResumeToken})
	if r.Prompt != s.Prompt {
		t.Error("the prompt changed")
	}
	for _, again := range []bool{false, true} {
		if w := do(h, c2, api.ProcessWrite, api.ProcessWriteParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}, Data: []byte("on\n"), WriteID: "w1"}); w.Duplicate != again {
			t.Errorf("a write with an id that was used before (%v): %+v", again, w)
		}
	}
	st := do(h, c2, api.ProcessWait, api.ProcessWaitParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}})
	if st.ExitCode == nil || *st.ExitCode != 0 {
		t.Fatalf("the command ended with %+v", st)
	}
	holds(t, filepath.Join(s.Scratch.Path, "tmp", "c.txt"), "from-command\n")
	end := do(h, c2, api.TurnEnd, api.TurnEndParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, TurnID: turn.TurnID, Outcome: api.TurnCompleted})
	if end.Cleaned == nil || end.Cleaned.Files != 2 || end.Warning != "" {
		t.Errorf("the turn's end cleaned %+v, warning %q", end.Cleaned, end.Warning)
	}
	absent(t, s.Scratch.Path)
	absent(t, h.scratch) // made by the session, empty: gone with it

	for e := next(sub2); e.Type != api.EventTurnEnded.Name; e = next(sub2) {
	}
	var out strings.Builder
	order := map[string]int{}
	for i, e := range got {
		if i > 0 && e.Seq != got[i-1].Seq+1 {
			t.Errorf("event %d follows %d", e.Seq, got[i-1].Seq)
		}
		if e.Type == api.EventProcessOutput.Name {
			d, err := api.EventProcessOutput.Decode(e)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(d.Data)
		}
		if _, ok := order[e.Type]; !ok {
			order[e.Type] = i
		}
	}
	if want := "line 1\nline 2\nline 3\nline 4\nline 5\nafter on\n"; out.String() != want {
		t.Errorf("output by events is %q, want %q", out.String(), want)
	}
	seq := []string{"session.opened", "turn.began", "scratch.written", "process.started", "process.output", "session.detached", "session.resumed", "process.exited", "process.closed", "scratch.cleaned", "turn.ended"}
	for i := 1; i < len(seq); i++ {
		a, aok := order[seq[i-1]]
		b, bok := order[seq[i]]
		if !aok || !bok || a >= b {
			t.Errorf("%s (%v) must come before %s (%v)", seq[i-1], aok, seq[i], bok)
		}
	}
}

func TestReadOnly(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.ReadOnly)
	ref := api.SessionRef{SessionID: s.SessionID}
	text := "x"
	refused(h, c, api.ScratchWrite, api.ScratchWriteParams{SessionRef: ref, Name: "a", Content: &text}, scratch.CodeReadOnly)
	refused(h, c, api.ScratchCreate, api.ScratchCreateParams{SessionRef: ref}, scratch.CodeReadOnly)
	for _, p := range []string{filepath.Join(h.ws, "a"), filepath.Join(h.outside, "a"), filepath.Join(s.Scratch.Path, "a")} {
		refused(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: p}, Content: "x"}, fence.CodeSandboxDenied)
		_, st := h.run(c, s.SessionID, "echo x > "+p)
		if st.code == 0 {
			t.Errorf("a command wrote %s", p)
		}
		absent(t, p)
	}
	if _, st := h.run(c, s.SessionID, `echo ok > "$TMPDIR/t" && cat "$TMPDIR/t" && echo $WATTLE_SANDBOX`); st.text != "ok\nread-only\n" {
		t.Errorf("a command's own temporary directory: %+v", st)
	}
}

func TestFullAccess(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.FullAccess)
	out := filepath.Join(h.outside, "a")
	do(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: out}, Content: "x"})
	holds(t, out, "x")
	p, st := h.run(c, s.SessionID, "echo y > "+out)
	if st.code != 0 || p.Enforcement.Level != fence.LevelNone {
		t.Errorf("%+v, %+v", st, p.Enforcement)
	}
	holds(t, out, "y\n")
}

// Without Landlock a fenced start is refused and path checks go on.
func TestWithoutLandlock(t *testing.T) {
	h := newHouse(t).start("TEST_DAEMON_NO_LANDLOCK=simulated: ENOSYS")
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	refused(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "touch made"}, "SANDBOX_UNAVAILABLE")
	absent(t, filepath.Join(h.ws, "made"))
	do(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "in"}, Content: "x"})
	refused(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "../out"}, Content: "x"}, fence.CodeSandboxDenied)
	absent(t, filepath.Join(h.ws, "../out"))
	if st := do(h, c, api.FenceStatus, api.SessionRef{SessionID: s.SessionID}); st.Enforcement.Level != fence.LevelNone {
		t.Errorf("the report says %+v", st.Enforcement)
	}
}

// P29: a refusal names path, operation, mode, rule and the least grant, by both
// ways.
func TestP29DenialSaysWhy(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	e := refused(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "/etc/wattle-probe"}, Content: "x"}, fence.CodeSandboxDenied)
	d := e.Denial()
	if d == nil || d.Path != "/etc/wattle-probe" || d.Mode != fence.WorkspaceWrite || d.Rule != fence.RuleOutside || d.Evidence != fence.EvidenceDecision || d.Grant != nil || !strings.Contains(d.Hint, "no grant is offered") {
		t.Errorf("denial of the file call: %+v", d)
	}
	if e := refused(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "../out"}, Content: "x"}, fence.CodeSandboxDenied); e.Denial().Requested != "../out" {
		t.Errorf("requested %q", e.Denial().Requested)
	}
	p, st := h.run(c, s.SessionID, "echo x > /etc/wattle-probe")
	if len(st.denials) != 1 {
		t.Fatalf("denials %+v", st.denials)
	}
	if d := st.denials[0]; d.Path != "/etc/wattle-probe" || d.Evidence != fence.EvidenceSupervisor || d.Errno != "EACCES" || d.Process != "sh" || d.PID != p.PID {
		t.Errorf("denial of the command: %+v", d)
	}
	absent(t, "/etc/wattle-probe")
}

func TestBadInput(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	file := filepath.Join(h.ws, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for ws, what := range map[string]string{
		filepath.Join(h.ws, "missing"): "does not exist", file: "is not a directory", "relative/dir": "is not absolute", "": "is empty",
		h.ws + "\x00": "cannot be used",
	} {
		e := refused(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: ws}, api.CodeSessionWorkspace)
		if !strings.Contains(e.Message, what) {
			t.Errorf("workspace %q: %s", ws, e.Message)
		}
	}
	for _, ws := range []string{"/", h.home, h.dir} {
		refused(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: ws, Mode: fence.WorkspaceWrite}, fence.CodePolicyRootRefused)
	}
	refused(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: h.ws, Policies: []api.PolicyRef{{Name: "no-such"}}}, "POLICY_NOT_FOUND")
	refused(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: h.ws, Policies: []api.PolicyRef{{Inline: []byte(`{"hidden":[]}`)}}}, fence.CodePolicyInvalid)
	refused(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: h.ws, Mode: fence.WorkspaceWrite, Network: fence.NetworkLoopback}, fence.CodePolicyInvalid)
	refused(h, c, api.FSStat, api.FileRef{SessionID: "nobody", Path: "x"}, api.CodeSessionNotFound)
	refused(h, c, api.ProcessRead, api.ProcessReadParams{ProcessRef: api.ProcessRef{ProcessID: "none"}}, api.CodeProcessNotFound)
	s := h.open(c, fence.WorkspaceWrite)
	refused(h, c, api.TurnEnd, api.TurnEndParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, TurnID: "t9", Outcome: api.TurnCompleted}, api.CodeTurnNotFound)
	do(h, c, api.TurnBegin, api.SessionRef{SessionID: s.SessionID})
	refused(h, c, api.TurnBegin, api.SessionRef{SessionID: s.SessionID}, api.CodeTurnActive)
	refused(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Argv: []string{"no-such-program"}}, "PROCESS_COMMAND_NOT_FOUND")
	refused(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Argv: []string{"true"}, Cwd: "missing"}, "PROCESS_INVALID")
	for raw, code := range map[string]string{
		`{"sessionId":"` + s.SessionID + `","Path":"x"}`: "INVALID_PARAMS",
		`{"sessionId":7,"path":"x"}`:                     "INVALID_PARAMS",
		`[1]`:                                            "INVALID_PARAMS",
		`{"sessionId":"` + s.SessionID + `","path":"` + strings.Repeat("a", 5000) + `"}`:       "FS_IO_ERROR",
		`{"sessionId":"` + s.SessionID + `","path":"a\u0000b"}`:                                "FS_NOT_FOUND FS_IO_ERROR",
		`{"sessionId":"` + s.SessionID + `","path":"x","extra":{"deep":[[[[[[[[[[]]]]]]]]]]}}`: "INVALID_PARAMS",
	} {
		err := c.Call(h.ctx(), "fs/stat", rawJSON(raw), nil)
		e, ok := err.(*api.Error)
		if !ok || !strings.Contains(code, e.Stable()) {
			t.Errorf("fs/stat %.80s: %v, want %s", raw, err, code)
		}
	}
	if err := c.Call(h.ctx(), "fs/nothing", rawJSON(`{}`), nil); err == nil || err.(*api.Error).Stable() != "METHOD_NOT_FOUND" {
		t.Errorf("unknown method: %v", err)
	}
	// What does not fit into a reply is refused before it is read.
	if err := os.WriteFile(filepath.Join(h.ws, "large"), []byte(strings.Repeat("x", 16<<20+1)), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(h, c, api.FSReadText, api.FSReadTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "large"}}, string(provider.CodeTooLarge))
	// A frame beyond the limit costs the connection; the daemon serves on.
	big := h.dial()
	bs := h.open(big, fence.WorkspaceWrite)
	_, err := client.Do(h.ctx(), big, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: bs.SessionID, Path: "big"}, Content: strings.Repeat("x", 17<<20)})
	if err == nil {
		t.Error("a frame of 17 MiB was taken")
	}
	absent(t, filepath.Join(h.ws, "big"))
	if st := do(h, c, api.ServerStatus, api.Empty{}); st.Sessions < 1 {
		t.Errorf("status %+v", st)
	}
}

// rawJSON goes into a request as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestSetModeAndGrants(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.ReadOnly)
	write := func(path string) api.FSWriteTextParams {
		return api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: path}, Content: "x"}
	}
	refused(h, c, api.FSWriteText, write("a"), fence.CodeSandboxDenied)
	// Once, by the call itself.
	p := write("by-call")
	p.SandboxPolicy = &api.SandboxPolicy{Mode: fence.WorkspaceWrite}
	do(h, c, api.FSWriteText, p)
	refused(h, c, api.FSWriteText, write("a"), fence.CodeSandboxDenied)
	v := do(h, c, api.SessionSetMode, api.SessionSetModeParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, Mode: fence.WorkspaceWrite})
	if v.Mode != fence.WorkspaceWrite {
		t.Errorf("view %+v", v)
	}
	do(h, c, api.FSWriteText, write("a"))
	out := filepath.Join(h.outside, "a")
	refused(h, c, api.FSWriteText, write(out), fence.CodeSandboxDenied)
	grant := api.SessionGrantParams{SessionRef: api.SessionRef{SessionID: s.SessionID}, Path: h.outside, Access: fence.Write, Scope: api.ScopeOnce}
	do(h, c, api.SessionGrant, grant)
	do(h, c, api.FSWriteText, write(out))
	refused(h, c, api.FSWriteText, write(filepath.Join(h.outside, "b")), fence.CodeSandboxDenied)
	do(h, c, api.SessionGrant, grant)
	if _, st := h.run(c, s.SessionID, "echo c > "+filepath.Join(h.outside, "c")); st.code != 0 {
		t.Errorf("a command with a grant for one call: %+v", st)
	}
	if _, st := h.run(c, s.SessionID, "echo d > "+filepath.Join(h.outside, "d")); st.code == 0 || len(st.denials) != 1 {
		t.Errorf("the next command: %+v", st)
	}
	absent(t, filepath.Join(h.outside, "d"))
	grant.Scope = api.ScopeSession
	do(h, c, api.SessionGrant, grant)
	do(h, c, api.FSWriteText, write(filepath.Join(h.outside, "e")))
	do(h, c, api.FSWriteText, write(filepath.Join(h.outside, "f")))
	// What stays closed cannot be granted.
	if err := os.MkdirAll(filepath.Join(h.ws, ".git", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	grant.Path = filepath.Join(h.ws, ".git", "hooks")
	refused(h, c, api.SessionGrant, grant, "POLICY_GRANT_REFUSED")
	grant.Path = "/"
	refused(h, c, api.SessionGrant, grant, fence.CodePolicyRootRefused)
	refused(h, c, api.FSWriteText, write(".git/hooks/pre-commit"), fence.CodeSandboxDenied)
}

// One session's ids used by another connection: nothing crosses.
func TestSessionsAreTheirConnections(t *testing.T) {
	h := newHouse(t).start()
	a, b := h.dial(), h.dial()
	s := h.open(a, fence.WorkspaceWrite)
	p := do(h, a, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "read x; echo $x", Stdin: true, ProcessID: "mine"})
	ref := api.SessionRef{SessionID: s.SessionID}
	pref := api.ProcessRef{ProcessID: p.ProcessID}
	text := "x"
	refused(h, b, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "a"}, Content: "x"}, "SESSION_NOT_HELD")
	refused(h, b, api.FSReadText, api.FSReadTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "a"}}, "SESSION_NOT_HELD")
	refused(h, b, api.ScratchWrite, api.ScratchWriteParams{SessionRef: ref, Name: "a", Content: &text}, "SESSION_NOT_HELD")
	refused(h, b, api.SessionSetMode, api.SessionSetModeParams{SessionRef: ref, Mode: fence.FullAccess}, "SESSION_NOT_HELD")
	refused(h, b, api.TurnBegin, ref, "SESSION_NOT_HELD")
	refused(h, b, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "true"}, "SESSION_NOT_HELD")
	refused(h, b, api.ProcessWrite, api.ProcessWriteParams{ProcessRef: pref, Data: []byte("x\n")}, api.CodeProcessNotFound)
	refused(h, b, api.ProcessSignal, api.ProcessSignalParams{ProcessRef: pref, Signal: "SIGKILL"}, api.CodeProcessNotFound)
	refused(h, b, api.ProcessTerminate, api.ProcessTerminateParams{ProcessRef: pref}, api.CodeProcessNotFound)
	refused(h, a, api.ProcessStart, api.ProcessStartParams{SessionID: s.SessionID, Command: "true", ProcessID: "mine"}, api.CodeProcessExists)
	absent(t, filepath.Join(h.ws, "a"))
	do(h, a, api.ProcessWrite, api.ProcessWriteParams{ProcessRef: pref, Data: []byte("still mine\n")})
	st := do(h, a, api.ProcessWait, api.ProcessWaitParams{ProcessRef: pref})
	if st.ExitCode == nil || *st.ExitCode != 0 {
		t.Errorf("%+v", st)
	}
	// Taking over closes the other.
	do(h, b, api.SessionResume, api.SessionResumeParams{SessionRef: ref, ResumeToken: s.ResumeToken})
	<-a.Done()
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "4001") {
		t.Errorf("the connection that was taken over from ended with %v", err)
	}
	do(h, b, api.TurnBegin, ref)
}

// What the daemon was started with is not for clients: neither through the
// names of its own process nor through those of its threads.
func TestTheDaemonsEnvironmentIsItsOwn(t *testing.T) {
	h := newHouse(t).start("SOME_API_KEY=precious")
	c := h.dial()
	s := h.open(c, fence.ReadOnly)
	pid := strconv.Itoa(h.cmd.Process.Pid)
	tasks, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/proc/self/environ", "/proc/thread-self/environ", "/proc/" + pid + "/environ", "/proc/self/mem"}
	for _, task := range tasks {
		paths = append(paths, "/proc/"+task.Name()+"/environ", "/proc/"+pid+"/task/"+task.Name()+"/environ")
	}
	for _, p := range paths {
		refused(h, c, api.FSReadText, api.FSReadTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: p}}, fence.CodeSandboxDenied)
	}
	do(h, c, api.FSReadText, api.FSReadTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "/proc/cpuinfo"}})
	if _, st := h.run(c, s.SessionID, "env; cat /proc/"+pid+"/environ; cat /proc/$PPID/environ"); strings.Contains(st.text, "precious") {
		t.Errorf("a command sees %q", st.text)
	}
}

// P21: a command must not reach the daemon, whatever its mode.
func TestP21CommandsCannotReachTheDaemon(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	const probe = `python3 - <<'P'
import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("%s")
except OSError as e:
    print("connect", e.errno); raise SystemExit
s.sendall(b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
print(s.recv(100).split(b"\r\n")[0].decode())
P`
	for mode, want := range map[fence.Mode]string{fence.ReadOnly: "connect 13\n", fence.WorkspaceWrite: "connect 13\n", fence.FullAccess: "HTTP/1.1 403 Forbidden\n"} {
		s := h.open(c, mode)
		_, st := h.run(c, s.SessionID, fmt.Sprintf(probe, h.socket))
		if st.text != want {
			t.Errorf("%s: %q, want %q", mode, st.text, want)
		}
		if mode != fence.FullAccess && (len(st.denials) != 1 || st.denials[0].Access != fence.Connect || st.denials[0].Path != h.socket) {
			t.Errorf("%s: denials %+v", mode, st.denials)
		}
		// Double-forked and orphaned, it still descends from us.
		if err := os.WriteFile(filepath.Join(h.ws, "probe.sh"), fmt.Appendf(nil, probe, h.socket), 0o755); err != nil {
			t.Fatal(err)
		}
		_, st = h.run(c, s.SessionID, `setsid -f sh -c 'sh ./probe.sh > "$TMPDIR/o" 2>&1; mv "$TMPDIR/o" "$TMPDIR/done"'; until [ -e "$TMPDIR/done" ]; do sleep 0.01; done; cat "$TMPDIR/done"`)
		if st.text != want {
			t.Errorf("%s: an orphan got %q, want %q", mode, st.text, want)
		}
	}
}

// A page in a browser sends an Origin; it is refused before anything else.
func TestOriginIsRefused(t *testing.T) {
	h := newHouse(t).start()
	for _, header := range []string{"Origin: null", "Origin: http://localhost", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"} {
		conn, err := net.Dial("unix", h.socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /v1 HTTP/1.1\r\nHost: localhost\r\n%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", header)
		b := make([]byte, 64)
		n, _ := conn.Read(b)
		if !strings.HasPrefix(string(b[:n]), "HTTP/1.1 403 ") {
			t.Errorf("%s: %q", header, b[:n])
		}
		conn.Close()
	}
}

// A write inside that the kernel's permissions refuse is no denial.
func TestOrdinaryRefusalIsNoDenial(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("SKIP: as root ordinary permissions never refuse a file call; the provider's tests run this as a normal user")
	}
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite)
	if err := os.Mkdir(filepath.Join(h.ws, "ro"), 0o555); err != nil {
		t.Fatal(err)
	}
	refused(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "ro/a"}, Content: "x"}, string(provider.CodePermissionDenied))
}
