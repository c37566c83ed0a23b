//go:build unix

package providertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// deleteFile deletes a target that was not resolved: its displayPath is what
// counts in every mode but full-access.
func deleteFile(mode, name string, o provider.DeleteOptions) op {
	return func(w *World) error {
		t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(name), provider.ResolveOptions{})
		if err != nil {
			t = provider.Target{TargetKey: provider.TargetKey(filepath.Clean(w.Path(name))), DisplayPath: w.Path(name)}
		}
		_, err = w.P.DeleteFile(w.T.Context(), w.mode(mode), t, o)
		return err
	}
}

// deletePath deletes, and compares the outcome: that of the error, if any.
func deletePath(mode, name string, o provider.DeletePathOptions, want record.Outcome) op {
	return func(w *World) error {
		path := name
		if strings.HasPrefix(name, "W") || strings.HasPrefix(name, "O") || strings.HasPrefix(name, "E") {
			path = w.Path(name)
		}
		out, err := w.P.DeletePath(w.T.Context(), w.mode(mode), path, o)
		got := out.Outcome
		var e *provider.Error
		if errors.As(err, &e) {
			got = e.Outcome
		}
		if got != want {
			w.T.Errorf("outcome %q, want %q (%v)", got, want, err)
		}
		return err
	}
}

// hasTrash tells whether the provider can put things into a trash.
func (w *World) hasTrash() bool {
	w.T.Helper()
	w.File("W/probe", "")
	defer os.Remove(w.Path("W/probe"))
	out, err := w.P.DeleteFile(w.T.Context(), w.WS, w.Resolve("W/probe"), provider.DeleteOptions{})
	if err != nil && string(provider.CodeOf(err)) != record.CodeUnavailable {
		w.T.Fatal(err)
	}
	return err == nil && out.Outcome == record.Trashed
}

func seenAs(v provider.Version) *provider.VersionGuard { return &provider.VersionGuard{Version: v} }

func testDeleteFile(t *testing.T, mk Make) {
	const denied, stale, notReg, perm = provider.CodeSandboxDenied, provider.CodeStaleVersion, provider.CodeNotRegularFile, provider.CodePermissionDenied
	now := provider.DeleteOptions{Permanent: true}
	forced := provider.DeleteOptions{Permanent: true, OverrideReadOnly: true}
	f := func(w *World) { w.File("W/f", "text") }
	for _, mode := range []string{"ws", "full"} {
		run(t, mk, []row{
			{name: mode + "/file", disk: f, do: deleteFile(mode, "W/f", now), after: disk{"W/f": "gone"}},
			{name: mode + "/file through a link (C12)", disk: func(w *World) { f(w); w.Link("W/l", "f") }, do: deleteFile(mode, "W/l", now), after: disk{"W/f": "gone"}},
			{name: mode + "/one of two names", disk: func(w *World) { f(w); w.must(os.Link(w.Path("W/f"), w.Path("W/g"))) }, do: deleteFile(mode, "W/f", now), after: disk{"W/f": "gone"}},
			{name: mode + "/absent", do: deleteFile(mode, "W/f", now), code: stale},
			{name: mode + "/parents absent", do: deleteFile(mode, "W/a/b/f", now), code: stale},
			{name: mode + "/directory", disk: func(w *World) { w.Dir("W/d") }, do: deleteFile(mode, "W/d", now), code: notReg},
			{name: mode + "/FIFO (E8)", disk: func(w *World) { w.FIFO("W/p") }, do: deleteFile(mode, "W/p", now), code: notReg},
			{name: mode + "/socket (E8)", disk: func(w *World) { w.Socket("W/s") }, do: deleteFile(mode, "W/s", now), code: notReg},
			{name: mode + "/dangling link", disk: func(w *World) { w.Link("W/l", "none") }, do: deleteFile(mode, "W/l", now), code: stale},
			{name: mode + "/link to a directory", disk: func(w *World) { w.Dir("W/d"); w.Link("W/l", "d") }, do: deleteFile(mode, "W/l", now), code: notReg},
			{name: mode + "/0444", disk: func(w *World) { w.File("W/f", "x", 0o444) }, do: deleteFile(mode, "W/f", now), code: perm},
			{name: mode + "/0444, asked for", disk: func(w *World) { w.File("W/f", "x", 0o444) }, do: deleteFile(mode, "W/f", forced), after: disk{"W/f": "gone"}},
			{name: mode + "/closed parent", as: "user", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Dir("W/d", 0o555) }, do: deleteFile(mode, "W/d/f", now), code: perm},
			{name: mode + "/unreadable file", disk: func(w *World) { w.File("W/f", "x", 0o200) }, do: deleteFile(mode, "W/f", now), after: disk{"W/f": "gone"}},
			{name: mode + "/guard of a directory", disk: func(w *World) { w.Dir("W/d") }, do: func(w *World) error {
				return deleteFile(mode, "W/d", provider.DeleteOptions{Permanent: true, Expected: seenAs("nonsense")})(w)
			}, code: notReg},
			{name: mode + "/guard holds", disk: f, do: func(w *World) error {
				return deleteFile(mode, "W/f", provider.DeleteOptions{Permanent: true, Expected: seenAs(w.Version("W/f"))})(w)
			}, after: disk{"W/f": "gone"}},
			{name: mode + "/guard of another version (E7)", disk: f, do: func(w *World) error {
				v := w.Version("W/f")
				w.File("W/f", "newer")
				return deleteFile(mode, "W/f", provider.DeleteOptions{Permanent: true, Expected: seenAs(v)})(w)
			}, code: stale, after: disk{"W/f": file(0o644, "newer")}},
			{name: mode + "/guard, same size and time (E7)", disk: f, do: func(w *World) error {
				fi, err := os.Stat(w.Path("W/f"))
				w.must(err)
				v := w.Version("W/f")
				w.File("W/f", "TEXT")
				w.must(os.Chtimes(w.Path("W/f"), fi.ModTime(), fi.ModTime()))
				return deleteFile(mode, "W/f", provider.DeleteOptions{Permanent: true, Expected: seenAs(v)})(w)
			}, code: stale, after: disk{"W/f": file(0o644, "TEXT")}},
			{name: mode + "/guard of a file that went (E7)", disk: f, do: func(w *World) error {
				v := w.Version("W/f")
				w.must(os.Remove(w.Path("W/f")))
				return deleteFile(mode, "W/f", provider.DeleteOptions{Permanent: true, Expected: seenAs(v)})(w)
			}, code: stale, after: disk{"W/f": "gone"}},
			{name: mode + "/no version", disk: f, do: deleteFile(mode, "W/f", provider.DeleteOptions{Permanent: true, Expected: seenAs("nonsense")}), code: stale},
		})
	}
	for _, tt := range escapes() {
		for _, mode := range []string{"ws", "ro"} {
			run(t, mk, []row{
				{name: mode + "/deleteFile " + tt.name, disk: tt.disk, do: deleteFile(mode, tt.at, forced), code: denied},
				{name: mode + "/deleteFile into the trash, " + tt.name, disk: tt.disk, do: deleteFile(mode, tt.at, provider.DeleteOptions{}), code: denied},
			})
		}
	}
	run(t, mk, []row{{name: "read-only", disk: f, do: deleteFile("ro", "W/f", now), code: denied}})
	for _, tt := range []struct {
		name, file string
		want       *string
	}{
		{"text", "a\r\nb", ptr("a\nb")}, {"mark", "\xef\xbb\xbfa", ptr("a")}, {"empty", "", ptr("")},
		{"binary", "a\x00b", nil}, {"no text", "\xff", nil},
	} {
		t.Run("before/"+tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			w.File("W/f", tt.file)
			out, err := w.P.DeleteFile(t.Context(), w.WS, w.Resolve("W/f"), now)
			w.must(err)
			if (out.Before == nil) != (tt.want == nil) || out.Before != nil && *out.Before != *tt.want {
				t.Errorf("before %v", out.Before)
			}
			if out.Outcome != record.Deleted || out.Type != provider.TypeFile || out.Entries != 1 || out.Trashed != nil {
				t.Errorf("%+v", out)
			}
		})
	}
}

func ptr(s string) *string { return &s }

// escape is a place that no fence of these tests lets be changed, and what makes
// the way to it.
type escape struct {
	name string
	disk func(w *World)
	at   string
}

// escapes are those of E10 and their kin, for what removes or moves.
func escapes() []escape {
	out := func(w *World) { w.Dir("O/s"); w.File("O/s/f", "kept"); w.File("O/out.txt", "kept") }
	with := func(more func(w *World)) func(w *World) { return func(w *World) { out(w); more(w) } }
	return []escape{
		{"outside (E10)", out, "O/out.txt"},
		{"through a link out (E10)", with(func(w *World) { w.Link("W/d", w.O) }), "W/d/out.txt"},
		{"through a link out, deeper", with(func(w *World) { w.Link("W/d", w.O) }), "W/d/s/f"},
		{"dots (E10)", out, "W/../out/out.txt"},
		{"prefix twin (E10)", func(w *World) { w.File("E/f", "kept") }, "E/f"},
		{"dots to the twin", func(w *World) { w.File("E/f", "kept") }, "W/../ws-evil/f"},
		{"link and parent", with(func(w *World) { w.Link("W/l", w.O+"/s") }), "W/l/../out.txt"},
		{"through /proc", with(func(w *World) { w.Link("W/r", "/proc/self/root"+w.O) }), "W/r/out.txt"},
		{"absent, outside", nil, "O/none"},
		{"protected", func(w *World) { w.Dir("W/.git/hooks"); w.File("W/.git/hooks/pre-commit", "kept") }, "W/.git/hooks/pre-commit"},
		{"protected, other case", func(w *World) { w.Dir("W/.CODEX"); w.File("W/.CODEX/f", "kept") }, "W/.CODEX/f"},
		{"hidden", func(w *World) { w.File("W/k.secret", "kept") }, "W/k.secret"},
	}
}

func testDeletePath(t *testing.T, mk Make) {
	const denied, stale, notReg, perm = provider.CodeSandboxDenied, provider.CodeStaleVersion, provider.CodeNotRegularFile, provider.CodePermissionDenied
	const never = provider.Code(record.CodeRejected)
	now := provider.DeletePathOptions{Permanent: true}
	all := provider.DeletePathOptions{Permanent: true, Recursive: true}
	noLinks := provider.DeletePathOptions{Permanent: true, Links: provider.LinksReject}
	tree := func(w *World) {
		w.Dir("W/d/e")
		w.File("W/d/f", "x")
		w.File("W/d/e/g", "y", 0o444)
		w.FIFO("W/d/p")
		w.File("O/kept", "kept")
		w.Link("W/d/l", w.O)
		w.Link("W/d/e/dangling", "none")
		w.Dir("W/d/e/closed", 0o555)
	}
	treeGone := disk{"W/d": "gone", "W/d/e": "gone", "W/d/f": "gone", "W/d/e/g": "gone", "W/d/p": "gone", "W/d/l": "gone", "W/d/e/dangling": "gone", "W/d/e/closed": "gone"}
	for _, mode := range []string{"ws", "full"} {
		run(t, mk, []row{
			{name: mode + "/file", disk: func(w *World) { w.File("W/f", "x") }, do: deletePath(mode, "W/f", now, record.Deleted), after: disk{"W/f": "gone"}},
			{name: mode + "/0444, as rm -f", disk: func(w *World) { w.File("W/f", "x", 0o444) }, do: deletePath(mode, "W/f", now, record.Deleted), after: disk{"W/f": "gone"}},
			{name: mode + "/dangling link (C1)", disk: func(w *World) { w.Link("W/l", "nope") }, do: deletePath(mode, "W/l", now, record.Deleted), after: disk{"W/l": "gone"}},
			{name: mode + "/link, its target stays (C12)", disk: func(w *World) { w.File("W/t", "x"); w.Link("W/l", "t") }, do: deletePath(mode, "W/l", now, record.Deleted), after: disk{"W/l": "gone"}},
			{name: mode + "/link to a directory (C1)", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Link("W/l", "d") }, do: deletePath(mode, "W/l", all, record.Deleted), after: disk{"W/l": "gone"}},
			{name: mode + "/link out", disk: func(w *World) { w.File("O/f", "x"); w.Link("W/l", w.O) }, do: deletePath(mode, "W/l", all, record.Deleted), after: disk{"W/l": "gone"}},
			{name: mode + "/link with a slash", disk: func(w *World) { w.Dir("W/d"); w.Link("W/l", "d") }, do: deletePath(mode, "W/l/", all, record.Rejected), code: provider.CodeNotDirectory},
			{name: mode + "/file with a slash", disk: func(w *World) { w.File("W/f", "x") }, do: deletePath(mode, "W/f/", now, record.Rejected), code: provider.CodeNotDirectory},
			{name: mode + "/links rejected", disk: func(w *World) { w.Link("W/l", "nope") }, do: deletePath(mode, "W/l", noLinks, record.Rejected), code: notReg},
			{name: mode + "/absent", do: deletePath(mode, "W/f", now, record.AlreadyAbsent)},
			{name: mode + "/absent, into the trash", do: deletePath(mode, "W/f", provider.DeletePathOptions{}, record.AlreadyAbsent)},
			{name: mode + "/parents absent", do: deletePath(mode, "W/a/b/f", now, record.AlreadyAbsent)},
			{name: mode + "/below a file", disk: func(w *World) { w.File("W/f", "x") }, do: deletePath(mode, "W/f/x", now, record.Failed), code: provider.CodeNotFound},
			{name: mode + "/FIFO", disk: func(w *World) { w.FIFO("W/p") }, do: deletePath(mode, "W/p", all, record.Rejected), code: notReg},
			{name: mode + "/socket", disk: func(w *World) { w.Socket("W/s") }, do: deletePath(mode, "W/s", all, record.Rejected), code: notReg},
			{name: mode + "/empty directory", disk: func(w *World) { w.Dir("W/d") }, do: deletePath(mode, "W/d", now, record.Deleted), after: disk{"W/d": "gone"}},
			{name: mode + "/directory with a slash", disk: func(w *World) { w.Dir("W/d") }, do: deletePath(mode, "W/d/", now, record.Deleted), after: disk{"W/d": "gone"}},
			{name: mode + "/directory with a dot", disk: func(w *World) { w.Dir("W/d") }, do: deletePath(mode, "W/d/.", now, record.Deleted), after: disk{"W/d": "gone"}},
			{name: mode + "/full directory", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x") }, do: deletePath(mode, "W/d", now, record.Rejected), code: provider.CodeIOError},
			{name: mode + "/tree", disk: tree, do: deletePath(mode, "W/d", all, record.Deleted), after: treeGone},
			{name: mode + "/closed parent", as: "user", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Dir("W/d", 0o555) }, do: deletePath(mode, "W/d/f", now, record.Failed), code: perm},
			{name: mode + "/tree in a closed parent", as: "user", disk: func(w *World) { w.Dir("W/d/e"); w.File("W/d/e/f", "x"); w.Dir("W/d", 0o555) }, do: deletePath(mode, "W/d/e", all, record.Failed), code: perm},
			{name: mode + "/guard holds", disk: func(w *World) { w.File("W/f", "x") }, do: func(w *World) error {
				return deletePath(mode, "W/f", provider.DeletePathOptions{Permanent: true, Expected: seenAs(w.Version("W/f"))}, record.Deleted)(w)
			}, after: disk{"W/f": "gone"}},
			{name: mode + "/guard of another version", disk: func(w *World) { w.File("W/f", "x") }, do: deletePath(mode, "W/f", provider.DeletePathOptions{Permanent: true, Expected: seenAs("nonsense")}, record.Rejected), code: stale},
			{name: mode + "/guard of a directory", disk: func(w *World) { w.Dir("W/d") }, do: deletePath(mode, "W/d", provider.DeletePathOptions{Permanent: true, Expected: seenAs("nonsense")}, record.Rejected), code: notReg},
			{name: mode + "/blank", do: deletePath(mode, " ", now, record.Rejected), code: provider.CodeNotFound},
			{name: mode + "/no such value", disk: func(w *World) { w.File("W/f", "x") }, do: deletePath(mode, "W/f", provider.DeletePathOptions{Permanent: true, Links: "x"}, record.Rejected), code: provider.CodeIOError},
			// What is never deleted (C9).
			{name: mode + "/workspace (C9)", disk: tree, do: deletePath(mode, "W", all, record.Rejected), code: never},
			{name: mode + "/workspace, trash (C9)", disk: tree, do: deletePath(mode, "W", provider.DeletePathOptions{}, record.Rejected), code: never},
			{name: mode + "/workspace by dots (C9)", disk: tree, do: deletePath(mode, "W/d/..", all, record.Rejected), code: never},
			{name: mode + "/workspace through a link and a dot (C9)", disk: func(w *World) { tree(w); w.Link("W/self", ".") }, do: deletePath(mode, "W/self/.", all, record.Rejected), code: never},
			{name: mode + "/parent of the workspace (C9)", disk: tree, do: deletePath(mode, "W/..", all, record.Rejected), code: never},
			{name: mode + "/root (C9)", do: deletePath(mode, "/", all, record.Rejected), code: never},
			{name: mode + "/root, twice (C9)", do: deletePath(mode, "//", all, record.Rejected), code: never},
			{name: mode + "/dot (C9)", disk: tree, do: func(w *World) error {
				return deletePath(mode, ".", provider.DeletePathOptions{Cwd: w.W, Permanent: true, Recursive: true}, record.Rejected)(w)
			}, code: never},
			{name: mode + "/mount point", do: deletePath(mode, "/proc", all, record.Rejected), code: map[string]provider.Code{"ws": denied, "full": never}[mode]},
		})
	}
	for _, tt := range escapes() {
		for _, mode := range []string{"ws", "ro"} {
			run(t, mk, []row{
				{name: mode + "/deletePath " + tt.name, disk: tt.disk, do: deletePath(mode, tt.at, all, record.Rejected), code: denied},
				{name: mode + "/deletePath into the trash, " + tt.name, disk: tt.disk, do: deletePath(mode, tt.at, provider.DeletePathOptions{}, record.Rejected), code: denied},
			})
		}
	}
	hooks := func(w *World) {
		w.Dir("W/v/lib/.git/hooks")
		w.File("W/v/lib/.git/hooks/pre-commit", "x")
		w.File("W/v/f", "x")
	}
	run(t, mk, []row{
		{name: "a tree with something protected", disk: hooks, do: says(deletePath("ws", "W/v", all, record.Rejected), "lib/.git/hooks"), code: denied},
		{name: "a tree with something protected, trash", disk: hooks, do: deletePath("ws", "W/v", provider.DeletePathOptions{}, record.Rejected), code: denied},
		{name: "a tree with something hidden", disk: func(w *World) { w.Dir("W/v"); w.File("W/v/k.secret", "x") }, do: saysNot(deletePath("ws", "W/v", all, record.Rejected), "k.secret"), code: denied},
		{name: "a tree with something protected, full-access", disk: hooks, do: deletePath("full", "W/v", all, record.Deleted),
			after: disk{"W/v": "gone", "W/v/f": "gone", "W/v/lib": "gone", "W/v/lib/.git": "gone", "W/v/lib/.git/hooks": "gone", "W/v/lib/.git/hooks/pre-commit": "gone"}},
		{name: "read-only", disk: tree, do: deletePath("ro", "W/d", all, record.Rejected), code: denied},
		{name: "read-only, absent", do: deletePath("ro", "W/none", all, record.Rejected), code: denied},
	})
	t.Run("entries", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		tree(w)
		out, err := w.P.DeletePath(t.Context(), w.WS, w.Path("W/d"), all)
		w.must(err)
		if out.Entries != 8 || out.Type != provider.TypeDirectory || out.Before != nil {
			t.Errorf("%+v", out)
		}
	})
	t.Run("deep and wide", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		// Deeper than one path can name.
		name := strings.Repeat("n", 100)
		w.must(os.Mkdir(w.Path("W/deep"), 0o755))
		at, err := os.OpenRoot(w.Path("W/deep"))
		w.must(err)
		for range 60 {
			w.must(at.Mkdir(name, 0o755))
			next, err := at.OpenRoot(name)
			w.must(err)
			at.Close()
			at = next
		}
		at.Close()
		for i := range 300 {
			w.Dir(fmt.Sprintf("W/deep/w%d", i))
		}
		out, err := w.P.DeletePath(t.Context(), w.WS, w.Path("W/deep"), all)
		w.must(err)
		if out.Entries != 361 {
			t.Errorf("entries %d", out.Entries)
		}
		if _, err := os.Lstat(w.Path("W/deep")); !os.IsNotExist(err) {
			t.Errorf("still there: %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		tree(w)
		before := w.snapshot()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.P.DeletePath(gone, w.WS, w.Path("W/d"), all)
		_, err2 := w.P.DeleteFile(gone, w.WS, w.Resolve("W/d/f"), provider.DeleteOptions{Permanent: true})
		_, err3 := w.P.MakeDir(gone, w.WS, w.Path("W/new"), provider.MakeDirOptions{})
		for _, err := range []error{err, err2, err3} {
			if provider.CodeOf(err) != provider.CodeAborted {
				t.Error(err)
			}
		}
		if d := changes(before, w.snapshot()); len(d) > 0 {
			t.Errorf("changes:%v", d)
		}
	})
}

// says wants a text in the error; saysNot none.
func says(do op, text string) op {
	return func(w *World) error {
		err := do(w)
		if err == nil || !strings.Contains(err.Error(), text) {
			w.T.Errorf("%v does not say %q", err, text)
		}
		return err
	}
}

func saysNot(do op, text string) op {
	return func(w *World) error {
		err := do(w)
		if err != nil && strings.Contains(err.Error(), text) {
			w.T.Errorf("%v says %q", err, text)
		}
		return err
	}
}

// testTrash holds deletes to what they do with a trash, or without one.
func testTrash(t *testing.T, mk Make) {
	w := NewWorld(t, mk(t))
	if !w.hasTrash() {
		run(t, mk, []row{
			{name: "no trash/file", disk: func(w *World) { w.File("W/f", "x") }, do: says(deleteFile("ws", "W/f", provider.DeleteOptions{}), "permanent"), code: provider.Code(record.CodeUnavailable)},
			{name: "no trash/path", disk: func(w *World) { w.File("W/f", "x") }, do: says(deletePath("ws", "W/f", provider.DeletePathOptions{}, record.Failed), "permanent"), code: provider.Code(record.CodeUnavailable)},
			{name: "no trash/directory", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x") }, do: deletePath("ws", "W/d", provider.DeletePathOptions{Recursive: true}, record.Failed), code: provider.Code(record.CodeUnavailable)},
		})
		return
	}
	for _, tt := range []struct {
		name   string
		disk   func(w *World)
		at     string
		kind   provider.FileType
		before *string
	}{
		{"file", func(w *World) { w.File("W/x", "text", 0o640) }, "W/x", provider.TypeFile, ptr("text")},
		{"dangling link (C1)", func(w *World) { w.Link("W/x", "nope") }, "W/x", provider.TypeSymlink, nil},
		{"link to a directory (C1)", func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Link("W/x", w.W+"/d") }, "W/x", provider.TypeSymlink, nil},
		{"directory (C11)", func(w *World) { w.Dir("W/x/y"); w.File("W/x/y/two", "2", 0o444); w.FIFO("W/x/p") }, "W/x", provider.TypeDirectory, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			tt.disk(w)
			old, err := os.Lstat(w.Path(tt.at))
			w.must(err)
			before := w.snapshot()
			out, err := w.P.DeletePath(t.Context(), w.WS, w.Path(tt.at), provider.DeletePathOptions{})
			w.must(err)
			if out.Outcome != record.Trashed || out.Trashed == nil || out.Type != tt.kind || out.Entries != 0 {
				t.Fatalf("%+v", out)
			}
			if (out.Before == nil) != (tt.before == nil) || out.Before != nil && *out.Before != *tt.before {
				t.Errorf("before %v", out.Before)
			}
			if out.Trashed.OriginalPath != w.Path(tt.at) {
				t.Errorf("from %s", out.Trashed.OriginalPath)
			}
			in, err := os.Lstat(filepath.Join(out.Trashed.TrashDir, "files", out.Trashed.Name))
			if err != nil || !os.SameFile(old, in) || in.Mode() != old.Mode() || !in.ModTime().Equal(old.ModTime()) {
				t.Errorf("in the trash: %v, %v", in, err)
			}
			for name, what := range changes(before, w.snapshot()) {
				if what != "gone" || name != tt.at && !strings.HasPrefix(name, tt.at+"/") {
					t.Errorf("%s: %s", name, what)
				}
			}
		})
	}
	t.Run("deleteFile (C11)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/t", "x")
		w.Link("W/l", "t")
		out, err := w.P.DeleteFile(t.Context(), w.WS, w.Resolve("W/l"), provider.DeleteOptions{Expected: seenAs(w.Version("W/t"))})
		w.must(err)
		if out.Outcome != record.Trashed || out.Trashed == nil || out.Trashed.OriginalPath != w.Path("W/t") || out.Before == nil || *out.Before != "x" {
			t.Errorf("%+v", out)
		}
		if _, err := os.Lstat(w.Path("W/l")); err != nil {
			t.Error(err)
		}
	})
	run(t, mk, []row{
		{name: "closed parent (C3)", as: "user", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Dir("W/d", 0o555) }, do: deletePath("ws", "W/d/f", provider.DeletePathOptions{}, record.Failed), code: provider.CodePermissionDenied},
		{name: "stale", disk: func(w *World) { w.File("W/f", "x") }, do: deleteFile("ws", "W/f", provider.DeleteOptions{Expected: seenAs("nonsense")}), code: provider.CodeStaleVersion},
		{name: "permanent says another word (C11)", disk: func(w *World) { w.File("W/f", "x") }, do: deletePath("ws", "W/f", provider.DeletePathOptions{Permanent: true}, record.Deleted), after: disk{"W/f": "gone"}},
	})
}
