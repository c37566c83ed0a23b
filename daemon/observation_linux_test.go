package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

func observing(p *api.SessionOpenParams) { p.Observation = true }

// A file must be read before it is overwritten or edited, in a session that
// asked for it; what the session did itself it knows.
func TestObservation(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	ref := func(s api.SessionOpenResult, name string) api.FileRef {
		return api.FileRef{SessionID: s.SessionID, Path: name}
	}
	file := func(name, content string) string {
		path := filepath.Join(h.ws, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	state := func(s api.SessionOpenResult, name string, want provider.ObservationState) provider.Version {
		t.Helper()
		r := do(h, c, api.FSObserved, ref(s, name))
		if r.State != want || (r.Version != "") != (want == provider.Present) {
			t.Errorf("%s is %+v, want %s", name, r, want)
		}
		return r.Version
	}
	write := func(s api.SessionOpenResult, name, content string) api.FSWriteTextParams {
		return api.FSWriteTextParams{FileRef: ref(s, name), Content: content}
	}
	edit := func(s api.SessionOpenResult, name, from, to string) api.FSEditTextParams {
		return api.FSEditTextParams{FileRef: ref(s, name), Edit: provider.EditRequest{OldString: from, NewString: to}}
	}
	free := h.open(c, fence.WorkspaceWrite)
	s := h.open(c, fence.WorkspaceWrite, observing)
	other := h.open(c, fence.WorkspaceWrite, observing)
	f := file("f", "one\n")

	// Unseen.
	state(s, "f", provider.Unseen)
	refused(h, c, api.FSWriteText, write(s, "f", "x"), "FS_NOT_OBSERVED")
	e := refused(h, c, api.FSEditText, edit(s, "f", "one", "x"), "FS_NOT_OBSERVED")
	if e.Message != "editText "+f+": it has not been read" {
		t.Errorf("%q", e.Message)
	}
	refused(h, c, api.FSPatchText, api.FSPatchTextParams{FileRef: ref(s, "f"), Hunks: []patch.Hunk{}}, "FS_NOT_OBSERVED")
	refused(h, c, api.FSDeleteFile, api.FSDeleteFileParams{FileRef: ref(s, "f")}, "FS_NOT_OBSERVED")
	refused(h, c, api.FSMoveFile, api.FSMoveFileParams{FileRef: ref(s, "f"), Destination: api.Destination{Path: "g"}}, "FS_NOT_OBSERVED")
	holds(t, f, "one\n")
	do(h, c, api.FSStat, ref(s, "f")) // no read
	state(s, "f", provider.Unseen)

	// Read: by a link too, for it is one file.
	if err := os.Symlink("f", filepath.Join(h.ws, "l")); err != nil {
		t.Fatal(err)
	}
	r := do(h, c, api.FSReadText, api.FSReadTextParams{FileRef: ref(s, "l")})
	if v := state(s, "f", provider.Present); v != r.Version {
		t.Errorf("observed %q, read %q", v, r.Version)
	}
	state(other, "f", provider.Unseen)
	refused(h, c, api.FSEditText, edit(other, "f", "one", "x"), "FS_NOT_OBSERVED")
	state(free, "f", provider.Unseen)

	// Own changes need no reading again.
	do(h, c, api.FSEditText, edit(s, "f", "one", "two"))
	do(h, c, api.FSWriteText, write(s, "f", "three\n"))
	w := do(h, c, api.FSEditText, edit(s, "f", "three", "four"))
	if v := state(s, "f", provider.Present); v != w.Version {
		t.Errorf("observed %q, written %q", v, w.Version)
	}

	// What somebody else changed must be read again; nothing is lost.
	do(h, c, api.FSWriteText, write(free, "f", "theirs\n"))
	refused(h, c, api.FSWriteText, write(s, "f", "x"), "FS_STALE_VERSION")
	refused(h, c, api.FSEditText, edit(s, "f", "theirs", "x"), "FS_STALE_VERSION")
	holds(t, f, "theirs\n")
	// The call's own guard counts, whatever was observed.
	v := do(h, c, api.FSStat, ref(s, "f")).Version
	p := write(s, "f", "five\n")
	p.Expected = &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: v}
	do(h, c, api.FSWriteText, p)
	state(s, "f", provider.Present)

	// Absent: it can be made, not edited.
	refused(h, c, api.FSReadText, api.FSReadTextParams{FileRef: ref(s, "none")}, "FS_NOT_FOUND")
	state(s, "none", provider.Absent)
	refused(h, c, api.FSEditText, edit(s, "none", "a", "b"), "FS_NOT_FOUND")
	none := file("none", "came\n")
	refused(h, c, api.FSWriteText, write(s, "none", "x"), "FS_NOT_OBSERVED")
	holds(t, none, "came\n")
	do(h, c, api.FSWriteText, write(s, "new", "made\n"))
	do(h, c, api.FSEditText, edit(s, "new", "made", "kept"))

	// It ends with the session, and is per session.
	do(h, c, api.SessionClose, api.SessionRef{SessionID: s.SessionID})
	again := h.open(c, fence.WorkspaceWrite, observing)
	state(again, "f", provider.Unseen)

	// Without observation everything is as ever.
	do(h, c, api.FSWriteText, write(free, "f", "free\n"))
}

// Every kind of read records what it has read.
func TestEveryReadIsObserved(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	if err := os.WriteFile(filepath.Join(h.ws, "f"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(*client.Files, provider.Target) error{
		"readText": func(f *client.Files, at provider.Target) error {
			_, err := f.ReadText(h.ctx(), at, provider.ReadOptions{})
			return err
		},
		"streamText": func(f *client.Files, at provider.Target) error {
			s, err := f.StreamText(h.ctx(), at)
			if err == nil {
				_, err = whole(s)
			}
			return err
		},
		"readBytes": func(f *client.Files, at provider.Target) error { _, err := f.ReadBytes(h.ctx(), at, 100); return err },
		"readByteRange": func(f *client.Files, at provider.Target) error {
			_, err := f.ReadByteRange(h.ctx(), at, provider.ByteRange{Length: 1})
			return err
		},
		"readLines": func(f *client.Files, at provider.Target) error {
			_, err := f.ReadLines(h.ctx(), at, provider.LineWindow{Offset: 2})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := h.open(c, fence.WorkspaceWrite, observing)
			files := client.NewFiles(c, s.SessionID)
			for file, want := range map[string]provider.ObservationState{"f": provider.Present, "none": provider.Absent} {
				at := h.target(c, s.SessionID, file)
				err := read(files, at)
				if name == "readLines" && file == "none" {
					continue // the line may be what is missing
				}
				if (err == nil) != (want == provider.Present) {
					t.Errorf("%s: %v", file, err)
				}
				if got, _, err := files.Observed(h.ctx(), at); err != nil || got != want {
					t.Errorf("%s is %s, want %s; %v", file, got, want, err)
				}
			}
			at := h.target(c, s.SessionID, "f")
			if _, err := files.EditText(h.ctx(), at, provider.EditRequest{OldString: "one", NewString: "one"}, provider.EditOptions{}); err != nil {
				t.Errorf("an edit of what was read: %v", err)
			}
		})
	}
}

// Deletes and moves are recorded: fs-contract section 4.7.
func TestObservationOfMoves(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite, observing)
	files := client.NewFiles(c, s.SessionID)
	state := func(name string, want provider.ObservationState) {
		t.Helper()
		if got, _, err := files.Observed(h.ctx(), h.target(c, s.SessionID, name)); err != nil || got != want {
			t.Errorf("%s is %s, want %s; %v", name, got, want, err)
		}
	}
	make := func(name string) provider.Target {
		t.Helper()
		at := h.target(c, s.SessionID, name)
		if _, err := files.WriteText(h.ctx(), at, name+"\n", provider.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		return at
	}
	a := make("a")
	if _, err := files.MoveFile(h.ctx(), a, h.target(c, s.SessionID, "b"), provider.MoveOptions{}); err != nil {
		t.Fatal(err)
	}
	state("a", provider.Absent)
	state("b", provider.Present)
	if _, err := files.DeleteFile(h.ctx(), h.target(c, s.SessionID, "b"), provider.DeleteOptions{Permanent: true}); err != nil {
		t.Fatal(err)
	}
	state("b", provider.Absent)
	make("b") // which may be made again
	if _, err := files.DeletePath(h.ctx(), filepath.Join(h.ws, "b"), provider.DeletePathOptions{Permanent: true}); err != nil {
		t.Fatal(err)
	}
	state("b", provider.Absent)
	make("c")
	// A version is not told by movePath: what is there must be read.
	if _, err := files.MovePath(h.ctx(), "c", "d", provider.MovePathOptions{}); err != nil {
		t.Fatal(err)
	}
	state("c", provider.Absent)
	state("d", provider.Unseen)
}

// A patch of several files goes by the observations too.
func TestObservationOfPatches(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite, observing)
	files := client.NewFiles(c, s.SessionID)
	f := filepath.Join(h.ws, "f")
	if err := os.WriteFile(f, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const text = "*** Begin Patch\n*** Add File: new\n+made\n*** Update File: f\n@@\n-one\n+two\n*** End Patch\n"
	if _, err := files.ApplyPatch(h.ctx(), text, provider.ApplyOptions{}); provider.CodeOf(err) != provider.CodeNotObserved {
		t.Errorf("%v", err)
	}
	holds(t, f, "one\n")
	absent(t, filepath.Join(h.ws, "new"))
	if _, err := files.ReadText(h.ctx(), h.target(c, s.SessionID, "f"), provider.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := files.ApplyPatch(h.ctx(), text, provider.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, f, "two\n")
	for _, name := range []string{"f", "new"} {
		if got, _, err := files.Observed(h.ctx(), h.target(c, s.SessionID, name)); err != nil || got != provider.Present {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
}
