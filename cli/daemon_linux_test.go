package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
)

// serve starts the daemon and waits until it is ready.
func (h *house) serve(args ...string) *started {
	h.t.Helper()
	s := h.start(append([]string{"serve"}, args...)...)
	h.eventually("the daemon", func() bool { return h.do("status").code == 0 })
	return s
}

// dial connects to the daemon as an agent does.
func (h *house) dial() *client.Client {
	h.t.Helper()
	c, err := client.Dial(h.t.Context(), h.socket(), client.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	if _, err := c.Initialize(h.t.Context(), api.Implementation{Name: "test", Version: "0"}); err != nil {
		h.t.Fatal(err)
	}
	return c
}

func ask[P, R any](h *house, c *client.Client, m api.Method[P, R], p P) R {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	r, err := client.Do(ctx, c, m, p)
	if err != nil {
		h.t.Fatal(m.Name, err)
	}
	return r
}

func (h *house) session(c *client.Client) api.SessionOpenResult {
	h.t.Helper()
	return ask(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: h.ws, Mode: fence.WorkspaceWrite})
}

// The daemon from its start to its end.
func TestServe(t *testing.T) {
	h := newHouse(t)
	s := h.serve()
	fi, err := os.Stat(h.socket())
	if err != nil || fi.Mode()&os.ModeSocket == 0 || fi.Mode().Perm() != 0o600 {
		t.Fatal(fi, err)
	}
	r := h.want(h.do("serve"), 1)
	h.says(r, "wattle: listen on "+h.socket()+": a daemon is already running", "wattle: hint: see wattle status, or name another socket with --socket")

	st := h.object(h.want(h.do("status", "--json"), 0).stdout)
	for _, k := range []string{"server", "epoch", "pid", "startedAt", "uptimeMs", "sessions", "connections", "processes", "counters", "sizes"} {
		if _, ok := st[k]; !ok {
			t.Errorf("status has no %s", k)
		}
	}
	if int(st["pid"].(float64)) != s.cmd.Process.Pid {
		t.Errorf("pid %v", st["pid"])
	}
	if r := h.want(h.do("status"), 0); !strings.Contains(r.stdout, "sessions     0\n") {
		t.Error(r.stdout)
	}
	c := h.dial()
	x := h.session(c)
	p := ask(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: x.SessionID, Argv: []string{"sleep", "300"}})
	follow := h.start("events", "--follow", "--json")
	if e := h.object(follow.line()); e["type"] != "scratch.swept" {
		t.Errorf("%v", e)
	}
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("status %d\n%s", code, s.stderr.String())
	}
	if !dead(p.PID) {
		t.Error("its command lives on")
	}
	h.absent(h.socket())
	h.noScratch()
	var last string
	for l := range follow.lines {
		last = l
	}
	if code := follow.end(); code != 69 || h.object(last)["data"].(map[string]any)["code"] != "DAEMON_UNREACHABLE" {
		t.Errorf("the follower ended with %d: %s", code, last)
	}
	var told []string
	for _, o := range h.objects(s.stderr.String()) {
		told = append(told, o["level"].(string)+" "+o["message"].(string))
	}
	if got, want := strings.Join(told, "\n"), "info scratch swept\ninfo ready\ninfo stopping\ninfo stopped"; got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
}

// A command in a fence does not reach the daemon, and is told why.
func TestFencedClient(t *testing.T) {
	h := newHouse(t)
	h.serve()
	for _, args := range []string{"status", "session list", "fs ls", "events"} {
		r := h.do("run", "--quiet", "--env", "XDG_RUNTIME_DIR="+h.runtime(), "--", "sh", "-c", wattle+" "+args)
		h.want(r, 77)
		h.says(r, "wattle: connect to daemon at "+h.socket()+": a command in a fence cannot use the daemon")
	}
	// The same from a command of the daemon itself.
	c := h.dial()
	p := ask(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: h.session(c).SessionID, Argv: []string{wattle, "status"}, Env: map[string]string{"XDG_RUNTIME_DIR": h.runtime()}})
	if st := ask(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}}); st.ExitCode == nil || *st.ExitCode != 77 {
		t.Errorf("%+v", st)
	}
}

// A second signal does not wait; commands are ended all the same.
func TestServeStopsAtOnce(t *testing.T) {
	h := newHouse(t)
	s := h.serve("--log-level", "error")
	c := h.dial()
	p := ask(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: h.session(c).SessionID, Command: "trap '' TERM; setsid sleep 300 & echo $! > pid; wait"})
	child := h.pids(filepath.Join(h.ws, "pid"), 1)[0]
	s.signal(syscall.SIGHUP)
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 && code != 1 {
		t.Errorf("status %d", code)
	}
	h.eventually("the end of its commands", func() bool { return dead(p.PID) && dead(child) })
	if s.stderr.Len() > 0 {
		t.Error(s.stderr.String())
	}
}

// kill -9 the daemon, start it: the orphan is swept, and the sweep is told.
func TestServeSweeps(t *testing.T) {
	h := newHouse(t)
	s := h.serve()
	c := h.dial()
	x := h.session(c)
	text := "probe"
	ask(h, c, api.ScratchWrite, api.ScratchWriteParams{SessionRef: api.SessionRef{SessionID: x.SessionID}, Name: "f", Content: &text})
	s.signal(syscall.SIGKILL)
	s.cmd.Process.Wait()
	h.read(filepath.Join(x.Scratch.Path, "f"))
	s = h.serve()
	h.absent(x.Scratch.Path)
	e := h.objects(h.want(h.do("events", "--json"), 0).stdout)
	if len(e) == 0 || e[0]["type"] != "scratch.swept" || e[0]["data"].(map[string]any)["sweptCount"] != 1.0 {
		t.Errorf("%v", e)
	}
	h.says(h.do("scratch", "sweep"), "wattle: sweep scratch: a daemon runs; it sweeps when it starts", "wattle: hint: restart it, or end a session of it with wattle session close")
	s.signal(syscall.SIGKILL)
	s.cmd.Process.Wait()
	if r := h.want(h.do("scratch", "sweep", "--json"), 0); h.object(r.stdout)["sweptCount"] != 0.0 {
		t.Error(r.stdout)
	}
}

// Sessions, commands and scratch of the daemon.
func TestSessionsAndScratch(t *testing.T) {
	h := newHouse(t)
	h.serve()
	c := h.dial()
	x := h.session(c)
	p := ask(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: x.SessionID, ProcessID: "job", Argv: []string{"sleep", "300"}})
	list := h.object(h.want(h.do("session", "list", "--json"), 0).stdout)["sessions"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["sessionId"] != x.SessionID || list[0].(map[string]any)["state"] != "attached" {
		t.Errorf("%v", list)
	}
	if r := h.want(h.do("session", "list"), 0); !strings.Contains(r.stdout, x.SessionID) || !strings.Contains(r.stdout, h.ws) {
		t.Error(r.stdout)
	}
	ps := h.object(h.want(h.do("ps", "--json"), 0).stdout)["processes"].([]any)
	if len(ps) != 1 || int(ps[0].(map[string]any)["pid"].(float64)) != p.PID || ps[0].(map[string]any)["processId"] != "job" {
		t.Errorf("%v", ps)
	}
	if r := h.want(h.do("ps"), 0); !strings.Contains(r.stdout, "running") || !strings.Contains(r.stdout, "sleep 300") {
		t.Error(r.stdout)
	}
	h.want(h.do("ps", "--session", "nosuch"), 1)

	as := func(args ...string) []string {
		return append(append([]string{"scratch"}, args...), "--session", x.SessionID, "--token", x.ResumeToken)
	}
	// Held by its agent: not taken over by accident.
	r := h.want(h.do(as("list")...), 1)
	h.says(r, "wattle: resume session: another connection holds it", "wattle: hint: --take-over closes that connection")
	if c.Err() != nil {
		t.Fatal("the agent was cut off")
	}
	h.want(h.do("scratch", "list", "--session", x.SessionID, "--token", "guess", "--take-over"), 1)
	c.Close()
	h.eventually("the session to be detached", func() bool { return strings.Contains(h.do("session", "list").stdout, "detached") })

	made := h.want(h.do(as("create", "probes/a")...), 0)
	if want := filepath.Join(x.Scratch.Path, "probes", "a") + "\n"; made.stdout != want {
		t.Errorf("%q, want %q", made.stdout, want)
	}
	w := h.object(h.want(h.with("\xff\x00bytes", as("write", "probes/a/f", "--json")...), 0).stdout)
	if w["bytes"] != 7.0 || h.read(filepath.Join(x.Scratch.Path, "probes", "a", "f")) != "\xff\x00bytes" {
		t.Errorf("%v", w)
	}
	l := h.object(h.want(h.do(as("list", "--json")...), 0).stdout)
	if e := l["entries"].([]any); len(e) != 1 || e[0].(map[string]any)["path"] != "probes/a/f" || l["truncated"] != false || l["path"] != x.Scratch.Path {
		t.Errorf("%v", l)
	}
	if r := h.want(h.do(as("list")...), 0); strings.TrimSpace(r.stdout) != "7  probes/a/f" {
		t.Errorf("%q", r.stdout)
	}
	r = h.want(h.with("x", as("write", "../escape", "--json")...), 1)
	if h.object(r.stdout)["data"].(map[string]any)["code"] != "SCRATCH_NAME_INVALID" {
		t.Error(r.stdout)
	}
	if r := h.want(h.do(as("clean")...), 0); r.stdout != "removed 1 files, 7 bytes\n" {
		t.Errorf("%q", r.stdout)
	}
	h.absent(x.Scratch.Path)

	if r := h.want(h.do("session", "close", x.SessionID), 0); r.stdout != "closed "+x.SessionID+"\n" {
		t.Error(r.stdout)
	}
	h.want(h.do("session", "close", x.SessionID), 1)
	if !dead(p.PID) {
		t.Error("its command lives on")
	}
	h.noScratch()
}

// The stream: all of it, a part, one session, and what happens next.
func TestEvents(t *testing.T) {
	h := newHouse(t)
	h.serve()
	follow := h.start("events", "--follow", "--json")
	c := h.dial()
	a, b := h.session(c), h.session(c)
	p := ask(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: a.SessionID, Command: `printf 'one\033[1m\n'; (: > ../out/x) 2>/dev/null; exit 3`})
	ask(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}})
	ask(h, c, api.SessionClose, api.SessionRef{SessionID: a.SessionID})
	ask(h, c, api.SessionClose, api.SessionRef{SessionID: b.SessionID})

	all := h.objects(h.want(h.do("events", "--json"), 0).stdout)
	var types []string
	for i, e := range all {
		if e["seq"].(float64) != float64(i+2) {
			t.Fatalf("event %d has number %v", i, e["seq"])
		}
		for _, k := range []string{"epoch", "time", "data"} {
			if e[k] == nil {
				t.Errorf("no %s in %v", k, e)
			}
		}
		types = append(types, e["type"].(string))
	}
	for _, want := range []string{"scratch.swept", "session.opened", "process.started", "process.output", "process.denied", "process.exited", "process.closed", "session.closed"} {
		if !strings.Contains(strings.Join(types, " "), want) {
			t.Errorf("no %s in %v", want, types)
		}
	}
	for i := range all {
		if e := h.object(follow.line()); e["seq"] != all[i]["seq"] || e["type"] != all[i]["type"] {
			t.Fatalf("followed %v, listed %v", e, all[i])
		}
	}
	epoch := all[0]["epoch"].(string)
	mine := 0
	for _, e := range all {
		if e["sessionId"] == a.SessionID {
			mine++
		}
	}
	if got := h.objects(h.want(h.do("events", "--json", "--session", a.SessionID), 0).stdout); len(got) != mine || mine == 0 {
		t.Errorf("%d events of the session, want %d", len(got), mine)
	}
	last := all[len(all)-1]
	for after, want := range map[float64]int{last["seq"].(float64): 0, last["seq"].(float64) - 2: 2, 1: len(all)} {
		r := h.want(h.do("events", "--json", "--after", epoch+":"+strconv.Itoa(int(after))), 0)
		if got := h.objects(r.stdout); len(got) != want {
			t.Errorf("after %v: %d events, want %d", after, len(got), want)
		}
	}
	// After another life of the daemon: a gap, then all.
	got := h.objects(h.want(h.do("events", "--json", "--after", "OTHER:5"), 0).stdout)
	if len(got) != len(all)+1 || got[0]["type"] != "gap" || got[0]["data"].(map[string]any)["reason"] != "epoch" {
		t.Errorf("%v", got)
	}
	text := h.want(h.do("events"), 0).stdout
	if !strings.Contains(text, `stdout: one\x1b[1m\n`) || !strings.Contains(text, "denied create "+filepath.Join(h.out, "x")+" (outside writable roots; ") || strings.Contains(text, "\x1b") {
		t.Error(text)
	}
	follow.signal(syscall.SIGTERM)
	if code := follow.end(); code != 1000+int(syscall.SIGTERM) {
		t.Errorf("status %d", code)
	}
}
