package policies_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
)

func parse(t *testing.T, name, text string) policies.Document {
	t.Helper()
	d, err := policies.ParseTOML(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func inline(t *testing.T, text string) policies.Document {
	t.Helper()
	d, err := policies.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func build(t *testing.T, mode fence.Mode, docs ...policies.Document) fence.Policy {
	t.Helper()
	p, err := policies.Build(fixed(), mode, docs...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMode(t *testing.T) {
	wide := parse(t, "f", `mode = "full-access"`)
	narrow := inline(t, `{"mode":"workspace-write"}`)
	for _, tc := range []struct {
		asked fence.Mode
		docs  []policies.Document
		want  fence.Mode
	}{
		{"", nil, fence.ReadOnly},
		{"", policies.Defaults(), fence.ReadOnly},
		{"", []policies.Document{wide}, fence.FullAccess},
		{"", []policies.Document{narrow, wide}, fence.WorkspaceWrite}, // the session speaks last
		{fence.ReadOnly, []policies.Document{wide, narrow}, fence.ReadOnly},
	} {
		if got := build(t, tc.asked, tc.docs...).Mode; got != tc.want {
			t.Errorf("%q with %d documents: %s, want %s", tc.asked, len(tc.docs), got, tc.want)
		}
	}
}

func TestPathsOfEntries(t *testing.T) {
	d := parse(t, "f", `writable = [
"sub/dir", "~", "~/x", "{home}/y", "{workspace}/z", "{scratch}", "/abs//a/./b/", "/a/../b", "{{literal}}/x", "..",
"{env:JAVA_HOME}/gone", "{xdg_config}/two", "{xdg_runtime}/r", "{env:KUBECONFIG}"]`)
	var got []string
	for _, e := range build(t, fence.WorkspaceWrite, d).Writable {
		got = append(got, e.Path)
	}
	want := []string{
		"/home/u/w/sub/dir", "/home/u", "/home/u/x", "/home/u/y", "/home/u/w/z", "/home/u/.s/w-1", "/abs/a/b",
		"/a/../b", "/home/u/w/{literal}/x", "/home/u/w/..", // what .. means, links decide
		"/home/u/.config/two", "/cfg[1]/two", "/run/user/7/r", "/k/a", "/k/b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownPlaces: what a session may do without is left out, what a policy
// cannot mean without is an error.
func TestUnknownPlaces(t *testing.T) {
	c := policies.Context{Home: "/h", Workspace: "/w"}
	p, err := policies.Build(c, fence.WorkspaceWrite, append(policies.Defaults(), parse(t, "f", `writable = ["{scratch}/x", "{cache}", "{xdg_runtime}/s"]`))...)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Writable) != 0 || len(p.Caches) != 0 {
		t.Errorf("%v %v", p.Writable, p.Caches)
	}
	for name, v := range p.Env.Set {
		if !strings.HasPrefix(v, "/dev/") && v != "" {
			t.Errorf("%s=%s without a place to point to", name, v)
		}
	}
	for _, text := range []string{`writable=["~/x"]`, `hide=["{home}"]`, `visible=["{xdg_config}"]`} {
		_, err := policies.Build(policies.Context{Workspace: "/w", Home: "relative"}, "", parse(t, "mine", "\n"+text))
		if code(err) != policies.CodeInvalid || !strings.Contains(err.Error(), "mine:2: ") {
			t.Errorf("%s without a home: %v", text, err)
		}
	}
	_, err = policies.Build(policies.Context{Home: "/h"}, "", parse(t, "mine", `writable=["sub"]`))
	if code(err) != policies.CodeInvalid {
		t.Errorf("relative without a workspace: %v", err)
	}
}

func TestSources(t *testing.T) {
	p := build(t, fence.WorkspaceWrite, inline(t, `{"writable":["/s"]}`), parse(t, "mine", "\n\nwritable = [\n'/f']"),
		policies.Document{Writable: policies.Items("/code")})
	want := []fence.Entry{{Path: "/f", Source: "file:mine:4"}, {Path: "/s", Source: "session"}, {Path: "/code", Source: "session"}}
	if diff := cmp.Diff(want, p.Writable); diff != "" {
		t.Error(diff)
	}
}

func TestUnprotected(t *testing.T) {
	file := parse(t, "mine", "protected = ['**/mine']\nunprotected = ['**/.vscode']")
	session := inline(t, `{"unprotected":["**/mine"]}`)
	p := build(t, fence.WorkspaceWrite, append(policies.Defaults(), session, file)...)
	for _, r := range p.Protected {
		if r.Match == "**/.vscode" || r.Match == "**/mine" {
			t.Errorf("still protected: %+v", r)
		}
	}
	want := []string{"**/.vscode is not protected (file:mine:2)", "**/mine is not protected (session)"}
	if diff := cmp.Diff(want, p.Overrides); diff != "" {
		t.Error(diff)
	}
	// The others stay.
	if n, all := len(p.Protected), len(build(t, fence.WorkspaceWrite, policies.Defaults()...).Protected); n != all-1 {
		t.Errorf("%d of %d protections", n, all)
	}
	// A document may replace a protection by a narrower one.
	p = build(t, fence.WorkspaceWrite, append(policies.Defaults(), parse(t, "f",
		"unprotected=['**/.idea']\nprotected=[{match='**/.idea', not_under=['examples']}]"))...)
	found := 0
	for _, r := range p.Protected {
		if r.Match == "**/.idea" {
			found++
			if diff := cmp.Diff(fence.Protection{Match: "**/.idea", NotUnder: []string{"examples"}, Source: "file:f:2"}, r); diff != "" {
				t.Error(diff)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d protections of .idea", found)
	}
	// What nobody protects is a slip of the pen; what a preset protects that
	// this session does not have is not.
	_, err := policies.Build(fixed(), "", append(policies.Defaults(), parse(t, "mine", "unprotected=['.vscode']"))...)
	if code(err) != policies.CodeInvalid || !strings.Contains(err.Error(), "did you mean **/.vscode?") {
		t.Error(err)
	}
	if p := build(t, "", parse(t, "f", "unprotected=['**/.vscode']")); len(p.Overrides) != 0 {
		t.Error(p.Overrides)
	}
}

func TestHide(t *testing.T) {
	defaults := build(t, "", policies.Defaults()...)
	more := build(t, "", append(policies.Defaults(), inline(t, `{"hide":["~/private","~/*.kdbx"]}`))...)
	if len(more.Hidden) != len(defaults.Hidden)+2 || len(more.Overrides) != 0 {
		t.Errorf("%d hidden, %v", len(more.Hidden), more.Overrides)
	}
	none := build(t, "", append(policies.Defaults(), inline(t, `{"hide":[]}`))...)
	if len(none.Hidden) != 0 || len(none.Visible) != 0 || len(none.Own) != 1 {
		t.Errorf("%v %v %v", none.Hidden, none.Visible, none.Own)
	}
	if diff := cmp.Diff([]string{"nothing is hidden but Wattle's own directories (session)"}, none.Overrides); diff != "" {
		t.Error(diff)
	}
	// A later document hides again. null says nothing.
	again := build(t, "", append(policies.Defaults(), parse(t, "f", "hide = []"), inline(t, `{"hide":["/x"]}`))...)
	if diff := cmp.Diff([]fence.Entry{{Path: "/x", Source: "session"}}, again.Hidden); diff != "" {
		t.Error(diff)
	}
	if said := build(t, "", append(policies.Defaults(), inline(t, `{"hide":null}`))...); len(said.Hidden) != len(defaults.Hidden) {
		t.Error("null took hidden paths away")
	}
}

func TestReadable(t *testing.T) {
	list := parse(t, "f", `readable = ["/data"]`)
	p := build(t, "", append(policies.Defaults(), list)...)
	if p.ReadableRoots == nil || p.ReadableRoots[0].Path != "/data" || len(p.ReadableRoots) < 10 {
		t.Errorf("%v", p.ReadableRoots)
	}
	all := build(t, "", append(policies.Defaults(), list, inline(t, `{"readable":"all"}`))...)
	if all.ReadableRoots != nil || len(all.Overrides) != 1 {
		t.Errorf("%v %v", all.ReadableRoots, all.Overrides)
	}
	// A list whose only path stands for nothing is still a list: nothing opens.
	gone := build(t, "", parse(t, "f", `readable = ["{env:JAVA_HOME}"]`))
	if gone.ReadableRoots == nil || len(gone.ReadableRoots) != 0 {
		t.Errorf("%v", gone.ReadableRoots)
	}
}

func TestScalarsAndDevices(t *testing.T) {
	p := build(t, fence.WorkspaceWrite,
		inline(t, `{"network":"loopback","devices":[{"path":"/dev/null"}]}`),
		parse(t, "f", "network='off'\nprotect='off'\nrequire='best-effort'\nscratch_in_read_only=true\nattribute_reads=true\nkeep_overwritten=true\ntrash_commands=true\ncompat_tmp=true\ndevices=['/dev/kvm']"),
		policies.Defaults()[0])
	if p.Network != fence.NetworkLoopback || p.Protect != fence.ProtectOff || p.Require != fence.RequireBestEffort || !p.ScratchInReadOnly || !p.AttributeReads || !p.KeepOverwritten || !p.TrashCommands {
		t.Errorf("%+v", p)
	}
	last := p.Devices[len(p.Devices)-2:]
	if diff := cmp.Diff([]fence.Device{{Path: "/dev/kvm", Write: true}, {Path: "/dev/null"}}, last); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]fence.Entry{{Path: "/tmp", Source: "file:f"}}, p.Writable); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"protected paths are not kept from commands (file:f)", "commands start although the kernel cannot hold the fence (file:f)",
		"scratch is writable in read-only (file:f)", "the shared temporary directory is writable (file:f)",
	}
	if diff := cmp.Diff(want, p.Overrides); diff != "" {
		t.Error(diff)
	}
	// And off again.
	p = build(t, fence.WorkspaceWrite, parse(t, "f", "compat_tmp=true\nkeep_overwritten=true\ntrash_commands=true"), inline(t, `{"compatTmp":false,"keepOverwritten":false,"trashCommands":false}`))
	if len(p.Writable) != 0 || p.KeepOverwritten || p.TrashCommands {
		t.Error(p.Writable, p.KeepOverwritten, p.TrashCommands)
	}
	c := fixed()
	c.Env["TMPDIR"] = "/var/folders/x"
	p, err := policies.Build(c, "", inline(t, `{"compatTmp":true}`))
	if err != nil || len(p.Writable) != 2 || p.Writable[1].Path != "/var/folders/x" {
		t.Error(p.Writable, err)
	}
}

func TestEnvironment(t *testing.T) {
	docs := append(policies.Defaults(), parse(t, "f", `
[env]
pass = ["PATH", "MINE"]
[env.set]
GOCACHE = "{home}/.cache/go-build"
BRACES = "{{x}}"
RAW = "{env:KUBECONFIG}"
CONFIG = "{xdg_config}/x"
CARGO_HOME = "{env:CARGO_HOME}"
`))
	for _, tc := range []struct {
		mode    fence.Mode
		scratch bool // in read-only
		tmp     string
		pip     string
	}{
		{fence.WorkspaceWrite, false, "/home/u/.s/w-1", "/home/u/.cache/wattle/w/pip"},
		{fence.ReadOnly, false, "", ""}, // neither can be written
		{fence.ReadOnly, true, "/home/u/.s/w-1", ""},
	} {
		p := build(t, tc.mode, append(docs, policies.Document{ScratchInReadOnly: &tc.scratch})...)
		s := p.Env.Set
		if s["TMPDIR"] != tc.tmp || s["PIP_CACHE_DIR"] != tc.pip {
			t.Errorf("%s: TMPDIR=%s PIP_CACHE_DIR=%s", tc.mode, s["TMPDIR"], s["PIP_CACHE_DIR"])
		}
		if s["GOCACHE"] != "/home/u/.cache/go-build" || s["BRACES"] != "{x}" || s["RAW"] != "/k/a:/k/b:relative" || s["CONFIG"] != "/cfg[1]/x" {
			t.Errorf("%v", s)
		}
		if v, ok := s["CARGO_HOME"]; ok {
			t.Errorf("CARGO_HOME=%s came back", v)
		}
		if v, ok := s["NODE_REPL_HISTORY"]; !ok || v != "" {
			t.Error("an empty value is a value")
		}
	}
	c := fixed()
	c.Scratch, c.Cache = "/tmp/one", "/tmp/one"
	e, err := policies.Environment(c, docs...)
	if err != nil {
		t.Fatal(err)
	}
	if e.Set["TMPPREFIX"] != "/tmp/one/zsh" || e.Set["XDG_CACHE_HOME"] != "/tmp/one" || strings.Count(strings.Join(e.Pass, " ")+" ", "PATH ") != 2 {
		t.Errorf("%v", e) // GOPATH and PATH, each once
	}
}

// TestOrderOfDocuments: presets, files, session, whatever order they come in;
// the same preset counts once.
func TestOrderOfDocuments(t *testing.T) {
	file := parse(t, "f", "network='off'\nwritable=['/f']\nhide=['/hf']\nunprotected=['**/.idea']")
	session := inline(t, `{"network":"on","writable":["/s"],"hide":["/hs"],"env":{"set":{"TMPDIR":"/s"}}}`)
	all := append(policies.Defaults(), file, session)
	want := dump(build(t, fence.WorkspaceWrite, all...))
	rapid.Check(t, func(rt *rapid.T) {
		docs := rapid.Permutation(all).Draw(rt, "docs")
		// The order among presets is the caller's: keep it.
		presets := policies.Defaults()
		n := 0
		for i, d := range docs {
			if d.Origin != file.Origin && d.Origin != session.Origin {
				docs[i] = presets[n]
				n++
			}
		}
		docs = append(docs, presets[rapid.IntRange(0, 3).Draw(rt, "again")], file)
		p, err := policies.Build(fixed(), fence.WorkspaceWrite, docs...)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, dump(p)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestBuildLeavesDocumentsAlone: presets are shared by all sessions.
func TestBuildLeavesDocumentsAlone(t *testing.T) {
	before := dump(build(t, fence.WorkspaceWrite, policies.Defaults()...))
	p := build(t, fence.WorkspaceWrite, append(policies.Defaults(), parse(t, "f", "unprotected=['**/.git/config']\nhide=[]"))...)
	for i := range p.Protected {
		p.Protected[i].Match = "changed"
		for j := range p.Protected[i].NotUnder {
			p.Protected[i].NotUnder[j] = "changed"
		}
	}
	p.Env.Set["TMPDIR"] = "changed"
	p.Env.Pass[0] = "changed"
	p.Own[0] = "changed"
	if diff := cmp.Diff(before, dump(build(t, fence.WorkspaceWrite, policies.Defaults()...))); diff != "" {
		t.Error(diff)
	}
}

// TestHiddenGlobOfOddHome: what a placeholder brings in is taken literally.
func TestHiddenGlobOfOddHome(t *testing.T) {
	c := tempContext(t)
	c.Home += "[1]"
	c.Workspace = c.Home + "/w"
	mkdir(t, c.Workspace, c.Home+"/.ssh")
	p, err := policies.Build(c, fence.WorkspaceWrite, policies.Defaults()...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fence.New(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/.ssh/id_rsa", "/.keepass2", "/.config/chromium/x"} {
		if d := f.Check(c.Home+name, fence.Read); d == nil {
			t.Errorf("%s can be read", name)
		}
	}
	if d := f.Check(c.Home[:len(c.Home)-3]+"1/.ssh/x", fence.Read); d != nil {
		t.Error(d)
	}
}
