//go:build unix

package providertest

import (
	"os"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

func testLook(t *testing.T, mk Make) {
	tests := []struct {
		name string
		disk func(w *World)
		at   string
		// stat and lstat are the types, "" for absent; a code in capitals for
		// an error.
		stat, lstat string
		size        int64 // of stat, -1: do not care
		as          string
	}{
		{name: "file", disk: func(w *World) { w.File("W/x", "12345") }, at: "W/x", stat: "file", lstat: "file", size: 5},
		{name: "empty file", disk: func(w *World) { w.File("W/x", "") }, at: "W/x", stat: "file", lstat: "file"},
		{name: "directory", disk: func(w *World) { w.Dir("W/x") }, at: "W/x", stat: "directory", lstat: "directory", size: -1},
		{name: "FIFO", disk: func(w *World) { w.FIFO("W/x") }, at: "W/x", stat: "other", lstat: "other"},
		{name: "socket", disk: func(w *World) { w.Socket("W/x") }, at: "W/x", stat: "other", lstat: "other"},
		{name: "absent", at: "W/x"},
		{name: "absent parents", at: "W/a/b/x"},
		{name: "link to a file (F09)", disk: func(w *World) { w.File("W/f", "123"); w.Link("W/x", "f") }, at: "W/x", stat: "file", lstat: "symlink", size: 3},
		{name: "link to a directory", disk: func(w *World) { w.Dir("W/d"); w.Link("W/x", "d") }, at: "W/x", stat: "directory", lstat: "symlink", size: -1},
		{name: "dangling link (F09)", disk: func(w *World) { w.Link("W/x", "none") }, at: "W/x", lstat: "symlink"},
		{name: "below a dangling link", disk: func(w *World) { w.Link("W/d", "none") }, at: "W/d/x"},
		{name: "below a file", disk: func(w *World) { w.File("W/d", "1") }, at: "W/d/x"},
		{name: "link out", disk: func(w *World) { w.File("O/f", "1"); w.Link("W/x", w.O+"/f") }, at: "W/x", stat: "file", lstat: "symlink", size: 1},
		{name: "hidden", disk: func(w *World) { w.File("W/x.secret", "1") }, at: "W/x.secret", stat: "FS_SANDBOX_DENIED", lstat: "FS_SANDBOX_DENIED"},
		{name: "link to hidden", disk: func(w *World) { w.File("W/x.secret", "1"); w.Link("W/x", "x.secret") }, at: "W/x", stat: "FS_SANDBOX_DENIED", lstat: "symlink"},
		{name: "closed parent", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/x", "1"); w.Dir("W/d", 0o600) }, at: "W/d/x",
			stat: "FS_PERMISSION_DENIED", lstat: "FS_PERMISSION_DENIED", as: "user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.as == "user" && os.Geteuid() == 0 {
				t.Skip("SKIP: this row is for user")
			}
			w := NewWorld(t, mk(t))
			if tt.disk != nil {
				tt.disk(w)
			}
			key := provider.Target{TargetKey: provider.TargetKey(w.Path(tt.at)), DisplayPath: w.Path(tt.at)}
			i, err := w.P.Stat(t.Context(), w.WS, key)
			w.checkError(err)
			got := string(provider.CodeOf(err))
			if i != nil {
				got = string(i.Type)
				if i.Version == "" || i.Size == nil || tt.size >= 0 && *i.Size != tt.size {
					t.Errorf("stat gave %+v", i)
				}
			}
			if got != tt.stat {
				t.Errorf("stat: %q (%v), want %q", got, err, tt.stat)
			}
			l, err := w.P.Lstat(t.Context(), w.WS, w.Path(tt.at), provider.ResolveOptions{})
			w.checkError(err)
			got = string(provider.CodeOf(err))
			if l != nil {
				got = string(l.Type)
			}
			if got != tt.lstat {
				t.Errorf("lstat: %q (%v), want %q", got, err, tt.lstat)
			}
		})
	}
	t.Run("lstat below a link, relative, blank, root", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		w.Link("W/d/l", "none")
		w.Link("W/k", "d")
		for path, want := range map[string]provider.FileType{"k/l": provider.TypeSymlink, "k": provider.TypeSymlink, "k/": provider.TypeDirectory, "k/.": provider.TypeDirectory, "k/..": provider.TypeDirectory, "/": provider.TypeDirectory} {
			l, err := w.P.Lstat(t.Context(), w.WS, path, provider.ResolveOptions{Cwd: w.W})
			if err != nil || l == nil || l.Type != want {
				t.Errorf("lstat %s: %+v, %v; want %s", path, l, err, want)
			}
		}
		if _, err := w.P.Lstat(t.Context(), w.WS, "  ", provider.ResolveOptions{}); provider.CodeOf(err) != provider.CodeNotFound {
			t.Errorf("blank: %v", err)
		}
	})
	t.Run("stat of the root of the file system", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		i, err := w.P.Stat(t.Context(), w.WS, provider.Target{TargetKey: "/", DisplayPath: "/"})
		if err != nil || i == nil || i.Type != provider.TypeDirectory {
			t.Errorf("%+v, %v", i, err)
		}
	})
	t.Run("version changes after a rewrite of the same size with mtime restored", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "one")
		v := w.Version("W/f")
		fi, err := os.Stat(w.Path("W/f"))
		w.must(err)
		w.must(os.WriteFile(w.Path("W/f"), []byte("two"), 0o644))
		w.must(os.Chtimes(w.Path("W/f"), fi.ModTime(), fi.ModTime()))
		if w.Version("W/f") == v {
			t.Error("the version is the same")
		}
	})
	t.Run("version of an untouched file is the same", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "one")
		if a, b := w.Version("W/f"), w.Version("W/f"); a != b {
			t.Errorf("%s, then %s", a, b)
		}
	})
	t.Run("a key that no resolve makes", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		for _, k := range []string{"", "rel", "/a/../b", "/a//b", "/a/", "/a\x00"} {
			if _, err := w.P.Stat(t.Context(), w.WS, provider.Target{TargetKey: provider.TargetKey(k), DisplayPath: w.W}); provider.CodeOf(err) != provider.CodeNotFound {
				t.Errorf("key %q: %v", k, err)
			}
		}
	})
}
