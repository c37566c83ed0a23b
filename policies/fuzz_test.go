package policies_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
)

// FuzzTOML: whatever the bytes, a document or an error with a place; what is
// accepted can be built, or names its document; and JSON says the same.
func FuzzTOML(f *testing.F) {
	files, err := filepath.Glob("*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, s := range []string{
		everythingTOML, "", "a", "[[protected]]\nmatch='x'\n[[protected]]", "[env.set]\n[env.set.A]", "env.set.A='{{}}'",
		"protected=[{match='a'},'b']\r\n", "hide=['{xdg_config}/*']", "\"mo\\u0064e\"='read-only'", "[env]\n[protected]\n",
		"devices=[[]]", "a.b.c=1\n[a]\nb=2", "writable=[\n#c\n'{home}',]", "protected=[{}]", "[[env]]", "[[a.b]]\n[a.b.c]\nd=1\n[[a.b]]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := policies.ParseTOML("fuzz", text)
		if err != nil {
			var e *policies.Error
			if !errors.As(err, &e) || e.Code != policies.CodeInvalid || e.Msg == "" || e.Line < 0 || e.Column < 0 {
				t.Fatalf("%#v", err)
			}
			return
		}
		checkBuild(t, d)
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := policies.ParseJSON(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if diff := cmp.Diff(d, again, ignoring); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzJSON: the same for inline policies.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{everythingJSON, `{}`, `null`, `{"hide":[]}`, `{"protected":[{"match":"a","notUnder":[null]}]}`, `{"readable":{}}`, `{"env":{"set":{"A":null}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := policies.ParseJSON(text)
		if err != nil {
			if code(err) != policies.CodeInvalid {
				t.Fatalf("%#v", err)
			}
			return
		}
		checkBuild(t, d)
	})
}

// checkBuild: a document that was accepted gives a policy that fence.New takes
// or refuses with a code, and no path in it is relative.
func checkBuild(t *testing.T, d policies.Document) {
	c := fixed()
	c.Home, c.Workspace, c.Scratch, c.Cache = "/nonexistent/home", "/nonexistent/home/w", "/nonexistent/s", "/nonexistent/c"
	p, err := policies.Build(c, fence.WorkspaceWrite, append(policies.Defaults(), d)...)
	if err != nil {
		if code(err) != policies.CodeInvalid {
			t.Fatalf("%#v", err)
		}
		return
	}
	for _, list := range [][]fence.Entry{p.Writable, p.Caches, p.Hidden, p.Visible, p.ReadableRoots, p.UnixSockets} {
		for _, e := range list {
			if !filepath.IsAbs(e.Path) || e.Source == "" {
				t.Fatalf("%+v", e)
			}
		}
	}
	p.Workspace = "" // there is no such directory
	// Not everything that a policy can say can be held by every version.
	p.Network, p.Protect, p.AttributeReads = "", "", false
	if _, err := fence.New(p); err != nil {
		var pe *fence.PolicyError
		if !errors.As(err, &pe) || pe.Code != fence.CodePolicyRootRefused {
			t.Fatalf("only roots may be refused now: %v", err)
		}
	}
}
