package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/policies"
)

func mkdir(t *testing.T, dirs ...string) {
	t.Helper()
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// house is a workspace, two policy directories and a place for other files.
type house struct{ ws, user, system, other string }

func newHouse(t *testing.T) (house, policies.Library) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := house{filepath.Join(base, "ws"), filepath.Join(base, "user"), filepath.Join(base, "system"), filepath.Join(base, "other")}
	mkdir(t, h.ws, h.user, h.system, h.other)
	return h, policies.Library{Dirs: []string{h.user, h.system}, Workspace: h.ws}
}

func TestLoad(t *testing.T) {
	h, l := newHouse(t)
	write(t, h.user+"/mine.toml", "description='of the user'\nnetwork='off'")
	write(t, h.system+"/mine.toml", "description='of the system'")
	write(t, h.system+"/all.toml", "description='of all'")
	write(t, h.user+"/bad.toml", "netwrok='off'")
	write(t, h.user+"/README", "no policy")
	for _, tc := range []struct{ name, description, code string }{
		{"mine", "of the user", ""},
		{"all", "of all", ""},
		{"git", "git hooks", ""},
		{"bad", "", policies.CodeInvalid},
		{"none", "", policies.CodeNotFound},
		{"", "", policies.CodeNotFound},
		{"../user/mine", "", policies.CodeNotFound},
		{h.user + "/mine", "", policies.CodeNotFound},
		{".mine", "", policies.CodeNotFound},
		{"Mine", "", policies.CodeNotFound},
		{"GIT", "", policies.CodeNotFound},
		{"mine\x00", "", policies.CodeNotFound},
		{strings.Repeat("a", 300), "", policies.CodeNotFound},
	} {
		d, err := l.Load(tc.name)
		if code(err) != tc.code || !strings.HasPrefix(d.Description, tc.description) {
			t.Errorf("%q: %q, %v", tc.name, d.Description, err)
		}
	}
	text, err := l.Text("mine")
	if err != nil || !strings.Contains(text, "network='off'") {
		t.Error(text, err)
	}
	if text, err := l.Text("base"); err != nil || !strings.Contains(text, "TMPPREFIX") {
		t.Error(text, err)
	}

	list := l.List()[len(policies.Presets()):]
	for i := range list {
		list[i].Problem, _, _ = strings.Cut(list[i].Problem, "\n")
	}
	want := []policies.Info{
		{Name: "bad", Source: h.user + "/bad.toml", Problem: `read policy bad:1:1: unknown key "netwrok": the keys are description, mode, writable, protected, unprotected, hide, visible, readable, readable_base, devices, network, unix_sockets, protect, require, scratch_in_read_only, attribute_reads, keep_overwritten, trash_commands, compat_tmp, env, caches`},
		{Name: "mine", Description: "of the user", Source: h.user + "/mine.toml"},
		{Name: "all", Description: "of all", Source: h.system + "/all.toml"},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}

	docs, err := l.Session("go", "mine", "git", "go")
	if err != nil || len(docs) != len(policies.Defaults())+2 {
		t.Error(len(docs), err)
	}
	if _, err := l.Session("go", "none"); code(err) != policies.CodeNotFound {
		t.Error(err)
	}
}

// TestPresetsNamesAreReserved: a file that would replace a preset could open
// what the preset closes.
func TestPresetsNamesAreReserved(t *testing.T) {
	h, l := newHouse(t)
	write(t, h.system+"/git.toml", "")
	if _, err := l.Load("git"); code(err) != policies.CodeRefused || !strings.Contains(err.Error(), h.system+"/git.toml") {
		t.Error(err)
	}
}

// TestNoPolicyFromTheWorkspace: by no name, link or mount.
func TestNoPolicyFromTheWorkspace(t *testing.T) {
	h, l := newHouse(t)
	const text = "hide = []"
	mkdir(t, h.ws+"/sub", h.ws+"-evil")
	good := write(t, h.other+"/good.toml", text)
	twin := write(t, h.ws+"-evil/p.toml", text)
	inside := write(t, h.ws+"/p.toml", text)
	deep := write(t, h.ws+"/sub/p.toml", text)
	for _, tc := range []struct {
		name, path string
		ok         bool
	}{
		{"outside", good, true},
		{"prefix twin", twin, true},
		{"link to outside", link(t, good, h.other+"/l1"), true},
		{"link of a directory outside", link(t, h.other, h.system+"/l") + "/good.toml", true},
		{"inside", inside, false},
		{"deep inside", deep, false},
		{"by dots", h.ws + "/../ws/p.toml", false},
		{"in and out again", h.ws + "/../other/good.toml", false},
		{"link to inside", link(t, inside, h.other+"/l2"), false},
		{"link to a link to inside", link(t, "l2", h.other+"/l3"), false},
		{"link of a directory to inside", link(t, h.ws, h.other+"/l4") + "/p.toml", false},
		{"link inside to outside", link(t, good, h.ws+"/l5"), false},
		{"link outside, over a link inside, to outside", link(t, h.ws+"/l5", h.other+"/l6"), false},
		{"directory link over the workspace", link(t, link(t, h.other, h.ws+"/d"), h.other+"/l7") + "/good.toml", false},
	} {
		_, err := l.LoadFile(tc.path)
		if tc.ok && err != nil || !tc.ok && code(err) != policies.CodeRefused {
			t.Errorf("%s: %v", tc.name, err)
		}
	}

	// A policy directory in the workspace, as when the workspace is ~/.config.
	l.Dirs = []string{h.ws}
	if _, err := l.Load("p"); code(err) != policies.CodeRefused {
		t.Error(err)
	}
	// A link in a policy directory to one.
	l.Dirs = []string{h.user}
	link(t, inside, h.user+"/p.toml")
	if _, err := l.Load("p"); code(err) != policies.CodeRefused {
		t.Error(err)
	}
	// The workspace by another name.
	l.Workspace = link(t, h.ws, h.other+"/w")
	if _, err := l.LoadFile(inside); code(err) != policies.CodeRefused {
		t.Error(err)
	}
	// Without a workspace there is nothing to refuse.
	l.Workspace = ""
	if _, err := l.LoadFile(inside); err != nil {
		t.Error(err)
	}
}

func TestFilesThatAreNoPolicies(t *testing.T) {
	h, l := newHouse(t)
	open := write(t, h.other+"/open.toml", "hide = []")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, code string }{
		{h.other, policies.CodeRefused},
		{open, policies.CodeRefused},
		{h.other + "/none.toml", policies.CodeNotFound},
		{"other/relative.toml", policies.CodeInvalid},
		{"", policies.CodeInvalid},
		{h.other + "/\x00", policies.CodeInvalid},
		{link(t, "loop", h.other+"/loop"), policies.CodeInvalid},
		{link(t, "gone", h.other+"/dangling"), policies.CodeNotFound},
		{write(t, h.other+"/big.toml", strings.Repeat("#", 1<<20+1)), policies.CodeInvalid},
		{"/dev/zero", policies.CodeRefused},
	} {
		if _, err := l.LoadFile(tc.path); code(err) != tc.code {
			t.Errorf("%q: %v", tc.path, err)
		}
	}
}
