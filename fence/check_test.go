package fence_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/fence"
)

// Groups of accesses that are decided alike.
var (
	reads   = []fence.Access{fence.Read, fence.Execute}
	mutates = []fence.Access{fence.Write, fence.Create, fence.Delete, fence.Rename, fence.Link, fence.Mkdir, fence.Metadata, fence.Bind}
)

// decide is what a caller does: resolve the path as it was spelled, ask about
// the place, and for a link that leads to nothing also about where a new file
// would appear. The answer is "ok", the rule, or the errno of the resolution.
func decide(f *fence.Fence, spelled string, a fence.Access) string {
	r, err := f.Resolve(spelled)
	if err != nil {
		var e syscall.Errno
		if !errors.As(err, &e) {
			return "error without an errno: " + err.Error()
		}
		return e.Error()
	}
	if d := f.CheckAs(r.Path, spelled, a); d != nil {
		return string(d.Rule)
	}
	if r.Dangling != "" && (a == fence.Write || a == fence.Create) {
		if d := f.CheckAs(f.Unalias(r.Dangling), spelled, a); d != nil {
			return string(d.Rule)
		}
	}
	return "ok"
}

// TestModeAccessKind is the table of mode × access × kind of path.
func TestModeAccessKind(t *testing.T) {
	w := newWorld(t)
	mustLink(t, w.out+"/secret", w.ws+"/link-out")
	mustLink(t, w.out, w.ws+"/dir-out")
	mustLink(t, "../../../out/secret", w.ws+"/rel-out")
	mustLink(t, w.out+"/new", w.ws+"/dangling-out")
	mustLink(t, "new", w.ws+"/dangling-in")
	mustLink(t, "f", w.ws+"/link-in")
	mustLink(t, w.ws+"/f", w.out+"/link-back")
	mustLink(t, w.ws, w.out+"/ws")
	mustLink(t, "loop", w.ws+"/loop")
	mustLink(t, ".git/hooks", w.ws+"/hooks-link")
	mustLink(t, w.home+"/.ssh/id", w.ws+"/key")
	long := w.ws + strings.Repeat("/"+strings.Repeat("a", 254), 20)

	const (
		outside, protected, hidden, ok = "outside-writable-roots", "protected", "hidden", "ok"
		enoent, enotdir, eloop         = "no such file or directory", "not a directory", "too many levels of symbolic links"
		einval, enametoolong           = "invalid argument", "file name too long"
	)
	// What workspace-write says to reading and to changing. In read-only a
	// change that is ok or outside or protected is `read-only`; what is hidden
	// or an error is the same in both.
	for _, k := range []struct{ kind, path, read, change string }{
		{"inside", w.ws + "/f", ok, ok},
		{"deep inside", w.ws + "/d/e/new", ok, ok},
		{"extra root", w.extra + "/f", ok, ok},
		{"scratch", w.scratch + "/f", ok, ok},
		{"cache", w.cache + "/new/x", ok, ok},
		{"outside", w.out + "/secret", ok, outside},
		{"parent of the workspace", w.home + "/dev/x", ok, outside},
		{"home", w.home + "/x", ok, outside},
		{"root", "/", ok, outside},
		{"system", "/etc/passwd", ok, outside},
		{"prefix twin", w.evil + "/f", ok, outside},
		{"prefix twin, missing", w.ws + "-new/f", ok, outside},
		{"prefix twin of a cache", w.cache + "0/f", ok, outside},
		{"dots inside", w.ws + "/d/../f", ok, ok},
		{"dots out", w.ws + "/../ws-evil/f", ok, outside},
		{"dots out and in", w.ws + "/../ws/f", ok, ok},
		{"dots above the root", "/../../.." + w.out + "/secret", ok, outside},
		{"dots after a missing part", w.ws + "/none/../f", enoent, enoent},
		{"dots after a link", w.ws + "/dir-out/../secret", ok, outside}, // F03: the link's parent, not ours
		{"dots after a file", w.ws + "/f/../f", enotdir, enotdir},
		{"symlink out", w.ws + "/link-out", ok, outside},
		{"relative symlink out", w.ws + "/rel-out", ok, outside},
		{"through a directory symlink out", w.ws + "/dir-out/secret", ok, outside},
		{"missing through a directory symlink out", w.ws + "/dir-out/none/x", ok, outside},
		{"symlink in", w.ws + "/link-in", ok, ok},
		{"symlink from outside in", w.out + "/link-back", ok, ok},
		{"through a symlink to the workspace", w.out + "/ws/f", ok, ok},
		{"symlink to a protected directory", w.ws + "/hooks-link/x", ok, protected},
		{"symlink to a hidden file", w.ws + "/key", hidden, hidden},
		{"symlink loop", w.ws + "/loop", eloop, eloop},
		{"through a symlink loop", w.ws + "/loop/x", eloop, eloop},
		{"missing leaf", w.ws + "/new", ok, ok},
		{"missing parents", w.ws + "/a/b/c/new", ok, ok},
		{"missing leaf outside", w.out + "/new", ok, outside},
		{"missing parents outside", w.out + "/a/b/new", ok, outside},
		{"file as a directory", w.ws + "/f/x", enotdir, enotdir},
		{"proc root in", "/proc/self/root" + w.ws + "/f", ok, ok},
		{"proc root out", "/proc/self/root" + w.out + "/secret", ok, outside},
		{"proc root hidden", "/proc/self/root" + w.home + "/.ssh/id", hidden, hidden},
		{"proc root protected", "/proc/self/root" + w.ws + "/.git/hooks/x", ok, protected},
		{"trailing slash on a directory", w.ws + "/d/", ok, ok},
		{"trailing slash on a missing one", w.ws + "/new/", ok, ok},
		{"trailing slash on a file", w.ws + "/f/", enotdir, enotdir},
		{"trailing slash on a symlink to a file", w.ws + "/link-in/", enotdir, enotdir},
		{"trailing dot on a file", w.ws + "/f/.", enotdir, enotdir},
		{"doubled slashes", w.ws + "//d///f", ok, ok},
		{"NUL", w.ws + "/f\x00", einval, einval},
		{"NUL in front of an escape", w.ws + "/\x00/../../out/secret", einval, einval},
		{"empty", "", einval, einval},
		{"relative", "f", einval, einval},
		{"4095 bytes", long[:4095], ok, ok},
		{"4096 bytes", long[:4096], enametoolong, enametoolong},
		{"a name of 255 bytes", w.ws + "/" + strings.Repeat("n", 255), ok, ok},
		{"a name of 256 bytes", w.ws + "/" + strings.Repeat("n", 256), enametoolong, enametoolong},
		{"invalid UTF-8 inside", w.ws + "/\xff\xfe", ok, ok},
		{"invalid UTF-8 outside", w.out + "/\xff\xfe", ok, outside},
		{"newline", w.ws + "/a\nb", ok, ok},
		{"backslash", w.ws + `/..\..\out`, ok, ok},
		{"protected directory", w.ws + "/.vscode", ok, protected},
		{"below a protected directory", w.ws + "/.git/hooks/pre-commit", ok, protected},
		{"protected file", w.ws + "/.git/config", ok, protected},
		{"protected, case folded", w.ws + "/.GIT/Hooks/pre-commit", ok, protected},
		{"protected, folded outside ASCII", w.ws + "/.git/hoo\u212as/x", ok, protected}, // the Kelvin sign folds to k
		{"protected, missing parents", w.ws + "/a/b/.git/hooks/x", ok, protected},
		{"protected in an extra root", w.extra + "/.git/config", ok, protected},
		{"protected name in scratch", w.scratch + "/.git/config", ok, ok},
		{"protected name in a cache", w.cache + "/.git/config", ok, ok},
		{"protected name outside", w.out + "/.git/config", ok, outside},
		{"hidden directory", w.home + "/.ssh", hidden, hidden},
		{"hidden file", w.home + "/.ssh/id", hidden, hidden},
		{"hidden and missing", w.home + "/.aws/credentials", hidden, hidden},
		{"hidden by dots", w.ws + "/../../.ssh/id", hidden, hidden},
		{"hidden by a glob", w.home + "/.keepass2", hidden, hidden},
		{"hidden twin", w.home + "/.sshx", ok, outside},
		{"visible exception", w.home + "/.ssh/config", ok, outside},
		{"below the visible exception", w.home + "/.ssh/config/x", enotdir, enotdir},
		{"our own", w.own + "/token", hidden, hidden},
	} {
		for _, mode := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite, fence.FullAccess} {
			f := mustNew(t, w.policy(mode))
			for _, a := range append(slices.Clone(reads), mutates...) {
				want := k.read
				if a.Mutates() {
					want = k.change
				}
				switch {
				case mode == fence.FullAccess && (want == outside || want == protected || want == hidden):
					want = ok
				case mode == fence.ReadOnly && a.Mutates() && (want == ok || want == outside || want == protected):
					want = "read-only"
				}
				if got := decide(f, k.path, a); got != want {
					t.Errorf("%s: %s in %s: %s, want %s", k.kind, a, mode, got, want)
				}
			}
		}
	}

	// A dangling link is a name of its own: it may go, but what is written
	// through it appears where it leads.
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, tc := range []struct {
		path   string
		access fence.Access
		want   string
	}{
		{w.ws + "/dangling-out", fence.Write, outside},
		{w.ws + "/dangling-out", fence.Create, outside},
		{w.ws + "/dangling-out", fence.Delete, ok},
		{w.ws + "/dangling-out", fence.Rename, ok},
		{w.ws + "/dangling-out", fence.Read, ok},
		{w.ws + "/dangling-in", fence.Create, ok},
	} {
		if got := decide(f, tc.path, tc.access); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.access, tc.path, got, tc.want)
		}
	}
	if _, err := os.Lstat(w.out + "/new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("deciding made something: %v", err)
	}
}

// TestSpellingsThatAreNotCanonical: Check itself takes clean absolute paths
// only, and refuses the rest whatever it might mean.
func TestSpellingsThatAreNotCanonical(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		f := mustNew(t, w.policy(mode))
		for _, p := range []string{
			"", ".", "f", "./f", w.ws + "/", w.ws + "//f", w.ws + "/./f", w.ws + "/../ws/f", w.ws + "/f\x00", "//" + w.ws[1:], `C:\ws`, "~/x",
		} {
			for _, a := range fence.Accesses {
				if d := f.Check(p, a); d == nil {
					t.Errorf("%s %q is allowed in %s", a, p, mode)
				}
			}
		}
	}
}

// TestGitDirectories: what leads to a protected path may be made as a
// directory and emptied, and neither moved nor put in another form.
func TestGitDirectories(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	free := []fence.Access{fence.Mkdir, fence.Delete, fence.Metadata, fence.Read}
	for _, dir := range []string{"/.git", "/new/.git", "/vendor/sub/.git", "/.GIT", "/vendor/sub/.git/modules/m", "/.git/info", "/.git/worktrees/t", "/.claude"} {
		for _, a := range append(slices.Clone(mutates), fence.Read) {
			d := f.Check(w.ws+dir, a)
			if slices.Contains(free, a) != (d == nil) {
				t.Errorf("%s %s: %v", a, dir, d)
			}
			if d != nil && (d.Rule != fence.RuleProtected || d.Grant != nil) {
				t.Errorf("%+v", d)
			}
		}
	}
	// Beside what is protected, git works.
	for _, name := range []string{
		"/.git/HEAD", "/.git/index.lock", "/.git/index", "/.git/objects/ab/cd", "/.git/refs/heads/main", "/.git/refs/heads/hooks", "/.git/refs/heads/config",
		"/.git/logs/HEAD", "/.git/info/exclude", "/.git/config.lock", "/.git/packed-refs", "/.git/description", "/.git/COMMIT_EDITMSG",
		"/.git/worktrees/t/HEAD", "/.gitignore", "/.gitattributes", "/git/hooks/x", "/hooks/x", "/config", "/.github/workflows/x.yml",
	} {
		for _, a := range mutates {
			if d := f.Check(w.ws+name, a); d != nil {
				t.Error(d)
			}
		}
	}
	// Sample hooks: git never runs them, and git init writes them.
	for _, tc := range []struct {
		name   string
		access fence.Access
		ok     bool
	}{
		{"/.git/hooks", fence.Mkdir, true},
		{"/.git/hooks", fence.Delete, false},
		{"/.git/hooks", fence.Rename, false},
		{"/.git/hooks", fence.Create, false}, // as a file or link
		{"/.git/hooks/pre-commit.sample", fence.Create, true},
		{"/.git/hooks/pre-commit.sample", fence.Write, true},
		{"/.git/hooks/pre-commit.sample", fence.Metadata, true},
		{"/.git/hooks/pre-commit.sample", fence.Delete, true},
		{"/.git/hooks/pre-commit.sample", fence.Rename, false},
		{"/.git/hooks/pre-commit.sample", fence.Link, false},
		{"/.git/hooks/pre-commit.sample", fence.Mkdir, false},
		{"/.git/hooks/pre-commit.sample", fence.Bind, false},
		{"/.git/hooks/pre-commit", fence.Create, false},
		{"/.git/hooks/pre-commit.sample/x", fence.Create, false},
		{"/.git/hooks/sub/pre-commit.sample", fence.Create, false},
		{"/.git/hooks/.sample", fence.Create, true},
		{"/.git/config.sample", fence.Create, true}, // no protected name
		{"/vendor/sub/.git/modules/m/hooks/x.sample", fence.Create, true},
	} {
		if d := f.Check(w.ws+tc.name, tc.access); (d == nil) != tc.ok {
			t.Errorf("%s %s: %v", tc.access, tc.name, d)
		}
	}
}

// TestPrecedence: the most specific entry decides; on a tie hidden, then
// protected, then writable, then readable.
func TestPrecedence(t *testing.T) {
	w := newWorld(t)
	mustDir(t, w.ws+"/a/b/c")
	mustDir(t, w.out+"/r/s")
	e := func(p string) []fence.Entry { return []fence.Entry{{Path: p, Source: "session"}} }
	pr := func(m string) []fence.Protection { return []fence.Protection{{Match: m, Source: "session"}} }
	const ws = "workspace-write"
	for _, tc := range []struct {
		name string
		set  func(*fence.Policy)
		path string
		read string
		make string
	}{
		{"tie of writable and readable", func(p *fence.Policy) { p.ReadableRoots = e(w.ws) }, w.ws + "/x", "ok", "ok"},
		{"readable below writable", func(p *fence.Policy) { p.ReadableRoots = e(w.ws + "/a") }, w.ws + "/a/x", "ok", "outside-writable-roots"},
		{"visible below writable", func(p *fence.Policy) { p.Visible = e(w.ws + "/a") }, w.ws + "/a/x", "ok", "outside-writable-roots"},
		{"writable below readable", func(p *fence.Policy) { p.Writable = e(w.ws + "/a/b"); p.Visible = e(w.ws + "/a") }, w.ws + "/a/b/x", "ok", "ok"},
		{"tie of protected and writable", func(p *fence.Policy) { p.Writable = e(w.ws + "/a/b"); p.Protected = pr("a/b") }, w.ws + "/a/b/x", "ok", "protected"},
		{"protected below writable", func(p *fence.Policy) { p.Protected = pr("a/b") }, w.ws + "/a/b/x", "ok", "protected"},
		{"protected with a glob", func(p *fence.Policy) { p.Protected = pr("a/*/c") }, w.ws + "/a/zz/c/x", "ok", "protected"},
		{"protected at one depth only", func(p *fence.Policy) { p.Protected = pr("b") }, w.ws + "/a/b/x", "ok", "ok"},
		{"protected at any depth", func(p *fence.Policy) { p.Protected = pr("**/b") }, w.ws + "/a/b/x", "ok", "protected"},
		{"protected at depth 0 of **", func(p *fence.Policy) { p.Protected = pr("**/b") }, w.ws + "/b", "ok", "protected"},
		{"tie of hidden and writable", func(p *fence.Policy) { p.Hidden = e(w.extra) }, w.extra + "/x", "hidden", "hidden"},
		{"tie of hidden and protected", func(p *fence.Policy) { p.Hidden = e(w.ws + "/a"); p.Protected = pr("a") }, w.ws + "/a/x", "hidden", "hidden"},
		{"protected below hidden", func(p *fence.Policy) { p.Hidden = e(w.ws + "/a"); p.Protected = pr("a/b") }, w.ws + "/a/b/x", "ok", "protected"},
		{"hidden below protected", func(p *fence.Policy) { p.Hidden = e(w.ws + "/a/b"); p.Protected = pr("a") }, w.ws + "/a/b/x", "hidden", "hidden"},
		{"hidden below writable", func(p *fence.Policy) { p.Hidden = e(w.ws + "/a") }, w.ws + "/a/x", "hidden", "hidden"},
		{"writable below hidden", func(p *fence.Policy) { p.Hidden = e(w.out); p.Writable = e(w.out + "/r") }, w.out + "/r/x", "ok", "ok"},
		{"hidden below that again", func(p *fence.Policy) { p.Hidden = append(e(w.out), e(w.out+"/r/s")...); p.Writable = e(w.out + "/r") }, w.out + "/r/s/x", "hidden", "hidden"},
		{"visible below hidden", func(p *fence.Policy) { p.Hidden = e(w.out); p.Visible = e(w.out + "/r") }, w.out + "/r/x", "ok", "outside-writable-roots"},
		{"tie of visible and hidden", func(p *fence.Policy) { p.Hidden = e(w.out); p.Visible = e(w.out) }, w.out + "/x", "hidden", "hidden"},
		{"hidden glob", func(p *fence.Policy) { p.Hidden = e(w.out + "/r*") }, w.out + "/rrr/x", "hidden", "hidden"},
		{"hidden at any depth", func(p *fence.Policy) { p.Hidden = e(w.out + "/**/key") }, w.out + "/r/s/t/key", "hidden", "hidden"},
		{"longest match of a hidden glob", func(p *fence.Policy) { p.Hidden = e(w.out + "/**/s"); p.Writable = e(w.out + "/r") }, w.out + "/r/s/x", "hidden", "hidden"},
		{"hidden is not a prefix of names", func(p *fence.Policy) { p.Hidden = e(w.out + "/r") }, w.out + "/rr", "ok", "outside-writable-roots"},
		{"exception of a protection", func(p *fence.Policy) {
			p.Protected = []fence.Protection{{Match: "**/b", NotUnder: []string{"Node_Modules"}}}
		}, w.ws + "/node_modules/x/b/y", "ok", "ok"},
		{"exception below the protected name", func(p *fence.Policy) {
			p.Protected = []fence.Protection{{Match: "**/b", NotUnder: []string{"node_modules"}}}
		}, w.ws + "/b/node_modules/x", "ok", "protected"},
		{"root in a root keeps its own protections", func(p *fence.Policy) { p.Writable = e(w.ws + "/a"); p.Protected = pr("**/.git/hooks") }, w.ws + "/a/.git/hooks/x", "ok", "protected"},
		{"unlisted", func(p *fence.Policy) { p.ReadableRoots = e("/usr") }, w.out + "/x", "readable-roots", "outside-writable-roots"},
		{"listed", func(p *fence.Policy) { p.ReadableRoots = e(w.out + "/r") }, w.out + "/r/x", "ok", "outside-writable-roots"},
		{"listed and hidden", func(p *fence.Policy) { p.ReadableRoots = e(w.out); p.Hidden = e(w.out + "/r") }, w.out + "/r/x", "hidden", "hidden"},
		{"nothing listed", func(p *fence.Policy) { p.ReadableRoots = []fence.Entry{} }, "/usr/bin/true", "readable-roots", "outside-writable-roots"},
		{"roots are readable though not listed", func(p *fence.Policy) { p.ReadableRoots = []fence.Entry{} }, w.ws + "/f", "ok", "ok"},
		{"exceptions are readable though not listed", func(p *fence.Policy) { p.ReadableRoots = []fence.Entry{}; p.Visible = e(w.out + "/r") }, w.out + "/r/x", "ok", "outside-writable-roots"},
		{"devices are readable though not listed", func(p *fence.Policy) { p.ReadableRoots = []fence.Entry{}; p.Devices = fence.DefaultDevices() }, "/dev/urandom", "ok", "outside-writable-roots"},
	} {
		p := fence.Policy{Mode: ws, Workspace: w.ws, Home: w.home, Writable: e(w.extra)}
		tc.set(&p)
		f := mustNew(t, p)
		if got := decide(f, tc.path, fence.Read); got != tc.read {
			t.Errorf("%s: read %s, want %s", tc.name, got, tc.read)
		}
		if got := decide(f, tc.path, fence.Mkdir); got != tc.make {
			t.Errorf("%s: mkdir %s, want %s", tc.name, got, tc.make)
		}
	}
}

// TestDevices: what every fence opens, in read-only too, for writing and for
// nothing else.
func TestDevices(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		p := w.policy(mode)
		p.Devices = append(p.Devices, fence.Device{Path: "/dev/rtc"})
		f := mustNew(t, p)
		for _, tc := range []struct {
			path   string
			access fence.Access
			ok     bool
		}{
			{"/dev/null", fence.Write, true},
			{"/dev/null", fence.Read, true},
			{"/dev/null", fence.Delete, false},
			{"/dev/null", fence.Rename, false},
			{"/dev/null", fence.Metadata, false},
			{"/dev/null/x", fence.Write, false},
			{"/dev/nullx", fence.Write, false},
			{"/dev/pts/3", fence.Write, true},
			{"/dev/pts/3/x", fence.Write, false},
			{"/dev/rtc", fence.Read, true},
			{"/dev/rtc", fence.Write, false},
			{"/dev/sda", fence.Write, false},
			{"/dev/shm/x", fence.Create, false},
			{"/dev/x", fence.Create, false},
		} {
			if d := f.Check(tc.path, tc.access); (d == nil) != tc.ok {
				t.Errorf("%s %s in %s: %v", tc.access, tc.path, mode, d)
			}
		}
	}
}

// TestSockets: connecting is no write, and allowed where the session's own
// programs listen, and to what the policy names.
func TestSockets(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		path string
		ro   string
		ws   string
	}{
		{w.ws + "/s.sock", "unix-socket", "ok"},
		{w.scratch + "/s.sock", "unix-socket", "ok"},
		{w.ws + "/.git/fsmonitor.sock", "unix-socket", "ok"},
		{w.out + "/s.sock", "unix-socket", "unix-socket"},
		{w.out + "/agent.sock", "ok", "ok"},
		{w.out + "/agent.sock.evil", "unix-socket", "unix-socket"},
		{"/run/docker.sock", "unix-socket", "unix-socket"},
		{w.own + "/control.sock", "hidden", "hidden"},
		{w.home + "/.ssh/agent/s", "hidden", "hidden"},
		{"/dev/null", "unix-socket", "unix-socket"},
	} {
		for mode, want := range map[fence.Mode]string{fence.ReadOnly: tc.ro, fence.WorkspaceWrite: tc.ws, fence.FullAccess: "ok"} {
			if got := decide(mustNew(t, w.policy(mode)), tc.path, fence.Connect); got != want {
				t.Errorf("connect %s in %s: %s, want %s", tc.path, mode, got, want)
			}
		}
	}
	// No entry of a policy opens our own directory.
	p := w.policy(fence.WorkspaceWrite)
	p.UnixSockets = append(p.UnixSockets, fence.Entry{Path: w.own + "/control.sock", Source: "session"})
	if got := decide(mustNew(t, p), w.own+"/control.sock", fence.Connect); got != "hidden" {
		t.Error(got)
	}
}

// TestRootsThemselves: what a root contains is free, the root's own name is
// its parent's.
func TestRootsThemselves(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, root := range f.WritableRoots() {
		for _, a := range []fence.Access{fence.Delete, fence.Rename} {
			if d := f.Check(root, a); d == nil || d.Rule != fence.RuleOutside {
				t.Errorf("%s %s: %v", a, root, d)
			}
		}
		for _, a := range []fence.Access{fence.Read, fence.Metadata} {
			if d := f.Check(root, a); d != nil {
				t.Error(d)
			}
		}
	}
}

// TestScratchInReadOnly: the only thing that is written there.
func TestScratchInReadOnly(t *testing.T) {
	w := newWorld(t)
	p := w.policy(fence.ReadOnly)
	p.ScratchInReadOnly = true
	f := mustNew(t, p)
	for path, want := range map[string]string{
		w.scratch + "/x": "ok", w.scratch + "-2/x": "read-only", w.cache + "/x": "read-only", w.ws + "/x": "read-only", w.extra + "/x": "read-only",
		w.scratch + "/.git/hooks/x": "ok",
	} {
		if got := decide(f, path, fence.Create); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestWorkspaceAsACache: a cache has no protections, and must not take those
// of a root at the same place away.
func TestWorkspaceAsACache(t *testing.T) {
	w := newWorld(t)
	for _, where := range []string{w.ws, w.ws + "/vendor"} {
		p := w.policy(fence.WorkspaceWrite)
		p.Caches = []fence.Entry{{Path: where, Source: "session"}}
		p.Writable = append(p.Writable, fence.Entry{Path: w.ws + "/vendor", Source: "session"})
		if got := decide(mustNew(t, p), w.ws+"/vendor/.git/hooks/x", fence.Create); got != "protected" {
			t.Errorf("%s as a cache: %s", where, got)
		}
	}
}

func TestGuarded(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for path, want := range map[string]bool{
		w.ws: true, w.ws + "/x": true, w.extra + "/x": true, w.scratch + "/x": false, w.cache + "/x": false, w.out: false, w.evil: false, "/": false,
	} {
		if got := f.Guarded(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
	p := w.policy(fence.WorkspaceWrite)
	p.Protected = nil
	if mustNew(t, p).Guarded(w.ws) {
		t.Error("guarded without protections")
	}
}

func TestPathCovers(t *testing.T) {
	for _, tc := range []struct {
		root, path string
		want       bool
	}{
		{"/ws", "/ws", true}, {"/ws", "/ws/a", true}, {"/ws", "/ws-evil", false}, {"/ws", "/wsx/a", false}, {"/ws", "/w", false},
		{"/ws", "/", false}, {"/", "/", true}, {"/", "/a", true}, {"/ws", "/ws/../x", true}, // lexical: callers give clean paths
		{"/a/b", "/a", false}, {"/a\xff", "/a\xff/b", true},
	} {
		if got := fence.PathCovers(tc.root, tc.path); got != tc.want {
			t.Errorf("%s covers %s: %t", tc.root, tc.path, got)
		}
	}
}

// drawPath makes paths around the places of the world, with all the names that
// mean something.
func (w world) drawPath(t *rapid.T) string {
	places := []string{w.ws, w.evil, w.out, w.extra, w.scratch, w.cache, w.own, w.home, w.base, "/dev", "/etc", "/proc/self", ""}
	names := []string{
		"f", "d", "new", ".git", ".GIT", "hooks", "Hooks", "config", "info", "attributes", "modules", "worktrees", "m", "x.sample", ".vscode",
		"node_modules", ".claude", "settings.json", ".ssh", "id", ".keepass2", "null", "pts", "3", "\xff", "a b", "ſ", "vendor", "sub",
	}
	p := rapid.SampledFrom(places).Draw(t, "place")
	for _, n := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "names") {
		p += "/" + n
	}
	return filepath.Clean("/" + p)
}

// drawPolicy takes entries of the full policy away and adds nested ones.
func (w world) drawPolicy(t *rapid.T) fence.Policy {
	p := w.policy(fence.WorkspaceWrite)
	entry := rapid.Custom(func(t *rapid.T) fence.Entry { return fence.Entry{Path: w.drawPath(t), Source: "session"} })
	p.Hidden = append(p.Hidden, rapid.SliceOfN(entry, 0, 2).Draw(t, "hidden")...)
	shown := entry.Filter(func(e fence.Entry) bool { return !fence.PathCovers(w.own, e.Path) })
	p.Visible = append(p.Visible, rapid.SliceOfN(shown, 0, 2).Draw(t, "visible")...)
	if rapid.Bool().Draw(t, "list") {
		p.ReadableRoots = rapid.SliceOfN(shown, 0, 3).Draw(t, "readable")
	}
	if rapid.Bool().Draw(t, "no protections") {
		p.Protected = nil
	}
	p.ScratchInReadOnly = rapid.Bool().Draw(t, "scratch in read-only")
	p.Writable = append(p.Writable, fence.Entry{Path: rapid.SampledFrom([]string{w.ws + "/d", w.out + "/d", w.home + "/.ssh", w.ws + "/.git"}).Draw(t, "root"), Source: "session"})
	return p
}

// TestCheckProperties: the same question has the same answer, a wider mode
// never allows less, and a refusal is whole.
func TestCheckProperties(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		p := w.drawPolicy(t)
		var fences []*fence.Fence
		for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite, fence.FullAccess} {
			p.Mode = m
			f, err := fence.New(p)
			if err != nil {
				t.Fatal(err)
			}
			fences = append(fences, f)
		}
		for range 20 {
			checkOne(t, fences, w.drawPath(t), rapid.SampledFrom(fence.Accesses).Draw(t, "access"))
		}
	})
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func checkOne(t fataler, fences []*fence.Fence, path string, a fence.Access) {
	t.Helper()
	allowed := false
	for _, f := range fences {
		d, again := f.Check(path, a), f.Check(path, a)
		if diff := cmp.Diff(d, again); diff != "" {
			t.Fatalf("%s %q: two answers: %s", a, path, diff)
		}
		if d != nil && allowed {
			t.Fatalf("%s %q is allowed in a narrower mode than %s: %v", a, path, f.Mode(), d)
		}
		allowed = d == nil
		if d == nil {
			continue
		}
		if d.Code != fence.CodeSandboxDenied || d.Verdict != fence.VerdictFence || d.Evidence != fence.EvidenceDecision ||
			d.Path != path || d.Requested != path || d.Access != a || d.Mode != f.Mode() || d.Rule == "" || d.RuleSource == "" ||
			d.Hint == "" || d.WritableRoots == nil || d.Error() == "" {
			t.Fatalf("not whole: %+v", d)
		}
		if d.Grant != nil && filepath.Clean(path) == path && (!filepath.IsAbs(d.Grant.Path) || filepath.Clean(d.Grant.Path) != d.Grant.Path) {
			t.Fatalf("grant %+v", d.Grant)
		}
	}
}

// TestGrantsHelp: a grant that is offered, added to the policy as the kind of
// entry it names, allows what was refused.
func TestGrantsHelp(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		p := w.drawPolicy(t)
		path, a := w.drawPath(t), rapid.SampledFrom(fence.Accesses).Draw(t, "access")
		f, err := fence.New(p)
		if err != nil {
			t.Fatal(err)
		}
		d := f.Check(path, a)
		if d == nil || d.Grant == nil || slices.Contains(f.WritableRoots(), path) {
			return
		}
		for _, e := range slices.Concat(p.Visible, p.ReadableRoots) {
			if fence.PathCovers(e.Path, path) {
				return // a more specific entry: no wider root changes that
			}
		}
		// A root must exist to be granted, and lie where it is said to.
		r, err := fence.Canonical(d.Grant.Path)
		if err != nil || r.Path != d.Grant.Path || d.Grant.Access != fence.Connect && !r.Exists {
			return
		}
		e := fence.Entry{Path: d.Grant.Path, Source: "session"}
		switch d.Grant.Access {
		case fence.Write:
			p.Writable = append(p.Writable, e)
		case fence.Read:
			p.ReadableRoots = append(p.ReadableRoots, e)
		case fence.Connect:
			p.UnixSockets = append(p.UnixSockets, e)
		default:
			t.Fatalf("grant of %s", d.Grant.Access)
		}
		g, err := fence.New(p)
		if err != nil {
			t.Fatal(err)
		}
		if still := g.Check(path, a); still != nil && still.Rule == d.Rule {
			t.Fatalf("%+v did not help: %v", d.Grant, still)
		}
	})
}

// FuzzCheck: no string makes the decision fall over, and the properties hold.
func FuzzCheck(f *testing.F) {
	w := newWorld(f)
	for _, s := range []string{
		"/", "", w.ws + "/f", w.ws + "/.git/hooks/x", "/\x00", "//", w.ws + "/..", w.home + "/.ssh/\xff", w.ws + "/.G\u0131t/hoo\u212as",
		"/dev/pts/0", w.ws + strings.Repeat("/.git/modules/a", 5), strings.Repeat("/*", 30), w.ws + "/[a", "\\\\?\\C:\\",
	} {
		for i := range fence.Accesses {
			f.Add(s, uint8(i))
		}
	}
	var fences []*fence.Fence
	for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite, fence.FullAccess} {
		fences = append(fences, mustNew(f, w.policy(m)))
	}
	f.Fuzz(func(t *testing.T, path string, access uint8) {
		a := fence.Accesses[int(access)%len(fence.Accesses)]
		checkOne(t, fences, path, a)
		d := fences[1].Check(path, a)
		clean := filepath.IsAbs(path) && filepath.Clean(path) == path && strings.IndexByte(path, 0) < 0
		if d == nil && a.Mutates() {
			in := false
			for _, r := range fences[1].WritableRoots() {
				in = in || fence.PathCovers(r, path)
			}
			if !clean || !in && !fence.PathCovers("/dev", path) {
				t.Fatalf("%s %q is allowed", a, path)
			}
		}
		if d == nil && !clean {
			t.Fatalf("%s %q is allowed", a, path)
		}
		if d == nil && a == fence.Read && fence.PathCovers(w.home+"/.ssh", path) && !fence.PathCovers(w.home+"/.ssh/config", path) {
			t.Fatalf("%q can be read", path)
		}
	})
}
