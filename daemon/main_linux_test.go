package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// The tests talk to a real daemon: this test binary, started again. The daemon
// must be another process, for it refuses to be its own client.

func TestMain(m *testing.M) {
	if os.Getenv("TEST_DAEMON_SOCKET") != "" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if p := os.Getenv("TEST_DAEMON_DELETE"); p != "" {
		if err := deleteOne(os.Getenv("TEST_DAEMON_WORKSPACE"), p, os.Getenv("TEST_DAEMON_ACROSS") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve is what `wattle serve` does, in few words.
func serve() error {
	places, err := daemon.FindPlaces(os.Getenv)
	if err != nil {
		return err
	}
	socket := os.Getenv("TEST_DAEMON_SOCKET")
	var kernel *fence.Kernel
	if why := os.Getenv("TEST_DAEMON_NO_LANDLOCK"); why != "" {
		kernel = &fence.Kernel{Why: why}
	}
	log := daemon.NewLog(0, 0)
	logger := zerolog.New(os.Stderr).Level(zerolog.WarnLevel)
	h, err := daemon.NewHost(places, daemon.HostOptions{Socket: socket, Kernel: kernel, Logger: &logger, Publish: log.Publish,
		TrashOff: os.Getenv("TEST_DAEMON_TRASH_OFF") != ""})
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := daemon.Listen(socket)
	if err != nil {
		return err
	}
	if _, err := h.Sweep(context.Background()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready")
	return daemon.NewServer(h, log, daemon.ServerOptions{MaxSessions: 64}).Serve(ctx, l)
}

// house is a home, a workspace and daemons that come and go.
type house struct {
	t                *testing.T
	dir, home, ws    string
	socket           string
	env              []string
	cmd              *exec.Cmd
	outside, scratch string
	// starter is put before the daemon's own command line.
	starter []string
}

// newHouse makes a home and a workspace beside each other, outside of /tmp, for
// the machine's temporary directory is a place of its own.
func newHouse(t *testing.T) *house { t.Helper(); return newHouseIn(t, "/var/tmp") }

func newHouseIn(t *testing.T, dir string) *house {
	t.Helper()
	base, err := os.MkdirTemp(dir, "wd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	h := &house{t: t, dir: base, home: filepath.Join(base, "home"), ws: filepath.Join(base, "code", "shop"),
		socket: filepath.Join(base, "run", "c.sock"), outside: filepath.Join(base, "outside"), scratch: filepath.Join(base, "code", "tmp")}
	for _, d := range []string{h.home, h.ws, h.outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.env = []string{"HOME=" + h.home, "PATH=" + os.Getenv("PATH"), "TEST_DAEMON_SOCKET=" + h.socket}
	return h
}

// start starts a daemon and waits until it serves.
func (h *house) start(env ...string) *house {
	h.t.Helper()
	argv := append(slices.Clone(h.starter), os.Args[0], "-test.run=^$")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(h.env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		h.t.Fatalf("the daemon says %q", line)
	}
	h.cmd = cmd
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return h
}

// stop ends the daemon in order and waits for it.
func (h *house) stop() {
	h.t.Helper()
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	if err := h.cmd.Wait(); err != nil {
		h.t.Fatalf("the daemon ended with %v", err)
	}
}

// kill ends the daemon as a crash does.
func (h *house) kill() {
	h.t.Helper()
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

func (h *house) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	h.t.Cleanup(cancel)
	return ctx
}

// dial connects and initializes.
func (h *house) dial() *client.Client {
	h.t.Helper()
	c, err := client.Dial(h.ctx(), h.socket, client.Options{StartWait: 5 * time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Initialize(h.ctx(), api.Implementation{Name: "test", Version: "1"}); err != nil {
		h.t.Fatal(err)
	}
	return c
}

// open opens a session on the workspace.
func (h *house) open(c *client.Client, mode fence.Mode, change ...func(*api.SessionOpenParams)) api.SessionOpenResult {
	h.t.Helper()
	p := api.SessionOpenParams{Workspace: h.ws, Mode: mode}
	for _, f := range change {
		f(&p)
	}
	return do(h, c, api.SessionOpen, p)
}

// do calls and fails the test on an error.
func do[P, R any](h *house, c *client.Client, m api.Method[P, R], p P) R {
	h.t.Helper()
	r, err := client.Do(h.ctx(), c, m, p)
	if err != nil {
		h.t.Fatalf("%s: %v", m.Name, err)
	}
	return r
}

// refused calls and wants an error with that stable code.
func refused[P, R any](h *house, c *client.Client, m api.Method[P, R], p P, code string) *api.Error {
	h.t.Helper()
	_, err := client.Do(h.ctx(), c, m, p)
	var e *api.Error
	if !errors.As(err, &e) || e.Stable() != code {
		h.t.Fatalf("%s: %v, want %s", m.Name, err, code)
	}
	return e
}

// run starts a shell command and waits for its final state.
func (h *house) run(c *client.Client, session, command string) (api.ProcessStartResult, stateOf) {
	h.t.Helper()
	p := do(h, c, api.ProcessStart, api.ProcessStartParams{SessionID: session, Command: command})
	st := do(h, c, api.ProcessWait, api.ProcessWaitParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}})
	out := do(h, c, api.ProcessRead, api.ProcessReadParams{ProcessRef: api.ProcessRef{ProcessID: p.ProcessID}})
	var text strings.Builder
	for _, ch := range out.Chunks {
		text.Write(ch.Data)
	}
	code := -1
	if st.ExitCode != nil {
		code = *st.ExitCode
	}
	return p, stateOf{code: code, text: text.String(), denials: st.Denials, signal: st.Signal, timedOut: st.TimedOut}
}

type stateOf struct {
	code     int
	text     string
	signal   string
	timedOut bool
	denials  []fence.Denial
}

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there (%v)", path, err)
	}
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

// until waits for a condition, not for a time; the time only ends a failure.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatalf("%s did not happen", what)
}

func ttyOf(cols, rows uint16) *sandbox.TTY { return &sandbox.TTY{Cols: cols, Rows: rows} }

// textOf joins output.
func textOf(o sandbox.Output) string {
	var b strings.Builder
	for _, c := range o.Chunks {
		b.Write(c.Data)
	}
	return b.String()
}
