//go:build unix

package providertest

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// patchOf puts begin and end around lines; paths in them begin with a letter of
// the world.
func (w *World) patchOf(lines ...string) string {
	for i, l := range lines {
		for _, mark := range []string{"*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(l, mark); ok {
				lines[i] = mark + w.Path(name)
			}
		}
	}
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

// applied applies a patch. A failure that is told by the report alone becomes
// an error, so that both forms can stand in one table. It also holds every
// report to the rules of all reports.
func applied(mode string, o provider.ApplyOptions, lines ...string) op {
	return func(w *World) error {
		r, err := w.P.ApplyPatch(w.T.Context(), w.mode(mode), w.patchOf(append([]string{}, lines...)...), o)
		stops := o.Compat == provider.CompatCodex || o.Atomic != nil && !*o.Atomic
		var pe *provider.PatchError
		if errors.As(err, &pe) {
			r = pe.Report
		}
		failed := -1
		for i, op := range r.Operations {
			if (op.State == provider.ApplyFailed) != (op.Failure != nil) && op.State != provider.ApplyLeft {
				w.T.Errorf("state %s with failure %+v", op.State, op.Failure)
			}
			switch op.State {
			case provider.ApplyFailed:
				failed = i
			case provider.ApplyDone:
				if err != nil || o.DryRun {
					w.T.Errorf("done, with error %v, dryRun %v", err, o.DryRun)
				}
			}
			if failed >= 0 && i > failed && op.State != provider.ApplySkipped {
				w.T.Errorf("state %s after the failure", op.State)
			}
		}
		if err == nil && r.Stopped != (failed >= 0) || r.Stopped && !stops || err == nil && r.DryRun != o.DryRun {
			w.T.Errorf("%+v", r)
		}
		if err == nil && r.Stopped {
			f := r.Operations[failed].Failure
			e := &provider.Error{Code: f.Code, Op: "applyPatch", Detail: f.Message}
			if f.Code == provider.CodePermissionDenied {
				e.Errno = "EACCES" // reports have no errno of their own
			}
			return e
		}
		return err
	}
}

func testApplyPatch(t *testing.T, mk Make) {
	defer syscall.Umask(syscall.Umask(0o022))
	const (
		ok      = provider.Code("")
		stale   = provider.CodeStaleVersion
		exists  = provider.CodeAlreadyExists
		notReg  = provider.CodeNotRegularFile
		notText = provider.CodeNotText
		misfit  = provider.CodePatchMismatch
	)
	// The forms of the call; the codes of a line stand in this order.
	forms := []struct {
		name string
		o    provider.ApplyOptions
	}{
		{"default", provider.ApplyOptions{Permanent: true}},
		{"overwrite", provider.ApplyOptions{Permanent: true, Overwrite: true}},
		{"codex", provider.ApplyOptions{Permanent: true, Compat: provider.CompatCodex}},
	}
	all := func(c provider.Code) [3]provider.Code { return [3]provider.Code{c, c, c} }
	old := func(w *World) { w.File("W/f", "old\n", 0o640) }
	src := func(w *World) { w.File("W/s", "old\n", 0o751) }
	both := func(w *World) { src(w); w.File("W/f", "there\n", 0o600) }
	add := []string{"*** Add File: W/f", "+new"}
	update := []string{"*** Update File: W/f", "@@", "-old", "+new"}
	remove := []string{"*** Delete File: W/f"}
	move := []string{"*** Update File: W/s", "*** Move to: W/f", "@@", "-old", "+new"}
	for _, tt := range []struct {
		name  string
		disk  func(w *World)
		lines []string
		codes [3]provider.Code
		after disk
	}{
		{"add/missing", nil, add, all(ok), disk{"W/f": file(0o644, "new\n")}},
		{"add/file", old, add, [3]provider.Code{exists, ok, ok}, disk{"W/f": file(0o640, "new\n")}},
		{"add/binary file", func(w *World) { w.File("W/f", "\x00\xff") }, add, [3]provider.Code{exists, ok, ok}, disk{"W/f": file(0o644, "new\n")}},
		{"add/mark stays", func(w *World) { w.File("W/f", "\ufeffold\n") }, add, [3]provider.Code{exists, ok, ok}, disk{"W/f": file(0o644, "\ufeffnew\n")}},
		{"add/directory", func(w *World) { w.Dir("W/f") }, add, all(notReg), nil},
		{"add/FIFO", func(w *World) { w.FIFO("W/f") }, add, all(notReg), nil},
		{"add/dangling link", func(w *World) { w.Link("W/f", "none") }, add, all(notReg), nil},
		{"add/link to a file", func(w *World) { w.File("W/r", "old\n"); w.Link("W/f", "r") }, add, [3]provider.Code{exists, ok, ok}, disk{"W/r": file(0o644, "new\n")}},
		{"add/parents", nil, []string{"*** Add File: W/a/b/f", "+x"}, all(ok), disk{"W/a": dir(0o755), "W/a/b": dir(0o755), "W/a/b/f": file(0o644, "x\n")}},
		{"add/empty", nil, []string{"*** Add File: W/f"}, all(ok), disk{"W/f": file(0o644, "")}},
		{"update/missing", nil, update, all(stale), nil},
		{"update/missing parents", nil, []string{"*** Update File: W/a/f", "@@", "-old", "+new"}, all(stale), nil},
		{"update/file", old, update, all(ok), disk{"W/f": file(0o640, "new\n")}},
		{"update/CRLF and mark", func(w *World) { w.File("W/f", "\ufeffa\r\nold\r\n") }, update, all(ok), disk{"W/f": file(0o644, "\ufeffa\r\nnew\r\n")}},
		{"update/misfit", func(w *World) { w.File("W/f", "other\n") }, update, all(misfit), nil},
		{"update/binary", func(w *World) { w.File("W/f", "old\n\x00") }, update, all(notText), nil},
		{"update/latin1", func(w *World) { w.File("W/f", "old\n\xe9") }, update, all(notText), nil},
		{"update/directory", func(w *World) { w.Dir("W/f") }, update, all(notReg), nil},
		{"update/FIFO", func(w *World) { w.FIFO("W/f") }, update, all(notReg), nil},
		{"update/dangling link", func(w *World) { w.Link("W/f", "none") }, update, all(stale), nil},
		{"update/link to a file", func(w *World) { w.File("W/r", "old\n"); w.Link("W/f", "r") }, update, all(ok), disk{"W/r": file(0o644, "new\n")}},
		{"update/0444", func(w *World) { w.File("W/f", "old\n", 0o444) }, update, all(provider.CodePermissionDenied), nil},
		{"update/no final newline", func(w *World) { w.File("W/f", "a\nold") }, []string{"*** Update File: W/f", "@@", "-a", "+b"}, [3]provider.Code{ok, ok, "-"}, disk{"W/f": file(0o644, "b\nold")}},
		{"delete/missing", nil, remove, all(stale), nil},
		{"delete/file", old, remove, all(ok), disk{"W/f": "gone"}},
		{"delete/directory", func(w *World) { w.Dir("W/f") }, remove, all(notReg), nil},
		{"delete/FIFO", func(w *World) { w.FIFO("W/f") }, remove, all(notReg), nil},
		{"delete/dangling link", func(w *World) { w.Link("W/f", "none") }, remove, all(stale), nil},
		{"delete/link to a file", func(w *World) { w.File("W/r", "old\n"); w.Link("W/f", "r") }, remove, all(ok), disk{"W/r": "gone"}},
		{"move/missing source", nil, move, all(stale), nil},
		{"move/free", src, move, all(ok), disk{"W/s": "gone", "W/f": file(0o751, "new\n")}},
		{"move/destination exists", both, move, [3]provider.Code{exists, ok, ok}, disk{"W/s": "gone", "W/f": file(0o751, "new\n")}},
		{"move/destination is a directory", func(w *World) { src(w); w.Dir("W/f") }, move, all(notReg), nil},
		{"move/destination is a dangling link", func(w *World) { src(w); w.Link("W/f", "none") }, move, all(notReg), nil},
		{"move/to itself", old, []string{"*** Update File: W/f", "*** Move to: W/f", "@@", "-old", "+new"}, all(provider.CodeSameTarget), nil},
		{"move/to itself by a link", func(w *World) { old(w); w.Link("W/l", "f") }, []string{"*** Update File: W/f", "*** Move to: W/l", "@@", "-old", "+new"}, all(provider.CodeSameTarget), nil},
		{"move/CRLF bytes go along", func(w *World) { w.File("W/s", "a\r\nold\r\nb\n") }, move, all(ok), disk{"W/s": "gone", "W/f": file(0o644, "a\r\nnew\r\nb\n")}},
		{"move/misfit", func(w *World) { w.File("W/s", "other\n") }, move, all(misfit), nil},
		{"move/parents", src, []string{"*** Update File: W/s", "*** Move to: W/a/b/f", "@@", "-old", "+new"}, all(ok), disk{"W/s": "gone", "W/a": dir(0o755), "W/a/b": dir(0o755), "W/a/b/f": file(0o751, "new\n")}},
		{"move/without hunks, binary", func(w *World) { w.File("W/s", "\x00\xff", 0o600) }, []string{"*** Update File: W/s", "*** Move to: W/f"}, [3]provider.Code{ok, ok, misfit}, disk{"W/s": "gone", "W/f": file(0o600, "\x00\xff")}},

		{"add, update", nil, []string{"*** Add File: W/f", "+old", "*** Update File: W/f", "@@", "-old", "+new"}, all(ok), disk{"W/f": file(0o644, "new\n")}},
		{"add, delete", nil, []string{"*** Add File: W/f", "+old", "*** Delete File: W/f"}, all(ok), nil},
		{"add, add", nil, []string{"*** Add File: W/f", "+old", "*** Add File: W/f", "+new"}, [3]provider.Code{exists, ok, ok}, disk{"W/f": file(0o644, "new\n")}},
		{"delete, add", old, []string{"*** Delete File: W/f", "*** Add File: W/f", "+new"}, all(ok), disk{"W/f": file(0o640, "new\n")}},
		{"delete, add/missing", nil, []string{"*** Delete File: W/f", "*** Add File: W/f", "+new"}, all(stale), nil},
		{"delete, update", old, append([]string{"*** Delete File: W/f"}, update...), [3]provider.Code{stale, stale, "-"}, nil},
		{"update, delete", old, append(append([]string{}, update...), "*** Delete File: W/f"), all(ok), disk{"W/f": "gone"}},
		{"update, update", old, append(append([]string{}, update...), "*** Update File: W/f", "@@", "-new", "+newer"), all(ok), disk{"W/f": file(0o640, "newer\n")}},
		{"update, update by a link", func(w *World) { old(w); w.Link("W/l", "f") }, append(append([]string{}, update...), "*** Update File: W/l", "@@", "-new", "+newer"), all(ok), disk{"W/f": file(0o640, "newer\n")}},
		{"move, update", src, append(append([]string{}, move...), "*** Update File: W/f", "@@", "-new", "+newer"), all(ok), disk{"W/s": "gone", "W/f": file(0o751, "newer\n")}},
		{"move, add", src, append(append([]string{}, move...), "*** Add File: W/s", "+again"), [3]provider.Code{ok, ok, "-"}, disk{"W/s": file(0o751, "again\n"), "W/f": file(0o751, "new\n")}},
		{"move, move back", src, append(append([]string{}, move...), "*** Update File: W/f", "*** Move to: W/s", "@@", "-new", "+back"), all(ok), disk{"W/s": file(0o751, "back\n")}},
		{"swap", both, []string{"*** Update File: W/s", "*** Move to: W/t", "@@", "-old", "+new", "*** Update File: W/f", "*** Move to: W/s", "@@", "-there", "+here", "*** Update File: W/t", "*** Move to: W/f", "@@", "-new", "+newer"},
			all(ok), disk{"W/s": file(0o600, "here\n"), "W/f": file(0o751, "newer\n")}},
		{"a file in the place of a new directory", nil, []string{"*** Add File: W/a/f", "+x", "*** Add File: W/a", "+y"}, [3]provider.Code{notReg, notReg, "-"}, nil},
		{"a file below a new file", nil, []string{"*** Add File: W/a", "+y", "*** Add File: W/a/f", "+x"}, [3]provider.Code{provider.CodeNotFound, provider.CodeNotFound, "-"}, nil},
		{"the second of two fails", old, append(append([]string{}, update...), "*** Delete File: W/none"), [3]provider.Code{stale, stale, "-"}, nil},
	} {
		for i, form := range forms {
			if tt.codes[i] == "-" { // not the same there; its own row below
				continue
			}
			for _, mode := range []string{"ws", "full"} {
				if mode == "full" && i > 0 {
					continue // how paths are found does not depend on the form
				}
				r := row{name: mode + "/" + form.name + "/" + tt.name, disk: tt.disk, code: tt.codes[i], do: applied(mode, form.o, tt.lines...)}
				if r.code == ok {
					r.after = tt.after
				}
				dry := r
				dry.name += "/dryRun"
				dry.after = nil
				o := form.o
				o.DryRun = true
				dry.do = applied(mode, o, tt.lines...)
				run(t, mk, []row{r, dry})
			}
		}
	}
	codex, no := forms[2].o, false
	partly := provider.ApplyOptions{Atomic: &no, Permanent: true}
	two := append(append([]string{}, update...), "*** Delete File: W/none", "*** Add File: W/never", "+x")
	run(t, mk, []row{
		{name: "codex/final newline", disk: func(w *World) { w.File("W/f", "a\nold") }, do: applied("ws", codex, "*** Update File: W/f", "@@", "-a", "+b"), after: disk{"W/f": file(0o644, "b\nold\n")}},
		{name: "codex/the second of three fails", disk: old, do: applied("ws", codex, two...), code: stale, after: disk{"W/f": file(0o640, "new\n")}},
		{name: "not atomic/the second of three fails", disk: old, do: applied("ws", partly, two...), code: stale, after: disk{"W/f": file(0o640, "new\n")}},
		{name: "not atomic/exists", disk: old, do: applied("ws", partly, add...), code: exists},
		{name: "not atomic/a denied path later changes nothing", disk: old, do: applied("ws", partly, append(append([]string{}, update...), "*** Add File: O/x", "+x")...), code: provider.CodeSandboxDenied},
		{name: "codex/delete, update", disk: old, do: applied("ws", codex, append([]string{"*** Delete File: W/f"}, update...)...), code: stale, after: disk{"W/f": "gone"}},
		{name: "codex/move, add", disk: src, do: applied("ws", codex, append(append([]string{}, move...), "*** Add File: W/s", "+again")...), after: disk{"W/s": file(0o644, "again\n"), "W/f": file(0o751, "new\n")}},
		{name: "read-only", disk: old, do: applied("ro", provider.ApplyOptions{}, update...), code: provider.CodeSandboxDenied},
		{name: "protected", disk: func(w *World) { w.Dir("W/.codex"); old(w) }, do: applied("ws", provider.ApplyOptions{}, append(append([]string{}, update...), "*** Add File: W/.codex/x", "+x")...), code: provider.CodeSandboxDenied},
		{name: "move to a twin (E10)", disk: src, do: applied("ws", provider.ApplyOptions{}, "*** Update File: W/s", "*** Move to: W/../ws-evil/g", "@@", "-old", "+new"), code: provider.CodeSandboxDenied},
		{name: "move out through a link (E10)", disk: func(w *World) { src(w); w.Link("W/d", w.O) }, do: applied("ws", provider.ApplyOptions{}, "*** Update File: W/s", "*** Move to: W/d/a/g", "@@", "-old", "+new"), code: provider.CodeSandboxDenied},
		{name: "0444, override", disk: func(w *World) { w.File("W/f", "old\n", 0o444) }, do: applied("ws", provider.ApplyOptions{OverrideReadOnly: true}, update...), after: disk{"W/f": file(0o444, "new\n")}},
		{name: "0444, delete", disk: func(w *World) { w.File("W/f", "old\n", 0o444) }, do: applied("ws", provider.ApplyOptions{Permanent: true}, remove...), code: provider.CodePermissionDenied},
		{name: "an unwritable directory", disk: func(w *World) { old(w); w.Dir("W/d", 0o555) }, do: applied("ws", provider.ApplyOptions{}, append(append([]string{}, update...), "*** Add File: W/d/x", "+x")...), code: provider.CodePermissionDenied, as: "user"},
		{name: "no patch", do: applied("ws", provider.ApplyOptions{}, "*** Frobnicate File: W/f"), code: misfit},
		{name: "nothing in it", do: func(w *World) error { return applied("ws", provider.ApplyOptions{}, "")(w) }, code: misfit},
		{name: "too many operations", do: func(w *World) error {
			_, err := w.P.ApplyPatch(w.T.Context(), w.WS, "*** Begin Patch\n"+strings.Repeat("*** Add File: f\n", 1001)+"*** End Patch", provider.ApplyOptions{Cwd: w.W})
			return err
		}, code: provider.CodeTooLarge},
		{name: "relative paths", disk: old, do: func(w *World) error {
			_, err := w.P.ApplyPatch(w.T.Context(), w.WS, "*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch", provider.ApplyOptions{Cwd: w.W})
			return err
		}, after: disk{"W/f": file(0o640, "new\n")}},
	})
	t.Run("syntax has its line", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		_, err := w.P.ApplyPatch(t.Context(), w.WS, "*** Begin Patch\n*** Add File: f\n+x\nwhat\n*** End Patch", provider.ApplyOptions{Cwd: w.W})
		if provider.CodeOf(err) != misfit || !strings.Contains(err.Error(), "line 4") {
			t.Error(err)
		}
		var pe *provider.PatchError
		if errors.As(err, &pe) {
			t.Errorf("a report of a patch that could not be read: %+v", pe.Report)
		}
	})
}
