package cli_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Signals to the program alone, without a terminal. The command is not told
// twice, what it answers is its status, and its scratch is gone.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		send   []syscall.Signal
		code   int
	}{
		{"TERM", "echo ready; read x", []syscall.Signal{syscall.SIGTERM}, 128 + 15},
		{"TERM caught", "trap 'echo caught; exit 9' TERM; echo ready; read x", []syscall.Signal{syscall.SIGTERM}, 9},
		{"HUP", "echo ready; read x", []syscall.Signal{syscall.SIGHUP}, 128 + 1},
		{"INT", "echo ready; read x", []syscall.Signal{syscall.SIGINT}, 128 + 2},
		{"QUIT", "ulimit -c 0; echo ready; read x", []syscall.Signal{syscall.SIGQUIT}, 128 + 3},
		{"PIPE", "trap 'echo caught; exit 9' TERM; echo ready; read x", []syscall.Signal{syscall.SIGPIPE, syscall.SIGTERM}, 9},
		{"TERM ignored", "trap '' TERM; echo ready; read x; exit 6", []syscall.Signal{syscall.SIGTERM}, 6},
		{"TERM twice", "trap 'echo caught' TERM; setsid sh -c 'trap \"\" TERM; exec sleep 300' & echo $! > pid; echo ready; while :; do wait; done", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, 128 + 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			cmd := h.command("run", "--", "sh", "-c", c.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, whatever runs the tests
			s := h.startCmd(cmd)
			if l := s.line(); l != "ready" {
				t.Fatal(l)
			}
			for i, sig := range c.send {
				if i > 0 && sig == c.send[i-1] && s.line() != "caught" { // two of one kind at once are one
					t.Fatal("the first signal was not passed on")
				}
				s.signal(sig)
			}
			if c.name == "TERM ignored" {
				h.eventually("the signal to be taken", func() bool { return !pending(h, s.cmd.Process.Pid, syscall.SIGTERM) })
				fmt.Fprintln(s.stdin)
			}
			if code := s.end(); code != c.code {
				t.Errorf("status %d, want %d\n%s", code, c.code, s.stderr.String())
			}
			if strings.HasSuffix(c.name, "twice") {
				if pid := h.pids(filepath.Join(h.ws, "pid"), 1)[0]; !dead(pid) {
					t.Errorf("%d lives on", pid)
				}
			}
			h.noScratch()
		})
	}
}

// pending tells whether a signal waits to be taken by a process.
func pending(h *house, pid int, sig syscall.Signal) bool {
	for _, l := range strings.Split(h.read(fmt.Sprintf("/proc/%d/status", pid)), "\n") {
		if name, mask, _ := strings.Cut(l, ":\t"); name == "ShdPnd" || name == "SigPnd" {
			var bits uint64
			fmt.Sscanf(mask, "%x", &bits)
			if bits&(1<<(sig-1)) != 0 {
				return true
			}
		}
	}
	return false
}

// The command begins with the signals as its caller had them: nothing that we
// catch is ignored in it, and what the caller ignores stays ignored (nohup).
func TestInheritedSignals(t *testing.T) {
	h := newHouse(t)
	ignored := func(c *exec.Cmd) uint64 {
		var bits uint64
		for _, l := range strings.Split(h.want(h.finish(c), 0).stdout, "\n") {
			fmt.Sscanf(l, "SigIgn: %x", &bits)
		}
		return bits
	}
	ours := uint64(1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGQUIT-1) | 1<<(syscall.SIGTERM-1) | 1<<(syscall.SIGPIPE-1))
	if got := ignored(h.command("run", "--", "cat", "/proc/self/status")) & ours; got != 0 {
		t.Errorf("ignored in the command: %x", got)
	}
	c := h.command()
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", `trap "" HUP INT; exec "$0" run -- cat /proc/self/status`, wattle}
	if got, want := ignored(c)&ours, uint64(1<<(syscall.SIGHUP-1)|1<<(syscall.SIGINT-1)); got != want {
		t.Errorf("ignored in the command: %x, want %x", got, want)
	}
}

// A run that is killed leaves its scratch; the next run sweeps it, and nothing
// of a run that lives.
func TestKilledRunIsSwept(t *testing.T) {
	h := newHouse(t)
	run := func() (*started, string) {
		s := h.start("run", "--", "sh", "-c", "echo x > $TMPDIR/f; echo $TMPDIR; read x; cat $TMPDIR/f")
		return s, s.line()
	}
	alive, aliveDir := run()
	killed, killedDir := run()
	if aliveDir == killedDir {
		t.Fatal("two runs have one scratch directory")
	}
	killed.signal(syscall.SIGKILL)
	killed.cmd.Process.Wait()
	if h.read(filepath.Join(killedDir, "f")) != "x\n" {
		t.Fatal("there is nothing to sweep")
	}
	r := h.want(h.do("run", "-v", "--", "true"), 0)
	if !strings.Contains(r.stderr, "wattle: swept 1 scratch directories of dead owners (1 files, 2 bytes), left 1\n") {
		t.Errorf("stderr:\n%s", r.stderr)
	}
	h.absent(killedDir)
	h.says(h.want(h.do("run", "--", "true"), 0))
	fmt.Fprintln(alive.stdin)
	if l := alive.line(); l != "x" {
		t.Errorf("the living run lost its file: %q", l)
	}
	if code := alive.end(); code != 0 {
		t.Errorf("status %d\n%s", code, alive.stderr.String())
	}
	h.noScratch()
}
