//go:build unix

package providertest

import (
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

func testResolve(t *testing.T, mk Make) {
	long := strings.Repeat("n", 255)
	tests := []struct {
		name    string
		disk    func(w *World)
		path    string // W/…, or as it is when cwd is set
		cwd     string // W/…
		key     string // W/…
		display string // W/…, "" for the path itself
		code    provider.Code
	}{
		{name: "file", disk: func(w *World) { w.File("W/f", "x") }, path: "W/f", key: "W/f"},
		{name: "root", path: "W", key: "W"},
		{name: "missing leaf", path: "W/f", key: "W/f"},
		{name: "missing levels", path: "W/a/b/c", key: "W/a/b/c"},
		{name: "longest name", path: "W/" + long, key: "W/" + long},
		{name: "relative to the call's directory", disk: func(w *World) { w.Dir("W/d") }, path: "f", cwd: "W/d", key: "W/d/f", display: "W/d/f"},
		{name: "relative, with dots", disk: func(w *World) { w.Dir("W/d") }, path: "./x//y", cwd: "W/d", key: "W/d/x/y", display: "W/d/x/y"},
		{name: "link to a file", disk: func(w *World) { w.File("W/f", "x"); w.Link("W/l", "f") }, path: "W/l", key: "W/f"},
		{name: "link in the middle", disk: func(w *World) { w.Dir("W/d"); w.Link("W/l", "d") }, path: "W/l/f", key: "W/d/f"},
		{name: "link out", disk: func(w *World) { w.Link("W/l", w.O) }, path: "W/l/f", key: "O/f"},
		{name: "link and parent, as the kernel walks (F03)", disk: func(w *World) { w.Dir("O/d"); w.Link("W/l", w.O+"/d") }, path: "W/l/../f", key: "O/f"},
		{name: "dangling link", disk: func(w *World) { w.Link("W/l", "none") }, path: "W/l", key: "W/l"},
		{name: "trailing slash of a directory", disk: func(w *World) { w.Dir("W/d") }, path: "W/d/", key: "W/d", display: "W/d"},
		{name: "trailing slash of a file", disk: func(w *World) { w.File("W/f", "x") }, path: "W/f/", code: provider.CodeNotFound},
		{name: "file as a parent", disk: func(w *World) { w.File("W/f", "x") }, path: "W/f/g", code: provider.CodeNotFound},
		{name: "parent of something missing", path: "W/none/../f", code: provider.CodeNotFound},
		{name: "empty", path: "", cwd: "W", code: provider.CodeNotFound},
		{name: "blank", path: " \t\n", cwd: "W", code: provider.CodeNotFound},
		{name: "NUL", path: "a\x00b", cwd: "W", code: provider.CodeNotFound},
		{name: "loop", disk: func(w *World) { w.Link("W/a", "b"); w.Link("W/b", "a") }, path: "W/a/x", code: provider.CodeIOError},
		{name: "too long", path: "W/" + strings.Repeat("d/", 2100) + "f", code: provider.CodeIOError},
		{name: "hidden", disk: func(w *World) { w.File("W/k.secret", "x") }, path: "W/k.secret", code: provider.CodeSandboxDenied},
		{name: "file as a parent, hidden", disk: func(w *World) { w.File("W/k.secret", "x") }, path: "W/k.secret/x", code: provider.CodeSandboxDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			if tt.disk != nil {
				tt.disk(w)
			}
			path, o := tt.path, provider.ResolveOptions{}
			if tt.cwd != "" {
				o.Cwd = w.Path(tt.cwd)
			} else {
				path = w.Path(tt.path)
				o.Cwd = w.O // must not matter
			}
			got, err := w.P.Resolve(t.Context(), w.WS, path, o)
			if provider.CodeOf(err) != tt.code {
				t.Fatalf("error %v, want code %q", err, tt.code)
			}
			w.checkError(err)
			if err != nil {
				return
			}
			if want := w.Path(tt.key); string(got.TargetKey) != want {
				t.Errorf("key %s, want %s", got.TargetKey, want)
			}
			want := path
			if tt.display != "" {
				want = w.Path(tt.display)
			}
			if got.DisplayPath != want {
				t.Errorf("displayPath %s, want %s", got.DisplayPath, want)
			}
		})
	}
	t.Run("the key is the same before and after creation", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		w.Link("W/l", "d")
		before := w.Resolve("W/l/a/b/f")
		if _, err := w.P.WriteText(t.Context(), w.WS, before, "x", noGuard); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"W/l/a/b/f", "W/d/a/b/f"} {
			if after := w.Resolve(name); after.TargetKey != before.TargetKey {
				t.Errorf("%s: key %s, before %s", name, after.TargetKey, before.TargetKey)
			}
		}
	})
	t.Run("two links, one key (E5)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/real", "old\n")
		w.Link("W/link", "real")
		w.Dir("W/d")
		w.Link("W/d/l2", "../real")
		v := w.Version("W/link")
		for _, name := range []string{"W/link", "W/d/l2"} {
			if k := w.Resolve(name).TargetKey; string(k) != w.Path("W/real") {
				t.Errorf("%s has key %s", name, k)
			}
		}
		o, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/d/l2"), "new\n", ifVersion(v))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.P.EditText(t.Context(), w.WS, w.Resolve("W/link"), provider.EditRequest{OldString: "new", NewString: "newer"},
			provider.EditOptions{Expected: &provider.VersionGuard{Version: o.Version}}); err != nil {
			t.Fatal(err)
		}
		if l, err := os.Readlink(w.Path("W/link")); err != nil || l != "real" {
			t.Errorf("the link is %q now (%v)", l, err)
		}
		if b, _ := os.ReadFile(w.Path("W/real")); string(b) != "newer\n" {
			t.Errorf("real has %q", b)
		}
	})
	t.Run("names that only differ in their Unicode form are two files", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/\u00e9", "composed")
		if got := w.Resolve("W/e\u0301").TargetKey; string(got) != w.Path("W/e\u0301") {
			t.Errorf("key %q", got)
		}
	})
}

func testPure(t *testing.T, mk Make) {
	p := mk(t)
	at := func(path string) provider.Target { return provider.Target{TargetKey: provider.TargetKey(path)} }
	for _, tt := range []struct {
		parent, child string
		want          bool
	}{
		{"/ws", "/ws", true}, {"/ws", "/ws/a/b", true}, {"/", "/ws", true}, {"/", "/", true},
		{"/ws", "/ws-evil", false}, {"/ws", "/ws-evil/a", false}, {"/ws/a", "/ws", false}, {"/ws", "/", false},
		{"/ws", "/other", false}, {"/ws", "/ws..", false},
	} {
		if got := p.Contains(at(tt.parent), at(tt.child)); got != tt.want {
			t.Errorf("contains(%s, %s) = %v", tt.parent, tt.child, got)
		}
	}
	for path, want := range map[string]string{
		"/a/b": "file:///a/b", "/a b/%": "file:///a%20b/%25", "/q?x#y": "file:///q%3Fx%23y", "/": "file:///",
		"/\u00e9\n": "file:///%C3%A9%0A", "/bad\xff": "file:///bad%FF",
	} {
		if got := p.FileURL(at(path)); got != want {
			t.Errorf("fileUrl(%q) = %s, want %s", path, got, want)
		}
		if got := p.ProcessPath(at(path)); got != path {
			t.Errorf("processPath(%q) = %q", path, got)
		}
	}
}
