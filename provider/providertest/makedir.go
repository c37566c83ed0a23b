//go:build unix

package providertest

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// makeDir makes a directory and compares what was made, by names of the world.
func makeDir(mode, name string, parents bool, made ...string) op {
	return func(w *World) error {
		out, err := w.P.MakeDir(w.T.Context(), w.mode(mode), w.Path(name), provider.MakeDirOptions{Parents: parents})
		var want []string
		for _, m := range made {
			want = append(want, w.Path(m))
		}
		if err == nil && !slices.Equal(out.Made, want) {
			w.T.Errorf("made %q, want %q", out.Made, want)
		}
		if err == nil && out.Made == nil {
			w.T.Error("made is null")
		}
		return err
	}
}

func testMakeDir(t *testing.T, mk Make) {
	const denied, exists, none = provider.CodeSandboxDenied, provider.CodeAlreadyExists, provider.CodeNotFound
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	for _, mode := range []string{"ws", "full"} {
		run(t, mk, []row{
			{name: mode + "/one", do: makeDir(mode, "W/d", false, "W/d"), after: disk{"W/d": dir(0o755)}},
			{name: mode + "/one with a slash", do: makeDir(mode, "W/d/", false, "W/d"), after: disk{"W/d": dir(0o755)}},
			{name: mode + "/one with a dot", do: makeDir(mode, "W/d/.", false, "W/d"), after: disk{"W/d": dir(0o755)}},
			{name: mode + "/parents missing", do: makeDir(mode, "W/a/b", false), code: none},
			{name: mode + "/parents", do: makeDir(mode, "W/a/b/c", true, "W/a", "W/a/b", "W/a/b/c"), after: disk{"W/a": dir(0o755), "W/a/b": dir(0o755), "W/a/b/c": dir(0o755)}},
			{name: mode + "/some parents", disk: func(w *World) { w.Dir("W/a") }, do: makeDir(mode, "W/a/b/c", true, "W/a/b", "W/a/b/c"), after: disk{"W/a/b": dir(0o755), "W/a/b/c": dir(0o755)}},
			{name: mode + "/through a link", disk: func(w *World) { w.Dir("W/a"); w.Link("W/l", "a") }, do: makeDir(mode, "W/l/b", false, "W/a/b"), after: disk{"W/a/b": dir(0o755)}},
			{name: mode + "/there", disk: func(w *World) { w.Dir("W/d") }, do: makeDir(mode, "W/d", false), code: exists},
			{name: mode + "/there, parents", disk: func(w *World) { w.Dir("W/d") }, do: madeNone(mode, "W/d")},
			{name: mode + "/workspace", do: makeDir(mode, "W", false), code: exists},
			{name: mode + "/file", disk: func(w *World) { w.File("W/f", "x") }, do: makeDir(mode, "W/f", false), code: exists},
			{name: mode + "/file, parents", disk: func(w *World) { w.File("W/f", "x") }, do: makeDir(mode, "W/f", true), code: exists},
			{name: mode + "/FIFO, parents", disk: func(w *World) { w.FIFO("W/p") }, do: makeDir(mode, "W/p", true), code: exists},
			{name: mode + "/below a file", disk: func(w *World) { w.File("W/f", "x") }, do: makeDir(mode, "W/f/d", true), code: none},
			{name: mode + "/dangling link", disk: func(w *World) { w.Link("W/l", "none") }, do: makeDir(mode, "W/l", true), code: exists},
			{name: mode + "/dangling parent", disk: func(w *World) { w.Link("W/l", "none") }, do: makeDir(mode, "W/l/d", true), code: none},
			{name: mode + "/link to a directory", disk: func(w *World) { w.Dir("W/d"); w.Link("W/l", "d") }, do: makeDir(mode, "W/l", false), code: exists},
			{name: mode + "/link to a directory, parents", disk: func(w *World) { w.Dir("W/d"); w.Link("W/l", "d") }, do: madeNone(mode, "W/l")},
			{name: mode + "/link to a file, parents", disk: func(w *World) { w.File("W/f", "x"); w.Link("W/l", "f") }, do: makeDir(mode, "W/l", true), code: exists},
			{name: mode + "/closed parent", as: "user", disk: func(w *World) { w.Dir("W/d", 0o555) }, do: makeDir(mode, "W/d/e", false), code: provider.CodePermissionDenied},
			{name: mode + "/closed parent, parents", as: "user", disk: func(w *World) { w.Dir("W/d", 0o555) }, do: makeDir(mode, "W/d/e/f", true), code: provider.CodePermissionDenied},
			{name: mode + "/name too long", do: makeDir(mode, "W/a/b/"+strings.Repeat("n", 256), true), code: provider.CodeIOError},
		})
	}
	for _, mode := range []string{"ws", "ro"} {
		for _, tt := range []struct {
			name string
			disk func(w *World)
			at   string
		}{
			{"outside (E10)", nil, "O/d"},
			{"outside, parents", nil, "O/a/b/d"},
			{"through a link out (E10)", func(w *World) { w.Link("W/d", w.O) }, "W/d/a/b"},
			{"through a dangling link out", func(w *World) { w.Link("W/d", w.O+"/none") }, "W/d/a"},
			{"dots (E10)", nil, "W/../out/d"},
			{"prefix twin (E10)", nil, "E/d"},
			{"there, outside", func(w *World) { w.Dir("O/d") }, "O/d"},
			{"protected", nil, "W/.codex/d"},
			{"protected itself", nil, "W/.codex"},
			{"hidden", nil, "W/k.secret"},
			{"hidden parent", nil, "W/k.secret/a/b"},
		} {
			run(t, mk, []row{{name: mode + "/" + tt.name, disk: tt.disk, do: makeDir(mode, tt.at, true), code: denied}})
		}
	}
	run(t, mk, []row{
		{name: "read-only", do: makeDir("ro", "W/d", false), code: denied},
		{name: "read-only, there", disk: func(w *World) { w.Dir("W/d") }, do: makeDir("ro", "W/d", true), code: denied},
		{name: "git makes its directory", do: makeDir("ws", "W/.git", false, "W/.git"), after: disk{"W/.git": dir(0o755)}},
	})
	t.Run("relative", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		out, err := w.P.MakeDir(t.Context(), w.WS, "a/b", provider.MakeDirOptions{Cwd: w.W, Parents: true})
		w.must(err)
		if out.Path != w.W+"/a/b" {
			t.Errorf("%+v", out)
		}
		if fi, err := os.Stat(out.Path); err != nil || !fi.IsDir() {
			t.Error(err)
		}
	})
}

// madeNone makes a directory that is there.
func madeNone(mode, name string) op {
	return func(w *World) error { return makeDir(mode, name, true)(w) }
}
