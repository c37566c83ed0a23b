package fence_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/fence"
)

// world is a home with a workspace and all kinds of places around it, on disk.
type world struct {
	base, home, ws, evil, out, extra, scratch, cache, own string
}

func newWorld(t testing.TB) world {
	t.Helper()
	base := freshDir(t)
	h := filepath.Join(base, "home")
	w := world{
		base: base, home: h, ws: h + "/dev/ws", evil: h + "/dev/ws-evil", out: base + "/out",
		extra: base + "/extra", scratch: h + "/dev/.s/ws-1", cache: h + "/.cache/wattle/1", own: h + "/.config/wattle",
	}
	for _, d := range []string{
		w.ws + "/d/e", w.ws + "/.git/hooks", w.ws + "/vendor/sub/.git/modules/m/hooks", w.evil, w.out + "/d",
		w.extra, w.scratch, w.cache, w.own, h + "/.ssh", h + "/.aws",
	} {
		mustDir(t, d)
	}
	for _, f := range []string{
		w.ws + "/f", w.ws + "/d/f", w.ws + "/.git/config", w.evil + "/f", w.out + "/secret", w.extra + "/f",
		w.scratch + "/f", h + "/.ssh/id", h + "/.ssh/config", h + "/.keepass2", w.own + "/token",
	} {
		mustFile(t, f)
	}
	return w
}

// freshDir is not below a system temporary directory: those have rules of
// their own.
func freshDir(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	mustDir(t, cache)
	dir, err := os.MkdirTemp(cache, "wattle-fence-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustDir(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func mustFile(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustLink(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// policy is one with every kind of entry.
func (w world) policy(mode fence.Mode) fence.Policy {
	p := fence.Policy{
		Mode: mode, Workspace: w.ws, Scratch: w.scratch, Home: w.home, Own: []string{w.own},
		Writable:    []fence.Entry{{Path: w.extra, Source: "session"}},
		Caches:      []fence.Entry{{Path: w.cache, Source: "preset:base"}},
		Hidden:      []fence.Entry{{Path: w.home + "/.ssh", Source: "preset:secrets"}, {Path: w.home + "/.aws", Source: "preset:secrets"}, {Path: w.home + "/.keepass*", Source: "preset:secrets"}},
		Visible:     []fence.Entry{{Path: w.home + "/.ssh/config", Source: "preset:secrets"}},
		Devices:     fence.DefaultDevices(),
		UnixSockets: []fence.Entry{{Path: w.out + "/agent.sock", Source: "preset:ssh"}},
	}
	for _, m := range gitPatterns {
		p.Protected = append(p.Protected, fence.Protection{Match: m, Source: "preset:git"})
	}
	for _, m := range []string{"**/.vscode", "**/.codex", "**/.claude/settings*"} {
		p.Protected = append(p.Protected, fence.Protection{Match: m, NotUnder: []string{"node_modules"}, Source: "preset:agents"})
	}
	return p
}

var gitPatterns = []string{
	"**/.git/hooks", "**/.git/config", "**/.git/config.worktree", "**/.git/commondir", "**/.git/gitdir", "**/.git/info/attributes",
	"**/.git/modules/*/**/hooks", "**/.git/modules/*/**/config", "**/.git/modules/*/**/info/attributes",
	"**/.git/worktrees/*/hooks", "**/.git/worktrees/*/gitdir", "**/.gitconfig",
}

func mustNew(t testing.TB, p fence.Policy) *fence.Fence {
	t.Helper()
	f, err := fence.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func policyCode(err error) string {
	var e *fence.PolicyError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// TestRefusedRoots: what would open too much, spelled in any way, as the
// workspace, an extra root, a cache or scratch.
func TestRefusedRoots(t *testing.T) {
	w := newWorld(t)
	for _, d := range []string{w.own + "/state", w.own + "-evil", w.home + "-evil"} {
		mustDir(t, d)
	}
	mustLink(t, w.home, w.out+"/tohome")
	mustLink(t, "/", w.out+"/toroot")
	mustLink(t, w.own, w.ws+"/own")
	for _, tc := range []struct {
		name, path string
		code       string // "" is accepted
	}{
		{"root", "/", fence.CodePolicyRootRefused},
		{"root with dots", "/..", fence.CodePolicyRootRefused},
		{"home", w.home, fence.CodePolicyRootRefused},
		{"home with a slash", w.home + "/", fence.CodePolicyRootRefused},
		{"home by dots", w.home + "/dev/..", fence.CodePolicyRootRefused},
		{"home by a link", w.out + "/tohome", fence.CodePolicyRootRefused},
		{"root by a link", w.out + "/toroot", fence.CodePolicyRootRefused},
		{"root by /proc", "/proc/self/root", fence.CodePolicyRootRefused},
		{"parent of home", w.base, fence.CodePolicyRootRefused},
		{"first component of home", "/" + strings.Split(w.base, "/")[1], fence.CodePolicyRootRefused},
		{"own directory", w.own, fence.CodePolicyRootRefused},
		{"below own", w.own + "/state", fence.CodePolicyRootRefused},
		{"above own", filepath.Dir(w.own), fence.CodePolicyRootRefused},
		{"own by a link", w.ws + "/own", fence.CodePolicyRootRefused},
		{"own twin", w.own + "-evil", ""},
		{"directory in home", w.home + "/dev", ""},
		{"home twin", w.home + "-evil", ""},
		{"elsewhere", w.out, ""},
	} {
		for _, as := range []string{"workspace", "writable", "cache", "scratch"} {
			for _, mode := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite, fence.FullAccess} {
				p := w.policy(mode)
				switch as {
				case "workspace":
					p.Workspace = tc.path
				case "writable":
					p.Writable = append(p.Writable, fence.Entry{Path: tc.path, Source: "session"})
				case "cache":
					p.Caches = append(p.Caches, fence.Entry{Path: tc.path, Source: "session"})
				case "scratch":
					p.Scratch = tc.path
				}
				want := tc.code
				if mode == fence.FullAccess {
					want = "" // everything is open anyway
				}
				if _, err := fence.New(p); policyCode(err) != want || (err == nil) != (want == "") {
					t.Errorf("%s as %s in %s: %v, want %q", tc.name, as, mode, err, want)
				}
			}
		}
	}
}

func TestMalformedPolicies(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		name   string
		change func(*fence.Policy)
	}{
		{"no mode", func(p *fence.Policy) { p.Mode = "" }},
		{"unknown mode", func(p *fence.Policy) { p.Mode = "write" }},
		{"relative workspace", func(p *fence.Policy) { p.Workspace = "ws" }},
		{"missing workspace", func(p *fence.Policy) { p.Workspace = w.base + "/none" }},
		{"workspace is a dangling link", func(p *fence.Policy) {
			mustLink(t, "gone", w.base+"/dangling")
			p.Workspace = w.base + "/dangling"
		}},
		{"workspace with a NUL", func(p *fence.Policy) { p.Workspace = w.ws + "\x00" }},
		{"relative root", func(p *fence.Policy) { p.Writable = []fence.Entry{{Path: "x"}} }},
		{"relative hidden", func(p *fence.Policy) { p.Hidden = []fence.Entry{{Path: "x"}} }},
		{"malformed hidden glob", func(p *fence.Policy) { p.Hidden = []fence.Entry{{Path: "/a[*"}} }},
		{"hidden glob with dots", func(p *fence.Policy) { p.Hidden = []fence.Entry{{Path: "/a/../b*"}} }},
		{"empty pattern", func(p *fence.Policy) { p.Protected = []fence.Protection{{Match: ""}} }},
		{"pattern with dots", func(p *fence.Policy) { p.Protected = []fence.Protection{{Match: "a/../b"}} }},
		{"pattern with an empty part", func(p *fence.Policy) { p.Protected = []fence.Protection{{Match: "a//b"}} }},
		{"malformed pattern", func(p *fence.Policy) { p.Protected = []fence.Protection{{Match: "a[x"}} }},
		{"pattern with a NUL", func(p *fence.Policy) { p.Protected = []fence.Protection{{Match: "a\x00"}} }},
	} {
		p := w.policy(fence.WorkspaceWrite)
		tc.change(&p)
		if f, err := fence.New(p); f != nil || policyCode(err) != fence.CodePolicyInvalid {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestMissingRootsAreSkipped: an extra root that is not there is reported and
// never made; scratch and caches are ours to make later.
func TestMissingRootsAreSkipped(t *testing.T) {
	w := newWorld(t)
	p := w.policy(fence.WorkspaceWrite)
	mustLink(t, "loop", w.out+"/loop")
	p.Writable = append(p.Writable,
		fence.Entry{Path: w.base + "/none", Source: "session"},
		fence.Entry{Path: w.out + "/secret/x", Source: "session"},
		fence.Entry{Path: w.out + "/loop", Source: "session"})
	p.Caches = []fence.Entry{{Path: w.base + "/newcache"}}
	p.Scratch = w.base + "/newscratch"
	f := mustNew(t, p)
	want := []fence.Skipped{{Path: w.base + "/none", Errno: "ENOENT"}, {Path: w.out + "/secret/x", Errno: "ENOTDIR"}, {Path: w.out + "/loop", Errno: "ELOOP"}}
	if diff := cmp.Diff(want, f.Skipped()); diff != "" {
		t.Error(diff)
	}
	for _, d := range []string{"/none", "/newcache", "/newscratch"} {
		if _, err := os.Lstat(w.base + d); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was made: %v", d, err)
		}
	}
	if d := f.Check(w.base+"/none/x", fence.Create); d == nil {
		t.Error("a skipped root is writable")
	}
	if d := f.Check(w.base+"/newscratch/x", fence.Create); d != nil {
		t.Error(d)
	}
}

func TestWritableRoots(t *testing.T) {
	w := newWorld(t)
	for mode, want := range map[fence.Mode][]string{
		fence.ReadOnly:       {},
		fence.WorkspaceWrite: {w.cache, w.scratch, w.ws, w.extra},
		fence.FullAccess:     {},
	} {
		got := mustNew(t, w.policy(mode)).WritableRoots()
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
	p := w.policy(fence.ReadOnly)
	p.ScratchInReadOnly = true
	if diff := cmp.Diff([]string{w.scratch}, mustNew(t, p).WritableRoots()); diff != "" {
		t.Error(diff)
	}
	// A root by a link is told by its real place, once.
	mustLink(t, w.ws, w.out+"/link")
	p = w.policy(fence.WorkspaceWrite)
	p.Workspace = w.out + "/link"
	p.Writable = []fence.Entry{{Path: w.ws + "/", Source: "session"}}
	p.Scratch, p.Caches = "", nil
	f := mustNew(t, p)
	if diff := cmp.Diff([]string{w.ws}, f.WritableRoots()); diff != "" {
		t.Error(diff)
	}
	if f.Workspace() != w.ws {
		t.Error(f.Workspace())
	}
}

// TestFenceDoesNotShareWithItsPolicy: what is done to the policy afterwards
// changes nothing.
func TestFenceDoesNotShareWithItsPolicy(t *testing.T) {
	w := newWorld(t)
	p := w.policy(fence.WorkspaceWrite)
	f := mustNew(t, p)
	for i := range p.Hidden {
		p.Hidden[i].Path = "/"
	}
	for i := range p.Writable {
		p.Writable[i].Path = "/"
	}
	for i := range p.Protected {
		p.Protected[i].Match = "**"
	}
	for i := range p.Devices {
		p.Devices[i].Path = w.out + "/secret"
	}
	roots := f.WritableRoots()
	for i := range roots {
		roots[i] = "/"
	}
	for _, tc := range []struct {
		path   string
		access fence.Access
		ok     bool
	}{
		{w.ws + "/f", fence.Write, true},
		{w.ws + "/.git/hooks/x", fence.Create, false},
		{w.home + "/.ssh/id", fence.Read, false},
		{w.out + "/secret", fence.Write, false},
		{"/dev/null", fence.Write, true},
	} {
		if d := f.Check(tc.path, tc.access); (d == nil) != tc.ok {
			t.Errorf("%s %s: %v", tc.access, tc.path, d)
		}
	}
}
