package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	path     = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
	patience = 30 * time.Second
)

// house is a user with a home, a workspace and a directory outside of it.
type house struct {
	t                  *testing.T
	dir, ws, out, home string
	env                []string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	dir, err := os.MkdirTemp(base, "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &house{t: t, dir: dir, ws: filepath.Join(dir, "p", "ws"), out: filepath.Join(dir, "p", "out"), home: filepath.Join(dir, "home")}
	for _, d := range []string{h.ws, h.out, h.home, h.runtime()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.env = []string{"PATH=" + path, "HOME=" + h.home, "XDG_RUNTIME_DIR=" + h.runtime(), "LANG=C"}
	return h
}

func (h *house) runtime() string { return filepath.Join(h.dir, "run") }
func (h *house) socket() string  { return filepath.Join(h.runtime(), "wattle", "control.sock") }

// result is how a call of the program ended.
type result struct {
	code           int // 1000+n when signal n ended it
	stdout, stderr string
}

// command is a call of the program in the workspace.
func (h *house) command(args ...string) *exec.Cmd {
	c := exec.Command(wattle, args...)
	c.Dir, c.Env = h.ws, h.env
	return c
}

// do calls the program and waits.
func (h *house) do(args ...string) result { h.t.Helper(); return h.with("", args...) }

// with is do with something on stdin.
func (h *house) with(stdin string, args ...string) result {
	h.t.Helper()
	c := h.command(args...)
	c.Stdin = strings.NewReader(stdin)
	return h.finish(c)
}

func (h *house) finish(c *exec.Cmd) result {
	h.t.Helper()
	var out, err bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &err
	}
	timer := time.AfterFunc(patience, func() { c.Process.Kill() })
	if err := c.Start(); err != nil {
		h.t.Fatal(err)
	}
	code := waited(c)
	if !timer.Stop() {
		h.t.Fatalf("%q did not end in %s\n%s", c.Args, patience, err.String())
	}
	return result{code, out.String(), err.String()}
}

func waited(c *exec.Cmd) int {
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		return -1
	}
	ws := c.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 1000 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// sh runs a shell script in the fence.
func (h *house) sh(script string, flags ...string) result {
	h.t.Helper()
	return h.do(append(append([]string{"run"}, flags...), "--", "sh", "-c", script)...)
}

// want checks a status and shows everything when it differs.
func (h *house) want(r result, code int) result {
	h.t.Helper()
	if r.code != code {
		h.t.Fatalf("status %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// says checks that stderr is exactly these lines.
func (h *house) says(r result, lines ...string) {
	h.t.Helper()
	want := strings.Join(lines, "\n")
	if want != "" {
		want += "\n"
	}
	if r.stderr != want {
		h.t.Errorf("stderr:\n%s\nwant:\n%s", r.stderr, want)
	}
}

func (h *house) file(dir, name, content string, mode os.FileMode) string {
	h.t.Helper()
	p := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), mode), os.Chmod(p, mode)); err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *house) read(p string) string {
	h.t.Helper()
	b, err := os.ReadFile(p)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// absent checks that nothing is there, not even a link.
func (h *house) absent(paths ...string) {
	h.t.Helper()
	for _, p := range paths {
		if _, err := os.Lstat(p); !errors.Is(err, os.ErrNotExist) {
			h.t.Errorf("%s is there (%v)", p, err)
		}
	}
}

// noScratch checks that no run left anything beside the workspace.
func (h *house) noScratch() { h.t.Helper(); h.absent(filepath.Join(h.dir, "p", "tmp")) }

// eventually waits for a condition.
func (h *house) eventually(what string, ok func() bool) {
	h.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// dead tells whether a process is gone or a zombie.
func dead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.HasPrefix(strings.TrimSpace(string(b[bytes.LastIndexByte(b, ')')+1:])), "Z")
}

// pids reads numbers that a command wrote.
func (h *house) pids(p string, n int) []int {
	h.t.Helper()
	var out []int
	h.eventually("process ids in "+p, func() bool {
		b, _ := os.ReadFile(p)
		out = out[:0]
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				out = append(out, pid)
			}
		}
		return len(out) == n && strings.HasSuffix(string(b), "\n")
	})
	return out
}

// started is a call that goes on.
type started struct {
	h      *house
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *bytes.Buffer
	lines  chan string // of stdout; closed at its end
}

// start starts a call; the test ends it.
func (h *house) start(args ...string) *started {
	h.t.Helper()
	return h.startCmd(h.command(args...))
}

func (h *house) startCmd(c *exec.Cmd) *started {
	h.t.Helper()
	s := &started{h: h, cmd: c, stderr: new(bytes.Buffer), lines: make(chan string, 4096)}
	var err error
	if s.stdin, err = c.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	c.Stderr = s.stderr
	out, err := c.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		h.t.Fatal(err)
	}
	go feed(out, s.lines)
	h.t.Cleanup(func() { c.Process.Kill(); s.stdin.Close(); c.Process.Wait() })
	return s
}

// feed passes lines on until the end.
func feed(r io.Reader, to chan<- string) {
	defer close(to)
	var rest []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		rest = append(rest, buf[:n]...)
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			to <- strings.TrimSuffix(string(line), "\r")
			rest = after
		}
		if err != nil {
			return
		}
	}
}

// line waits for the next line of stdout.
func (s *started) line() string {
	s.h.t.Helper()
	select {
	case l, ok := <-s.lines:
		if !ok {
			s.h.t.Fatalf("stdout ended\n%s", s.stderr.String())
		}
		return l
	case <-time.After(patience):
		s.h.t.Fatalf("no line on stdout")
		return ""
	}
}

// end waits for the end of the call and of everybody who can write to its
// stdout, and gives the status.
func (s *started) end() int {
	s.h.t.Helper()
	late := time.After(patience)
	for {
		select {
		case _, ok := <-s.lines:
			if !ok {
				return waited(s.cmd)
			}
		case <-late:
			s.h.t.Fatalf("%q did not end\n%s", s.cmd.Args, s.stderr.String())
		}
	}
}

func (s *started) signal(sig syscall.Signal) {
	s.h.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.h.t.Fatal(err)
	}
}

// object decodes one JSON object.
func (h *house) object(text string) map[string]any {
	h.t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		h.t.Fatalf("%v in %q", err, text)
	}
	return m
}

// objects decodes JSON lines; every line must be whole.
func (h *house) objects(text string) []map[string]any {
	h.t.Helper()
	var out []map[string]any
	for _, l := range strings.SplitAfter(text, "\n") {
		if l == "" {
			continue
		}
		if !strings.HasSuffix(l, "\n") {
			h.t.Errorf("no line break behind %q", l)
		}
		out = append(out, h.object(l))
	}
	return out
}
