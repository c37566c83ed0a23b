package fence_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/fence"
)

// TestDenialJSON is golden: the names and their order are the protocol's.
func TestDenialJSON(t *testing.T) {
	w := newWorld(t)
	p := w.policy(fence.WorkspaceWrite)
	p.Writable, p.Caches, p.Scratch = nil, nil, ""
	f := mustNew(t, p)
	ro := p
	ro.Mode = fence.ReadOnly
	listed := p
	listed.ReadableRoots = []fence.Entry{{Path: "/usr", Source: "file:mine:3"}}

	command := f.CheckAs(w.out+"/new", "../../../out/new", fence.Create)
	command.Syscall, command.PID, command.Process, command.Errno, command.Count = "openat", 7, "touch", "EACCES", 3
	command.Evidence = fence.EvidenceSupervisor
	for _, tc := range []struct {
		name string
		d    *fence.Denial
		want string
	}{
		{"outside, from the file API", f.CheckAs(w.out+"/secret", "/proc/self/root/x", fence.Write), `{
	"code": "FS_SANDBOX_DENIED",
	"path": "BASE/out/secret",
	"requested": "/proc/self/root/x",
	"access": "write",
	"mode": "workspace-write",
	"rule": "outside-writable-roots",
	"ruleSource": "mode",
	"writableRoots": [
		"BASE/home/dev/ws"
	],
	"hint": "write in BASE/home/dev/ws, or ask for a grant of BASE/out/secret",
	"grant": {
		"path": "BASE/out/secret",
		"access": "write"
	},
	"verdict": "fence",
	"evidence": "decision"
}`},
		{"outside, from a command", command, `{
	"code": "FS_SANDBOX_DENIED",
	"path": "BASE/out/new",
	"requested": "../../../out/new",
	"access": "create",
	"mode": "workspace-write",
	"rule": "outside-writable-roots",
	"ruleSource": "mode",
	"writableRoots": [
		"BASE/home/dev/ws"
	],
	"hint": "write in BASE/home/dev/ws, or ask for a grant of BASE/out",
	"grant": {
		"path": "BASE/out",
		"access": "write"
	},
	"syscall": "openat",
	"pid": 7,
	"process": "touch",
	"errno": "EACCES",
	"count": 3,
	"verdict": "fence",
	"evidence": "supervisor"
}`},
		{"system", f.Check("/etc/hosts", fence.Write), `{
	"code": "FS_SANDBOX_DENIED",
	"path": "/etc/hosts",
	"requested": "/etc/hosts",
	"access": "write",
	"mode": "workspace-write",
	"rule": "outside-writable-roots",
	"ruleSource": "mode",
	"writableRoots": [
		"BASE/home/dev/ws"
	],
	"hint": "write in BASE/home/dev/ws instead; no grant is offered for this path",
	"verdict": "fence",
	"evidence": "decision"
}`},
		{"protected", f.Check(w.ws+"/.git/config", fence.Write), `{
	"code": "FS_SANDBOX_DENIED",
	"path": "BASE/home/dev/ws/.git/config",
	"requested": "BASE/home/dev/ws/.git/config",
	"access": "write",
	"mode": "workspace-write",
	"rule": "protected",
	"ruleSource": "preset:git",
	"writableRoots": [
		"BASE/home/dev/ws"
	],
	"hint": "programs outside the fence run what is written here; ask the user to make this change",
	"verdict": "fence",
	"evidence": "decision"
}`},
		{"hidden", f.Check(w.home+"/.ssh/id", fence.Read), `{
	"code": "FS_SANDBOX_DENIED",
	"path": "BASE/home/.ssh/id",
	"requested": "BASE/home/.ssh/id",
	"access": "read",
	"mode": "workspace-write",
	"rule": "hidden",
	"ruleSource": "preset:secrets",
	"writableRoots": [
		"BASE/home/dev/ws"
	],
	"hint": "this path is hidden from the session; a policy can make it visible",
	"verdict": "fence",
	"evidence": "decision"
}`},
		{"read-only", mustNew(t, ro).Check(w.ws+"/f", fence.Delete), `{
	"code": "FS_SANDBOX_DENIED",
	"path": "BASE/home/dev/ws/f",
	"requested": "BASE/home/dev/ws/f",
	"access": "delete",
	"mode": "read-only",
	"rule": "read-only",
	"ruleSource": "mode",
	"writableRoots": [],
	"hint": "ask for workspace-write to change files in the workspace",
	"verdict": "fence",
	"evidence": "decision"
}`},
		{"unlisted", mustNew(t, listed).Check(w.out+"/secret", fence.Read), `{
	"code": "FS_SANDBOX_DENIED",
	"path": "BASE/out/secret",
	"requested": "BASE/out/secret",
	"access": "read",
	"mode": "workspace-write",
	"rule": "readable-roots",
	"ruleSource": "session",
	"writableRoots": [
		"BASE/home/dev/ws"
	],
	"hint": "the policy lists what can be read, and this path is not in it",
	"grant": {
		"path": "BASE/out/secret",
		"access": "read"
	},
	"verdict": "fence",
	"evidence": "decision"
}`},
		{"socket", f.Check("/run/docker.sock", fence.Connect), `{
	"code": "FS_SANDBOX_DENIED",
	"path": "/run/docker.sock",
	"requested": "/run/docker.sock",
	"access": "connect",
	"mode": "workspace-write",
	"rule": "unix-socket",
	"ruleSource": "mode",
	"writableRoots": [
		"BASE/home/dev/ws"
	],
	"hint": "sockets of programs outside the fence are closed; a policy can name this one",
	"grant": {
		"path": "/run/docker.sock",
		"access": "connect"
	},
	"verdict": "fence",
	"evidence": "decision"
}`},
	} {
		if tc.d == nil {
			t.Errorf("%s: allowed", tc.name)
			continue
		}
		text, err := json.Marshal(tc.d, jsontext.WithIndent("\t"))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(string(text), w.base, "BASE")
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		var back fence.Denial
		if err := json.Unmarshal(text, &back, json.RejectUnknownMembers(true)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		} else if diff := cmp.Diff(*tc.d, back); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// TestGrants: the smallest one, and none where a person should look first.
func TestGrants(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	parent := []fence.Access{fence.Create, fence.Delete, fence.Rename, fence.Link, fence.Mkdir, fence.Bind}
	self := []fence.Access{fence.Write, fence.Metadata}
	for _, tc := range []struct {
		path         string
		self, parent string // "" is none
	}{
		{w.out + "/d/x", w.out + "/d/x", w.out + "/d"},
		{w.evil + "/f", w.evil + "/f", w.evil},
		{w.home + "/x", w.home + "/x", ""}, // the parent is home
		{w.home, "", ""},
		{w.base + "/x", w.base + "/x", ""}, // the parent contains home
		{"/x", "/x", ""},
		{"/", "", ""},
		{"/etc/hosts", "", ""},
		{"/etc/x/y/z", "", ""},
		{"/usr/bin/x", "", ""},
		{"/dev/sda", "", ""},
		{"/proc/1/mem", "", ""},
		{"/sys/x", "", ""},
		{"/run/x", "", ""},
		{"/lib64/x", "", ""},
		{"/etcetera/x", "/etcetera/x", "/etcetera"}, // a prefix twin of a system directory
		{w.ws + "/.git/config", "", ""},
		{w.home + "/.ssh/id", "", ""},
		{w.own + "/x", "", ""},
		{w.home + "/.config/x", w.home + "/.config/x", ""}, // the parent contains our own
	} {
		for want, as := range map[string][]fence.Access{"self:" + tc.self: self, "parent:" + tc.parent: parent} {
			_, want, _ = strings.Cut(want, ":")
			for _, a := range as {
				d := f.Check(tc.path, a)
				if d == nil {
					t.Errorf("%s %s is allowed", a, tc.path)
					continue
				}
				switch {
				case d.Grant == nil && want == "":
				case d.Grant == nil || d.Grant.Path != want || d.Grant.Access != fence.Write:
					t.Errorf("%s %s: grant %+v, want %q", a, tc.path, d.Grant, want)
				}
				if d.Grant != nil && !strings.Contains(d.Hint, d.Grant.Path) || d.Grant == nil && d.Hint == "" {
					t.Errorf("%s %s: hint %q", a, tc.path, d.Hint)
				}
			}
		}
	}
	// Nothing is offered where the mode is what refuses.
	ro := mustNew(t, w.policy(fence.ReadOnly))
	for _, path := range []string{w.ws + "/f", w.out + "/secret"} {
		if d := ro.Check(path, fence.Write); d == nil || d.Grant != nil || d.Rule != fence.RuleReadOnly {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

// TestDenialIsAnError: one line that names access, path, mode, rule and what
// to do.
func TestDenialIsAnError(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	d := f.CheckAs("/etc/hosts", "../hosts", fence.Write)
	err := fmt.Errorf("write file: %w", d)
	var back *fence.Denial
	if !errors.As(err, &back) || back != d {
		t.Fatal("a denial does not survive wrapping")
	}
	for _, s := range []string{"write", "/etc/hosts", "workspace-write", "outside writable roots", w.ws} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q is not in %q", s, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("several lines: %q", err)
	}
}

// TestKey: equal refusals are counted, different ones listed.
func TestKey(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	a := *f.Check("/etc/hosts", fence.Write)
	a.PID = 1
	b := a
	b.PID, b.Requested, b.Count = 2, "hosts", 5
	if a.Key() != b.Key() {
		t.Error("the same refusal by another process of the same program counts apart")
	}
	for name, change := range map[string]func(*fence.Denial){
		"path":    func(d *fence.Denial) { d.Path = "/etc/host" },
		"access":  func(d *fence.Denial) { d.Access = fence.Delete },
		"rule":    func(d *fence.Denial) { d.Rule = fence.RuleHidden },
		"call":    func(d *fence.Denial) { d.Syscall = "openat" },
		"program": func(d *fence.Denial) { d.Process = "touch" },
	} {
		c := a
		change(&c)
		if c.Key() == a.Key() {
			t.Errorf("another %s is not told apart", name)
		}
	}
}

// TestRootsInADenialAreACopy: who changes a denial changes no fence.
func TestRootsInADenialAreACopy(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	d := f.Check("/etc/hosts", fence.Write)
	for i := range d.WritableRoots {
		d.WritableRoots[i] = "/"
	}
	for _, r := range f.Check("/etc/hosts", fence.Write).WritableRoots {
		if r == "/" || !filepath.IsAbs(r) {
			t.Errorf("%q", r)
		}
	}
}
