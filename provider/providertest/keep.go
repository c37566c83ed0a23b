//go:build unix

package providertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/trash/record"
)

// overwriting is a call that may overwrite W/g, and tells what it put into the
// trash, an entry for each call or operation that has a place for one.
type overwriting func(w *World, mode string) ([]*record.Entry, error)

func written(content string, guarded bool) overwriting {
	return func(w *World, mode string) ([]*record.Entry, error) {
		o := noGuard
		if guarded {
			o = ifVersion(w.Version("W/g"))
		}
		out, err := w.P.WriteText(w.T.Context(), w.mode(mode), w.Resolve("W/g"), content, o)
		return []*record.Entry{out.Trashed}, err
	}
}

func moved(o provider.MoveOptions) overwriting {
	return func(w *World, mode string) ([]*record.Entry, error) {
		out, err := w.P.MoveFile(w.T.Context(), w.mode(mode), w.Resolve("W/f"), w.Resolve("W/g"), o)
		return []*record.Entry{out.Destination.Trashed}, err
	}
}

func patched(o provider.ApplyOptions, lines ...string) overwriting {
	return func(w *World, mode string) ([]*record.Entry, error) {
		r, err := w.P.ApplyPatch(w.T.Context(), w.mode(mode), w.patchOf(append([]string{}, lines...)...), o)
		var out []*record.Entry
		for _, op := range r.Operations {
			out = append(out, op.Trashed)
		}
		return out, err
	}
}

// testKeepOverwritten holds every call that overwrites a file to trash.md
// section 6: where the policy keeps what is overwritten, it is in the trash
// afterwards, or nothing was overwritten. The file is the same one, by
// identity, with its mode and time.
func testKeepOverwritten(t *testing.T, mk Make) {
	over, codex := provider.ApplyOptions{Overwrite: true}, provider.ApplyOptions{Compat: provider.CompatCodex}
	single := provider.ApplyOptions{Overwrite: true, Atomic: new(bool)}
	hunk := []patch.Hunk{{OldLines: []string{"new"}, NewLines: []string{"newer"}, Kinds: "-+"}}
	add := []string{"*** Add File: W/g", "+new"}
	replace := []string{"*** Delete File: W/g", "*** Add File: W/g", "+new"}
	move := []string{"*** Update File: W/f", "*** Move to: W/g", "@@", "-new", "+newer"}
	update := []string{"*** Update File: W/g", "@@", "-old", "+new"}
	const gone = "gone"
	tests := []struct {
		name string
		do   overwriting
		// after is what differs on disk.
		after disk
		// kept tells which of the entries there are; none: nothing is kept.
		kept []bool
	}{
		{"writeText", written("new\n", false), disk{"W/g": file(0o600, "new\n")}, []bool{true}},
		{"writeText, replaceIfVersion", written("new\n", true), disk{"W/g": file(0o600, "new\n")}, []bool{true}},
		{"moveFile", moved(provider.MoveOptions{}), disk{"W/f": gone, "W/g": file(0o644, "new\n")}, []bool{true}},
		{"moveFile with hunks", moved(provider.MoveOptions{Hunks: hunk}), disk{"W/f": gone, "W/g": file(0o644, "newer\n")}, []bool{true}},
		{"applyPatch, add", patched(over, add...), disk{"W/g": file(0o600, "new\n")}, []bool{true}},
		{"applyPatch, add, one by one", patched(single, add...), disk{"W/g": file(0o600, "new\n")}, []bool{true}},
		{"applyPatch, add, codex", patched(codex, add...), disk{"W/g": file(0o600, "new\n")}, []bool{true}},
		{"applyPatch, delete and add", patched(over, replace...), disk{"W/g": file(0o600, "new\n")}, []bool{true}},
		{"applyPatch, move", patched(over, move...), disk{"W/f": gone, "W/g": file(0o644, "newer\n")}, []bool{true}},
		{"applyPatch, update and add", patched(over, append(update[:len(update):len(update)], add...)...), disk{"W/g": file(0o600, "new\n")}, []bool{false, true}},
		{"applyPatch, add and update", patched(over, "*** Add File: W/g", "+old", "*** Update File: W/g", "@@", "-old", "+new"), disk{"W/g": file(0o600, "new\n")}, []bool{true, false}},
		// g moves away, and an add writes over it where it is then.
		{"applyPatch, move away and add", patched(over, "*** Update File: W/g", "*** Move to: W/h", "@@", "-old", "+older", "*** Add File: W/h", "+new"),
			disk{"W/g": gone, "W/h": file(0o600, "new\n")}, []bool{false, true}},
		{"applyPatch, add and delete", patched(over, append(add[:len(add):len(add)], "*** Delete File: W/g")...), disk{"W/g": gone}, []bool{true, false}},

		{"editText", func(w *World, mode string) ([]*record.Entry, error) {
			_, err := w.P.EditText(w.T.Context(), w.mode(mode), w.Resolve("W/g"), provider.EditRequest{OldString: "old", NewString: "new"}, provider.EditOptions{})
			return nil, err
		}, disk{"W/g": file(0o600, "new\n")}, nil},
		{"patchText", func(w *World, mode string) ([]*record.Entry, error) {
			h := []patch.Hunk{{OldLines: []string{"old"}, NewLines: []string{"new"}, Kinds: "-+"}}
			_, err := w.P.PatchText(w.T.Context(), w.mode(mode), w.Resolve("W/g"), h, provider.PatchOptions{})
			return nil, err
		}, disk{"W/g": file(0o600, "new\n")}, nil},
		{"applyPatch, update", patched(over, update...), disk{"W/g": file(0o600, "new\n")}, nil},
		{"applyPatch, move away", patched(over, "*** Update File: W/g", "*** Move to: W/h", "@@", "-old", "+older"), disk{"W/g": gone, "W/h": file(0o600, "older\n")}, nil},
		{"writeText, new file", func(w *World, mode string) ([]*record.Entry, error) {
			out, err := w.P.WriteText(w.T.Context(), w.mode(mode), w.Resolve("W/n"), "new\n", noGuard)
			return []*record.Entry{out.Trashed}, err
		}, disk{"W/n": file(0o644, "new\n")}, nil},
	}
	trash := NewWorld(t, mk(t)).hasTrash()
	for _, tt := range tests {
		for _, mode := range []string{"keep", "ws"} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.File("W/f", "new\n")
				w.File("W/g", "old\n", 0o600)
				old, err := os.Lstat(w.Path("W/g"))
				w.must(err)
				before := w.snapshot()
				entries, err := tt.do(w, mode)
				w.checkError(err)
				deletes := strings.HasSuffix(tt.name, "delete") // which is for the trash in any mode
				want := tt.after
				switch refused := !trash && (mode == "keep" && tt.kept != nil || deletes); {
				case refused && strings.Contains(tt.name, "one by one"), refused && strings.Contains(tt.name, "codex"):
					want = disk{} // the report alone tells
				case refused:
					want = disk{}
					if string(provider.CodeOf(err)) != record.CodeUnavailable {
						t.Errorf("without a trash: %v", err)
					}
				default:
					w.must(err)
				}
				if got := changes(before, w.snapshot()); got.String() != want.String() {
					t.Errorf("changes on disk:%v\nwant:%v", got, want)
				}
				for i, e := range entries {
					kept := mode == "keep" && trash && i < len(tt.kept) && tt.kept[i] || mode == "ws" && trash && deletes && i == 1
					if kept != (e != nil) {
						t.Errorf("entry %d is %+v", i, e)
					}
					if e == nil {
						continue
					}
					in, err := os.Lstat(filepath.Join(e.TrashDir, "files", e.Name))
					if err != nil || !os.SameFile(old, in) || in.Mode() != old.Mode() || !in.ModTime().Equal(old.ModTime()) || e.OriginalPath != w.Path("W/g") {
						t.Errorf("in the trash: %+v, %v; %+v", in, err, e)
					}
				}
			})
		}
	}
}
