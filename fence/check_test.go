package fence_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

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
