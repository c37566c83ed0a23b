package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal runs a call of the program in the foreground of a terminal of 97
// columns and 31 rows.
func (h *house) terminal(args ...string) (*started, *os.File) {
	h.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		h.t.Skip("SKIP: no pseudo-terminals here: " + err.Error())
	}
	h.t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 31, Col: 97})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	defer slave.Close()
	c := h.command(args...)
	c.Env = append(c.Env, "TERM=xterm")
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s := &started{h: h, cmd: c, lines: make(chan string, 4096)}
	if err := c.Start(); err != nil {
		h.t.Fatal(err)
	}
	go feed(master, s.lines) // ends when the last one has left the terminal
	h.t.Cleanup(func() { c.Process.Kill(); c.Process.Wait() })
	return s, master
}

// ended waits for the end of the call alone.
func (s *started) ended() int {
	s.h.t.Helper()
	s.h.eventually("the end", func() bool { return dead(s.cmd.Process.Pid) })
	return waited(s.cmd)
}

// The terminal is the caller's.
func TestTerminal(t *testing.T) {
	h := newHouse(t)
	s, _ := h.terminal("run", "--", "sh", "-c", "stty size; test -t 0 && test -t 1 && test -t 2 && echo all; ps -o tpgid=,pgid= -p $$ | tr -s ' '; (echo x > ../out/x) 2>/dev/null")
	for _, want := range []string{"31 97", "all"} {
		if l := s.line(); l != want {
			t.Errorf("%q, want %q", l, want)
		}
	}
	if f := strings.Fields(s.line()); len(f) != 2 || f[0] != f[1] {
		t.Errorf("the command is not in the foreground: %v", f)
	}
	if l := s.line(); !strings.HasPrefix(l, deniedLine("create", filepath.Join(h.out, "x"))) || strings.Contains(l, "\x1b") {
		t.Errorf("%q", l)
	}
	if code := s.ended(); code != 2 {
		t.Errorf("status %d", code)
	}
}

// Ctrl-C and Ctrl-\ reach the command, once, and leave nothing behind.
func TestTerminalKeys(t *testing.T) {
	for _, c := range []struct {
		name, script, keys, says string
		code                     int
	}{
		{"Ctrl-C", "echo $$; exec sleep 300", "\x03", "", 130},
		{"Ctrl-C caught", "trap 'n=$((n+1)); echo caught $n' INT; echo ready; read x; read x; echo got $n; exit 8", "\x03\n\n", "caught 1", 8},
		{"Ctrl-backslash", "ulimit -c 0; echo $$; exec sleep 300", "\x1c", "", 131},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			s, master := h.terminal("run", "--", "sh", "-c", c.script)
			if l := s.line(); l != "ready" {
				// A shell that is about to start a program may lose the signal.
				h.eventually("the program", func() bool { b, _ := os.ReadFile("/proc/" + l + "/comm"); return string(b) == "sleep\n" })
			}
			if _, err := master.WriteString(c.keys[:1]); err != nil {
				t.Fatal(err)
			}
			if c.says != "" {
				for l := s.line(); !strings.Contains(l, c.says); l = s.line() {
				}
				if _, err := master.WriteString(c.keys[1:]); err != nil {
					t.Fatal(err)
				}
				for l := s.line(); l != "got 1"; l = s.line() {
					if strings.Contains(l, "caught 2") {
						t.Fatal("the command was interrupted twice")
					}
				}
			}
			if code := s.ended(); code != c.code {
				t.Errorf("status %d, want %d", code, c.code)
			}
			h.noScratch()
		})
	}
}

// As people use it: script(1) records a session with a run in it.
func TestTerminalUnderScript(t *testing.T) {
	h := newHouse(t)
	bin, err := exec.LookPath("script")
	if err != nil {
		t.Skip("SKIP-CAPABLE: script (bsdutils) is not installed")
	}
	c := h.command()
	c.Path, c.Args = bin, []string{"script", "-qec", "stty cols 83 rows 29; " + wattle + " run -- stty size", "/dev/null"}
	c.Stdin = strings.NewReader("")
	if r := h.want(h.finish(c), 0); strings.TrimSpace(strings.ReplaceAll(r.stdout, "^D\b\b", "")) != "29 83" {
		t.Errorf("%q", r.stdout)
	}
}
