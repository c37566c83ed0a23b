package policies_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixed is a context in which every placeholder stands for something, some for
// several places, and the names have characters that mean something in a glob.
func fixed() policies.Context {
	return policies.Context{
		Home: "/home/u", Workspace: "/home/u/w", Scratch: "/home/u/.s/w-1", Cache: "/home/u/.cache/wattle/w",
		Own: []string{"/home/u/.config/wattle"},
		Env: map[string]string{
			"XDG_RUNTIME_DIR": "/run/user/7", "XDG_CONFIG_HOME": "/cfg[1]", "KUBECONFIG": "/k/a:/k/b:relative",
			"SSH_AUTH_SOCK": "/run/user/7/agent", "PIP_CONFIG_FILE": "/dev/null", "GNUPGHOME": "/home/u",
			"GOPATH": "/home/u/gp",
		},
	}
}

// dump writes a policy as lines that a person can compare.
func dump(p fence.Policy) string {
	var b strings.Builder
	line := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
	line("mode %s, network %q, protect %q, require %q", p.Mode, p.Network, p.Protect, p.Require)
	line("workspace %s, scratch %s, home %s, own %v", p.Workspace, p.Scratch, p.Home, p.Own)
	line("scratch in read-only %t, attribute reads %t", p.ScratchInReadOnly, p.AttributeReads)
	list := func(name string, es []fence.Entry) {
		for _, e := range es {
			line("%s %s (%s)", name, e.Path, e.Source)
		}
	}
	list("writable", p.Writable)
	list("cache", p.Caches)
	for _, r := range p.Protected {
		line("protected %s not under %v (%s)", r.Match, r.NotUnder, r.Source)
	}
	list("hidden", p.Hidden)
	list("visible", p.Visible)
	if p.ReadableRoots != nil {
		line("readable is a list")
	}
	list("readable", p.ReadableRoots)
	for _, d := range p.Devices {
		line("device %s write=%t ioctl=%t", d.Path, d.Write, d.Ioctl)
	}
	list("socket", p.UnixSockets)
	for _, n := range p.Env.Pass {
		line("pass %s", n)
	}
	for _, n := range slices.Sorted(maps.Keys(p.Env.Set)) {
		line("set %s=%s", n, p.Env.Set[n])
	}
	for _, o := range p.Overrides {
		line("override %s", o)
	}
	return b.String()
}

// TestGolden pins what each preset means, in workspace-write and with a list
// of readable paths, so that its base shows.
func TestGolden(t *testing.T) {
	list := policies.Document{Readable: &policies.Readable{Paths: policies.Items("/only")}}
	for _, i := range policies.Presets() {
		t.Run(i.Name, func(t *testing.T) {
			d, err := policies.Preset(i.Name)
			if err != nil {
				t.Fatal(err)
			}
			p, err := policies.Build(fixed(), fence.WorkspaceWrite, d, list)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "golden", i.Name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(dump(p)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), dump(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPresets(t *testing.T) {
	var names, defaults []string
	for _, i := range policies.Presets() {
		names = append(names, i.Name)
		if i.Default {
			defaults = append(defaults, i.Name)
		}
		if i.Description == "" || i.Source != "preset" || i.Problem != "" {
			t.Errorf("%+v", i)
		}
	}
	want := []string{"base", "secrets", "git", "agents", "ci-container", "docker", "go", "java", "node", "python", "rust", "ssh"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:4], defaults); diff != "" {
		t.Error(diff)
	}
	if _, err := policies.Preset("nope"); code(err) != policies.CodeNotFound {
		t.Error(err)
	}
}

// TestPresetsCompile: every preset, in every mode, on a home that has nothing
// and on one that has everything that the preset names.
func TestPresetsCompile(t *testing.T) {
	for _, i := range policies.Presets() {
		for _, mode := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite, fence.FullAccess} {
			for _, full := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/full=%t", i.Name, mode, full), func(t *testing.T) {
					c := tempContext(t)
					docs, err := policies.Library{Workspace: c.Workspace}.Session(i.Name)
					if err != nil {
						t.Fatal(err)
					}
					p, err := policies.Build(c, mode, docs...)
					if err != nil {
						t.Fatal(err)
					}
					if full {
						for _, e := range slices.Concat(p.Writable, p.Hidden, p.Visible) {
							if fence.PathCovers(c.Home, e.Path) {
								if err := os.MkdirAll(strings.ReplaceAll(e.Path, "*", "x"), 0o700); err != nil {
									t.Fatal(err)
								}
							}
						}
					}
					f, err := fence.New(p)
					if err != nil {
						t.Fatal(err)
					}
					in := f.Check(filepath.Join(c.Workspace, "a"), fence.Create)
					if (in == nil) != (mode != fence.ReadOnly) {
						t.Errorf("create in the workspace: %v", in)
					}
					for _, w := range f.WritableRoots() {
						if fence.PathCovers(w, c.Home) || w == "/" || fence.PathCovers(w, c.Own[0]) {
							t.Errorf("%s is writable", w)
						}
					}
					key := f.Check(filepath.Join(c.Home, ".ssh", "id_ed25519"), fence.Read)
					if (key == nil) != (mode == fence.FullAccess) {
						t.Errorf("read of a key: %v", key)
					}
				})
			}
		}
	}
}

// TestDefaultDecisions is the default set as a user meets it.
func TestDefaultDecisions(t *testing.T) {
	c := tempContext(t)
	p, err := policies.Build(c, fence.WorkspaceWrite, policies.Defaults()...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fence.New(p)
	if err != nil {
		t.Fatal(err)
	}
	w, h := c.Workspace, c.Home
	for _, tc := range []struct {
		path   string
		access fence.Access
		rule   fence.Rule // "" is allowed
		source string
	}{
		{w + "/main.go", fence.Create, "", ""},
		{c.Scratch + "/x", fence.Create, "", ""},
		{c.Cache + "/go-build/x", fence.Create, "", ""},
		{"/dev/null", fence.Write, "", ""},
		{"/dev/shm/x", fence.Create, fence.RuleOutside, "mode"},
		{h + "/x", fence.Create, fence.RuleOutside, "mode"},
		{h + "/.cache/x", fence.Create, fence.RuleOutside, "mode"},
		{h + "/.ssh/id_rsa", fence.Read, fence.RuleHidden, "preset:secrets"},
		{h + "/.ssh/config", fence.Read, "", ""},
		{h + "/.ssh/config", fence.Write, fence.RuleOutside, "mode"},
		{h + "/.ssh", fence.Read, fence.RuleHidden, "preset:secrets"},
		{h + "/.config/google-chrome-beta/Default/Cookies", fence.Read, fence.RuleHidden, "preset:secrets"},
		{h + "/.config/go/env", fence.Read, "", ""},
		{h + "/.keepassxc", fence.Read, fence.RuleHidden, "preset:secrets"},
		{h + "/.gitconfig", fence.Read, "", ""},
		{c.Own[0] + "/token", fence.Read, fence.RuleHidden, "mode"},
		// Hooks and configuration of git, at any depth, existing or not.
		{w + "/.git/hooks/pre-commit", fence.Create, fence.RuleProtected, "preset:git"},
		{w + "/.git/hooks/pre-commit.sample", fence.Create, "", ""},
		{w + "/.git/config", fence.Write, fence.RuleProtected, "preset:git"},
		{w + "/.git/config", fence.Read, "", ""},
		{w + "/.git/config.lock", fence.Create, "", ""},
		{w + "/.git/index", fence.Create, "", ""},
		{w + "/.git/refs/heads/config", fence.Create, "", ""},
		{w + "/vendor/sub/.git/hooks/pre-commit", fence.Create, fence.RuleProtected, "preset:git"},
		{w + "/.git/modules/x/hooks/post-checkout", fence.Create, fence.RuleProtected, "preset:git"},
		{w + "/.git/modules/a/b/c/config", fence.Write, fence.RuleProtected, "preset:git"},
		{w + "/.git/modules/a/modules/b/info/attributes", fence.Create, fence.RuleProtected, "preset:git"},
		{w + "/.git/worktrees/t/gitdir", fence.Write, fence.RuleProtected, "preset:git"},
		{w + "/.git/worktrees/t/HEAD", fence.Create, "", ""},
		{w + "/.git/modules/x/worktrees/t/commondir", fence.Write, fence.RuleProtected, "preset:git"},
		{w + "/.GIT/Hooks/x", fence.Create, fence.RuleProtected, "preset:git"},
		{w + "/config", fence.Create, "", ""},
		{w + "/hooks/x", fence.Create, "", ""},
		// Configuration of editors and agents.
		{w + "/.vscode/tasks.json", fence.Create, fence.RuleProtected, "preset:agents"},
		{w + "/a/b/.codex/config.toml", fence.Create, fence.RuleProtected, "preset:agents"},
		{w + "/.codex", fence.Mkdir, fence.RuleProtected, "preset:agents"},
		{w + "/.claude/settings.local.json", fence.Create, fence.RuleProtected, "preset:agents"},
		{w + "/.claude/notes.md", fence.Create, "", ""},
		{w + "/node_modules/p/.vscode/settings.json", fence.Create, "", ""},
		{w + "/.github/workflows/ci.yml", fence.Create, "", ""},
		{w + "/.gitmodules", fence.Create, "", ""},
		{w + "/AGENTS.md", fence.Create, "", ""},
		// Protections do not apply to what is nobody's configuration.
		{c.Scratch + "/r/.git/hooks/x", fence.Create, "", ""},
		{c.Cache + "/cargo/git/db/x/config", fence.Create, "", ""},
	} {
		got := f.Check(tc.path, tc.access)
		switch {
		case got == nil && tc.rule == "":
		case got == nil || got.Rule != tc.rule || got.RuleSource != tc.source:
			t.Errorf("%s %s: want %q from %q, got %v", tc.access, tc.path, tc.rule, tc.source, got)
		}
	}
}

func TestBaseHasTheDeviceListOfTheFence(t *testing.T) {
	p, err := policies.Build(fixed(), fence.ReadOnly, policies.Defaults()...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fence.DefaultDevices(), p.Devices); diff != "" {
		t.Error(diff)
	}
}

// tempContext is a home with a workspace, scratch, cache and our own directory.
func tempContext(t *testing.T) policies.Context {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := filepath.Join(base, "home")
	c := policies.Context{
		Home: h, Workspace: filepath.Join(h, "w"), Scratch: filepath.Join(base, "scratch"),
		Cache: filepath.Join(base, "cache"), Own: []string{filepath.Join(h, ".config", "wattle")},
		Env: map[string]string{"XDG_RUNTIME_DIR": filepath.Join(base, "run")},
	}
	for _, d := range []string{c.Workspace, c.Scratch, c.Cache, c.Own[0]} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
