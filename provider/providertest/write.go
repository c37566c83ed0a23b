//go:build unix

package providertest

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// guard gives the options of one guard for the file W/f.
type guard struct {
	name string
	make func(w *World) provider.WriteOptions
}

// guards are all there are: none, create, the right version, a wrong one. The
// versions are taken after the row's disk is built.
var guards = []guard{
	{"none", func(*World) provider.WriteOptions { return noGuard }},
	{"createIfAbsent", func(*World) provider.WriteOptions { return ifAbsent }},
	{"right version", func(w *World) provider.WriteOptions {
		i, err := w.P.Stat(w.T.Context(), w.Full, w.Resolve("W/f"))
		w.must(err)
		if i == nil {
			return ifVersion("1AAAA")
		}
		return ifVersion(i.Version)
	}},
	{"wrong version", func(w *World) provider.WriteOptions {
		w.File("O/other", "other")
		return ifVersion(w.Version("O/other"))
	}},
}

func testWriteText(t *testing.T, mk Make) {
	defer syscall.Umask(syscall.Umask(0o022))
	const (
		ok       = provider.Code("")
		stale    = provider.CodeStaleVersion
		notReg   = provider.CodeNotRegularFile
		unseen   = provider.CodeNotObserved
		notFound = provider.CodeNotFound
	)
	created := disk{"W/f": file(0o644, "new")}
	states := []struct {
		name  string
		disk  func(w *World)
		codes [4]provider.Code // by guards
		after disk             // on success
	}{
		{"absent", nil, [4]provider.Code{ok, ok, stale, stale}, created},
		{"file", func(w *World) { w.File("W/f", "old", 0o640) }, [4]provider.Code{ok, unseen, ok, stale}, disk{"W/f": file(0o640, "new")}},
		{"empty file", func(w *World) { w.File("W/f", "") }, [4]provider.Code{ok, unseen, ok, stale}, created},
		{"binary file", func(w *World) { w.File("W/f", "\x00\xff") }, [4]provider.Code{ok, unseen, ok, stale}, created},
		{"directory", func(w *World) { w.Dir("W/f") }, [4]provider.Code{notReg, notReg, notReg, notReg}, nil},
		{"FIFO", func(w *World) { w.FIFO("W/f") }, [4]provider.Code{notReg, notReg, notReg, notReg}, nil},
		{"socket", func(w *World) { w.Socket("W/f") }, [4]provider.Code{notReg, notReg, notReg, notReg}, nil},
		{"dangling link inside", func(w *World) { w.Link("W/f", "none") }, [4]provider.Code{notReg, notReg, stale, stale}, nil},
		{"link to a file", func(w *World) { w.File("W/real", "old"); w.Link("W/f", "real") }, [4]provider.Code{ok, unseen, ok, stale}, disk{"W/real": file(0o644, "new")}},
		{"link to a directory", func(w *World) { w.Dir("W/d"); w.Link("W/f", "d") }, [4]provider.Code{notReg, notReg, notReg, notReg}, nil},
	}
	for _, mode := range []string{"ws", "full"} {
		for _, s := range states {
			for i, g := range guards {
				r := row{name: mode + "/" + s.name + "/" + g.name, code: s.codes[i]}
				var o provider.WriteOptions
				r.disk = func(w *World) {
					if s.disk != nil {
						s.disk(w)
					}
					o = g.make(w)
				}
				r.do = func(w *World) error { return write(mode, "W/f", "new", o)(w) }
				if r.code == ok {
					r.after = s.after
				}
				run(t, mk, []row{r})
			}
		}
	}
	mode600, mode755, setuid := uint32(0o600), uint32(0o755), uint32(0o4755)
	run(t, mk, []row{
		{name: "missing parents are made", do: write("ws", "W/a/b/f", "x", ifAbsent), after: disk{"W/a": dir(0o755), "W/a/b": dir(0o755), "W/a/b/f": file(0o644, "x")}},
		{name: "a guard that fails makes no parents", do: write("ws", "W/a/b/f", "x", ifVersion("1AAAA")), code: stale},
		{name: "below a link", disk: func(w *World) { w.Dir("W/d"); w.Link("W/l", "d") }, do: write("ws", "W/l/a/f", "x", noGuard), after: disk{"W/d/a": dir(0o755), "W/d/a/f": file(0o644, "x")}},
		{name: "file as a parent", disk: func(w *World) { w.File("W/p", "x") }, do: write("ws", "W/p/f", "x", noGuard), code: notFound},
		{name: "the workspace itself", do: write("ws", "W", "x", noGuard), code: notReg},
		{name: "bytes as they are", do: write("ws", "W/f", "a\r\nb\rc\n\x00\xff", noGuard), after: disk{"W/f": file(0o644, "a\r\nb\rc\n\x00\xff")}},
		{name: "nothing", do: write("ws", "W/f", "", noGuard), after: disk{"W/f": file(0o644, "")}},
		{name: "longest name, new", do: write("ws", "W/"+strings.Repeat("n", 255), "x", noGuard), after: disk{"W/" + strings.Repeat("n", 255): file(0o644, "x")}},
		{name: "longest name, replaced", disk: func(w *World) { w.File("W/"+strings.Repeat("n", 255), "old") },
			do: write("ws", "W/"+strings.Repeat("n", 255), "x", noGuard), after: disk{"W/" + strings.Repeat("n", 255): file(0o644, "x")}},
		{name: "mode of a new file", do: write("ws", "W/f", "x", provider.WriteOptions{Mode: &mode755}), after: disk{"W/f": file(0o755, "x")}},
		{name: "private new file", do: write("ws", "W/f", "x", provider.WriteOptions{Mode: &mode600}), after: disk{"W/f": file(0o600, "x")}},
		{name: "mode is for new files", disk: func(w *World) { w.File("W/f", "old", 0o640) }, do: write("ws", "W/f", "x", provider.WriteOptions{Mode: &mode755}), after: disk{"W/f": file(0o640, "x")}},
		{name: "set-id bits cannot be asked for", do: write("ws", "W/f", "x", provider.WriteOptions{Mode: &setuid}), code: provider.CodeIOError},
		{name: "unknown intent", do: write("ws", "W/f", "x", provider.WriteOptions{Expected: &provider.WriteIntent{Kind: "any"}}), code: provider.CodeIOError},
		{name: "0444 (E14)", disk: func(w *World) { w.File("W/f", "old", 0o444) }, do: write("ws", "W/f", "x", noGuard), code: provider.CodePermissionDenied},
		{name: "0444, override (E14)", disk: func(w *World) { w.File("W/f", "old", 0o444) }, do: write("ws", "W/f", "x", provider.WriteOptions{OverrideReadOnly: true}), after: disk{"W/f": file(0o444, "x")}},
		{name: "0444, stale", disk: func(w *World) { w.File("W/f", "old", 0o444) }, do: write("ws", "W/f", "x", ifVersion("1AAAA")), code: stale},
		{name: "unreadable but writable", disk: func(w *World) { w.File("W/f", "old", 0o200) }, as: "user", do: func(w *World) error {
			if err := write("ws", "W/f", "x", noGuard)(w); err != nil {
				return err
			}
			w.must(os.Chmod(w.Path("W/f"), 0o600))
			b, err := os.ReadFile(w.Path("W/f"))
			if err != nil || string(b) != "x" {
				w.T.Errorf("file %q, %v", b, err)
			}
			return os.Chmod(w.Path("W/f"), 0o200)
		}},
		{name: "special bits stay", disk: func(w *World) {
			w.File("W/f", "old")
			w.must(os.Chmod(w.Path("W/f"), 0o755|os.ModeSetuid|os.ModeSticky))
		}, do: write("ws", "W/f", "x", noGuard), after: disk{"W/f": file(0o5755, "x")}},
		{name: "closed directory, new file", disk: func(w *World) { w.Dir("W/d", 0o555) }, do: write("ws", "W/d/f", "x", noGuard), code: provider.CodePermissionDenied, as: "user"},
		{name: "closed directory, replaced file", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "old"); w.Dir("W/d", 0o555) },
			do: write("ws", "W/d/f", "x", noGuard), code: provider.CodePermissionDenied, as: "user"},
		{name: "closed directory, new parents", disk: func(w *World) { w.Dir("W/d", 0o555) }, do: write("ws", "W/d/a/f", "x", noGuard), code: provider.CodePermissionDenied, as: "user"},
		{name: "directory that can be searched only", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "old"); w.Dir("W/d", 0o300) },
			do: write("ws", "W/d/f", "x", noGuard), as: "user"},
		{name: "byte-order mark comes back", disk: func(w *World) { w.File("W/f", "\xef\xbb\xbfold") }, do: write("ws", "W/f", "new", noGuard), after: disk{"W/f": file(0o644, "\xef\xbb\xbfnew")}},
		{name: "byte-order mark is not doubled", disk: func(w *World) { w.File("W/f", "\xef\xbb\xbfold") }, do: write("ws", "W/f", "\xef\xbb\xbfnew", noGuard), after: disk{"W/f": file(0o644, "\xef\xbb\xbfnew")}},
		{name: "byte-order mark dropped", disk: func(w *World) { w.File("W/f", "\xef\xbb\xbfold") }, do: write("ws", "W/f", "new", provider.WriteOptions{DropBOM: true}), after: created},
		{name: "legacy encoding may be overwritten (E4)", disk: func(w *World) { w.File("W/f", "\xd6\xd0") }, do: write("ws", "W/f", "new", noGuard), after: created},
	})
}

func testWriteOutcome(t *testing.T, mk Make) {
	const limit = 10 << 20
	text := func(n int) string { return strings.Repeat("x", n) }
	null := "\x00null"
	tests := []struct {
		name, old, content string
		op                 provider.Operation
		before, after      string
		link               bool
	}{
		{name: "create", content: "a\r\nb", op: "create", before: null, after: "a\nb"},
		{name: "update", old: "o\r\nld", content: "new", op: "update", before: "o\nld", after: "new"},
		{name: "of an empty file", old: "", content: "new", op: "update", before: "", after: "new", link: true},
		{name: "CR alone stays", old: "a\rb", content: "c\rd\r\n", op: "update", before: "a\rb", after: "c\rd\n"},
		{name: "byte-order mark is no text", old: "\xef\xbb\xbfold", content: "\xef\xbb\xbfnew", op: "update", before: "old", after: "new"},
		{name: "binary", old: "a\x00b", content: "new", op: "update", before: null, after: "new"},
		{name: "late NUL", old: text(9000) + "\x00", content: "new", op: "update", before: null, after: "new"},
		{name: "invalid UTF-8", old: "\xff", content: "new", op: "update", before: null, after: "new"},
		{name: "both below the limit", old: text(limit - 1), content: text(limit - 2), op: "update", before: text(limit - 1), after: text(limit - 2)},
		{name: "previous at the limit", old: text(limit), content: "new", op: "update", before: null, after: "new"},
		{name: "new at the limit", old: "old", content: text(limit), op: "update", before: null, after: text(limit)},
		{name: "bytes count, not characters", old: "old", content: strings.Repeat("é", limit/2), op: "update", before: null, after: strings.Repeat("é", limit/2)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			if tt.op == "update" {
				w.File("W/f", tt.old)
			}
			target := w.Resolve("W/f")
			got, err := w.P.WriteText(t.Context(), w.WS, target, tt.content, noGuard)
			w.must(err)
			before := null
			if got.Before != nil {
				before = *got.Before
			}
			if got.Operation != tt.op || before != tt.before || got.After != tt.after || got.LinksBroken != 0 || got.MetadataLost != nil {
				t.Errorf("%s %.40q -> %.40q, links %d, lost %v", got.Operation, before, got.After, got.LinksBroken, got.MetadataLost)
			}
			// The version is good for the next write, and content decides.
			w.must(os.Chmod(w.Path("W/f"), 0o600))
			next, err := w.P.WriteText(t.Context(), w.WS, target, "next", ifVersion(got.Version))
			if err != nil || next.Version == got.Version {
				t.Errorf("the next write: %+v, %v", next.Version, err)
			}
		})
	}
	t.Run("hard links (F05, D3)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "old")
		w.must(os.Link(w.Path("W/f"), w.Path("O/f1")))
		w.must(os.Link(w.Path("W/f"), w.Path("O/f2")))
		got, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "new", noGuard)
		w.must(err)
		if got.LinksBroken != 2 {
			t.Errorf("linksBroken %d", got.LinksBroken)
		}
		for name, want := range map[string]string{"W/f": "new", "O/f1": "old", "O/f2": "old"} {
			if b, _ := os.ReadFile(w.Path(name)); string(b) != want {
				t.Errorf("%s has %q", name, b)
			}
		}
		e, err := w.P.EditText(t.Context(), w.Full, w.Resolve("O/f1"), provider.EditRequest{OldString: "old", NewString: "edited"}, provider.EditOptions{})
		if err != nil || e.LinksBroken != 1 {
			t.Errorf("edit: %+v, %v", e, err)
		}
	})
}
