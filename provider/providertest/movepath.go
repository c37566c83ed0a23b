//go:build unix

package providertest

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// movePath moves; the paths are given as they are written.
func movePath(mode, from, to string, overwrite bool) op {
	return func(w *World) error {
		_, err := w.P.MovePath(w.T.Context(), w.mode(mode), w.Path(from), w.Path(to), provider.MovePathOptions{Overwrite: overwrite})
		return err
	}
}

// kinds are what can lie at a name, and how a snapshot has it.
var kinds = []struct {
	name string
	make func(w *World, at string)
	at   func(at string) disk
}{
	{"file", func(w *World, at string) { w.File(at, "old "+at[2:], 0o640) }, func(at string) disk { return disk{at: file(0o640, "old f")} }},
	{"empty file", func(w *World, at string) { w.File(at, "") }, func(at string) disk { return disk{at: file(0o644, "")} }},
	{"link", func(w *World, at string) { w.Link(at, "nowhere") }, func(at string) disk { return disk{at: "link nowhere"} }},
	{"link out", func(w *World, at string) { w.Link(at, w.O+"/x") }, nil},
	{"empty directory", func(w *World, at string) { w.Dir(at, 0o750) }, func(at string) disk { return disk{at: dir(0o750)} }},
	{"directory", func(w *World, at string) {
		w.Dir(at+"/sub", 0o711)
		w.File(at+"/sub/a", "A", 0o600)
		w.Link(at+"/l", "sub/a")
	}, func(at string) disk {
		return disk{at: dir(0o755), at + "/sub": dir(0o711), at + "/sub/a": file(0o600, "A"), at + "/l": "link sub/a"}
	}},
	{"FIFO", func(w *World, at string) { w.FIFO(at) }, nil},
	{"socket", func(w *World, at string) { w.Socket(at) }, nil},
}

// at gives what kind number i looks like at a name.
func (w *World) at(i int, name string) disk {
	if kinds[i].name == "link out" {
		return disk{name: "link " + w.O + "/x"}
	}
	return kinds[i].at(name)
}

// replaces is the code of putting one kind in the place of another when that
// was asked for.
func replaces(from, to string) provider.Code {
	isDir := strings.HasSuffix(from, "directory")
	switch {
	case from == "FIFO" || from == "socket":
		return provider.CodeNotRegularFile
	case to == "":
		return ""
	case isDir && to == "empty directory":
		return ""
	case isDir && to == "directory":
		return provider.CodeAlreadyExists
	case isDir:
		return provider.CodeNotDirectory
	case strings.HasSuffix(to, "directory") || to == "FIFO" || to == "socket":
		return provider.CodeNotRegularFile
	}
	return ""
}

func testMovePath(t *testing.T, mk Make) {
	const denied, exists = provider.CodeSandboxDenied, provider.CodeAlreadyExists
	for i, from := range kinds {
		t.Run("matrix/"+from.name, func(t *testing.T) {
			testMatrix(t, mk, i, func(w *World, overwrite bool) (provider.FileType, record.Outcome, error) {
				o, err := w.P.MovePath(t.Context(), w.WS, w.Path("W/f"), w.Path("W/g"), provider.MovePathOptions{Overwrite: overwrite})
				if err == nil && (o.Path != w.Path("W/g") || o.Copied || o.Trashed != nil || o.MetadataLost != nil) {
					t.Errorf("%+v", o)
				}
				return o.Type, o.Replaced, err
			}, true)
		})
	}
	tree := func(w *World) {
		w.Dir("W/d/sub")
		w.File("W/d/sub/a", "A")
		w.File("W/f", "F")
		w.Dir("O/od")
		w.File("O/of", "O")
	}
	gone := func(names ...string) disk {
		d := disk{}
		for _, n := range names {
			d[n] = "gone"
		}
		return d
	}
	with := func(d disk, more ...string) disk {
		for i := 0; i < len(more); i += 2 {
			d[more[i]] = more[i+1]
		}
		return d
	}
	run(t, mk, []row{
		{name: "into a directory below", disk: tree, do: movePath("ws", "W/f", "W/d/sub/f", false), after: with(gone("W/f"), "W/d/sub/f", file(0o644, "F"))},
		{name: "a directory up", disk: tree, do: movePath("ws", "W/d/sub", "W/s", false), after: with(gone("W/d/sub", "W/d/sub/a"), "W/s", dir(0o755), "W/s/a", file(0o644, "A"))},
		{name: "into itself", disk: tree, do: movePath("ws", "W/d", "W/d/sub/x", false), code: provider.CodeIOError},
		{name: "into itself, in full access", disk: tree, do: movePath("full", "W/d", "W/d/x", false), code: provider.CodeIOError},
		{name: "over what it lies in", disk: tree, do: movePath("ws", "W/d/sub", "W/d", true), code: exists},
		{name: "to itself", disk: tree, do: movePath("ws", "W/d", "W/d", false), code: provider.CodeSameTarget},
		{name: "to itself, spelled otherwise", disk: tree, do: movePath("ws", "W/d", "W/d/sub/../../d", true), code: provider.CodeSameTarget},
		{name: "nothing there", disk: tree, do: movePath("ws", "W/none", "W/x", false), code: provider.CodeNotFound},
		{name: "parent of the source missing", disk: tree, do: movePath("ws", "W/none/a", "W/x", false), code: provider.CodeNotFound},
		{name: "parent of the destination missing", disk: tree, do: movePath("ws", "W/f", "W/none/x", false), code: provider.CodeNotFound},
		{name: "below a file", disk: tree, do: movePath("ws", "W/d", "W/f/x", false), code: provider.CodeNotFound},
		{name: "a file to a directory's spelling", disk: tree, do: movePath("ws", "W/f", "W/x/", false), code: provider.CodeNotDirectory},
		{name: "a directory with slashes", disk: tree, do: movePath("ws", "W/d/sub/", "W/s/", false), after: with(gone("W/d/sub", "W/d/sub/a"), "W/s", dir(0o755), "W/s/a", file(0o644, "A"))},
		{name: "a link to a directory is moved itself", disk: func(w *World) { tree(w); w.Link("W/l", "d") }, do: movePath("ws", "W/l", "W/k", false), after: with(gone("W/l"), "W/k", "link d")},
		{name: "read-only file", disk: func(w *World) { w.File("W/f", "x", 0o444) }, do: movePath("ws", "W/f", "W/g", false), after: with(gone("W/f"), "W/g", file(0o444, "x"))},
		{name: "over a read-only file", disk: func(w *World) { w.File("W/f", "x"); w.File("W/g", "y", 0o444) }, do: movePath("ws", "W/f", "W/g", true), code: provider.CodePermissionDenied},
		{name: "closed directory of the source", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Dir("W/d", 0o555) }, do: movePath("ws", "W/d/f", "W/g", false), code: provider.CodePermissionDenied, as: "user"},
		{name: "closed directory of the destination", disk: func(w *World) { w.Dir("W/d", 0o555); w.File("W/f", "x") }, do: movePath("ws", "W/f", "W/d/f", false), code: provider.CodePermissionDenied, as: "user"},
		{name: "closed directory into another (its .. is written)", disk: func(w *World) { w.Dir("W/e"); w.Dir("W/d", 0o555) }, do: movePath("ws", "W/d", "W/e/d", false), code: provider.CodePermissionDenied, as: "user"},
		{name: "unreadable file moves fine", disk: func(w *World) { w.File("W/f", "x", 0) }, do: func(w *World) error {
			err := movePath("ws", "W/f", "W/g", false)(w)
			w.must(os.Chmod(w.Path("W/g"), 0o644))
			return err
		}, after: with(gone("W/f"), "W/g", file(0o644, "x")), as: "user"},

		// Escapes (E10): neither end may lie outside, however it is spelled.
		{name: "out", disk: tree, do: movePath("ws", "W/f", "O/x", false), code: denied},
		{name: "out by dots", disk: tree, do: movePath("ws", "W/f", "W/d/../../out/x", false), code: denied},
		{name: "in", disk: tree, do: movePath("ws", "O/of", "W/x", false), code: denied},
		{name: "the twin by name", disk: func(w *World) { tree(w); w.File("E/f", "e") }, do: movePath("ws", "E/f", "W/x", false), code: denied},
		{name: "out below a link", disk: func(w *World) { tree(w); w.Link("W/l", w.O) }, do: movePath("ws", "W/f", "W/l/x", false), code: denied},
		{name: "in from below a link", disk: func(w *World) { tree(w); w.Link("W/l", w.O) }, do: movePath("ws", "W/l/of", "W/x", false), code: denied},
		{name: "a link with a slash is no directory", disk: func(w *World) { tree(w); w.Link("W/l", w.O+"/od") }, do: movePath("ws", "W/l/", "W/x", false), code: provider.CodeNotDirectory},
		{name: "dots behind a link are where it leads", disk: func(w *World) { tree(w); w.Link("W/l", w.O+"/od") }, do: movePath("ws", "W/l/.", "W/x", false), code: denied},
		{name: "out below a dangling link", disk: func(w *World) { tree(w); w.Link("W/l", w.O+"/none") }, do: movePath("ws", "W/f", "W/l/x", false), code: denied},
		{name: "over a file outside", disk: tree, do: movePath("ws", "W/f", "O/of", true), code: denied},
		{name: "read-only", disk: tree, do: movePath("ro", "W/f", "W/x", false), code: denied},
		{name: "read-only, to itself", disk: tree, do: movePath("ro", "W/f", "W/f", false), code: denied},
		{name: "read-only, nothing there", disk: tree, do: movePath("ro", "W/none", "W/x", false), code: denied},
		{name: "the workspace", disk: tree, do: movePath("ws", "W", "W/x", false), code: denied},
		{name: "the workspace, in full access", disk: tree, do: movePath("full", "W", "O/x", false), code: provider.CodeIOError},
		{name: "what holds the workspace, in full access", disk: tree, do: movePath("full", "W/..", "W/../../x", false), code: provider.CodeIOError},
		{name: "over the workspace, in full access", disk: func(w *World) { w.Dir("O/d") }, do: movePath("full", "O/d", "W", true), code: provider.CodeIOError},
		{name: "full access", disk: tree, do: movePath("full", "O/of", "W/x", false), after: with(gone("O/of"), "W/x", file(0o644, "O"))},

		// Protected and hidden, the same verdict as a rename by a command gets.
		{name: "onto a protected name", disk: func(w *World) { tree(w); w.Dir("W/.git") }, do: movePath("ws", "W/f", "W/.git/hooks", false), code: denied},
		{name: "below a protected name", disk: func(w *World) { tree(w); w.Dir("W/.git/hooks") }, do: movePath("ws", "W/f", "W/.git/hooks/pre-commit", false), code: denied},
		{name: "a directory that would hold a protected name", disk: func(w *World) { w.Dir("W/d/hooks"); w.File("W/d/hooks/pre-commit", "x") }, do: movePath("ws", "W/d", "W/.git", false), code: denied},
		{name: "a link where a protected name would lie", disk: func(w *World) { w.Dir("W/d/hooks"); w.Link("W/l", "d") }, do: movePath("ws", "W/l", "W/.git", false), code: denied},
		{name: "a directory with protected names away (F13)", disk: func(w *World) { w.Dir("W/.git/hooks") }, do: movePath("ws", "W/.git", "W/x", false), code: denied},
		{name: "protected, other case (P09)", disk: func(w *World) { tree(w); w.Dir("W/.git") }, do: movePath("ws", "W/f", "W/.GIT/Hooks", false), code: denied},
		{name: "a protected file", disk: func(w *World) { w.Dir("W/.codex"); w.File("W/.codex/c", "x") }, do: movePath("ws", "W/.codex/c", "W/x", false), code: denied},
		{name: "a repository within the workspace, whose names stay protected", disk: func(w *World) { w.Dir("W/r/.git/hooks") }, do: movePath("ws", "W/r", "W/s", false),
			after: with(gone("W/r", "W/r/.git", "W/r/.git/hooks"), "W/s", dir(0o755), "W/s/.git", dir(0o755), "W/s/.git/hooks", dir(0o755))},
		{name: "a hidden file", disk: func(w *World) { w.File("W/k.secret", "x") }, do: movePath("ws", "W/k.secret", "W/k", false), code: denied},
		{name: "to a hidden name", disk: tree, do: movePath("ws", "W/f", "W/k.secret", false), code: denied},
	})
	t.Run("what comes from where less is protected is judged by its names", func(t *testing.T) {
		for _, tt := range []struct {
			name string
			make func(w *World)
			code provider.Code
		}{
			{"harmless", func(w *World) { w.Dir("O/d/sub"); w.File("O/d/sub/a", "A") }, ""},
			{"a hook in it", func(w *World) { w.Dir("O/d/.git/hooks"); w.File("O/d/.git/hooks/pre-commit", "A") }, denied},
			{"a hidden file in it", func(w *World) { w.Dir("O/d"); w.File("O/d/k.secret", "A") }, denied},
		} {
			t.Run(tt.name, func(t *testing.T) {
				w := NewWorld(t, mk(t))
				tt.make(w)
				p := w.WS.Policy()
				p.Caches = []fence.Entry{{Path: w.O, Source: "session"}}
				f, err := fence.New(p)
				w.must(err)
				before := w.snapshot()
				o, err := w.P.MovePath(t.Context(), f, w.Path("O/d"), w.Path("W/d"), provider.MovePathOptions{})
				w.checkError(err)
				if provider.CodeOf(err) != tt.code {
					t.Fatalf("%v", err)
				}
				want := disk{}
				if tt.code == "" {
					want = disk{"O/d": "gone", "O/d/sub": "gone", "O/d/sub/a": "gone", "W/d": dir(0o755), "W/d/sub": dir(0o755), "W/d/sub/a": file(0o644, "A")}
					if !o.Copied {
						t.Errorf("%+v", o)
					}
				}
				if got := changes(before, w.snapshot()); got.String() != want.String() {
					t.Errorf("changes:%v\nwant:%v", got, want)
				}
			})
		}
	})
	t.Run("a link to outside is moved itself", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("O/od")
		w.Link("W/l", w.O)
		before := w.snapshot()
		w.must(movePath("ws", "W/l", "W/k", false)(w))
		want := disk{"W/l": "gone", "W/k": "link " + w.O}
		if got := changes(before, w.snapshot()); got.String() != want.String() {
			t.Errorf("changes:%v", got)
		}
	})
	t.Run("two names of one file", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "x")
		w.must(os.Link(w.Path("W/f"), w.Path("W/g")))
		_, err := w.P.MovePath(t.Context(), w.WS, w.Path("W/f"), w.Path("W/g"), provider.MovePathOptions{Overwrite: true})
		w.must(err)
		if _, err := os.Lstat(w.Path("W/f")); err == nil {
			t.Error("rename(2) leaves both names; a move must not")
		}
		if b, err := os.ReadFile(w.Path("W/g")); err != nil || string(b) != "x" {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("what is moved is the same file", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "x", 0o754)
		before, err := os.Lstat(w.Path("W/f"))
		w.must(err)
		_, err = w.P.MovePath(t.Context(), w.WS, w.Path("W/f"), w.Path("W/g"), provider.MovePathOptions{})
		w.must(err)
		after, err := os.Lstat(w.Path("W/g"))
		w.must(err)
		if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) || before.Mode() != after.Mode() {
			t.Errorf("%v %v", before, after)
		}
	})
	t.Run("relative paths and dashes in names", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		w.File("W/d/-rf", "x")
		o, err := w.P.MovePath(t.Context(), w.WS, "-rf", "../ü b", provider.MovePathOptions{Cwd: w.W + "/d"})
		if err != nil || o.Path != w.W+"/ü b" || o.Type != provider.TypeFile {
			t.Errorf("%+v, %v", o, err)
		}
		for _, bad := range []string{"", "  ", "a\x00b"} {
			if _, err := w.P.MovePath(t.Context(), w.WS, bad, "x", provider.MovePathOptions{Cwd: w.W}); provider.CodeOf(err) != provider.CodeNotFound {
				t.Errorf("%q: %v", bad, err)
			}
			if _, err := w.P.MovePath(t.Context(), w.WS, "ü b", bad, provider.MovePathOptions{Cwd: w.W}); provider.CodeOf(err) != provider.CodeNotFound {
				t.Errorf("to %q: %v", bad, err)
			}
		}
	})
}

// testMatrix tries one kind of source with every kind of destination, with and
// without overwriting.
func testMatrix(t *testing.T, mk Make, i int, do func(w *World, overwrite bool) (provider.FileType, record.Outcome, error), move bool) {
	for j := -1; j < len(kinds); j++ {
		to := ""
		if j >= 0 {
			to = kinds[j].name
		}
		for _, overwrite := range []bool{false, true} {
			name := "over " + to
			if !overwrite {
				name = "beside " + to
			}
			t.Run(name, func(t *testing.T) {
				w := NewWorld(t, mk(t))
				kinds[i].make(w, "W/f")
				if j >= 0 {
					kinds[j].make(w, "W/g")
				}
				before := w.snapshot()
				want := replaces(kinds[i].name, to)
				if want == "" && to != "" && !overwrite {
					want = provider.CodeAlreadyExists
				}
				if !overwrite && to != "" && kinds[i].name != "FIFO" && kinds[i].name != "socket" {
					want = provider.CodeAlreadyExists
				}
				kind, replaced, err := do(w, overwrite)
				w.checkError(err)
				if provider.CodeOf(err) != want {
					t.Fatalf("code %q, want %q: %v", provider.CodeOf(err), want, err)
				}
				expect := disk{}
				if want == "" {
					if fi, err := os.Lstat(w.Path("W/g")); err != nil || typeOf(fi) != kind {
						t.Errorf("type %s: %v, %v", kind, fi, err)
					}
					if wantReplaced := map[bool]record.Outcome{true: record.Deleted}[to != ""]; replaced != wantReplaced {
						t.Errorf("replaced %q", replaced)
					}
					for n, what := range w.at(i, "W/g") {
						if before[n] != what {
							expect[n] = what
						}
					}
					if move {
						for n := range w.at(i, "W/f") {
							expect[n] = "gone"
						}
					}
				}
				if got := changes(before, w.snapshot()); got.String() != expect.String() {
					t.Errorf("changes:%v\nwant:%v", got, expect)
				}
			})
		}
	}
}

func typeOf(fi fs.FileInfo) provider.FileType {
	switch {
	case fi.Mode().IsRegular():
		return provider.TypeFile
	case fi.IsDir():
		return provider.TypeDirectory
	case fi.Mode()&fs.ModeSymlink != 0:
		return provider.TypeSymlink
	}
	return provider.TypeOther
}
