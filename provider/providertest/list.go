//go:build unix

package providertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

func contains(s, sub string) bool { return strings.Contains(s, sub) }

func list(mode, name string) op {
	return func(w *World) error {
		t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(name), provider.ResolveOptions{})
		if err != nil {
			return err
		}
		_, err = w.P.ListDir(w.T.Context(), w.mode(mode), t, provider.ListOptions{})
		return err
	}
}

func testListDir(t *testing.T, mk Make) {
	run(t, mk, []row{
		{name: "missing", do: list("ws", "W/d"), code: provider.CodeNotFound},
		{name: "file", disk: func(w *World) { w.File("W/d", "x") }, do: list("ws", "W/d"), code: provider.CodeNotDirectory},
		{name: "FIFO", disk: func(w *World) { w.FIFO("W/d") }, do: list("ws", "W/d"), code: provider.CodeNotDirectory},
		{name: "dangling link", disk: func(w *World) { w.Link("W/d", "none") }, do: list("ws", "W/d"), code: provider.CodeNotFound},
		{name: "empty", disk: func(w *World) { w.Dir("W/d") }, do: list("ro", "W/d")},
		{name: "hidden", disk: func(w *World) { w.Dir("W/d.secret") }, do: list("ro", "W/d.secret"), code: provider.CodeSandboxDenied},
		{name: "unreadable", disk: func(w *World) { w.Dir("W/d", 0o300) }, do: list("ws", "W/d"), code: provider.CodePermissionDenied, as: "user"},
		{name: "unsearchable children", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Dir("W/d", 0o600) }, do: list("ws", "W/d"), code: provider.CodePermissionDenied, as: "user"},
		{name: "link into a closed directory", disk: func(w *World) {
			w.Dir("W/d")
			w.Dir("W/c/x")
			w.Link("W/d/l", "../c/x")
			w.Dir("W/c", 0o600)
		}, do: list("ws", "W/d"), code: provider.CodePermissionDenied, as: "user"},
	})
	t.Run("entries", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d/sub")
		w.File("W/d/b", "12")
		w.File("W/d/B", "")
		w.File("W/d/.hidden", "1")
		w.File("W/d/k.secret", "1")
		w.FIFO("W/d/fifo")
		w.Link("W/d/dangling", "none")
		w.Link("W/d/loop", "loop")
		w.Link("W/d/tofile", "b")
		w.Link("W/d/todir", "../d/sub")
		w.File("O/out", "123")
		w.Link("W/d/out", w.O+"/out")
		w.Link("W/d/tohidden", "k.secret")
		w.Link("W/d/root", "/")
		w.Link("W/l", "d")
		got, err := w.P.ListDir(t.Context(), w.WS, provider.Target{TargetKey: provider.TargetKey(w.Path("W/d")), DisplayPath: "shown/d"}, provider.ListOptions{})
		w.must(err)
		size := func(n int64) *int64 { return &n }
		want := []struct {
			name string
			typ  provider.FileType
			key  string
			size *int64
			bare bool // no metadata
		}{
			{".hidden", "file", "W/d/.hidden", size(1), false},
			{"B", "file", "W/d/B", size(0), false},
			{"b", "file", "W/d/b", size(2), false},
			{"dangling", "other", "W/d/dangling", nil, true},
			{"fifo", "other", "W/d/fifo", nil, false},
			{"k.secret", "other", "W/d/k.secret", nil, true},
			{"loop", "other", "W/d/loop", nil, true},
			{"out", "file", "O/out", size(3), false},
			{"root", "directory", "/", nil, false},
			{"sub", "directory", "W/d/sub", nil, false},
			{"todir", "directory", "W/d/sub", nil, false},
			{"tofile", "file", "W/d/b", size(2), false},
			{"tohidden", "other", "W/d/tohidden", nil, true},
		}
		if len(got) != len(want) {
			t.Fatalf("%d entries, want %d: %+v", len(got), len(want), got)
		}
		for i, e := range got {
			x := want[i]
			key := x.key
			if key != "/" {
				key = w.Path(key)
			}
			if e.Name != x.name || e.Type != x.typ || string(e.Target.TargetKey) != key || e.Target.DisplayPath != "shown/d/"+x.name {
				t.Errorf("entry %d: %+v, want %+v", i, e, x)
			}
			if (e.Size == nil) != (x.size == nil) || e.Size != nil && *e.Size != *x.size {
				t.Errorf("%s: size %v", e.Name, e.Size)
			}
			if (e.Version == "") != x.bare {
				t.Errorf("%s: version %q", e.Name, e.Version)
			}
		}
	})
	t.Run("many, in byte order, and the versions are those of stat", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		var want []string
		for i := range 3000 {
			n := fmt.Sprintf("f%d", i)
			want = append(want, n)
			w.must(os.WriteFile(filepath.Join(w.W, n), nil, 0o600))
		}
		slices.Sort(want)
		es, err := w.P.ListDir(t.Context(), w.WS, w.Resolve("W"), provider.ListOptions{})
		w.must(err)
		var got []string
		for _, e := range es {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d names, want %d", len(got), len(want))
		}
		for _, e := range []provider.DirEntry{es[0], es[1234], es[2999]} {
			if v := w.Version("W/" + e.Name); v != e.Version {
				t.Errorf("%s: %s in the listing, %s by stat", e.Name, e.Version, v)
			}
		}
	})
	t.Run("the key comes from the listed directory's identity", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		w.File("W/d/f", "x")
		w.Link("W/l", "d")
		es, err := w.P.ListDir(t.Context(), w.WS, w.Resolve("W/l"), provider.ListOptions{})
		w.must(err)
		if len(es) != 1 || string(es[0].Target.TargetKey) != w.Path("W/d/f") || es[0].Target.DisplayPath != w.Path("W/l/f") {
			t.Errorf("%+v", es)
		}
	})
}

// testListPages is listDir with After and Limit.
func testListPages(t *testing.T, mk Make) {
	w := NewWorld(t, mk(t))
	w.Dir("W/d")
	want := []string{"-", "A", "B", "a", "a.b", "b", "é", "中"} // in byte order
	for _, n := range want {
		w.File("W/d/"+n, n)
	}
	for _, tt := range []struct {
		o    provider.ListOptions
		want []string
	}{
		{provider.ListOptions{}, want},
		{provider.ListOptions{Limit: 100}, want},
		{provider.ListOptions{Limit: len(want)}, want},
		{provider.ListOptions{Limit: 1}, want[:1]},
		{provider.ListOptions{Limit: 3}, want[:3]},
		{provider.ListOptions{After: "B"}, want[3:]},
		{provider.ListOptions{After: "B", Limit: 2}, want[3:5]},
		{provider.ListOptions{After: "AA", Limit: 2}, want[2:4]}, // a name that is none
		{provider.ListOptions{After: "a/b", Limit: 1}, want[5:6]},
		{provider.ListOptions{After: "\x00", Limit: 1}, want[:1]},
		{provider.ListOptions{After: want[len(want)-1]}, nil},
		{provider.ListOptions{After: "\xff", Limit: 5}, nil},
	} {
		es, err := w.P.ListDir(t.Context(), w.WS, w.Resolve("W/d"), tt.o)
		w.must(err)
		var got []string
		for _, e := range es {
			got = append(got, e.Name)
			if e.Version == "" || e.Size == nil || *e.Size != int64(len(e.Name)) {
				t.Errorf("%+v", e)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.o, got, tt.want)
		}
	}
	_, err := w.P.ListDir(t.Context(), w.WS, w.Resolve("W/d"), provider.ListOptions{Limit: -1})
	w.checkError(err)
	if provider.CodeOf(err) != provider.CodeIOError || !isInvalid(err) {
		t.Errorf("negative limit: %v", err)
	}
	t.Run("page after page gives every name once", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		var want []string
		for i := range 1000 {
			n := fmt.Sprint(i * 7919 % 1000)
			want = append(want, n)
			w.must(os.WriteFile(filepath.Join(w.W, n), nil, 0o600))
		}
		slices.Sort(want)
		for _, limit := range []int{1, 7, 100, 333, 1000, 1001} {
			if limit == 1 && testing.Short() {
				continue
			}
			var got []string
			after := ""
			for {
				es, err := w.P.ListDir(t.Context(), w.WS, w.Resolve("W"), provider.ListOptions{After: after, Limit: limit})
				w.must(err)
				for _, e := range es {
					got = append(got, e.Name)
				}
				if len(es) < limit {
					break
				}
				after = es[limit-1].Name
			}
			if !slices.Equal(got, want) {
				t.Errorf("limit %d: %d names, want %d", limit, len(got), len(want))
			}
		}
	})
	// What is on another page is not looked at, so it cannot fail this one.
	run(t, mk, []row{
		{name: "a child on the page may not be looked at", disk: closedChild, do: listPage("W/d", provider.ListOptions{After: "k", Limit: 2}), code: provider.CodePermissionDenied, as: "user"},
		{name: "a child behind the page may not be looked at", disk: closedChild, do: listPage("W/d", provider.ListOptions{Limit: 2}), as: "user"},
		{name: "a child before the page may not be looked at", disk: closedChild, do: listPage("W/d", provider.ListOptions{After: "m", Limit: 2}), as: "user"},
	})
}

// closedChild makes W/d with a, b, y, z and l, a link that may not be followed.
func closedChild(w *World) {
	w.Dir("W/d")
	for _, n := range []string{"a", "b", "y", "z"} {
		w.File("W/d/"+n, "")
	}
	w.Dir("W/c/x")
	w.Link("W/d/l", "../c/x")
	w.Dir("W/c", 0o600)
}

func listPage(name string, o provider.ListOptions) op {
	return func(w *World) error {
		_, err := w.P.ListDir(w.T.Context(), w.WS, w.Resolve(name), o)
		return err
	}
}
