//go:build unix

package providertest

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

func copyPath(mode, from, to string, o provider.CopyPathOptions) op {
	return func(w *World) error {
		_, err := w.P.CopyPath(w.T.Context(), w.mode(mode), w.Path(from), w.Path(to), o)
		return err
	}
}

func testCopyPath(t *testing.T, mk Make) {
	const denied, exists = provider.CodeSandboxDenied, provider.CodeAlreadyExists
	for i, from := range kinds {
		t.Run("matrix/"+from.name, func(t *testing.T) {
			testMatrix(t, mk, i, func(w *World, overwrite bool) (provider.FileType, record.Outcome, error) {
				o, err := w.P.CopyPath(t.Context(), w.WS, w.Path("W/f"), w.Path("W/g"), provider.CopyPathOptions{Overwrite: overwrite, Recursive: true})
				if err == nil && (o.Path != w.Path("W/g") || o.Trashed != nil || o.MetadataLost != nil) {
					t.Errorf("%+v", o)
				}
				return o.Type, o.Replaced, err
			}, false)
		})
	}
	tree := func(w *World) {
		w.Dir("W/d/sub", 0o711)
		w.File("W/d/sub/a", "A", 0o600)
		w.File("W/f", "F")
		w.Dir("O/od")
		w.File("O/od/of", "O")
	}
	rec := provider.CopyPathOptions{Recursive: true}
	one := provider.CopyPathOptions{}
	over := provider.CopyPathOptions{Recursive: true, Overwrite: true}
	copied := disk{"W/x": dir(0o755), "W/x/sub": dir(0o711), "W/x/sub/a": file(0o600, "A")}
	run(t, mk, []row{
		{name: "a directory", disk: tree, do: copyPath("ws", "W/d", "W/x", rec), after: copied},
		{name: "a directory with slashes", disk: tree, do: copyPath("ws", "W/d/", "W/x/", rec), after: copied},
		{name: "a directory that is not asked for", disk: tree, do: copyPath("ws", "W/d", "W/x", one), code: provider.CodeNotRegularFile},
		{name: "into itself", disk: tree, do: copyPath("ws", "W/d", "W/d/sub/x", rec), code: provider.CodeIOError},
		{name: "over what it lies in", disk: tree, do: copyPath("ws", "W/d/sub", "W/d", over), code: exists},
		{name: "to itself", disk: tree, do: copyPath("ws", "W/d", "W/d", over), code: provider.CodeSameTarget},
		{name: "nothing there", disk: tree, do: copyPath("ws", "W/none", "W/x", rec), code: provider.CodeNotFound},
		{name: "parent missing", disk: tree, do: copyPath("ws", "W/f", "W/none/x", rec), code: provider.CodeNotFound},
		{name: "a file to a directory's spelling", disk: tree, do: copyPath("ws", "W/f", "W/x/", one), code: provider.CodeNotDirectory},
		{name: "all bits of the mode", disk: func(w *World) { w.File("W/f", "x"); w.must(os.Chmod(w.Path("W/f"), 0o751|os.ModeSticky)) }, do: copyPath("ws", "W/f", "W/x", one), after: disk{"W/x": file(0o1751, "x")}},
		{name: "a directory without write permission", disk: func(w *World) {
			w.Dir("W/d/sub")
			w.File("W/d/sub/a", "A")
			w.Dir("W/d/sub", 0o555)
			w.Dir("W/d", 0o500)
		},
			do: func(w *World) error {
				err := copyPath("ws", "W/d", "W/x", rec)(w)
				w.T.Cleanup(func() { os.Chmod(w.Path("W/x"), 0o755); os.Chmod(w.Path("W/x/sub"), 0o755) })
				return err
			}, after: disk{"W/x": dir(0o500), "W/x/sub": dir(0o555), "W/x/sub/a": file(0o644, "A")}},
		{name: "a directory of others' links stays a link out", disk: func(w *World) { w.Dir("W/d"); w.Link("W/d/l", "../../out/od"); w.Dir("O/od"); w.File("O/od/of", "O") },
			do: copyPath("ws", "W/d", "W/x", rec), after: disk{"W/x": dir(0o755), "W/x/l": "link ../../out/od"}},
		{name: "a FIFO in the tree", disk: func(w *World) { tree(w); w.FIFO("W/d/sub/p") }, do: copyPath("ws", "W/d", "W/x", rec), code: provider.CodeNotRegularFile},
		{name: "a socket in the tree", disk: func(w *World) { tree(w); w.Socket("W/d/s") }, do: copyPath("ws", "W/d", "W/x", rec), code: provider.CodeNotRegularFile},
		{name: "an unreadable file", disk: func(w *World) { w.File("W/f", "x", 0o200) }, do: copyPath("ws", "W/f", "W/x", one), code: provider.CodePermissionDenied, as: "user"},
		{name: "an unreadable file in the tree", disk: func(w *World) { tree(w); w.File("W/d/sub/u", "x", 0) }, do: copyPath("ws", "W/d", "W/x", rec), code: provider.CodePermissionDenied, as: "user"},
		{name: "a closed directory in the tree", disk: func(w *World) { tree(w); w.Dir("W/d/c", 0o300) }, do: copyPath("ws", "W/d", "W/x", rec), code: provider.CodePermissionDenied, as: "user"},
		{name: "a directory in the tree that cannot be searched", disk: func(w *World) { w.Dir("W/d/c"); w.File("W/d/c/f", "x"); w.Dir("W/d/c", 0o600) }, do: copyPath("ws", "W/d", "W/x", rec), code: provider.CodePermissionDenied, as: "user"},
		{name: "into a closed directory", disk: func(w *World) { tree(w); w.Dir("W/c", 0o555) }, do: copyPath("ws", "W/f", "W/c/f", one), code: provider.CodePermissionDenied, as: "user"},
		{name: "over a read-only file", disk: func(w *World) { w.File("W/f", "x"); w.File("W/g", "y", 0o444) }, do: copyPath("ws", "W/f", "W/g", over), code: provider.CodePermissionDenied},

		// What may be read may be copied in, and nothing out (E10).
		{name: "in", disk: tree, do: copyPath("ws", "O/od", "W/x", rec), after: disk{"W/x": dir(0o755), "W/x/of": file(0o644, "O")}},
		{name: "in from below a link", disk: func(w *World) { tree(w); w.Link("W/l", w.O+"/od") }, do: copyPath("ws", "W/l/of", "W/x", one), after: disk{"W/x": file(0o644, "O")}},
		{name: "a link to outside stays a link", disk: func(w *World) { tree(w); w.Link("W/l", "../out/od") }, do: copyPath("ws", "W/l", "W/x", rec), after: disk{"W/x": "link ../out/od"}},
		{name: "out", disk: tree, do: copyPath("ws", "W/f", "O/x", one), code: denied},
		{name: "a directory out", disk: tree, do: copyPath("ws", "W/d", "O/x", rec), code: denied},
		{name: "out by dots", disk: tree, do: copyPath("ws", "W/f", "W/d/../../out/x", one), code: denied},
		{name: "to the twin by name", disk: tree, do: copyPath("ws", "W/f", "E/x", one), code: denied},
		{name: "out below a link", disk: func(w *World) { tree(w); w.Link("W/l", w.O) }, do: copyPath("ws", "W/f", "W/l/x", one), code: denied},
		{name: "out over what a link leads to", disk: func(w *World) { tree(w); w.Link("W/l", w.O+"/od/of") }, do: copyPath("ws", "W/f", "W/l", over), after: disk{"W/l": file(0o644, "F")}},
		{name: "read-only", disk: tree, do: copyPath("ro", "W/d", "W/x", rec), code: denied},
		{name: "read-only, nothing there", disk: tree, do: copyPath("ro", "W/none", "W/x", rec), code: denied},
		{name: "over the workspace, in full access", disk: tree, do: copyPath("full", "O/od", "W", over), code: provider.CodeIOError},
		{name: "full access", disk: tree, do: copyPath("full", "W/f", "O/x", one), after: disk{"O/x": file(0o644, "F")}},

		{name: "onto a protected name", disk: func(w *World) { tree(w); w.Dir("W/.git/hooks") }, do: copyPath("ws", "W/f", "W/.git/hooks/pre-commit", one), code: denied},
		{name: "a sample hook", disk: func(w *World) { tree(w); w.Dir("W/.git/hooks") }, do: copyPath("ws", "W/f", "W/.git/hooks/pre-commit.sample", one), after: disk{"W/.git/hooks/pre-commit.sample": file(0o644, "F")}},
		{name: "a tree with a protected name", disk: func(w *World) { w.Dir("W/d/.git/hooks"); w.File("W/d/.git/hooks/pre-commit", "x") }, do: copyPath("ws", "W/d", "W/x", rec), code: denied},
		{name: "a tree with a protected name deep down", disk: func(w *World) { w.Dir("O/d/a/b/.codex"); w.File("O/d/a/b/.codex/c", "x") }, do: copyPath("ws", "O/d", "W/x", rec), code: denied},
		{name: "a tree that would be what a protected name lies in", disk: func(w *World) { w.Dir("W/d/hooks"); w.File("W/d/hooks/pre-commit", "x") }, do: copyPath("ws", "W/d", "W/.git", rec), code: denied},
		{name: "a link where a protected name would lie", disk: func(w *World) { w.Link("W/l", "d") }, do: copyPath("ws", "W/l", "W/.codex", rec), code: denied},
		{name: "a protected file, away", disk: func(w *World) { w.Dir("W/.codex"); w.File("W/.codex/c", "x") }, do: copyPath("ws", "W/.codex/c", "W/x", one), after: disk{"W/x": file(0o644, "x")}},
		{name: "a hidden file", disk: func(w *World) { w.File("W/k.secret", "x") }, do: copyPath("ws", "W/k.secret", "W/x", one), code: denied},
		{name: "a hidden file, through its directory", disk: func(w *World) { tree(w); w.File("W/d/sub/k.secret", "x") }, do: copyPath("ws", "W/d", "W/x", rec), code: denied},
		{name: "a hidden directory in the tree", disk: func(w *World) { tree(w); w.Dir("W/d/k.secret") }, do: copyPath("ws", "W/d", "W/x", rec), code: denied},
		{name: "a hidden file, in full access", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/k.secret", "x") }, do: copyPath("full", "W/d", "W/x", rec), after: disk{"W/x": dir(0o755), "W/x/k.secret": file(0o644, "x")}},
	})
	t.Run("the refusal names the entry", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d/sub")
		w.File("W/d/sub/k.secret", "x")
		_, err := w.P.CopyPath(t.Context(), w.WS, w.Path("W/d"), w.Path("W/x"), rec)
		if err == nil || !strings.Contains(err.Error(), w.W+"/d/sub/k.secret") {
			t.Errorf("%v", err)
		}
	})
	t.Run("counts, times, hard links", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d/sub", 0o2755)
		w.must(os.Chmod(w.Path("W/d/sub"), 0o755|os.ModeSetgid))
		w.File("W/d/a", "12345")
		w.must(os.Link(w.Path("W/d/a"), w.Path("W/d/sub/b")))
		w.Link("W/d/l", "a")
		then := time.Unix(1_000_000_000, 123456000)
		for _, n := range []string{"W/d/a", "W/d/sub", "W/d"} {
			w.must(os.Chtimes(w.Path(n), then, then))
		}
		o, err := w.P.CopyPath(t.Context(), w.WS, w.Path("W/d"), w.Path("W/x"), rec)
		w.must(err)
		if o.Files != 3 || o.Bytes != 10 || o.Type != provider.TypeDirectory || o.MetadataLost != nil || o.Replaced != "" {
			t.Errorf("%+v", o)
		}
		for _, n := range []string{"W/x/a", "W/x/sub/b", "W/x/sub", "W/x"} {
			fi, err := os.Lstat(w.Path(n))
			w.must(err)
			if !fi.ModTime().Equal(then) {
				t.Errorf("%s: %v", n, fi.ModTime())
			}
			if fi.Mode().IsRegular() && fi.Sys().(*syscall.Stat_t).Nlink != 1 {
				t.Errorf("%s has other names", n)
			}
		}
		if fi, _ := os.Lstat(w.Path("W/x/sub")); fi.Mode()&os.ModeSetgid == 0 {
			t.Errorf("%v", fi.Mode())
		}
	})
	t.Run("cancelled before it begins", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		tree(w)
		before := w.snapshot()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.P.CopyPath(ctx, w.WS, w.Path("W/d"), w.Path("W/x"), rec)
		if provider.CodeOf(err) != provider.CodeAborted {
			t.Errorf("copy: %v", err)
		}
		_, err = w.P.MovePath(ctx, w.WS, w.Path("W/d"), w.Path("W/x"), provider.MovePathOptions{})
		if provider.CodeOf(err) != provider.CodeAborted {
			t.Errorf("move: %v", err)
		}
		if got := changes(before, w.snapshot()); len(got) != 0 {
			t.Errorf("changes:%v", got)
		}
	})
	for _, kind := range []string{"FIFO", "/dev/zero"} {
		t.Run("never waits: "+kind+" (E8)", func(t *testing.T) {
			w := NewWorld(t, mk(t))
			if kind == "FIFO" {
				w.FIFO("W/s")
			}
			from := map[string]string{"FIFO": w.Path("W/s"), "/dev/zero": "/dev/zero"}[kind]
			err := soon(t, "copyPath", func() error {
				_, err := w.P.CopyPath(t.Context(), w.Full, from, w.Path("W/x"), one)
				return err
			})
			if provider.CodeOf(err) != provider.CodeNotRegularFile {
				t.Errorf("%v", err)
			}
		})
	}
}
