//go:build unix

package providertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// chunks makes the hunks of one file from the lines of its chunks, one string.
// The first of them is line 3 of the patch.
func (w *World) chunks(lines string) []patch.Hunk {
	w.T.Helper()
	ops, err := patch.Parse("*** Begin Patch\n*** Update File: f\n"+lines+"\n*** End Patch", patch.Options{})
	w.must(err)
	return ops[0].Hunks
}

// patchWith resolves and patches.
func patchWith(mode, name string, hunks []patch.Hunk, o provider.EditOptions) op {
	return func(w *World) error {
		t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(name), provider.ResolveOptions{})
		if err != nil {
			return err
		}
		_, err = w.P.PatchText(w.T.Context(), w.mode(mode), t, hunks, provider.PatchOptions{EditOptions: o})
		return err
	}
}

// oldToNew replaces the line old by new.
var oldToNew = []patch.Hunk{{LineNumber: 3, OldLines: []string{"old"}, NewLines: []string{"new"}, Kinds: "-+"}}

func testPatchText(t *testing.T, mk Make) {
	testPatchGuards(t, mk)
	testPatchContent(t, mk)
	testPatchFence(t, mk)
	testPatchMismatch(t, mk)
	none := provider.EditOptions{}
	wrong := provider.EditOptions{Expected: &provider.VersionGuard{Version: "1AAAA"}}
	override := provider.EditOptions{OverrideReadOnly: true}
	const (
		stale    = provider.CodeStaleVersion
		mismatch = provider.CodePatchMismatch
	)
	old := func(w *World) { w.File("W/f", "old\n") }
	closed := func(w *World) { w.File("W/f", "old\n", 0o444) }
	run(t, mk, []row{
		{name: "absent parents", do: patchWith("ws", "W/a/f", oldToNew, none), code: stale},
		{name: "file as a parent", disk: func(w *World) { w.File("W/p", "x") }, do: patchWith("ws", "W/p/f", oldToNew, none), code: provider.CodeNotFound},
		{name: "the workspace itself", do: patchWith("ws", "W", oldToNew, none), code: provider.CodeNotRegularFile},
		{name: "only additions make no file", do: patchWith("ws", "W/f", []patch.Hunk{{NewLines: []string{"x"}}}, none), code: stale},
		{name: "stale before match", disk: func(w *World) { w.File("W/f", "other\n") }, do: patchWith("ws", "W/f", oldToNew, wrong), code: stale},
		{name: "stale before text", disk: func(w *World) { w.File("W/f", "\xff") }, do: patchWith("ws", "W/f", oldToNew, wrong), code: stale},
		{name: "stale before malformed hunks", disk: old, do: patchWith("ws", "W/f", []patch.Hunk{{Kinds: "x"}}, wrong), code: stale},
		{name: "0444 (E14)", disk: closed, do: patchWith("ws", "W/f", oldToNew, none), code: provider.CodePermissionDenied},
		{name: "0444, override (E14)", disk: closed, do: patchWith("ws", "W/f", oldToNew, override), after: disk{"W/f": file(0o444, "new\n")}},
		{name: "0444, stale", disk: closed, do: patchWith("ws", "W/f", oldToNew, wrong), code: stale},
		{name: "0444, override, mismatch", disk: func(w *World) { w.File("W/f", "other\n", 0o444) }, do: patchWith("ws", "W/f", oldToNew, override), code: mismatch},
		{name: "unreadable", disk: func(w *World) { w.File("W/f", "old\n", 0o200) }, do: patchWith("ws", "W/f", oldToNew, none), code: provider.CodePermissionDenied, as: "user"},
		{name: "closed directory", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "old\n"); w.Dir("W/d", 0o555) },
			do: patchWith("ws", "W/d/f", oldToNew, none), code: provider.CodePermissionDenied, as: "user"},
		{name: "special bits stay", disk: func(w *World) {
			old(w)
			w.must(os.Chmod(w.Path("W/f"), 0o755|os.ModeSetuid|os.ModeSticky))
		}, do: patchWith("ws", "W/f", oldToNew, none), after: disk{"W/f": file(0o5755, "new\n")}},
		{name: "through a relative link in a directory (E5)", disk: func(w *World) { w.File("W/real", "old\n"); w.Dir("W/d"); w.Link("W/d/l2", "../real") },
			do: patchWith("ws", "W/d/l2", oldToNew, none), after: disk{"W/real": file(0o644, "new\n")}},
		{name: "longest name", disk: func(w *World) { w.File("W/"+strings.Repeat("n", 255), "old\n") },
			do: patchWith("ws", "W/"+strings.Repeat("n", 255), oldToNew, none), after: disk{"W/" + strings.Repeat("n", 255): file(0o644, "new\n")}},
		{name: "larger than the limit", disk: func(w *World) { old(w); w.must(os.Truncate(w.Path("W/f"), 64<<20+1)) }, do: patchWith("ws", "W/f", oldToNew, none), code: provider.CodeTooLarge},
		{name: "larger than the limit, stale", disk: func(w *World) { old(w); w.must(os.Truncate(w.Path("W/f"), 64<<20+1)) }, do: patchWith("ws", "W/f", oldToNew, wrong), code: stale},
	})
	t.Run("the result is bounded too", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "old\n"+strings.Repeat(strings.Repeat("a", 1023)+"\n", 64<<10-1))
		before := w.snapshot()
		long := []patch.Hunk{{OldLines: []string{"old"}, NewLines: []string{strings.Repeat("b", 1024)}}}
		if err := patchWith("ws", "W/f", long, none)(w); provider.CodeOf(err) != provider.CodeTooLarge {
			t.Error(err)
		}
		if d := changes(before, w.snapshot()); len(d) > 0 {
			t.Error("the disk changed")
		}
	})
	t.Run("a patch after an own patch needs no new read", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "0\n")
		v := w.Version("W/f")
		for i := range 20 {
			h := patch.Hunk{OldLines: []string{string(rune('0' + i))}, NewLines: []string{string(rune('1' + i))}}
			o, err := w.P.PatchText(t.Context(), w.WS, w.Resolve("W/f"), []patch.Hunk{h},
				provider.PatchOptions{EditOptions: provider.EditOptions{Expected: &provider.VersionGuard{Version: v}}})
			w.must(err)
			v = o.Version
		}
	})
	t.Run("hard links (F05, D3)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "old\n")
		w.must(os.Link(w.Path("W/f"), w.Path("O/f1")))
		w.must(os.Link(w.Path("W/f"), w.Path("O/f2")))
		got, err := w.P.PatchText(t.Context(), w.WS, w.Resolve("W/f"), oldToNew, provider.PatchOptions{})
		w.must(err)
		if got.LinksBroken != 2 {
			t.Errorf("linksBroken %d", got.LinksBroken)
		}
		for name, want := range map[string]string{"W/f": "new\n", "O/f1": "old\n", "O/f2": "old\n"} {
			if b, _ := os.ReadFile(w.Path(name)); string(b) != want {
				t.Errorf("%s has %q", name, b)
			}
		}
	})
}

// testPatchGuards is every state of the target with every guard.
func testPatchGuards(t *testing.T, mk Make) {
	const (
		ok       = provider.Code("")
		stale    = provider.CodeStaleVersion
		notReg   = provider.CodeNotRegularFile
		notText  = provider.CodeNotText
		mismatch = provider.CodePatchMismatch
	)
	states := []struct {
		name  string
		disk  func(w *World)
		codes [3]provider.Code // no guard, the right version, a wrong one
		after disk
	}{
		{"absent", nil, [3]provider.Code{stale, stale, stale}, nil},
		{"file", func(w *World) { w.File("W/f", "old\n", 0o640) }, [3]provider.Code{ok, ok, stale}, disk{"W/f": file(0o640, "new\n")}},
		{"file that does not fit", func(w *World) { w.File("W/f", "other\n") }, [3]provider.Code{mismatch, mismatch, stale}, nil},
		{"empty file", func(w *World) { w.File("W/f", "") }, [3]provider.Code{mismatch, mismatch, stale}, nil},
		{"binary file", func(w *World) { w.File("W/f", "old\n\x00") }, [3]provider.Code{notText, notText, stale}, nil},
		{"file that is not UTF-8", func(w *World) { w.File("W/f", "old\n\xff") }, [3]provider.Code{notText, notText, stale}, nil},
		{"directory", func(w *World) { w.Dir("W/f") }, [3]provider.Code{notReg, notReg, notReg}, nil},
		{"FIFO", func(w *World) { w.FIFO("W/f") }, [3]provider.Code{notReg, notReg, notReg}, nil},
		{"socket", func(w *World) { w.Socket("W/f") }, [3]provider.Code{notReg, notReg, notReg}, nil},
		{"dangling link inside", func(w *World) { w.Link("W/f", "none") }, [3]provider.Code{stale, stale, stale}, nil},
		{"link to a file", func(w *World) { w.File("W/real", "old\n"); w.Link("W/f", "real") }, [3]provider.Code{ok, ok, stale}, disk{"W/real": file(0o644, "new\n")}},
		{"link to a directory", func(w *World) { w.Dir("W/d"); w.Link("W/f", "d") }, [3]provider.Code{notReg, notReg, notReg}, nil},
	}
	for _, mode := range []string{"ws", "full", "ro"} {
		for _, s := range states {
			n := 0
			for _, g := range guards {
				if g.name == "createIfAbsent" {
					continue // a patch has no such guard
				}
				r := row{name: mode + "/" + s.name + "/" + g.name, code: s.codes[n]}
				n++
				var o provider.EditOptions
				r.disk = func(w *World) {
					if s.disk != nil {
						s.disk(w)
					}
					if e := g.make(w).Expected; e != nil {
						o.Expected = &provider.VersionGuard{Version: e.Version}
					}
				}
				r.do = func(w *World) error { return patchWith(mode, "W/f", oldToNew, o)(w) }
				if mode == "ro" {
					r.code = provider.CodeSandboxDenied
				}
				if r.code == ok {
					r.after = s.after
				}
				run(t, mk, []row{r})
			}
		}
	}
}

func testPatchContent(t *testing.T, mk Make) {
	const mark = "\xef\xbb\xbf"
	tests := []struct {
		name, file, chunks, want string
		before, after            string // of the outcome, when they are not file and want
		at                       []int
	}{
		{name: "plain", file: "a\nb\n", chunks: "@@\n-b\n+B", want: "a\nB\n"},
		{name: "no change", file: "a\r\nb", chunks: "@@\n a\n b", want: "a\r\nb", before: "a\nb", after: "a\nb"},
		{name: "whole file away", file: "a\n", chunks: "@@\n-a", want: "", after: "\x00"},
		{name: "several chunks", file: "a\nb\nc\nd\n", chunks: "@@\n-a\n+A\n@@ b\n-c\n+C\n@@\n d\n+e", want: "A\nb\nC\nd\ne\n"},
		{name: "one-line change in a CRLF file (E2)", file: "one\r\ntwo\r\nthree\r\n", chunks: " one\n-two\n+TWO\n+two and a half\n three",
			want: "one\r\nTWO\r\ntwo and a half\r\nthree\r\n", before: "one\ntwo\nthree\n", after: "one\nTWO\ntwo and a half\nthree\n"},
		{name: "mixed ends stay (E2)", file: "p\r\nq\nr\r\n", chunks: "-q\n+Q", want: "p\r\nQ\nr\r\n", before: "p\nq\nr\n", after: "p\nQ\nr\n"},
		{name: "CRLF in the patch (E2)", file: "p\r\nq\nr\r\n", chunks: "-q\r\n+Q\r", want: "p\r\nQ\nr\r\n", before: "p\nq\nr\n", after: "p\nQ\nr\n"},
		{name: "added under a context (E3)", file: "x\nctx\ny\n", chunks: "@@ ctx\n+new", want: "x\nctx\nnew\ny\n", at: []int{3}},
		{name: "two additions in order (E3)", file: "a\nb\nc\n", chunks: "@@ a\n+1\n@@ b\n+2", want: "a\n1\nb\n2\nc\n", at: []int{2, 4}},
		{name: "no context at the end (E3)", file: "a\nb\n", chunks: "@@\n+z", want: "a\nb\nz\n", at: []int{3}},
		{name: "added lines are literal (E9)", file: "re = \"AAA\"\n", chunks: "@@\n-re = \"AAA\"\n+^x$' $$ $& $` $1 \\1 ${0} %s %[1]d", want: "^x$' $$ $& $` $1 \\1 ${0} %s %[1]d\n"},
		{name: "old lines are literal (E9)", file: "xAx\n.*(\\ ^x$' [a-z]+\n", chunks: "@@\n-.*(\\ ^x$' [a-z]+\n+z", want: "xAx\nz\n"},
		{name: "the context is literal (E9)", file: "axc\na.c\nb\n", chunks: "@@ a.c\n+$0", want: "axc\na.c\n$0\nb\n", at: []int{3}},
		{name: "the mark stays", file: mark + "a\nb\n", chunks: "@@\n-a\n+A", want: mark + "A\nb\n", before: "a\nb\n", after: "A\nb\n"},
		{name: "the mark is no text", file: mark + "a\r\nb", chunks: "@@ a\n+x", want: mark + "a\r\nx\r\nb", before: "a\nb", after: "a\nx\nb", at: []int{2}},
		{name: "the mark alone", file: mark, chunks: "@@\n+a", want: mark + "a\n", before: "\x00", after: "a\n", at: []int{1}},
		{name: "missing final newline stays (D2)", file: "a\nb", chunks: "@@\n-b\n+c", want: "a\nc"},
		{name: "missing final newline, appended (D2)", file: "a\nb", chunks: "@@\n+c", want: "a\nb\nc", at: []int{3}},
		{name: "missing final newline, elsewhere (D2)", file: "a\nb", chunks: "@@\n-a\n+A", want: "A\nb"},
		{name: "a final newline on purpose (D2)", file: "a\nb", chunks: "@@\n-b\n+c\n+", want: "a\nc\n"},
		{name: "lenient context keeps its bytes (D6)", file: "say \u201chi\u201d\t\r\ngo\n", chunks: "@@\n say \"hi\"\n-go\n+stop", want: "say \u201chi\u201d\t\r\nstop\n",
			before: "say \u201chi\u201d\t\ngo\n", after: "say \u201chi\u201d\t\nstop\n"},
		{name: "a CR alone ends a line, and stays in texts", file: "a\rb\rc\r\n", chunks: "@@\n-b\n+B", want: "a\rB\rc\r\n", before: "a\rb\rc\n", after: "a\rB\rc\n"},
		{name: "mixed (P35)", file: mark + "a\r\nb\r\nc\nd", chunks: "@@\n-b\n+B", want: mark + "a\r\nB\r\nc\nd", before: "a\nb\nc\nd", after: "a\nB\nc\nd"},
		{name: "into an empty file", file: "", chunks: "@@\n+a", want: "a\n", before: "\x00", at: []int{1}},
		{name: "end of file", file: "end\nmid\nend\n", chunks: "@@\n-end\n+fin\n*** End of File", want: "end\nmid\nfin\n"},
	}
	for _, tt := range tests {
		for _, mode := range []string{"ws", "full"} {
			t.Run(mode+"/"+tt.name, func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.File("W/f", tt.file, 0o640)
				disk0 := w.snapshot()
				v := w.Version("W/f")
				got, err := w.P.PatchText(t.Context(), w.mode(mode), w.Resolve("W/f"), w.chunks(tt.chunks),
					provider.PatchOptions{EditOptions: provider.EditOptions{Expected: &provider.VersionGuard{Version: v}}})
				if err != nil {
					t.Fatal(err)
				}
				want := disk{}
				if tt.want != tt.file {
					want["W/f"] = file(0o640, tt.want)
				}
				if diff := changes(disk0, w.snapshot()); diff.String() != want.String() {
					t.Errorf("changes:%v\nwant:%v", diff, want)
				}
				text := func(own, bytes string) string {
					if own == "" {
						return bytes
					}
					return strings.TrimPrefix(own, "\x00") // nothing at all
				}
				if b, a := text(tt.before, tt.file), text(tt.after, tt.want); got.Before != b || got.After != a {
					t.Errorf("%q -> %q, want %q -> %q", got.Before, got.After, b, a)
				}
				if got.Version == "" || got.Version == v || !slices.Equal(got.InsertedAt, tt.at) || got.LinksBroken != 0 || got.MetadataLost != nil {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// testPatchMismatch: what is refused changes nothing and says where.
func testPatchMismatch(t *testing.T, mk Make) {
	const (
		mismatch = provider.CodePatchMismatch
		notText  = provider.CodeNotText
	)
	context := "a"
	tests := []struct {
		name, file, chunks string
		hunks              []patch.Hunk // instead of chunks
		code               provider.Code
		says               []string
	}{
		{name: "context does not occur (E3)", file: "x\nctx\n", chunks: "@@ none\n+new", code: mismatch, says: []string{"patch line 3", "stage context", `"none"`}},
		{name: "old lines do not occur", file: "a\nb\n", chunks: "@@\n-x\n+y", code: mismatch, says: []string{"patch line 3", "stage oldLines", `"x"`}},
		{name: "all or none", file: "a\nb\n", chunks: "@@\n-a\n+A\n@@\n-x\n+y", code: mismatch, says: []string{"patch line 6", "stage oldLines"}},
		{name: "out of order", file: "a\nb\n", chunks: "@@\n-b\n+B\n@@ a\n+x", code: mismatch, says: []string{"patch line 6", "stage context"}},
		{name: "the mark is not matched", file: "\xef\xbb\xbfa\n", chunks: "@@\n-\ufeffa\n+b", code: mismatch, says: []string{"patch line 3"}},
		{name: "no line number", file: "a\n", hunks: []patch.Hunk{{OldLines: []string{"x"}}}, code: mismatch, says: []string{"stage oldLines"}},
		{name: "kinds of other lines", file: "a\n", hunks: []patch.Hunk{{LineNumber: 9, OldLines: []string{"a"}, NewLines: []string{"b"}, Kinds: "  "}}, code: mismatch, says: []string{"patch line 9", "kinds"}},
		{name: "unknown kinds", file: "a\n", hunks: []patch.Hunk{{OldLines: []string{"a"}, Kinds: "?"}}, code: mismatch, says: []string{"hunk 1", "kinds"}},
		{name: "line break in a new line", file: "a\n", hunks: []patch.Hunk{{OldLines: []string{"a"}, NewLines: []string{"b\nc"}}}, code: mismatch, says: []string{"line break"}},
		{name: "line break in an old line", file: "a\nb\n", hunks: []patch.Hunk{{OldLines: []string{"a\nb"}}}, code: mismatch, says: []string{"line break"}},
		{name: "CR in a new line", file: "a\n", hunks: []patch.Hunk{{Context: &context, NewLines: []string{"b\r"}}}, code: mismatch, says: []string{"line break"}},
		{name: "late NUL (E16)", file: strings.Repeat("a", 9000) + "\x00\ntail\n", chunks: "@@\n-tail\n+TAIL", code: notText, says: []string{"offset 9000"}},
		{name: "GBK (E4)", file: "name=\xd6\xd0\nport=1\n", chunks: "@@\n-port=1\n+port=2", code: notText, says: []string{"offset 5"}},
		{name: "UTF-16 (E4)", file: "p\x00o\x00r\x00t\x00", chunks: "@@\n-p\n+q", code: notText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			w.File("W/f", tt.file, 0o640)
			before := w.snapshot()
			v := w.Version("W/f")
			hunks := tt.hunks
			if tt.chunks != "" {
				hunks = w.chunks(tt.chunks)
			}
			got, err := w.P.PatchText(t.Context(), w.WS, w.Resolve("W/f"), hunks, provider.PatchOptions{})
			if provider.CodeOf(err) != tt.code {
				t.Fatalf("%+v, %v; want %s", got, err, tt.code)
			}
			w.checkError(err)
			for _, s := range tt.says {
				if !contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if d := changes(before, w.snapshot()); len(d) > 0 {
				t.Errorf("changes:%v", d)
			}
			if w.Version("W/f") != v {
				t.Error("another version of an unchanged file")
			}
		})
	}
}

func testPatchFence(t *testing.T, mk Make) {
	for _, tt := range []struct {
		name string
		disk func(w *World)
		at   string
	}{
		{"outside (E10)", func(w *World) { w.File("O/f", "old\n") }, "O/f"},
		{"outside, absent", nil, "O/f"},
		{"prefix twin (E10)", func(w *World) { w.File("E/f", "old\n") }, "E/f"},
		{"dots (E10)", func(w *World) { w.File("O/f", "old\n") }, "W/../out/f"},
		{"link to a file out (E10)", func(w *World) { w.File("O/f", "old\n"); w.Link("W/l", w.O+"/f") }, "W/l"},
		{"below a link out (E10)", func(w *World) { w.File("O/f", "old\n"); w.Link("W/d", w.O) }, "W/d/f"},
		{"dangling link out", func(w *World) { w.Link("W/l", w.O+"/none") }, "W/l"},
		{"protected", func(w *World) { w.Dir("W/.codex"); w.File("W/.codex/f", "old\n") }, "W/.codex/f"},
		{"hidden", func(w *World) { w.File("W/k.secret", "old\n") }, "W/k.secret"},
		{"directory outside", nil, "O"},
	} {
		for _, mode := range []string{"ws", "ro"} {
			run(t, mk, []row{{name: mode + "/" + tt.name, disk: tt.disk, code: provider.CodeSandboxDenied, do: func(w *World) error {
				// By key and displayPath, without a resolve that might refuse.
				target := provider.Target{TargetKey: provider.TargetKey(filepath.Clean(w.Path(tt.at))), DisplayPath: w.Path(tt.at)}
				_, err := w.P.PatchText(w.T.Context(), w.mode(mode), target, oldToNew, provider.PatchOptions{})
				var d *fence.Denial
				if !errors.As(err, &d) {
					w.T.Errorf("no denial: %v", err)
				}
				return err
			}}})
		}
	}
	run(t, mk, []row{
		{name: "cancelled", disk: func(w *World) { w.File("W/f", "old\n") }, code: provider.CodeAborted, do: func(w *World) error {
			gone, cancel := context.WithCancel(w.T.Context())
			cancel()
			_, err := w.P.PatchText(gone, w.WS, w.Resolve("W/f"), oldToNew, provider.PatchOptions{})
			return err
		}},
	})
	t.Run("no fence, no call", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "old\n")
		before := w.snapshot()
		if _, err := w.P.PatchText(t.Context(), nil, w.Resolve("W/f"), oldToNew, provider.PatchOptions{}); provider.CodeOf(err) != provider.CodeSandboxDenied {
			t.Error(err)
		}
		if d := changes(before, w.snapshot()); len(d) > 0 {
			t.Errorf("changes:%v", d)
		}
	})
}
