package sandbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

func withTTY(cols, rows uint16) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) { s.TTY = &sandbox.TTY{Cols: cols, Rows: rows} }
}

// TestTerminal is the last row of P19: a terminal with a size, and resized.
func TestTerminal(t *testing.T) {
	l := newLab(t)
	for _, m := range modes {
		p := l.start(l.spec(l.fence(m), `test -t 0 && test -t 1 && test -t 2 && stty size; tty; /usr/bin/python3 -S -B -c '
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
print("armed", flush=True)
signal.sigwait([signal.SIGWINCH])'; stty size; while read -r x; do echo "got $x"; done; echo end`, withTTY(100, 40)))
		has := func(text string) {
			t.Helper()
			eventually(t, "the output holds "+text, func() bool { out, _ := outputOf(p); return strings.Contains(out, text) })
		}
		has("40 100\r\n")
		has("/dev/pts/")
		has("armed")
		if err := p.Resize(sandbox.TTY{Cols: 90, Rows: 30}); err != nil {
			t.Fatal(err)
		}
		has("30 90\r\n")
		if _, err := p.Write([]byte("hello\n"), "1"); err != nil {
			t.Fatal(err)
		}
		has("got hello\r\n")
		wantCode(t, p.Resize(sandbox.TTY{Cols: 0, Rows: 30}), sandbox.CodeInvalid)
		_ = p.CloseStdin() // the end of input, as typed
		if r := l.finish(p, time.Now()); r.code() != 0 || !strings.HasSuffix(r.stdout, "end\r\n") || r.stderr != "" || len(r.Denials) != 0 {
			t.Errorf("%s: %v", m, r)
		}
		<-p.Over()
		if err := p.Resize(sandbox.TTY{Cols: 80, Rows: 25}); err == nil {
			t.Error("a terminal that is gone was resized")
		}
	}
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), "true"))
	wantCode(t, p.Resize(sandbox.TTY{Cols: 80, Rows: 25}), sandbox.CodeInvalid)
}

// TestTerminalControls: interrupt and hang-up as typed at a terminal.
func TestTerminalControls(t *testing.T) {
	l := newLab(t)
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `echo ready; sleep 1000`, withTTY(80, 25)))
	eventually(t, "it is ready", func() bool { out, _ := outputOf(p); return strings.Contains(out, "ready") })
	if _, err := p.Write([]byte{3}, ""); err != nil { // VINTR
		t.Fatal(err)
	}
	if r := l.finish(p, time.Now()); r.Signal != "SIGINT" && r.code() != 130 {
		t.Errorf("%v", r)
	}
	// A flood on a terminal does not block either.
	r := l.ws(`seq 100000; echo end`, withTTY(80, 25), func(s *sandbox.Spec) { s.MaxOutput = 10 << 10 })
	if r.code() != 0 || !strings.HasSuffix(r.stdout, "end\r\n") {
		t.Errorf("exit %d %q", r.code(), r.stdout[max(0, len(r.stdout)-50):])
	}
}

// TestPseudoTerminals is P19: programs make terminals of their own, on ABI 5
// and later too.
func TestPseudoTerminals(t *testing.T) {
	need(t, "python3", "script")
	l := newLab(t)
	for _, c := range []struct{ name, command, want string }{
		{"raw", `python3 -B -c 'import pty,tty; m,s=pty.openpty(); tty.setraw(s); print("ok")'`, "ok\n"},
		{"read-only", `python3 -B -c 'import pty; pty.openpty(); print("ok")'`, "ok\n"},
	} {
		for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
			if r := l.run(l.fence(m), c.command); r.stdout != c.want || r.code() != 0 {
				t.Errorf("%s %s: %v", c.name, m, r)
			}
		}
	}
	l.ws(`script -qc 'stty size' out < /dev/null && grep -q '[0-9] [0-9]' out`).ok(t)
}

// TestNothingIsTyped: a command cannot type into the terminal it was given, nor
// into the user's: TIOCSTI and TIOCLINUX are refused, whatever the high bits.
func TestNothingIsTyped(t *testing.T) {
	need(t, "python3")
	l := newLab(t)
	r := l.ws(python(`
buf = ctypes.create_string_buffer(b"x")
for req in (0x5412, 0x541C, 0x100005412, 0x541C00005412):
    r = libc.syscall(ctypes.c_long(16 if os.uname().machine == "x86_64" else 29), 0, ctypes.c_ulong(req), buf)
    print("%x" % req, r, ctypes.get_errno())
sys.exit(0)`), withTTY(80, 25))
	for _, req := range []string{"5412", "541c", "100005412", "541c00005412"} {
		if !strings.Contains(r.stdout, req+" -1 1\r\n") {
			t.Errorf("request %s was not refused: %v", req, r)
		}
	}
	if o := l.start(l.spec(l.fence(fence.WorkspaceWrite), "stty -echo; read -r -t 0.1 x; echo \"$x\"", withTTY(80, 25))); o != nil {
		<-o.Closed()
		if out := o.Read(context.Background(), 0, 0, 0); len(out.Chunks) != 1 || string(out.Chunks[0].Data) != "\r\n" {
			t.Errorf("%+v", out.Chunks)
		}
	}
}
