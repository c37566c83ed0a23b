package fence_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/fence"
)

// protecting makes a fence with one protection and gives its verdict about
// paths relative to the workspace.
func protecting(t testing.TB, w world, match string, notUnder ...string) func(rel string, a fence.Access) bool {
	t.Helper()
	f := mustNew(t, fence.Policy{
		Mode: fence.WorkspaceWrite, Workspace: w.ws, Home: w.home,
		Protected: []fence.Protection{{Match: match, NotUnder: notUnder, Source: "session"}},
	})
	return func(rel string, a fence.Access) bool {
		d := f.Check(w.ws+"/"+rel, a)
		if d != nil && (d.Rule != fence.RuleProtected || d.RuleSource != "session") {
			t.Errorf("%s %s: %+v", a, rel, d)
		}
		return d != nil
	}
}

func TestPatterns(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		match string
		yes   []string
		no    []string
	}{
		{"a", []string{"a", "a/b", "A", "a/b/c"}, []string{"b/a", "ab", "a.", "x"}},
		{"/a/", []string{"a", "a/b"}, []string{"b/a"}},
		{"a/b", []string{"a/b", "a/B/c"}, []string{"a/c", "b", "x/a/b"}},
		{"**/a", []string{"a", "x/a", "x/y/z/a/b"}, []string{"xa", "x/ab"}},
		{"**/a/b", []string{"a/b", "x/a/b", "a/a/b", "a/b/a/b"}, []string{"a/x/b", "b"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b/c"}, []string{"x/a/b", "b", "ab"}},
		{"**/a/**/b", []string{"a/b", "x/a/y/z/b"}, []string{"b/a", "a"}},
		{"**/a/*/b", []string{"a/x/b", "z/a/x/b/c"}, []string{"a/b", "a/x/y/b"}},
		{"*.env", []string{".env", "x.env", "X.ENV", "x.env/y"}, []string{"a/x.env", "x.envy"}},
		{"**/settings*", []string{"settings", "a/settings.json", "Settings"}, []string{"asettings"}},
		{"**/id_?", []string{"id_a", "x/id_1"}, []string{"id_", "id_ab", "x/id_1x"}},
		{"**/[ab]c", []string{"ac", "BC", "x/bc"}, []string{"cc", "abc"}},
		{`**/\*`, []string{"*", "x/*"}, []string{"a"}},
		{"**/stra\u00dfe", []string{"stra\u00dfe", "STRA\u1e9eE"}, []string{"strasse"}},
		{"**/kelvin", []string{"\u212aELVIN", "kelvin"}, []string{"elvin"}},
		{"**/s", []string{"\u017f", "S"}, []string{"ss"}},
		{"**/\xff", []string{"\xff"}, []string{"x"}},
	} {
		verdict := protecting(t, w, tc.match)
		for _, rel := range tc.yes {
			if !verdict(rel, fence.Delete) {
				t.Errorf("%s does not protect %q", tc.match, rel)
			}
		}
		for _, rel := range tc.no {
			if verdict(rel, fence.Delete) {
				t.Errorf("%s protects %q", tc.match, rel)
			}
		}
	}
}

func TestNotUnder(t *testing.T) {
	w := newWorld(t)
	verdict := protecting(t, w, "**/.vscode", "node_modules", "Vendor")
	for rel, want := range map[string]bool{
		".vscode/x": true, "a/.vscode": true, "node_modules/p/.vscode/x": false, "NODE_MODULES/.vscode": false, "a/vendor/b/.vscode": false,
		"node_modules_/.vscode": true, ".vscode/node_modules/x": true, "a/node_modules/x": false,
	} {
		if got := verdict(rel, fence.Create); got != want {
			t.Errorf("%s: %t, want %t", rel, got, want)
		}
	}
}

// TestOnTheWay: what a pattern leads to cannot be moved or made as a file or
// link; what only might lead there through ** is free.
func TestOnTheWay(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		match string
		yes   []string
		no    []string
	}{
		{"**/.git/hooks", []string{".git", "a/.git", ".GIT"}, []string{"a", "hooks", ".gitx", "a/.git/x"}},
		{"**/.git/info/attributes", []string{".git", ".git/info", "a/.git/info"}, []string{"info", ".git/infox"}},
		{"conf/secure", []string{"conf", "CONF"}, []string{"a/conf", "conf/other"}},
		{"a/b/c", []string{"a", "a/b"}, []string{"a/x", "b"}},
		{"**/.claude/settings*", []string{".claude", "x/.claude"}, []string{"claude", "x"}},
		{"**/.codex", nil, []string{"a", "codex"}},
	} {
		verdict := protecting(t, w, tc.match)
		for _, a := range []fence.Access{fence.Rename, fence.Create, fence.Link, fence.Bind, fence.Write} {
			for _, rel := range tc.yes {
				if !verdict(rel, a) {
					t.Errorf("%s lets %s on %s", tc.match, a, rel)
				}
			}
			for _, rel := range tc.no {
				if verdict(rel, a) {
					t.Errorf("%s stops %s on %s", tc.match, a, rel)
				}
			}
		}
		for _, rel := range tc.yes {
			for _, a := range []fence.Access{fence.Mkdir, fence.Delete, fence.Metadata} {
				if verdict(rel, a) {
					t.Errorf("%s stops %s on %s", tc.match, a, rel)
				}
			}
		}
	}
	// Below an exception nothing leads anywhere.
	verdict := protecting(t, w, "**/.claude/settings*", "node_modules")
	if verdict("node_modules/p/.claude", fence.Rename) {
		t.Error("an excepted directory cannot be moved")
	}
}

// TestPatternsAgainstSimpleMatching compares the matcher with one that is
// slow, short and by definition: the regular meaning of a component sequence.
func TestPatternsAgainstSimpleMatching(t *testing.T) {
	w := newWorld(t)
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(rt *rapid.T) {
		segs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*", "**"}), 0, 4).Draw(rt, "segs")
		segs = append(segs, rapid.SampledFrom([]string{"a", "b", "*"}).Draw(rt, "last"))
		verdict := protecting(t, w, strings.Join(segs, "/"))
		for range 10 {
			comps := rapid.SliceOfN(names, 1, 7).Draw(rt, "comps")
			want := false
			for n := 1; n <= len(comps); n++ {
				want = want || simply(segs, comps[:n])
			}
			if got := verdict(strings.Join(comps, "/"), fence.Delete); got != want {
				rt.Fatalf("%v on %v: %t, want %t", segs, comps, got, want)
			}
		}
	})
}

func simply(segs, comps []string) bool {
	switch {
	case len(segs) == 0:
		return len(comps) == 0
	case segs[0] == "**":
		return simply(segs[1:], comps) || len(comps) > 0 && simply(segs, comps[1:])
	case len(comps) == 0:
		return false
	}
	return (segs[0] == "*" || segs[0] == comps[0]) && simply(segs[1:], comps[1:])
}
