package fence_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
)

// TestSubmoduleFilesAreFree: a pattern whose beginning ends in ** leads
// anywhere below, so nothing there is on the way.
func TestSubmoduleFilesAreFree(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, name := range []string{"/.git/modules/m/index", "/.git/modules/m/HEAD", "/.git/modules/a/b/c/objects/x", "/vendor/sub/.git/modules/m/refs/heads/x"} {
		for _, a := range mutates {
			if d := f.Check(w.ws+name, a); d != nil {
				t.Error(d)
			}
		}
	}
	if f.Check(w.ws+"/.git/modules/m", fence.Rename) == nil {
		t.Error("a submodule's git directory can be moved")
	}
}

// TestExceptionBelowAProtectedName: the outer .vscode is protected whatever
// lies deeper in it.
func TestExceptionBelowAProtectedName(t *testing.T) {
	verdict := protecting(t, newWorld(t), "**/.vscode", "node_modules")
	if !verdict(".vscode/node_modules/.vscode/x", fence.Create) {
		t.Error("a file in a protected directory can be made")
	}
}

// TestDecisionTakesNoTime: the longest path that the kernel takes, made to keep
// a backtracking matcher busy. A linear one needs about a millisecond.
func TestDecisionTakesNoTime(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, tail := range []string{strings.Repeat("/a", 2048), strings.Repeat("/.git/modules/a", 300), strings.Repeat("/.git/modules", 100) + strings.Repeat("/a", 2000)} {
		path := strings.TrimSuffix((w.ws + tail)[:4095], "/")
		start := time.Now()
		f.Check(path, fence.Create)
		if d := time.Since(start); d > time.Second {
			t.Errorf("%s… took %v", tail[:20], d)
		}
	}
}

// TestHiddenGlobBelowALink: the part before the first glob is a place like any
// other, and is resolved.
func TestHiddenGlobBelowALink(t *testing.T) {
	w := newWorld(t)
	mustLink(t, w.home, w.out+"/home")
	p := w.policy(fence.WorkspaceWrite)
	p.Hidden = []fence.Entry{{Path: w.out + "/home/.keepass*", Source: "preset:secrets"}}
	if got := decide(mustNew(t, p), w.home+"/.keepass2", fence.Read); got != "hidden" {
		t.Error(got)
	}
}

// TestHiddenInOtherCase (P09): ~/.SSH is ~/.ssh where names fold.
func TestHiddenInOtherCase(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, name := range []string{"/.SSH/id", "/.Aws/credentials", "/.KeePass2"} {
		if got := decide(f, w.home+name, fence.Read); got != "hidden" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNoEntryShowsOurOwn: Wattle's own directories are hidden from every
// fence. An entry below them is refused, or means nothing.
func TestNoEntryShowsOurOwn(t *testing.T) {
	w := newWorld(t)
	e := []fence.Entry{{Path: w.own + "/token", Source: "session"}}
	for name, set := range map[string]func(*fence.Policy){
		"visible":  func(p *fence.Policy) { p.Visible = e },
		"readable": func(p *fence.Policy) { p.ReadableRoots = e },
	} {
		p := w.policy(fence.WorkspaceWrite)
		set(&p)
		f, err := fence.New(p)
		if err != nil {
			continue
		}
		if got := decide(f, w.own+"/token", fence.Read); got != "hidden" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNothingHiddenIsMovedIntoSight: a directory that has a hidden path in it
// stays where it is, or the path gets another name.
func TestNothingHiddenIsMovedIntoSight(t *testing.T) {
	w := newWorld(t)
	p := w.policy(fence.WorkspaceWrite)
	p.Hidden = append(p.Hidden, fence.Entry{Path: w.ws + "/d/e/secret", Source: "session"})
	f := mustNew(t, p)
	for _, dir := range []string{"/d", "/d/e"} {
		if got := decide(f, w.ws+dir, fence.Rename); got != "hidden" {
			t.Errorf("rename %s: %s", dir, got)
		}
	}
}

// TestNoGrantThatCannotHelp: a path that is not clean gets none, and neither
// does the removal of a root, or a path that a more specific entry decides.
func TestNoGrantThatCannotHelp(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, path := range []string{"//", w.ws + "/..", w.ws + "/../x/", w.ws} {
		for _, a := range []fence.Access{fence.Delete, fence.Rename} {
			if d := f.Check(path, a); d == nil || d.Grant != nil {
				t.Errorf("%s %q: %+v", a, path, d)
			}
		}
	}
	// A more specific readable entry decides; a root above it changes nothing.
	if d := f.Check(w.home+"/.ssh/config", fence.Delete); d == nil || d.Grant != nil {
		t.Errorf("%+v", d)
	}
	// /tmp is everybody's (facts/presets section 1): TMPDIR is what helps.
	for _, path := range []string{"/tmp/x", "/var/tmp/x"} {
		if d := f.Check(path, fence.Create); d == nil || d.Grant != nil {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

// TestWorkspaceThatIsAFile: nothing can be opened on one.
func TestWorkspaceThatIsAFile(t *testing.T) {
	w := newWorld(t)
	p := w.policy(fence.WorkspaceWrite)
	p.Workspace = w.ws + "/f"
	if _, err := fence.New(p); policyCode(err) != fence.CodePolicyInvalid {
		t.Error(err)
	}
	if _, err := os.Stat(w.ws + "/f"); err != nil {
		t.Error(err)
	}
}
