package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// modes are all three, for what must be the same in each.
var modes = []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite, fence.FullAccess}

// wantCode wants an error of this room with a stable code.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *sandbox.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("want %s, got %v", code, err)
	}
}

func TestEnvironmentOfACommand(t *testing.T) {
	l := newLab(t)
	r := l.ws("env", func(s *sandbox.Spec) {
		s.Caller = append(s.Caller, "GITHUB_TOKEN=secret-1", "SSH_AUTH_SOCK=secret-2", "LD_PRELOAD=secret-3", "WATTLE_SOCKET=secret-4", "WATTLE_COMMAND=secret-5")
	}).ok(t)
	if strings.Contains(r.stdout, "secret") {
		t.Errorf("a secret passed:\n%s", r.stdout)
	}
	for _, want := range []string{"TMPDIR=" + l.T, "TMP=" + l.T, "TEMP=" + l.T, "TMPPREFIX=" + l.T + "/zsh", "WATTLE_SANDBOX=workspace-write", "WATTLE_SANDBOX_NETWORK=1", "HOME=" + l.H} {
		if !strings.Contains("\n"+r.stdout, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, r.stdout)
		}
	}
	if strings.Contains(l.ro("env").ok(t).stdout, "TMPDIR="+l.T) {
		t.Error("a command in read-only got the session's temporary directory")
	}
	if strings.Contains(r.stdout, "WATTLE_COMMAND") {
		t.Error("a command whose tree the kernel knows bears a mark")
	}
}

// TestNoDescriptorIsInherited: what this process's own parent left open
// without close-on-exec does not reach a command.
func TestNoDescriptorIsInherited(t *testing.T) {
	l := newLab(t)
	write(t, l.O+"/f", "outside\n", 0o644)
	var leaked []int
	for range 5 {
		fd, err := syscall.Open(l.O+"/f", syscall.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		leaked = append(leaked, fd)
	}
	high, err := unix.FcntlInt(uintptr(leaked[0]), unix.F_DUPFD, 900)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(high)
	const list = `import os
for i in range(1024):
    try: os.fstat(i); print(i, end=" ")
    except OSError: pass`
	for _, m := range modes {
		for _, tty := range []*sandbox.TTY{nil, {Cols: 80, Rows: 25}} {
			r := l.run(l.fence(m), "exec /usr/bin/python3 -S -c '"+list+"'", func(s *sandbox.Spec) { s.TTY = tty; s.Stdin = true })
			if got := strings.TrimSpace(r.stdout); got != "0 1 2" {
				t.Errorf("%s, terminal %v: open descriptors are %q", m, tty != nil, got)
			}
		}
	}
}

// TestClosedStandardFiles is S43: the daemon's client may have closed its
// standard files; internal descriptors never land on 0 to 2.
func TestClosedStandardFiles(t *testing.T) {
	l := newLab(t)
	l.host(`"$TOOL" tool runclosed "$W" "$O/result" <&- >&- 2>&-`)
	content(t, l.O+"/result", "exit 0\nin: \nout: pipe\nerr: pipe\n")
}

func init() {
	tools["runclosed"] = func(a []string) error {
		r := sandbox.NewRunner(sandbox.Options{})
		defer r.Close()
		f, err := fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: a[0], Devices: fence.DefaultDevices()})
		if err != nil {
			return err
		}
		p, err := r.Start(context.Background(), sandbox.Spec{Argv: []string{"/bin/bash", "-c", `echo "in: $(cat)"; for f in 1 2; do readlink /proc/self/fd/$f | sed "s/:.*//; s/^/$([ $f = 1 ] && echo out || echo err): /" >&3; done 3>&1`}, Dir: a[0], Fence: f})
		if err != nil {
			return err
		}
		st, err := p.Wait(context.Background())
		if err != nil {
			return err
		}
		out, _ := collect(p.Read(context.Background(), 0, 0, 0).Chunks)
		return os.WriteFile(a[1], fmt.Appendf(nil, "exit %d\n%s", *st.ExitCode, out), 0o644)
	}
}

func TestWorkingDirectory(t *testing.T) {
	l := newLab(t)
	_ = os.Mkdir(l.W+"/sub", 0o755)
	write(t, l.W+"/file", "", 0o644)
	in := func(dir string) func(*sandbox.Spec) { return func(s *sandbox.Spec) { s.Dir = dir } }
	for _, m := range modes {
		if r := l.run(l.fence(m), "pwd -P", in(l.W+"/sub")); r.stdout != l.W+"/sub\n" {
			t.Errorf("%s: %v", m, r)
		}
		for dir, code := range map[string]string{
			"": sandbox.CodeInvalid, "sub": sandbox.CodeInvalid, l.W + "/none": sandbox.CodeStartFailed, l.W + "/file": sandbox.CodeStartFailed,
		} {
			_, err := l.r.Start(context.Background(), l.spec(l.fence(m), "true", in(dir)))
			wantCode(t, err, code)
		}
	}
	// It is entered by its handle: the directory is the one that was there when
	// the start began, whatever has its name by now.
	r := l.ws(`mv ../sub ../sub2 && mkdir ../sub && touch here && /bin/pwd -P`, in(l.W+"/sub"))
	if r.ok(t); r.stdout != l.W+"/sub2\n" {
		t.Errorf("%v", r)
	}
	absent(t, l.W+"/sub/here")
}

// TestCannotBeExecuted: not found is told from not executable, as a shell
// tells 127 from 126, and nothing is left behind.
func TestCannotBeExecuted(t *testing.T) {
	l := newLab(t)
	write(t, l.W+"/plain", "x\n", 0o644)
	write(t, l.W+"/noformat", "\x00\x01\x02", 0o755)
	write(t, l.W+"/nointerpreter", "#!/no/such/interpreter\n", 0o755)
	write(t, l.W+"/run", "#!/bin/sh\necho ran \"$@\"\n", 0o755)
	write(t, l.W+"/bin/tool", "#!/bin/sh\necho tool\n", 0o755)
	write(t, l.W+"/bin/plain", "x\n", 0o644)
	_ = os.Mkdir(l.W+"/bin/dir", 0o755)
	huge := []string{"/bin/true", strings.Repeat("x", 1<<18)}
	for _, c := range []struct {
		argv       []string
		code, text string // text in the error, or the output when there is no code
	}{
		{[]string{"./run", "a", "b"}, "", "ran a b\n"},
		{[]string{"bin/tool"}, "", "tool\n"},
		{[]string{"tool"}, "", "tool\n"},
		{[]string{"true"}, "", ""},
		{nil, sandbox.CodeInvalid, "empty"},
		{[]string{""}, sandbox.CodeInvalid, "empty"},
		{[]string{"/bin/true", "a\x00b"}, sandbox.CodeInvalid, "NUL"},
		{[]string{"no-such-command"}, sandbox.CodeCommandNotFound, "no-such-command"},
		{[]string{"./none"}, sandbox.CodeCommandNotFound, "./none"},
		{[]string{"/none/at/all"}, sandbox.CodeCommandNotFound, "/none/at/all"},
		{[]string{"./nointerpreter"}, sandbox.CodeCommandNotFound, "nointerpreter"},
		{[]string{"./plain"}, sandbox.CodeStartFailed, "permission denied"},
		{[]string{"plain"}, sandbox.CodeStartFailed, "permission denied"},
		{[]string{"./bin"}, sandbox.CodeStartFailed, "directory"},
		{[]string{"./noformat"}, sandbox.CodeStartFailed, "exec format"},
		{huge, sandbox.CodeStartFailed, "argument list too long"},
	} {
		for _, m := range modes {
			s := l.spec(l.fence(m), "", func(s *sandbox.Spec) {
				s.Argv = c.argv
				s.SetEnv["PATH"] = "bin:/usr/bin:/bin"
			})
			p, err := l.r.Start(context.Background(), s)
			if c.code != "" {
				wantCode(t, err, c.code)
				if err != nil && !strings.Contains(err.Error(), c.text) {
					t.Errorf("%.40q: %v does not say %q", c.argv, err, c.text)
				}
				continue
			}
			if err != nil {
				t.Errorf("%q: %v", c.argv, err)
				continue
			}
			if st, _ := p.Wait(context.Background()); st.ExitCode == nil || *st.ExitCode != 0 {
				t.Errorf("%q: %+v", c.argv, st)
			}
			if out, _ := collect(p.Read(context.Background(), 0, 0, 0).Chunks); out != c.text {
				t.Errorf("%q: %q", c.argv, out)
			}
		}
	}
}

func TestInvalidRequests(t *testing.T) {
	l := newLab(t)
	f := l.fence(fence.WorkspaceWrite)
	for name, edit := range map[string]func(*sandbox.Spec){
		"no fence":         func(s *sandbox.Spec) { s.Fence = nil },
		"terminal of 0":    func(s *sandbox.Spec) { s.TTY = &sandbox.TTY{Cols: 80} },
		"onExit":           func(s *sandbox.Spec) { s.OnExit = "forever" },
		"relative dir":     func(s *sandbox.Spec) { s.Dir = "." },
		"argument of NULs": func(s *sandbox.Spec) { s.Argv = []string{"\x00"} },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.r.Start(context.Background(), l.spec(f, "true", edit))
			wantCode(t, err, sandbox.CodeInvalid)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.r.Start(ctx, l.spec(f, "touch started")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v", err)
	}
	absent(t, l.W+"/started")
}

// TestNoCapability is S21: a command has none, whoever the daemon is.
func TestNoCapability(t *testing.T) {
	l := newLab(t)
	for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		r := l.run(l.fence(m), `grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status`).ok(t)
		for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
			name, value, _ := strings.Cut(line, ":\t")
			want := "0000000000000000"
			switch name {
			case "NoNewPrivs":
				want = "1"
			case "Seccomp":
				want = "2"
			case "CapBnd":
				if os.Getuid() != 0 {
					continue // without root execve takes nothing from there
				}
			}
			if value != want {
				t.Errorf("%s: %s", m, line)
			}
		}
	}
	// what root could do with a capability
	if os.Getuid() == 0 {
		l.ws("chown 1:1 .").refusedQuietly(t)
		l.ws("setpriv --reuid 65534 true").refusedQuietly(t)
		l.ws("cat " + filepath.Join(base, "foreign", "of-user", "priv")).refusedQuietly(t)
	}
}

// TestAfterClose: a closed Runner starts nothing, and may be closed again.
func TestAfterClose(t *testing.T) {
	r := sandbox.NewRunner(sandbox.Options{})
	l := newLabOf(t, r)
	p, err := r.Start(context.Background(), l.spec(l.fence(fence.WorkspaceWrite), "sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { r.Close(); close(done) }()
	r.Close()
	<-done
	<-p.Over()
	if st := p.State(); st.Signal != "SIGKILL" {
		t.Errorf("%+v", st)
	}
	_, err = r.Start(context.Background(), l.spec(l.fence(fence.WorkspaceWrite), "touch started"))
	wantCode(t, err, sandbox.CodeUnavailable)
	absent(t, l.W+"/started")
	r.Close()
}
