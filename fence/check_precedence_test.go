package fence_test

import (
	"slices"
	"testing"

	"github.com/wattle-dev/wattle/fence"
)

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
