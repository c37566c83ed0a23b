package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// patience is how long a test waits for what must happen. It is generous: the
// machine may be busy, and a passing test never waits that long.
const patience = 60 * time.Second

var shared struct {
	once sync.Once
	r    *sandbox.Runner
}

// runner is the one Runner of this process. Tests start other programs too, so
// it must not take every child for its own.
func runner() *sandbox.Runner {
	shared.once.Do(func() {
		shared.r = sandbox.NewRunner(sandbox.Options{TempRoot: own("temp")})
	})
	return shared.r
}

func closeShared() {
	if shared.r != nil {
		shared.r.Close()
	}
}

// lab is the stage of one test (cases/fence.md, notation): W the workspace, O a
// directory outside every root, T the temporary directory of workspace-write,
// H the home directory.
type lab struct {
	t          testing.TB
	r          *sandbox.Runner
	W, O, T, H string
}

func newLab(t testing.TB) *lab { return newLabOf(t, runner()) }

func newLabOf(t testing.TB, r *sandbox.Runner) *lab {
	t.Helper()
	dir, err := os.MkdirTemp(own("labs"), "l")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
		_ = exec.Command("chattr", "-R", "-f", "-ia", dir).Run()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the stage: %v", err)
		}
	})
	_ = os.Chmod(dir, 0o755)
	l := &lab{t: t, r: r}
	for _, d := range []struct {
		p    *string
		name string
	}{{&l.W, "ws"}, {&l.O, "out"}, {&l.T, "tmp"}, {&l.H, "home"}} {
		*d.p = filepath.Join(dir, d.name)
		if err := os.Mkdir(*d.p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Chmod(l.T, 0o700)
	return l
}

// protections are those of the git preset and some of the agents', as
// policies/*.toml has them: this room cannot import that one.
func protections() []fence.Protection {
	var out []fence.Protection
	for _, m := range []string{
		"**/.git/hooks", "**/.git/config", "**/.git/config.worktree", "**/.git/commondir", "**/.git/gitdir", "**/.git/info/attributes",
		"**/.git/modules/*/**/hooks", "**/.git/modules/*/**/config", "**/.git/modules/*/**/config.worktree", "**/.git/modules/*/**/info/attributes",
		"**/.git/worktrees/*/hooks", "**/.git/worktrees/*/config", "**/.git/worktrees/*/config.worktree",
		"**/.gitconfig", "**/.codex", "**/.agents", "**/.wattle",
	} {
		out = append(out, fence.Protection{Match: m, Source: "preset:git"})
	}
	return out
}

// policy is the lab's policy in a mode, changed by edits.
func (l *lab) policy(mode fence.Mode, edits ...func(*fence.Policy)) fence.Policy {
	p := fence.Policy{
		Mode: mode, Workspace: l.W, Scratch: l.T, Home: l.H,
		Devices: fence.DefaultDevices(), Protected: protections(),
	}
	for _, e := range edits {
		e(&p)
	}
	return p
}

func (l *lab) fence(mode fence.Mode, edits ...func(*fence.Policy)) *fence.Fence {
	l.t.Helper()
	f, err := fence.New(l.policy(mode, edits...))
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

// vars are what commands of tests are told.
func (l *lab) vars() map[string]string {
	return map[string]string{"W": l.W, "O": l.O, "T": l.T, "H": l.H, "TOOL": toolPath(), "GORACE": "atexit_sleep_ms=0", "M": filepath.Join(base, "mounts")}
}

// callerEnv is the environment that commands get their names from.
func (l *lab) callerEnv() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + l.H, "LANG=C", "USER=tester",
		"GIT_CONFIG_NOSYSTEM=1"}
}

// spec is a shell command in a fence.
func (l *lab) spec(f *fence.Fence, command string, edits ...func(*sandbox.Spec)) sandbox.Spec {
	s := sandbox.Spec{Argv: []string{"/bin/bash", "-c", command}, Dir: l.W, Caller: l.callerEnv(), SetEnv: l.vars(), TempDir: l.T, Fence: f}
	for _, e := range edits {
		e(&s)
	}
	return s
}

// result is what came of a command.
type result struct {
	sandbox.State
	stdout, stderr string
	report         fence.Enforcement
	took           time.Duration
}

func (r result) code() int {
	if r.ExitCode == nil {
		return -1
	}
	return *r.ExitCode
}

func (r result) String() string {
	return fmt.Sprintf("exit %d signal %q timed out %v\nstdout: %s\nstderr: %s\ndenials: %s", r.code(), r.Signal, r.TimedOut, r.stdout, r.stderr, strings.Join(denialsOf(r.Denials), "; "))
}

// withVars sets further variables.
func withVars(vars map[string]string) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) {
		for k, v := range vars {
			s.SetEnv[k] = v
		}
	}
}

func (l *lab) start(s sandbox.Spec) *sandbox.Process {
	l.t.Helper()
	p, err := l.r.Start(context.Background(), s)
	if err != nil {
		l.t.Fatalf("start %.200q: %v", s.Argv, err)
	}
	l.t.Cleanup(func() { p.Kill(); <-p.Over() })
	return p
}

// run runs a command to its end.
func (l *lab) run(f *fence.Fence, command string, edits ...func(*sandbox.Spec)) result {
	l.t.Helper()
	begin := time.Now()
	p := l.start(l.spec(f, command, edits...))
	return l.finish(p, begin)
}

func (l *lab) finish(p *sandbox.Process, begin time.Time) result {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	st, err := p.Wait(ctx)
	if err != nil {
		p.Kill()
		l.t.Fatalf("the command did not end: %v", err)
	}
	r := result{State: st, report: p.Enforcement(), took: time.Since(begin)}
	r.stdout, r.stderr = collect(p.Read(ctx, 0, 0, 0).Chunks)
	return r
}

func collect(chunks []sandbox.Chunk) (stdout, stderr string) {
	var o, e strings.Builder
	for _, c := range chunks {
		if c.Stream == sandbox.Stdout {
			o.Write(c.Data)
		} else {
			e.Write(c.Data)
		}
	}
	return o.String(), e.String()
}

func (l *lab) ws(command string, edits ...func(*sandbox.Spec)) result {
	l.t.Helper()
	return l.run(l.fence(fence.WorkspaceWrite), command, edits...)
}

func (l *lab) ro(command string, edits ...func(*sandbox.Spec)) result {
	l.t.Helper()
	return l.run(l.fence(fence.ReadOnly), command, edits...)
}

func (l *lab) full(command string, edits ...func(*sandbox.Spec)) result {
	l.t.Helper()
	return l.run(l.fence(fence.FullAccess), command, edits...)
}

// denialsOf shows denials as "access path", sorted, each once.
func denialsOf(ds []fence.Denial) []string {
	seen := map[string]bool{}
	out := []string{}
	for _, d := range ds {
		s := string(d.Access) + " " + d.Path
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	sort.Strings(out)
	return out
}

// ok wants exit status 0 and no denial.
func (r result) ok(t testing.TB) result {
	t.Helper()
	if r.code() != 0 || len(r.Denials) != 0 {
		t.Errorf("want success without denials, got %v", r)
	}
	return r
}

// denied wants a failure with exactly these denials ("access path", where path
// may be a glob).
func (r result) denied(t testing.TB, want ...string) result {
	t.Helper()
	if r.code() == 0 {
		t.Errorf("want a failure, got %v", r)
	}
	sort.Strings(want)
	got := denialsOf(r.Denials)
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same, _ = path.Match(want[i], got[i])
	}
	if !same {
		t.Errorf("denials: want %q\ngot %v", want, r)
	}
	for _, d := range r.Denials {
		if d.Code != fence.CodeSandboxDenied || d.Verdict != fence.VerdictFence || d.Evidence != fence.EvidenceSupervisor || d.Hint == "" || d.PID == 0 || d.Process == "" || d.Syscall == "" || d.Errno == "" {
			t.Errorf("incomplete denial: %+v", d)
		}
	}
	return r
}

// refusedQuietly wants a failure that is nobody's denial.
func (r result) refusedQuietly(t testing.TB) result {
	t.Helper()
	if r.code() == 0 || len(r.Denials) != 0 {
		t.Errorf("want a failure without denials, got %v", r)
	}
	return r
}

func absent(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if _, err := os.Lstat(p); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there (%v)", p, err)
		}
	}
}

func content(t testing.TB, path, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != want {
		t.Errorf("%s: %q, %v; want %q", path, b, err, want)
	}
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// host runs a command outside every fence.
func (l *lab) host(command string) string {
	l.t.Helper()
	c := exec.Command("/bin/bash", "-c", command)
	c.Dir = l.W
	c.Env = l.callerEnv()
	for k, v := range l.vars() {
		c.Env = append(c.Env, k+"="+v)
	}
	b, err := c.CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s: %v\n%s", command, err, b)
	}
	return string(b)
}

// need skips when a program is not installed.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIP-CAPABLE: %s is not installed", p)
		}
	}
}

// needABI skips where the kernel's Landlock is older.
func needABI(t testing.TB, abi int) {
	t.Helper()
	if k := runner().Kernel(); k.LandlockABI < abi {
		t.Skipf("SKIP: this kernel has Landlock ABI %d, the test needs %d", k.LandlockABI, abi)
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// snapshot describes everything below a directory: names, kinds, modes, owner,
// times and contents.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %o %d:%d %d.%09d", p, st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
		if d.Type().IsRegular() {
			c, _ := os.ReadFile(p)
			fmt.Fprintf(&b, " %q", c)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
