//go:build unix

package providertest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// unresolved gives a target for a name, resolved if it can be.
func (w *World) unresolved(mode, name string) provider.Target {
	w.T.Helper()
	t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(name), provider.ResolveOptions{})
	if err != nil {
		t = provider.Target{TargetKey: provider.TargetKey(filepath.Clean(w.Path(name))), DisplayPath: w.Path(name)}
	}
	return t
}

// moveFile moves, and wants the source to be gone afterwards.
func moveFile(mode, from, to string, o provider.MoveOptions) op {
	return func(w *World) error {
		out, err := w.P.MoveFile(w.T.Context(), w.mode(mode), w.unresolved(mode, from), w.unresolved(mode, to), o)
		if err == nil && (!out.SourceDeleted || out.SourceFailure != nil) {
			w.T.Errorf("the source stayed: %+v", out.SourceFailure)
		}
		if err == nil && out.Destination.Version != w.Version(to) {
			// A hash may stand in one and not in the other: then a guard decides.
			e := provider.EditOptions{Expected: seenAs(out.Destination.Version), OverrideReadOnly: true}
			_, err := w.P.EditText(w.T.Context(), w.mode(mode), w.Resolve(to), provider.EditRequest{OldString: "never there", NewString: "x"}, e)
			if c := provider.CodeOf(err); c != provider.CodeEditNotFound && c != provider.CodeNotText {
				w.T.Errorf("the version does not hold: %v", err)
			}
		}
		return err
	}
}

func testMoveFile(t *testing.T, mk Make) {
	const denied, stale, notReg, perm = provider.CodeSandboxDenied, provider.CodeStaleVersion, provider.CodeNotRegularFile, provider.CodePermissionDenied
	none := provider.MoveOptions{}
	forced := provider.MoveOptions{OverrideReadOnly: true}
	create := provider.MoveOptions{ExpectedDestination: ifAbsent.Expected}
	f := func(w *World) { w.File("W/f", "a\r\nb", 0o640) }
	both := func(w *World) { f(w); w.File("W/g", "old", 0o600) }
	to := func(name, content string) disk { return disk{"W/f": "gone", name: file(0o640, content)} }
	over := func(v string) provider.MoveOptions {
		return provider.MoveOptions{ExpectedDestination: ifVersion(provider.Version(v)).Expected}
	}
	for _, mode := range []string{"ws", "full"} {
		run(t, mk, []row{
			{name: mode + "/to a new name", disk: f, do: moveFile(mode, "W/f", "W/g", none), after: to("W/g", "a\r\nb")},
			{name: mode + "/to a new name, createIfAbsent", disk: f, do: moveFile(mode, "W/f", "W/g", create), after: to("W/g", "a\r\nb")},
			{name: mode + "/into missing parents", disk: f, do: moveFile(mode, "W/f", "W/x/y/g", none), after: disk{"W/f": "gone", "W/x": dir(0o755), "W/x/y": dir(0o755), "W/x/y/g": file(0o640, "a\r\nb")}},
			{name: mode + "/over a file", disk: both, do: moveFile(mode, "W/f", "W/g", none), after: to("W/g", "a\r\nb")},
			{name: mode + "/over a file, createIfAbsent", disk: both, do: moveFile(mode, "W/f", "W/g", create), code: provider.CodeNotObserved},
			{name: mode + "/over a version", disk: both, do: func(w *World) error {
				return moveFile(mode, "W/f", "W/g", over(string(w.Version("W/g"))))(w)
			}, after: to("W/g", "a\r\nb")},
			{name: mode + "/over another version (E7)", disk: both, do: moveFile(mode, "W/f", "W/g", over("nonsense")), code: stale},
			{name: mode + "/over a version that is gone", disk: f, do: moveFile(mode, "W/f", "W/g", over("nonsense")), code: stale},
			{name: mode + "/over a version, parents gone", disk: f, do: moveFile(mode, "W/f", "W/x/g", over("nonsense")), code: stale},
			{name: mode + "/binary", disk: func(w *World) { w.File("W/f", "\x00\xff", 0o640) }, do: moveFile(mode, "W/f", "W/g", none), after: to("W/g", "\x00\xff")},
			{name: mode + "/set-id bits go along", disk: func(w *World) { w.File("W/f", "x"); w.must(os.Chmod(w.Path("W/f"), 0o751|os.ModeSetgid)) }, do: moveFile(mode, "W/f", "W/g", none), after: disk{"W/f": "gone", "W/g": file(0o2751, "x")}},
			{name: mode + "/source absent", do: moveFile(mode, "W/f", "W/g", none), code: stale},
			{name: mode + "/source absent, parents too", do: moveFile(mode, "W/a/f", "W/b/g", none), code: stale},
			{name: mode + "/source is a directory", disk: func(w *World) { w.Dir("W/f") }, do: moveFile(mode, "W/f", "W/g", none), code: notReg},
			{name: mode + "/source is a FIFO (E8)", disk: func(w *World) { w.FIFO("W/f") }, do: moveFile(mode, "W/f", "W/g", none), code: notReg},
			{name: mode + "/source is a socket (E8)", disk: func(w *World) { w.Socket("W/f") }, do: moveFile(mode, "W/f", "W/g", none), code: notReg},
			{name: mode + "/source is a dangling link", disk: func(w *World) { w.Link("W/f", "none") }, do: moveFile(mode, "W/f", "W/g", none), code: stale},
			{name: mode + "/source through a link", disk: func(w *World) { f(w); w.Link("W/l", "f") }, do: moveFile(mode, "W/l", "W/g", none), after: to("W/g", "a\r\nb")},
			{name: mode + "/destination is a directory", disk: func(w *World) { f(w); w.Dir("W/d") }, do: moveFile(mode, "W/f", "W/d", none), code: notReg},
			{name: mode + "/destination is a directory, createIfAbsent", disk: func(w *World) { f(w); w.Dir("W/d") }, do: moveFile(mode, "W/f", "W/d", create), code: notReg},
			{name: mode + "/destination is a FIFO", disk: func(w *World) { f(w); w.FIFO("W/p") }, do: moveFile(mode, "W/f", "W/p", none), code: notReg},
			{name: mode + "/destination is a dangling link", disk: func(w *World) { f(w); w.Link("W/l", "none") }, do: moveFile(mode, "W/f", "W/l", none), code: notReg},
			{name: mode + "/destination through a link", disk: func(w *World) { both(w); w.Link("W/l", "g") }, do: moveFile(mode, "W/f", "W/l", none), after: to("W/g", "a\r\nb")},
			{name: mode + "/destination below a file", disk: both, do: moveFile(mode, "W/f", "W/g/x", none), code: provider.CodeNotFound},
			{name: mode + "/same file", disk: f, do: moveFile(mode, "W/f", "W/f", none), code: provider.CodeSameTarget},
			{name: mode + "/same file, through a link", disk: func(w *World) { f(w); w.Link("W/l", "f") }, do: moveFile(mode, "W/f", "W/l", none), code: provider.CodeSameTarget},
			{name: mode + "/same file, absent", do: moveFile(mode, "W/f", "W/f", none), code: provider.CodeSameTarget},
			{name: mode + "/two names of one file", disk: func(w *World) { f(w); w.must(os.Link(w.Path("W/f"), w.Path("W/g"))) }, do: moveFile(mode, "W/f", "W/g", none), after: disk{"W/f": "gone"}},
			{name: mode + "/0444 source", disk: func(w *World) { w.File("W/f", "x", 0o444) }, do: moveFile(mode, "W/f", "W/g", none), code: perm},
			{name: mode + "/0444 source, asked for", disk: func(w *World) { w.File("W/f", "x", 0o444) }, do: moveFile(mode, "W/f", "W/g", forced), after: disk{"W/f": "gone", "W/g": file(0o444, "x")}},
			{name: mode + "/0444 destination", disk: func(w *World) { f(w); w.File("W/g", "x", 0o444) }, do: moveFile(mode, "W/f", "W/g", none), code: perm},
			{name: mode + "/0444 destination, asked for", disk: func(w *World) { f(w); w.File("W/g", "x", 0o444) }, do: moveFile(mode, "W/f", "W/g", forced), after: to("W/g", "a\r\nb")},
			{name: mode + "/closed destination", as: "user", disk: func(w *World) { f(w); w.Dir("W/d", 0o555) }, do: moveFile(mode, "W/f", "W/d/g", none), code: perm},
			{name: mode + "/closed destination, missing parents", as: "user", disk: func(w *World) { f(w); w.Dir("W/d", 0o555) }, do: moveFile(mode, "W/f", "W/d/e/g", none), code: perm},
			{name: mode + "/source of a version", disk: f, do: func(w *World) error {
				return moveFile(mode, "W/f", "W/g", provider.MoveOptions{ExpectedSource: seenAs(w.Version("W/f"))})(w)
			}, after: to("W/g", "a\r\nb")},
			{name: mode + "/source of another version (E7)", disk: both, do: moveFile(mode, "W/f", "W/g", provider.MoveOptions{ExpectedSource: seenAs("nonsense")}), code: stale},
			{name: mode + "/type before guard", disk: func(w *World) { w.Dir("W/f") }, do: moveFile(mode, "W/f", "W/g", provider.MoveOptions{ExpectedSource: seenAs("nonsense")}), code: notReg},
		})
	}
	// Both ends are fenced (E10).
	for _, tt := range escapes() {
		for _, mode := range []string{"ws", "ro"} {
			in := func(w *World) {
				if tt.disk != nil {
					tt.disk(w)
				}
				w.File("W/in.txt", "in")
			}
			run(t, mk, []row{
				{name: mode + "/move from " + tt.name, disk: in, do: moveFile(mode, tt.at, "W/in2.txt", forced), code: denied},
				{name: mode + "/move from, over a file, " + tt.name, disk: in, do: moveFile(mode, tt.at, "W/in.txt", forced), code: denied},
				{name: mode + "/move to " + tt.name, disk: in, do: moveFile(mode, "W/in.txt", tt.at, forced), code: denied},
			})
		}
	}
	run(t, mk, []row{
		{name: "read-only", disk: both, do: moveFile("ro", "W/f", "W/g", none), code: denied},
		{name: "onto the way to a protected path", disk: f, do: moveFile("ws", "W/f", "W/.git", none), code: denied},
		{name: "a dangling link out (E10)", disk: func(w *World) { f(w); w.Link("W/l", w.O+"/new") }, do: moveFile("ws", "W/f", "W/l", none), code: denied},
	})
	testMoveOutcome(t, mk)
	testMoveHunks(t, mk)
}

func testMoveOutcome(t *testing.T, mk Make) {
	t.Run("outcome", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "\xef\xbb\xbfa\r\nb")
		w.File("W/g", "old\r\n")
		old, err := os.Stat(w.Path("W/f"))
		w.must(err)
		w.must(os.Link(w.Path("W/g"), w.Path("W/h")))
		out, err := w.P.MoveFile(t.Context(), w.WS, w.Resolve("W/f"), w.Resolve("W/g"), provider.MoveOptions{})
		w.must(err)
		d := out.Destination
		if out.SourceBefore == nil || *out.SourceBefore != "a\nb" || d.Before == nil || *d.Before != "old\n" || d.After != "a\nb" ||
			d.Operation != provider.OperationUpdate || d.LinksBroken != 1 || d.MetadataLost != nil {
			t.Errorf("%+v", out)
		}
		// Some systems set times by the microsecond.
		if now, err := os.Stat(w.Path("W/g")); err != nil || now.ModTime().Sub(old.ModTime()).Abs() >= time.Microsecond {
			t.Errorf("%v, %v", now, err)
		}
	})
	t.Run("outcome of a binary", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "\x00")
		w.File("W/g", "\xff")
		out, err := w.P.MoveFile(t.Context(), w.WS, w.Resolve("W/f"), w.Resolve("W/g"), provider.MoveOptions{})
		w.must(err)
		if out.SourceBefore != nil || out.Destination.Before != nil || out.Destination.After != "" {
			t.Errorf("%+v", out)
		}
	})
	t.Run("the source stays", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("SKIP: this row is for user")
		}
		for _, to := range []string{"W/new", "W/g"} {
			w := NewWorld(t, mk(t))
			w.Dir("W/d")
			w.File("W/d/f", "text")
			w.File("W/g", "old")
			w.Dir("W/d", 0o555)
			out, err := w.P.MoveFile(t.Context(), w.WS, w.Resolve("W/d/f"), w.Resolve(to), provider.MoveOptions{})
			w.must(err)
			if out.SourceDeleted || out.SourceFailure == nil || out.SourceFailure.Code != provider.CodePermissionDenied || out.SourceFailure.Message == "" {
				t.Errorf("%+v %+v", out, out.SourceFailure)
			}
			a, err := os.Stat(w.Path("W/d/f"))
			w.must(err)
			b, err := os.Stat(w.Path(to))
			w.must(err)
			if os.SameFile(a, b) {
				t.Error("both names are one file")
			}
			if got, _ := os.ReadFile(w.Path(to)); string(got) != "text" {
				t.Errorf("%q", got)
			}
			if out.Destination.Version == "" {
				t.Error("no version")
			}
		}
	})
}

func testMoveHunks(t *testing.T, mk Make) {
	hunk := func(old, new string) []patch.Hunk {
		return []patch.Hunk{{LineNumber: 3, OldLines: []string{old}, NewLines: []string{new}, Kinds: "-+"}}
	}
	for _, tt := range []struct {
		name, file, want, after string
		code                    provider.Code
	}{
		{"text", "a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n", ""},
		{"line ends and mark stay", "\xef\xbb\xbfa\r\nb\r\nc", "\xef\xbb\xbfa\r\nB\r\nc", "a\nB\nc", ""},
		{"does not fit", "a\nc\n", "", "", provider.CodePatchMismatch},
		{"binary", "b\x00\n", "", "", provider.CodeNotText},
		{"no text", "b\n\xff\n", "", "", provider.CodeNotText},
	} {
		for _, at := range []string{"W/new", "W/x/y/new", "W/g", "W/twin"} {
			t.Run("hunks/"+tt.name+" to "+at, func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.File("W/f", tt.file, 0o751)
				w.File("W/g", "old", 0o600)
				w.must(os.Link(w.Path("W/f"), w.Path("W/twin")))
				before := w.snapshot()
				out, err := w.P.MoveFile(t.Context(), w.WS, w.Resolve("W/f"), w.Resolve(at), provider.MoveOptions{Hunks: hunk("b", "B"), ExpectedSource: seenAs(w.Version("W/f"))})
				w.checkError(err)
				if provider.CodeOf(err) != tt.code {
					t.Fatal(err)
				}
				want := disk{}
				if tt.code == "" {
					want = disk{"W/f": "gone", at: file(0o751, tt.want)}
					if at == "W/x/y/new" {
						want["W/x"], want["W/x/y"] = dir(0o755), dir(0o755)
					}
					if out.Destination.After != tt.after || out.SourceBefore == nil || out.Destination.LinksBroken == 0 || !out.SourceDeleted {
						t.Errorf("%+v", out)
					}
				}
				if tt.code == provider.CodePatchMismatch {
					var f *patch.Failure
					if !errors.As(err, &f) || f.HunkLineNumber != 3 {
						t.Errorf("%v", err)
					}
				}
				if got := changes(before, w.snapshot()); got.String() != want.String() {
					t.Errorf("changes:%v\nwant:%v", got, want)
				}
			})
		}
	}
}
