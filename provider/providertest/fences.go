//go:build unix

package providertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

func testFence(t *testing.T, mk Make) {
	const denied = provider.CodeSandboxDenied
	outside := []struct {
		name string
		disk func(w *World)
		at   string
	}{
		{"outside (E10)", nil, "O/new"},
		{"outside, existing", func(w *World) { w.File("O/new", "old") }, "O/new"},
		{"outside, missing parents", nil, "O/a/b/new"},
		{"prefix twin (E10)", nil, "E/new"},
		{"dots (E10)", nil, "W/../out/new"},
		{"dots to the twin", nil, "W/../ws-evil/new"},
		{"dangling link out (E10)", func(w *World) { w.Link("W/l", w.O+"/new") }, "W/l"},
		{"dangling link out by dots", func(w *World) { w.Link("W/l", "../out/new") }, "W/l"},
		{"two dangling links out", func(w *World) { w.Link("W/k", "../out/new"); w.Link("W/l", "k") }, "W/l"},
		{"missing leaf below a link out (E10)", func(w *World) { w.Link("W/d", w.O) }, "W/d/new"},
		{"missing levels below a link out (E10)", func(w *World) { w.Link("W/d", w.O) }, "W/d/a/b/new"},
		{"link and parent (F03)", func(w *World) { w.Dir("O/sub"); w.Link("W/link", w.O+"/sub") }, "W/link/../secret"},
		{"link to a file out", func(w *World) { w.File("O/f", "old"); w.Link("W/l", w.O+"/f") }, "W/l"},
		{"link to the root", func(w *World) { w.Link("W/r", "/") }, "W/r/wattle-probe"},
		{"through /proc", func(w *World) { w.Link("W/r", "/proc/self/root") }, "W/r/wattle-probe"},
		{"protected", func(w *World) { w.Dir("W/.git") }, "W/.git/hooks/pre-commit"},
		{"protected, parents missing (P03)", nil, "W/vendor/sub/.git/hooks/pre-commit"},
		{"protected, other case (P09)", nil, "W/.GIT/Hooks/pre-commit"},
		{"protected directory absent (S33)", nil, "W/.codex/config.toml"},
		{"protected directory as a file", nil, "W/.codex"},
		{"on the way to a protected one", nil, "W/.git"},
		{"through a link to a protected one", func(w *World) { w.Dir("W/.codex"); w.Link("W/l", ".codex") }, "W/l/x"},
		{"hidden", nil, "W/k.secret"},
		{"hidden, existing", func(w *World) { w.File("W/k.secret", "x") }, "W/k.secret"},
	}
	for _, tt := range outside {
		for _, mode := range []string{"ws", "ro"} {
			run(t, mk, []row{
				{name: mode + "/write " + tt.name, disk: tt.disk, do: write(mode, tt.at, "x", noGuard), code: denied},
				{name: mode + "/create " + tt.name, disk: tt.disk, do: write(mode, tt.at, "x", ifAbsent), code: denied},
				{name: mode + "/edit " + tt.name, disk: tt.disk, do: edit(mode, tt.at, "old", "x", provider.EditOptions{}), code: denied},
				// By key and displayPath, without a resolve that might refuse.
				{name: mode + "/direct " + tt.name, disk: tt.disk, do: direct(mode, tt.at), code: denied},
			})
		}
	}
	run(t, mk, []row{
		{name: "dots after a missing one, resolved", do: write("ws", "W/none/../../out/new", "x", noGuard), code: provider.CodeNotFound},
		{name: "dots after a missing one, direct", do: direct("ws", "W/none/../../out/new"), code: denied},
	})
	ro := func(w *World) { w.Dir("W/d"); w.File("W/f", "old"); w.Link("W/l", "f"); w.Link("W/dl", "none") }
	for _, at := range []string{"W/f", "W/new", "W/d", "W/d/new", "W/a/b", "W/l", "W/dl", "W", "W/f/x"} {
		run(t, mk, []row{
			{name: "read-only/write " + at + " (F01)", disk: ro, do: direct("ro", at), code: denied},
			{name: "read-only/edit " + at, disk: ro, do: func(w *World) error {
				_, err := w.P.EditText(w.T.Context(), w.RO, provider.Target{TargetKey: provider.TargetKey(filepath.Clean(w.Path(at))), DisplayPath: w.Path(at)},
					provider.EditRequest{OldString: "old", NewString: "x"}, provider.EditOptions{})
				return err
			}, code: denied},
		})
	}
	t.Run("system files (S51, P27)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		for _, path := range []string{"/etc/SHOULD_FAIL", "/etc/wattle-probe", "/opt/wattle-x/new", "/wattle-probe"} {
			for _, f := range []*fence.Fence{w.WS, w.RO} {
				_, err := w.P.WriteText(t.Context(), f, provider.Target{TargetKey: provider.TargetKey(path), DisplayPath: path}, "x", noGuard)
				if provider.CodeOf(err) != denied {
					t.Errorf("%s: %v", path, err)
				}
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s is there", path)
				}
			}
		}
		if _, err := os.Lstat("/opt/wattle-x"); err == nil {
			t.Error("a parent was made")
		}
	})
	t.Run("a denial says why (P29)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		_, err := w.P.WriteText(t.Context(), w.WS, provider.Target{TargetKey: "/etc/wattle-probe", DisplayPath: "/etc/wattle-probe"}, "x", noGuard)
		var d *fence.Denial
		var e *provider.Error
		if !errors.As(err, &d) || !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
		if d.Path != "/etc/wattle-probe" || d.Access != fence.Create || d.Mode != fence.WorkspaceWrite || d.Rule != fence.RuleOutside ||
			d.Verdict != fence.VerdictFence || d.Evidence != fence.EvidenceDecision || d.Grant != nil || d.Requested == "" {
			t.Errorf("%+v", d)
		}
		if e.Path != "/etc/wattle-probe" || e.Op != "writeText" || !contains(e.Error(), "workspace-write") {
			t.Errorf("%v", e)
		}
	})
	t.Run("the chain changed after resolve (E10)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/sub")
		w.Link("W/s", w.W+"/sub")
		target := w.Resolve("W/s/f")
		w.must(os.Remove(w.Path("W/sub")))
		w.Link("W/sub", w.O)
		before := w.snapshot()
		if _, err := w.P.WriteText(t.Context(), w.WS, target, "x", noGuard); provider.CodeOf(err) != denied {
			t.Error(err)
		}
		if d := changes(before, w.snapshot()); len(d) > 0 {
			t.Errorf("changes:%v", d)
		}
	})
	t.Run("a stale key, then the fresh one is written", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/one")
		w.Dir("W/two")
		w.File("W/one/f", "1")
		w.File("W/two/f", "2")
		w.Link("W/l", "one")
		target := w.Resolve("W/l/f")
		w.must(os.Remove(w.Path("W/l")))
		w.Link("W/l", "two")
		if _, err := w.P.WriteText(t.Context(), w.WS, target, "new", noGuard); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"W/one/f": "1", "W/two/f": "new"} {
			if b, _ := os.ReadFile(w.Path(name)); string(b) != want {
				t.Errorf("%s has %q", name, b)
			}
		}
	})
	t.Run("a wider stamp holds for one call", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		target := w.Resolve("O/f")
		for i, step := range []struct {
			f    *fence.Fence
			code provider.Code
		}{{w.WS, denied}, {w.Full, ""}, {w.WS, denied}, {w.RO, denied}} {
			if _, err := w.P.WriteText(t.Context(), step.f, target, "x", noGuard); provider.CodeOf(err) != step.code {
				t.Errorf("step %d: %v", i, err)
			}
		}
	})
	t.Run("root given as a link (F13), extra root (F15)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.must(os.Symlink(w.W, w.O+"/rootlink"))
		f, err := fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: w.O + "/rootlink", Writable: []fence.Entry{{Path: w.E, Source: "session"}}})
		w.must(err)
		for _, path := range []string{w.O + "/rootlink/a", w.W + "/b", w.E + "/c"} {
			target, err := w.P.Resolve(t.Context(), f, path, provider.ResolveOptions{})
			w.must(err)
			if _, err := w.P.WriteText(t.Context(), f, target, "x", noGuard); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if k := w.Resolve("W/a").TargetKey; string(k) != w.W+"/a" {
			t.Errorf("key %s", k)
		}
	})
	t.Run("no fence, no call", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		target := w.Resolve("W/f")
		if _, err := w.P.WriteText(t.Context(), nil, target, "x", noGuard); provider.CodeOf(err) != denied {
			t.Error(err)
		}
		if _, err := w.P.ReadText(t.Context(), nil, target, provider.ReadOptions{}); provider.CodeOf(err) != denied {
			t.Error(err)
		}
		if _, err := w.P.Resolve(t.Context(), nil, w.W, provider.ResolveOptions{}); provider.CodeOf(err) != denied {
			t.Error(err)
		}
	})
	t.Run("a displayPath that is not absolute is refused", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		target := w.Resolve("W/f")
		target.DisplayPath = "f"
		if _, err := w.P.WriteText(t.Context(), w.WS, target, "x", noGuard); provider.CodeOf(err) != denied {
			t.Error(err)
		}
	})
	t.Run("protected paths can be read", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/.codex")
		w.File("W/.codex/config.toml", "x")
		w.must(read("ws", "W/.codex/config.toml")(w))
	})
}

// direct writes without resolving first.
func direct(mode, name string) op {
	return func(w *World) error {
		t := provider.Target{TargetKey: provider.TargetKey(filepath.Clean(w.Path(name))), DisplayPath: w.Path(name)}
		_, err := w.P.WriteText(w.T.Context(), w.mode(mode), t, "x", noGuard)
		return err
	}
}

func testCancel(t *testing.T, mk Make) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	w := NewWorld(t, mk(t))
	w.File("W/f", "old")
	before := w.snapshot()
	target, absent := w.Resolve("W/f"), w.Resolve("W/a/b/f")
	for name, do := range map[string]func() error{
		"resolve":    func() error { _, err := w.P.Resolve(gone, w.WS, w.W, provider.ResolveOptions{}); return err },
		"stat":       func() error { _, err := w.P.Stat(gone, w.WS, target); return err },
		"stat, none": func() error { _, err := w.P.Stat(gone, w.WS, absent); return err },
		"lstat":      func() error { _, err := w.P.Lstat(gone, w.WS, w.W, provider.ResolveOptions{}); return err },
		"listDir":    func() error { _, err := w.P.ListDir(gone, w.WS, w.Resolve("W"), provider.ListOptions{}); return err },
		"readText":   func() error { _, err := w.P.ReadText(gone, w.WS, target, provider.ReadOptions{}); return err },
		"writeText":  func() error { _, err := w.P.WriteText(gone, w.WS, target, "x", noGuard); return err },
		"new":        func() error { _, err := w.P.WriteText(gone, w.WS, absent, "x", noGuard); return err },
		"denied":     func() error { _, err := w.P.WriteText(gone, w.RO, target, "x", noGuard); return err },
		"editText": func() error {
			_, err := w.P.EditText(gone, w.WS, target, provider.EditRequest{OldString: "old", NewString: "x"}, provider.EditOptions{})
			return err
		},
	} {
		err := do()
		if provider.CodeOf(err) != provider.CodeAborted || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d := changes(before, w.snapshot()); len(d) > 0 {
		t.Errorf("changes:%v", d)
	}
}
