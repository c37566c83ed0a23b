package fence_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/fence"
)

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
