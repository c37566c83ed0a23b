package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// runnerOf is a Runner on another kernel: one that has that Landlock only.
// Rights that it lacks are not handled, which is how such a kernel behaves
// (facts/kernels section 1).
func runnerOf(t *testing.T, k fence.Kernel) *sandbox.Runner {
	r := sandbox.NewRunner(sandbox.Options{Kernel: &k, TempRoot: own("temp")})
	t.Cleanup(r.Close)
	return r
}

func gaps(e fence.Enforcement) []string {
	var out []string
	for _, g := range e.NotGoverned {
		if g.What == "" || g.Why == "" {
			out = append(out, "EMPTY")
		}
		out = append(out, g.What)
	}
	slices.Sort(out)
	return out
}

const noLandlock = "landlock is not built into this kernel, or its system calls are filtered away (ENOSYS)"

// TestWithoutLandlock: a fence that the kernel cannot hold is refused, with
// what can be done; nothing of the command runs.
func TestWithoutLandlock(t *testing.T) {
	l := newLabOf(t, runnerOf(t, fence.Kernel{Why: noLandlock}))
	for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		_, err := l.r.Start(context.Background(), l.spec(l.fence(m), "touch $W/started $O/started"))
		wantCode(t, err, sandbox.CodeUnavailable)
		for _, s := range []string{"ENOSYS", "full-access", "best-effort"} {
			if err != nil && !strings.Contains(err.Error(), s) {
				t.Errorf("%v does not say %q", err, s)
			}
		}
	}
	absent(t, l.W+"/started", l.O+"/started")
	l.full("echo x > $O/full").ok(t)
	if e := l.r.Enforcement(); e.Level != fence.LevelNone || e.LandlockABI != 0 || !slices.Equal(gaps(e), []string{"commands"}) {
		t.Errorf("%+v", e)
	}
}

// TestBestEffortWithoutLandlock: it starts, the supervisor alone refuses, and
// the report says what nobody holds.
func TestBestEffortWithoutLandlock(t *testing.T) {
	l := newLabOf(t, runnerOf(t, fence.Kernel{Why: noLandlock}))
	f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Require = fence.RequireBestEffort })
	r := l.run(f, "echo x > in").ok(t)
	if e := r.report; e.Level != fence.LevelNone || e.LandlockABI != 0 || !e.Supervisor || !e.Seccomp || e.KillTree != fence.KillTreeSubreaper ||
		e.Protect != fence.ProtectChecked || !slices.Contains(gaps(e), "fs-write") || slices.Contains(e.Governed, "fs-write") {
		t.Errorf("%+v", e)
	}
	l.run(f, "echo x > $O/out").denied(t, "create "+l.O+"/out")
	absent(t, l.O+"/out")
}

// TestOlderKernels: what each ABI holds, and that the report says what not.
func TestOlderKernels(t *testing.T) {
	const fixed = 0xf
	always := []string{"hard-links", "metadata", "network", "pathname-sockets", "protected-paths"}
	sockets := []string{"abstract-sockets", "signals"}
	for _, c := range []struct {
		abi, errata int
		rename      bool // a file may be moved between directories
		kill        string
		gaps        []string
	}{
		{1, 0, false, fence.KillTreeSubreaper, append([]string{"refer", "device-ioctl"}, sockets...)},
		{2, 0xc, true, fence.KillTreeSubreaper, append([]string{"device-ioctl"}, sockets...)},
		{3, 0xc, true, fence.KillTreeSubreaper, append([]string{"device-ioctl"}, sockets...)},
		{4, 0xd, true, fence.KillTreeSubreaper, append([]string{"device-ioctl"}, sockets...)},
		{5, fixed, true, fence.KillTreeSubreaper, sockets},
		{6, 0, true, fence.KillTreeSubreaper, sockets}, // the signal scope cannot be relied on
		{6, fixed, true, fence.KillTreeLandlock, nil},
		{7, 7, true, fence.KillTreeLandlock, nil},
	} {
		t.Run(fmt.Sprintf("abi %d errata %x", c.abi, c.errata), func(t *testing.T) {
			needABI(t, c.abi)
			l := newLabOf(t, runnerOf(t, fence.Kernel{LandlockABI: c.abi, Errata: c.errata}))
			write(t, l.O+"/f", "f\n", 0o644)
			f := l.fence(fence.WorkspaceWrite)
			r := l.run(f, "echo x > in; mkdir d").ok(t)
			want := append(append([]string{}, always...), c.gaps...)
			slices.Sort(want)
			if e := r.report; !slices.Equal(gaps(e), want) || e.LandlockABI != c.abi || e.LandlockErrata != c.errata || e.KillTree != c.kill || e.Level != fence.LevelPartial || !e.Supervisor {
				t.Errorf("gaps: want %q\ngot %+v", want, e)
			}
			if got := slices.Contains(r.report.Governed, "signals"); got != (c.kill == fence.KillTreeLandlock) {
				t.Errorf("signals governed: %v", got)
			}
			move := `python3 -c 'import os; os.rename("in","d/in")'`
			if c.rename {
				l.run(f, move).ok(t)
			} else if r := l.run(f, move).refusedQuietly(t); !strings.Contains(r.stderr, "cross-device") {
				t.Errorf("%v", r)
			}
			// The destructive hole of ABI 1 and 2: the supervisor refuses.
			l.run(f, `python3 -c 'import os; os.truncate(os.environ["O"]+"/f",0)'`).denied(t, "write "+l.O+"/f")
			l.run(f, `python3 -c 'import os; os.open(os.environ["O"]+"/f",os.O_RDONLY|os.O_TRUNC)'`).denied(t, "write "+l.O+"/f")
			l.run(f, `: > $O/f`).denied(t, "write "+l.O+"/f")
			content(t, l.O+"/f", "f\n")
			l.run(l.fence(fence.ReadOnly), `echo x > new`).denied(t, "create "+l.W+"/new")
			absent(t, l.W+"/new")
			l.treeEnds(t, f)
		})
	}
}

// treeEnds wants nothing to be left of a command that leaves things running.
func (l *lab) treeEnds(t *testing.T, f *fence.Fence) {
	t.Helper()
	mark := strconv.Itoa(2000000 + os.Getpid()%1000000)
	r := l.run(f, `sleep `+mark+` & setsid sleep `+mark+` & (setsid sh -c 'trap "" TERM HUP; sleep `+mark+` & exec sleep `+mark+`' &) ; sleep 0.2; echo done`)
	if r.code() != 0 || len(r.Survivors) == 0 {
		t.Errorf("%v %v", r, r.Survivors)
	}
	if left := running("sleep " + mark); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// running lists processes, zombies excepted, whose command line holds a text.
func running(text string) []int {
	all, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, p := range all {
		b, err := os.ReadFile(p + "/cmdline")
		if err != nil || !strings.Contains(strings.ReplaceAll(string(b), "\x00", " "), text) {
			continue
		}
		st, _ := os.ReadFile(p + "/stat")
		if i := strings.LastIndexByte(string(st), ')'); i > 0 && i+2 < len(st) && st[i+2] == 'Z' {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

// nested is what tool `fenced` prints.
type nested struct {
	Code    string            `json:"code"`
	Error   string            `json:"error"`
	Exit    int               `json:"exit"`
	Denials int               `json:"denials"`
	Report  fence.Enforcement `json:"report"`
}

// TestInsideAnotherFence: the kernel allows one supervisor in a tree. The inner
// fence then rests on Landlock, and says so; where that cannot hold it (ABI
// below 3) it is refused.
func TestInsideAnotherFence(t *testing.T) {
	l := newLab(t)
	outer := l.fence(fence.WorkspaceWrite)
	inner := func(mode fence.Mode, abi int, require fence.Require, command string) nested {
		t.Helper()
		r := l.run(outer, fmt.Sprintf(`"$TOOL" tool fenced "$W" %s %d %s '%s'`, mode, abi, require, command))
		var n nested
		if err := json.Unmarshal([]byte(r.stdout), &n); err != nil {
			t.Fatal(err, r)
		}
		return n
	}
	n := inner(fence.WorkspaceWrite, 7, fence.RequireEnforced, "echo x > inside")
	if n.Code != "" || n.Exit != 0 || n.Report.Supervisor || !n.Report.Seccomp || n.Report.Protect != fence.ProtectOff {
		t.Errorf("%+v", n)
	}
	for _, what := range []string{"attribution", "protected-paths", "metadata"} {
		if !slices.Contains(gaps(n.Report), what) {
			t.Errorf("no gap %q in %q", what, gaps(n.Report))
		}
	}
	content(t, l.W+"/inside", "x\n")
	n = inner(fence.ReadOnly, 7, fence.RequireEnforced, "echo x > ro; chmod 600 inside; touch -d yesterday inside; true")
	if n.Exit != 0 || n.Denials != 0 || slices.Contains(gaps(n.Report), "metadata") {
		t.Errorf("%+v", n)
	}
	absent(t, l.W+"/ro")
	if fi, err := os.Stat(l.W + "/inside"); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("read-only without a supervisor: %v %v", fi.Mode(), err)
	}
	n = inner(fence.WorkspaceWrite, 2, fence.RequireEnforced, "echo x > refused")
	if n.Code != sandbox.CodeUnavailable || !strings.Contains(n.Error, "truncation") {
		t.Errorf("%+v", n)
	}
	n = inner(fence.WorkspaceWrite, 2, fence.RequireBestEffort, "echo x > effort")
	if n.Code != "" || n.Exit != 0 || !slices.Contains(gaps(n.Report), "truncate") {
		t.Errorf("%+v", n)
	}
}

func init() {
	// fenced W MODE ABI REQUIRE COMMAND: runs a command in a fence of its own
	// and prints what came of it.
	tools["fenced"] = func(a []string) error {
		var n nested
		err := func() error {
			abi, err := strconv.Atoi(a[2])
			if err != nil {
				return err
			}
			k := fence.ProbeKernel()
			k.LandlockABI = min(abi, k.LandlockABI)
			r := sandbox.NewRunner(sandbox.Options{Kernel: &k})
			defer r.Close()
			f, err := fence.New(fence.Policy{Mode: fence.Mode(a[1]), Workspace: a[0], Require: fence.Require(a[3]), Devices: fence.DefaultDevices(), Protected: protections()})
			if err != nil {
				return err
			}
			p, err := r.Start(context.Background(), sandbox.Spec{Argv: []string{"/bin/bash", "-c", a[4]}, Dir: a[0], Fence: f})
			if err != nil {
				return err
			}
			st, err := p.Wait(context.Background())
			if err == nil && st.ExitCode != nil {
				n.Exit = *st.ExitCode
			}
			n.Denials, n.Report = len(st.Denials), p.Enforcement()
			return err
		}()
		if err != nil {
			var e *sandbox.Error
			if n.Code = "?"; errors.As(err, &e) {
				n.Code = e.Code
			}
			n.Error = err.Error()
		}
		return json.MarshalWrite(os.Stdout, n)
	}
}

// TestProbe: the kernel is asked by system call, and the errata as well.
func TestProbe(t *testing.T) {
	k := runner().Kernel()
	if k.LandlockABI == 0 && k.Why == "" || k.LandlockABI != 0 && k.Why != "" {
		t.Errorf("%+v", k)
	}
	var u unix.Utsname
	_ = unix.Uname(&u)
	t.Logf("kernel %s: %+v", unix.ByteSliceToString(u.Release[:]), k)
	e := runner().Enforcement()
	if e.LandlockABI != min(k.LandlockABI, fence.MaxLandlockABI) || e.Level == fence.LevelFull {
		t.Errorf("%+v", e)
	}
}
