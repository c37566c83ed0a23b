//go:build unix

package providertest

import (
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

func testEditText(t *testing.T, mk Make) {
	const mark = "\xef\xbb\xbf"
	tests := []struct {
		name, file, from, to string
		all                  bool
		want                 string // the bytes afterwards
		before, after        string // of the outcome, when they are not file and want
		code                 provider.Code
		says                 string
	}{
		{name: "plain", file: "a\nb\n", from: "b", to: "B", want: "a\nB\n"},
		{name: "delete", file: "a\nb\n", from: "b\n", to: "", want: "a\n"},
		{name: "whole file away", file: "a", from: "a", to: "", want: ""},
		{name: "no change", file: "a\r\nb", from: "a\nb", to: "a\nb", want: "a\r\nb", before: "a\nb", after: "a\nb"},
		{name: "empty search", file: "a", from: "", to: "b", code: provider.CodeEditNotFound},
		{name: "no match", file: "a", from: "x", to: "b", code: provider.CodeEditNotFound},
		{name: "empty file", file: "", from: "x", to: "b", code: provider.CodeEditNotFound},
		{name: "two matches", file: "a a", from: "a", to: "b", code: provider.CodeAmbiguousEdit, says: "2 times"},
		{name: "all", file: "a a", from: "a", to: "b", all: true, want: "b b"},
		{name: "overlap counts once (E15)", file: "aaa\n", from: "aa", to: "b", want: "ba\n"},
		{name: "count without overlap (E15)", file: "aaaa\n", from: "aa", to: "b", code: provider.CodeAmbiguousEdit, says: "2 times"},
		{name: "all without overlap (E15)", file: "aaaa\n", from: "aa", to: "b", all: true, want: "bb\n"},
		{name: "replacement holds the search text", file: "a a", from: "a", to: "aa", all: true, want: "aa aa"},
		{name: "literal replacement (E9)", file: "re = \"AAA\"\n", from: "AAA", to: "$$ $& $` $1 \\1 ${0} %s", want: "re = \"$$ $& $` $1 \\1 ${0} %s\"\n"},
		{name: "literal search (E9)", file: "x ^x$' .*(\\ y", from: "^x$' .*(\\", to: "z", want: "x z y"},
		{name: "LF search in a CRLF file (E1)", file: "a\r\nb\r\n", from: "a\nb", to: "a\nc", want: "a\r\nc\r\n", before: "a\nb\n", after: "a\nc\n"},
		{name: "CRLF search in a CRLF file (E1)", file: "a\r\nb\r\n", from: "a\r\nb", to: "a\r\nc", want: "a\r\nc\r\n", before: "a\nb\n", after: "a\nc\n"},
		{name: "CRLF search in an LF file", file: "a\nb\n", from: "a\r\nb", to: "a\r\nc\r\nd", want: "a\nc\nd\n", after: "a\nc\nd\n"},
		{name: "mixed (P35)", file: mark + "a\r\nb\r\nc\nd", from: "b", to: "B", want: mark + "a\r\nB\r\nc\nd", before: "a\nb\nc\nd", after: "a\nB\nc\nd"},
		{name: "equal ends keep their own breaks", file: "a\r\nb\nc\r\nd\n", from: "a\nb\nc\nd", to: "a\nb\nC\nd", want: "a\r\nb\nC\r\nd\n", before: "a\nb\nc\nd\n", after: "a\nb\nC\nd\n"},
		{name: "new breaks as the span", file: "x\ny\nz\na\r\nb\n", from: "a\nb", to: "1\n2\n3", want: "x\ny\nz\n1\r\n2\r\n3\n", before: "x\ny\nz\na\nb\n", after: "x\ny\nz\n1\n2\n3\n"},
		{name: "new breaks as the first of a tie", file: "a\r\nb\nc", from: "a\nb\nc", to: "1\n2\n3", want: "1\r\n2\r\n3", before: "a\nb\nc", after: "1\n2\n3"},
		{name: "new breaks as the file", file: "a\r\nb\r\nc\nd\r\n", from: "c", to: "1\n2", want: "a\r\nb\r\n1\r\n2\nd\r\n", before: "a\nb\nc\nd\n", after: "a\nb\n1\n2\nd\n"},
		{name: "new breaks where there are none", file: "a", from: "a", to: "1\r\n2", want: "1\n2"},
		{name: "lone CR is a character", file: "a\rb\r\nc", from: "a\rb", to: "x\ry", want: "x\ry\r\nc", before: "a\rb\nc", after: "x\ry\nc"},
		{name: "CR before CR LF", file: "a\r\r\nb", from: "\r\nb", to: "c", want: "a\rc", before: "a\r\nb"},
		{name: "the mark is not in the text", file: mark + "a", from: mark, to: "b", code: provider.CodeEditNotFound},
		{name: "the mark stays", file: mark + "a", from: "a", to: "b", want: mark + "b", before: "a", after: "b"},
		{name: "missing final newline stays", file: "a\nb", from: "a", to: "c", want: "c\nb"},
		{name: "NUL (E16)", file: strings.Repeat("a", 9000) + "\x00tail\n", from: "tail", to: "TAIL", code: provider.CodeNotText},
		{name: "GBK (E4)", file: "name=\xd6\xd0\nport=1\n", from: "port=1", to: "port=2", code: provider.CodeNotText, says: "offset 5"},
		{name: "latin1 (P35)", file: "caf\xe9\nb\n", from: "b", to: "B", code: provider.CodeNotText, says: "offset 3"},
		{name: "new text that is none", file: "a", from: "a", to: "\xff", code: provider.CodeNotText},
	}
	for _, tt := range tests {
		for _, mode := range []string{"ws", "full"} {
			t.Run(mode+"/"+tt.name, func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.File("W/f", tt.file, 0o640)
				before := w.snapshot()
				v := w.Version("W/f")
				got, err := w.P.EditText(t.Context(), w.mode(mode), w.Resolve("W/f"),
					provider.EditRequest{OldString: tt.from, NewString: tt.to, ReplaceAll: tt.all},
					provider.EditOptions{Expected: &provider.VersionGuard{Version: v}})
				if provider.CodeOf(err) != tt.code {
					t.Fatalf("error %v, want %q", err, tt.code)
				}
				w.checkError(err)
				want := disk{}
				if tt.code == "" {
					if tt.want != tt.file {
						want["W/f"] = file(0o640, tt.want)
					}
					wb, wa := tt.file, tt.want
					if tt.before != "" {
						wb = tt.before
					}
					if tt.after != "" {
						wa = tt.after
					}
					if got.Before != wb || got.After != wa || got.Version == "" || got.Version == v {
						t.Errorf("%.60q -> %.60q, version %s", got.Before, got.After, got.Version)
					}
				} else if !contains(err.Error(), tt.says) {
					t.Errorf("%q does not say %q", err, tt.says)
				}
				if diff := changes(before, w.snapshot()); diff.String() != want.String() {
					t.Errorf("changes:%v\nwant:%v", diff, want)
				}
			})
		}
	}
	none := provider.EditOptions{}
	wrong := provider.EditOptions{Expected: &provider.VersionGuard{Version: "1AAAA"}}
	old := func(w *World) { w.File("W/f", "old") }
	run(t, mk, []row{
		{name: "absent", do: edit("ws", "W/f", "a", "b", none), code: provider.CodeStaleVersion},
		{name: "absent, guarded", do: edit("ws", "W/f", "a", "b", wrong), code: provider.CodeStaleVersion},
		{name: "absent parents", do: edit("ws", "W/a/f", "a", "b", none), code: provider.CodeStaleVersion},
		{name: "directory, wrong version", disk: func(w *World) { w.Dir("W/f") }, do: edit("ws", "W/f", "a", "b", wrong), code: provider.CodeNotRegularFile},
		{name: "the workspace itself", do: edit("ws", "W", "a", "b", none), code: provider.CodeNotRegularFile},
		{name: "dangling link", disk: func(w *World) { w.Link("W/f", "none") }, do: edit("ws", "W/f", "a", "b", none), code: provider.CodeStaleVersion},
		{name: "stale before match", disk: old, do: edit("ws", "W/f", "no such text", "b", wrong), code: provider.CodeStaleVersion},
		{name: "stale before text", disk: func(w *World) { w.File("W/f", "\xff") }, do: edit("ws", "W/f", "a", "b", wrong), code: provider.CodeStaleVersion},
		{name: "0444 (E14)", disk: func(w *World) { w.File("W/f", "old", 0o444) }, do: edit("ws", "W/f", "old", "new", none), code: provider.CodePermissionDenied},
		{name: "0444, override (E14)", disk: func(w *World) { w.File("W/f", "old", 0o444) }, do: edit("ws", "W/f", "old", "new", provider.EditOptions{OverrideReadOnly: true}), after: disk{"W/f": file(0o444, "new")}},
		{name: "unreadable", disk: func(w *World) { w.File("W/f", "old", 0o200) }, do: edit("ws", "W/f", "old", "new", none), code: provider.CodePermissionDenied, as: "user"},
		{name: "through a link (E5)", disk: func(w *World) { w.File("W/real", "old"); w.Link("W/f", "real") }, do: edit("ws", "W/f", "old", "new", none), after: disk{"W/real": file(0o644, "new")}},
		{name: "larger than the limit", disk: func(w *World) { old(w); w.must(os.Truncate(w.Path("W/f"), 64<<20+1)) }, do: edit("ws", "W/f", "old", "new", none), code: provider.CodeTooLarge},
	})
	t.Run("an edit after an own edit needs no new read", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "0")
		v := w.Version("W/f")
		for i := range 20 {
			o, err := w.P.EditText(t.Context(), w.WS, w.Resolve("W/f"),
				provider.EditRequest{OldString: string(rune('0' + i)), NewString: string(rune('1' + i))},
				provider.EditOptions{Expected: &provider.VersionGuard{Version: v}})
			w.must(err)
			v = o.Version
		}
	})
	t.Run("the result is bounded too", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", strings.Repeat("a", 1000))
		_, err := w.P.EditText(t.Context(), w.WS, w.Resolve("W/f"), provider.EditRequest{OldString: "a", NewString: strings.Repeat("b", 1<<20), ReplaceAll: true}, none)
		if provider.CodeOf(err) != provider.CodeTooLarge {
			t.Error(err)
		}
	})
}
