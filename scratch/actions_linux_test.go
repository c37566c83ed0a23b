package scratch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/scratch"
)

// TestTrapD: names that a model gives.
func TestTrapD_Names(t *testing.T) {
	s := newSite(t)
	out := t.TempDir()
	must(t, os.WriteFile(out+"/precious", []byte("keep"), 0o644))
	d := s.made("s", scratch.CleanTurn)
	must(t, os.Symlink(out, d.Path()+"/dirlink"))
	must(t, os.Symlink(out+"/precious", d.Path()+"/filelink"))
	must(t, os.Symlink(out+"/new", d.Path()+"/dangling"))
	must(t, os.Symlink("sub", d.Path()+"/inner"))
	must(t, syscall.Mkfifo(d.Path()+"/fifo", 0o600))
	before := tree(t, out)
	for _, c := range []struct{ name, write, create string }{
		{"a", "", ""}, {"a.txt", "", ""}, {"x/y/z.txt", "", ""}, {"ünï/cödé", "", ""}, {"-rf", "", ""},
		{"...", "", ""}, {"back\\slash", "", ""}, {".hidden", "", ""}, {"sub/file.txt", "", ""},
		{"", scratch.CodeNameInvalid, ""}, // create without a name is the directory
		{".", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"..", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"../x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"a/../../x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"a/./b", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"a//b", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"a/", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"/etc/passwd", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"/", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{d.Path() + "/abs", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"a\x00b", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"bad\xff", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{strings.Repeat("x", 256), scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"dirlink/x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"dirlink", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"filelink", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"filelink/x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"dangling", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"dangling/x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"inner/x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"sub", scratch.CodeNameInvalid, ""}, // a directory
		{"sub/file.txt/x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"fifo", "", ""}, // replaced as a name, not opened
		{scratch.MarkerName, scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{strings.ToUpper(scratch.MarkerName), scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{scratch.MarkerName + "/x", scratch.CodeNameInvalid, scratch.CodeNameInvalid},
		{"sub/" + scratch.MarkerName, "", ""},
	} {
		cr, err := d.Create(writer, c.name)
		code(t, "create "+c.name, err, c.create)
		if err == nil && cr.Path != filepath.Join(d.Path(), c.name) {
			t.Errorf("create %q: %s", c.name, cr.Path)
		}
		w, err := d.Write(writer, c.name, []byte("new"))
		code(t, "write "+c.name, err, c.write)
		if err == nil {
			if w.Path != filepath.Join(d.Path(), c.name) || w.Bytes != 3 {
				t.Errorf("write %q: %+v", c.name, w)
			}
			content(t, w.Path, "new")
		}
	}
	if after := tree(t, out); after != before {
		t.Errorf("outside changed:\n%s", after)
	}
	if all := tree(t, d.Path()); strings.Count(all, "/.wattle-") != 2 { // the marker, and the one written in sub
		t.Errorf("temporary files stayed:\n%s", all)
	}
}

func TestCreateMakesNoFile(t *testing.T) {
	s := newSite(t)
	d := s.dir("s", scratch.CleanTurn)
	c, err := d.Create(writer, "a/b/c.txt")
	must(t, err)
	there(t, d.Path()+"/a/b")
	gone(t, c.Path)
	c, err = d.Create(writer, "")
	must(t, err)
	if c.Path != d.Path() {
		t.Errorf("path %s", c.Path)
	}
}

func TestWriteIsWholeForReaders(t *testing.T) {
	s := newSite(t)
	d := s.dir("s", scratch.CleanTurn)
	a, b := strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<16)
	_, err := d.Write(writer, "f", []byte(a))
	must(t, err)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := d.Write(writer, "f", []byte([]string{a, b}[i%2])); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 500 {
		got, err := os.ReadFile(d.Path() + "/f")
		must(t, err)
		if string(got) != a && string(got) != b {
			t.Fatalf("torn: %d bytes", len(got))
		}
	}
	stop.Store(true)
	wg.Wait()
}

func TestList(t *testing.T) {
	s := newSite(t)
	d := s.dir("s", scratch.CleanTurn)
	l, err := d.List(t.Context(), writer)
	must(t, err)
	if l.Path != d.Path() || l.Entries == nil || len(l.Entries) != 0 || l.Truncated {
		t.Errorf("absent: %+v", l)
	}
	gone(t, d.Path())
	for _, n := range []string{"b.txt", "a/z", "a/b/c", ".hidden"} {
		_, err := d.Write(writer, n, []byte(n))
		must(t, err)
	}
	must(t, os.Symlink("/etc", d.Path()+"/link"))
	must(t, os.Mkdir(d.Path()+"/empty", 0o755))
	must(t, os.WriteFile(d.Path()+"/bad\xff", nil, 0o644))
	l, err = d.List(t.Context(), writer)
	must(t, err)
	want := "[{.hidden 7} {a/b/c 5} {a/z 3} {b.txt 5} {bad\ufffd 0} {link 4}]"
	if got := fmt.Sprint(l.Entries); got != want || l.Truncated {
		t.Errorf("got %s, truncated %v, want %s", got, l.Truncated, want)
	}
	for i := range 200 - len(l.Entries) {
		must(t, os.WriteFile(fmt.Sprintf("%s/many%03d", d.Path(), i), nil, 0o644))
	}
	l, err = d.List(t.Context(), writer)
	must(t, err)
	if len(l.Entries) != 200 || l.Truncated {
		t.Errorf("%d entries, truncated %v", len(l.Entries), l.Truncated)
	}
	must(t, os.WriteFile(d.Path()+"/zz", nil, 0o644))
	l, err = d.List(t.Context(), writer)
	must(t, err)
	if len(l.Entries) != 200 || !l.Truncated {
		t.Errorf("%d entries, truncated %v", len(l.Entries), l.Truncated)
	}
	must(t, os.MkdirAll(d.Path()+strings.Repeat("/0", 100), 0o755))
	_, err = d.List(t.Context(), writer)
	must(t, err)
}

func TestReadOnlyRefuses(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanTurn)
	before := tree(t, s.root)
	for _, c := range []scratch.Caller{{Mode: fence.ReadOnly}, {}, {Mode: "unknown"}, {InReadOnly: true}, {Mode: "unknown", InReadOnly: true}} {
		_, err := d.Create(c, "x")
		code(t, "create", err, scratch.CodeReadOnly)
		_, err = d.Write(c, "x", nil)
		code(t, "write", err, scratch.CodeReadOnly)
		_, err = d.List(t.Context(), c)
		code(t, "list", err, scratch.CodeReadOnly)
		_, err = d.Clean(t.Context(), c)
		code(t, "clean", err, scratch.CodeReadOnly)
	}
	if after := tree(t, s.root); after != before {
		t.Errorf("something changed:\n%s", after)
	}
	for _, c := range []scratch.Caller{{Mode: fence.ReadOnly, InReadOnly: true}, {Mode: fence.FullAccess}} {
		_, err := d.Write(c, "x", nil)
		code(t, "write", err, "")
	}
	// Made before the switch to read-only: still cleaned at its time.
	_, err := d.EndTurn(t.Context())
	must(t, err)
	gone(t, d.Path())
}

func TestWithoutAWorkspace(t *testing.T) {
	var d *scratch.Dir
	_, err := d.Create(writer, "x")
	code(t, "create", err, scratch.CodeNoWorkspace)
	_, err = d.Write(writer, "x", nil)
	code(t, "write", err, scratch.CodeNoWorkspace)
	_, err = d.List(t.Context(), writer)
	code(t, "list", err, scratch.CodeNoWorkspace)
	_, err = d.Clean(t.Context(), writer)
	code(t, "clean", err, scratch.CodeNoWorkspace)
	if c, err := d.EndTurn(t.Context()); c != nil || err != nil {
		t.Error(c, err)
	}
	if c, err := d.Close(t.Context()); c != nil || err != nil {
		t.Error(c, err)
	}
	if d.Prompt() != "" {
		t.Error("a prompt without a workspace")
	}
}

func TestPrompt(t *testing.T) {
	s := newSite(t)
	seen := map[string]bool{}
	for a, sentence := range map[scratch.AutoClean]string{
		scratch.CleanTurn:    "at the end of every turn.",
		scratch.CleanSession: "when the session is closed.",
		scratch.CleanOff:     "It is not removed by itself",
	} {
		d := s.dir("p-"+string(a), a)
		p := d.Prompt()
		for _, want := range []string{sentence, d.Path(), "beside the workspace", "never part of version control", "TMPDIR",
			"ask the user", "real files", "logs", "fixtures", "one-off scripts", "next to the project's sources"} {
			if !strings.Contains(p, want) {
				t.Errorf("%s: %q is missing in\n%s", a, want, p)
			}
		}
		seen[p] = true
		must(t, d.Ensure())
		_, err := d.Write(writer, "x", []byte("x"))
		must(t, err)
		if d.Prompt() != p {
			t.Error("changed by use")
		}
		_, err = d.Clean(t.Context(), writer)
		must(t, err)
		if d.Prompt() != p {
			t.Error("changed by cleaning")
		}
		d.Close(t.Context())
		again, err := s.m.New("p-"+string(a), s.workspace, config(a))
		must(t, err)
		if again.Prompt() != p {
			t.Error("another for the same session")
		}
	}
	if len(seen) != 3 {
		t.Error("the sentence does not follow autoClean")
	}
}

// Property: whatever the actions accept stays below the directory, and what
// they refuse changes nothing.
func TestNamesStayBelow(t *testing.T) {
	s := newSite(t)
	d := s.dir("s", scratch.CleanTurn)
	must(t, d.Ensure())
	outside := func() string {
		return tree(t, s.workspace) + fmt.Sprint(os.ReadDir(s.root+"/code/tmp"))
	}
	part := rapid.SampledFrom([]string{"a", "b", "..", ".", "", "/", "c d", scratch.MarkerName, "\x00", "\xff", "é", "...", "tmp"})
	rapid.Check(t, func(rt *rapid.T) {
		name := strings.Join(rapid.SliceOfN(part, 0, 5).Draw(rt, "parts"), "/")
		before := outside()
		w, err := d.Write(writer, name, []byte("x"))
		if err == nil && !fence.PathCovers(d.Path(), w.Path) {
			rt.Fatalf("%q is %s", name, w.Path)
		}
		if outside() != before {
			rt.Fatalf("%q changed something outside", name)
		}
		if _, err := os.Lstat(d.Path() + "/" + scratch.MarkerName); err != nil {
			rt.Fatalf("%q: marker: %v", name, err)
		}
	})
}
