package scratch_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/scratch"
)

func shortID(session string, n int) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:])[:n]
}

func TestLocationAndMarker(t *testing.T) {
	s := newSite(t)
	before := tree(t, s.root)
	d := s.dir("session-1", scratch.CleanTurn)
	want := s.root + "/code/tmp/shop-" + shortID("session-1", 7)
	if d.Path() != want {
		t.Errorf("path %s, want %s", d.Path(), want)
	}
	if after := tree(t, s.root); after != before {
		t.Errorf("New made something:\n%s", after)
	}
	must(t, d.Ensure())
	fi, err := os.Stat(d.Path())
	must(t, err)
	if fi.Mode() != os.ModeDir|0o700 {
		t.Errorf("mode %v", fi.Mode())
	}
	mi, err := os.Lstat(d.Path() + "/" + scratch.MarkerName)
	must(t, err)
	if mi.Mode() != 0o600 {
		t.Errorf("marker mode %v", mi.Mode())
	}
	b, err := os.ReadFile(d.Path() + "/" + scratch.MarkerName)
	must(t, err)
	var m struct {
		Schema        int       `json:"schema"`
		Owner         string    `json:"owner"`
		Workspace     string    `json:"workspace"`
		SessionID     string    `json:"sessionId"`
		CreatedAt     time.Time `json:"createdAt"`
		PID           int       `json:"pid"`
		StartTime     uint64    `json:"startTime"`
		BootID        string    `json:"bootId"`
		PIDNS         string    `json:"pidNs"`
		Dev           uint64    `json:"dev"`
		Ino           uint64    `json:"ino"`
		Btime         int64     `json:"btime"`
		CreatedParent bool      `json:"createdParent"`
		AutoClean     string    `json:"autoClean"`
	}
	must(t, json.Unmarshal(b, &m, json.RejectUnknownMembers(true)))
	st := fi.Sys().(*syscall.Stat_t)
	if m.Schema != 1 || m.Owner != "wattle" || m.Workspace != s.workspace || m.SessionID != "session-1" ||
		m.PID != os.Getpid() || m.StartTime == 0 || m.BootID == "" || m.Dev != uint64(st.Dev) || m.Ino != st.Ino ||
		!m.CreatedParent || m.AutoClean != "turn" || time.Since(m.CreatedAt) > time.Minute {
		t.Errorf("marker %s", b)
	}
	if len(s.records()) != 2 {
		t.Errorf("journal %q", s.records())
	}
	c, err := d.EndTurn(t.Context())
	must(t, err)
	if c == nil || c.Path != want || c.Files != 0 {
		t.Errorf("cleaned %+v", c)
	}
	if after := tree(t, s.root+"/code"); after != tree(t, s.root+"/code") || strings.Contains(after, "/tmp") {
		t.Errorf("left:\n%s", after)
	}
	if len(s.records()) != 0 {
		t.Errorf("journal %q", s.records())
	}
}

// TestTrapI: session ids are not hex; a prefix of one is no id.
func TestTrapI_SessionIDsAreHashed(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"../../etc", "a/b", "x", strings.Repeat("long", 1000), "ünïcode", "with\nnewline"} {
		d := s.dir(id, scratch.CleanTurn)
		if filepath.Base(d.Path()) != "shop-"+shortID(id, 7) || filepath.Dir(d.Path()) != s.root+"/code/tmp" {
			t.Errorf("%q: %s", id, d.Path())
		}
		must(t, d.Ensure())
	}
	for _, id := range []string{"", "not\xffutf8"} {
		_, err := s.m.New(id, s.workspace, scratch.DefaultConfig())
		code(t, id, err, scratch.CodeIO)
	}
}

func TestNamesFit(t *testing.T) {
	s := newSite(t)
	for _, base := range []string{strings.Repeat("a", 255), strings.Repeat("ü", 127), strings.Repeat("語", 85), "x" + strings.Repeat("𝄞", 63)} {
		ws := s.root + "/code/" + base
		must(t, os.Mkdir(ws, 0o755))
		d, err := s.m.New("id", ws, scratch.DefaultConfig())
		must(t, err)
		name := filepath.Base(d.Path())
		if len(name) > 255 || !utf8.ValidString(name) || !strings.HasSuffix(name, "-"+shortID("id", 7)) {
			t.Errorf("%d bytes, valid %v: %s", len(name), utf8.ValidString(name), name)
		}
		must(t, d.Ensure())
		_, err = d.Close(t.Context())
		must(t, err)
	}
}

func TestParallelSessionsAndWorkspaces(t *testing.T) {
	s := newSite(t)
	other := s.root + "/elsewhere/shop"
	must(t, os.MkdirAll(other, 0o755))
	seen := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, ws := range []string{s.workspace, other} {
		for i := range 8 {
			wg.Go(func() {
				d, err := s.m.New("session"+string(rune('a'+i)), ws, scratch.DefaultConfig())
				if err == nil {
					err = d.Ensure()
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[d.Path()] = true
				mu.Unlock()
				if _, err := d.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if len(seen) != 16 {
		t.Errorf("%d places", len(seen))
	}
	gone(t, s.root+"/code/tmp", s.root+"/elsewhere/tmp")
	if r := s.records(); len(r) != 0 {
		t.Errorf("journal %q", r)
	}
}

func TestWorkspaceThroughALinkHasOneParent(t *testing.T) {
	s := newSite(t)
	must(t, os.Mkdir(s.root+"/links", 0o755))
	must(t, os.Symlink(s.workspace, s.root+"/links/w"))
	d, err := s.m.New("s", s.root+"/links/w", scratch.DefaultConfig())
	must(t, err)
	if filepath.Dir(d.Path()) != s.root+"/code/tmp" || d.Workspace() != s.workspace {
		t.Errorf("path %s, workspace %s", d.Path(), d.Workspace())
	}
}

func TestNoUsableWorkspace(t *testing.T) {
	s := newSite(t)
	for ws, want := range map[string]string{
		"":                      scratch.CodeNoWorkspace,
		"relative":              scratch.CodeRefused,
		s.root + "/none":        scratch.CodeRefused,
		s.workspace + "/main.c": scratch.CodeRefused,
		"/a\x00b":               scratch.CodeRefused,
	} {
		_, err := s.m.New("s", ws, scratch.DefaultConfig())
		code(t, ws, err, want)
	}
	bad := s.root + "/code/bad\xff"
	must(t, os.Mkdir(bad, 0o755))
	_, err := s.m.New("s", bad, scratch.DefaultConfig())
	code(t, "not UTF-8", err, scratch.CodeRefused)
}

// TestTrapA: the workspace is itself called like the sibling directory.
func TestTrapA_WorkspaceNamedLikeTheSibling(t *testing.T) {
	s := newSite(t)
	ws := s.root + "/code/tmp"
	must(t, os.Mkdir(ws, 0o755))
	d, err := s.m.New("s", ws, scratch.DefaultConfig())
	must(t, err)
	if filepath.Dir(d.Path()) != s.root+"/code/tmp-scratch" {
		t.Errorf("path %s", d.Path())
	}
	must(t, d.Ensure())
	if es, _ := os.ReadDir(ws); len(es) != 0 {
		t.Errorf("in the workspace: %v", es)
	}
	_, err = d.Close(t.Context())
	must(t, err)
	gone(t, s.root+"/code/tmp-scratch")

	// The other name is no way out either: refused, not moved into it.
	must(t, os.Symlink(ws, s.root+"/code/tmp-scratch"))
	_, err = s.m.New("s2", ws, scratch.DefaultConfig())
	code(t, "link", err, scratch.CodeRefused)
}

// TestTrapB: nothing beside the workspace. The half with a parent that cannot
// be written needs a normal user.
func TestTrapB_NoPlaceBesideTheWorkspace(t *testing.T) {
	s := newSite(t)
	_, err := s.m.New("s", "/", scratch.DefaultConfig())
	code(t, "/", err, scratch.CodeRefused)

	c := scratch.DefaultConfig()
	c.Root = s.root + "/scratch-root"
	_, err = s.m.New("s", "/", c)
	code(t, "root lies in the workspace, and is missing", err, scratch.CodeConfigInvalid)

	must(t, os.Mkdir(c.Root, 0o755))
	if os.Geteuid() != 0 {
		home := s.root + "/users/me"
		must(t, os.MkdirAll(home, 0o755))
		must(t, os.Chmod(s.root+"/users", 0o555))
		t.Cleanup(func() { os.Chmod(s.root+"/users", 0o755) })
		before := tree(t, s.root)
		_, err = s.m.New("s", home, scratch.DefaultConfig())
		code(t, "closed parent", err, scratch.CodeRefused)
		if !strings.Contains(err.Error(), s.root+"/users/tmp") {
			t.Errorf("the reason does not name the place: %v", err)
		}
		if after := tree(t, s.root); after != before {
			t.Errorf("something was made:\n%s", after)
		}
		d, err := s.m.New("s", home, c)
		must(t, err)
		if filepath.Dir(d.Path()) != c.Root {
			t.Errorf("path %s", d.Path())
		}
		must(t, d.Ensure())
		_, err = d.Close(t.Context())
		must(t, err)
		there(t, c.Root)

		c.Root = home + "/inside"
		must(t, os.Mkdir(c.Root, 0o755))
		_, err = s.m.New("s", home, c)
		code(t, "root inside", err, scratch.CodeConfigInvalid)
	}
}

// TestTrapC: a sibling directory that was there before is never removed, also
// when it is empty.
func TestTrapC_ExistingSiblingStays(t *testing.T) {
	s := newSite(t)
	must(t, os.Mkdir(s.root+"/code/tmp", 0o755))
	d := s.made("s", scratch.CleanTurn)
	_, err := d.EndTurn(t.Context())
	must(t, err)
	gone(t, d.Path())
	there(t, s.root+"/code/tmp")

	// Ours, replaced by the user's own: forgotten, not removed.
	must(t, os.Remove(s.root+"/code/tmp"))
	d = s.made("s2", scratch.CleanOff)
	must(t, os.Rename(s.root+"/code/tmp", s.root+"/code/moved"))
	must(t, os.Mkdir(s.root+"/code/tmp", 0o755))
	must(t, os.Rename(s.root+"/code/moved/"+filepath.Base(d.Path()), d.Path()))
	d.Close(t.Context())
	must(t, os.RemoveAll(d.Path()))
	_, err = s.m.Sweep(t.Context())
	must(t, err)
	there(t, s.root+"/code/tmp")
	if r := s.records(); len(r) != 0 {
		t.Errorf("journal %q", r)
	}

	// Ours, with something of the user's in it: stays until it is empty.
	must(t, os.Remove(s.root+"/code/tmp"))
	d = s.made("s3", scratch.CleanTurn)
	must(t, os.WriteFile(s.root+"/code/tmp/note", []byte("mine"), 0o644))
	_, err = d.Close(t.Context())
	must(t, err)
	content(t, s.root+"/code/tmp/note", "mine")
	must(t, os.Remove(s.root+"/code/tmp/note"))
	_, err = s.m.Sweep(t.Context())
	must(t, err)
	gone(t, s.root+"/code/tmp")
}

func TestCollisionTakesMoreDigits(t *testing.T) {
	s := newSite(t)
	// A directory of the user's, with and without a foreign marker.
	for i, n := range []int{7, 9} {
		p := s.root + "/code/tmp/shop-" + shortID("s", n)
		must(t, os.MkdirAll(p, 0o700))
		must(t, os.WriteFile(p+"/precious", []byte("keep"), 0o644))
		if i == 1 {
			must(t, os.WriteFile(p+"/"+scratch.MarkerName, []byte(`{"schema":1,"owner":"other"}`), 0o600))
		}
	}
	d := s.made("s", scratch.CleanTurn)
	if filepath.Base(d.Path()) != "shop-"+shortID("s", 11) {
		t.Errorf("path %s", d.Path())
	}
	_, err := d.EndTurn(t.Context())
	must(t, err)
	_, err = s.m.Sweep(t.Context())
	must(t, err)
	content(t, s.root+"/code/tmp/shop-"+shortID("s", 7)+"/precious", "keep")
	content(t, s.root+"/code/tmp/shop-"+shortID("s", 9)+"/precious", "keep")
}

// A name taken between New and the first use is not taken over.
func TestNameTakenMeanwhile(t *testing.T) {
	s := newSite(t)
	d := s.dir("s", scratch.CleanTurn)
	must(t, os.MkdirAll(d.Path(), 0o755))
	must(t, os.WriteFile(d.Path()+"/precious", []byte("keep"), 0o644))
	code(t, "ensure", d.Ensure(), scratch.CodeIO)
	c, err := d.Close(t.Context())
	if c != nil || err != nil {
		t.Errorf("close: %+v %v", c, err)
	}
	content(t, d.Path()+"/precious", "keep")
}

func TestAdoption(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanOff)
	// The session lives: another Dir of the same id gets another place.
	again, err := s.m.New("s", s.workspace, config(scratch.CleanOff))
	must(t, err)
	if again.Path() == d.Path() {
		t.Error("a living session's directory was adopted")
	}
	// It has ended (or its daemon was restarted): taken up, with content.
	_, err = d.Close(t.Context())
	must(t, err)
	m2 := s.manager()
	a, err := m2.New("s", s.workspace, config(scratch.CleanSession))
	must(t, err)
	if a.Path() != d.Path() {
		t.Errorf("path %s, want %s", a.Path(), d.Path())
	}
	content(t, a.Path()+"/sub/file.txt", "content")
	gone(t, a.Path()+"/.wattle-scratch.new")
	r, err := s.m.Sweep(t.Context())
	must(t, err)
	kept(t, r, a.Path(), scratch.KeptInUse)
	c, err := a.Close(t.Context())
	must(t, err)
	if c == nil || c.Files != 1 || c.Bytes != 7 {
		t.Errorf("cleaned %+v", c)
	}
	gone(t, s.root+"/code/tmp")

	// The id of another session, or of another workspace, adopts nothing.
	d = s.made("s", scratch.CleanOff)
	d.Close(t.Context())
	rewrite(t, d.Path(), `"sessionId":"s"`, `"sessionId":"t"`)
	b, err := s.m.New("s", s.workspace, config(scratch.CleanTurn))
	must(t, err)
	if b.Path() == d.Path() {
		t.Error("another session's directory was adopted")
	}
}

// rewrite changes the marker in place, as a command could.
func rewrite(t *testing.T, dir, old, new string) {
	t.Helper()
	p := dir + "/" + scratch.MarkerName
	b, err := os.ReadFile(p)
	must(t, err)
	n := strings.Replace(string(b), old, new, 1)
	if n == string(b) {
		t.Fatalf("%s not in %s", old, b)
	}
	must(t, os.WriteFile(p, []byte(n), 0o600))
}

func TestEnsureMakesItAgain(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanTurn)
	must(t, os.RemoveAll(d.Path())) // a command: rm -rf "$TMPDIR"/..
	tmp, err := d.TempDir()
	must(t, err)
	if tmp != d.Path()+"/tmp" {
		t.Errorf("temp %s", tmp)
	}
	there(t, d.Path()+"/"+scratch.MarkerName)
	for _, mode := range []os.FileMode{0o777, 0o000, 0o500} {
		must(t, os.Chmod(tmp, mode))
		must(t, os.Chmod(d.Path(), mode))
		_, err = d.TempDir()
		must(t, err)
		for _, p := range []string{d.Path(), tmp} {
			if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v %v", p, fi.Mode(), err)
			}
		}
	}
	// After a turn clean the variables still name the path.
	_, err = d.EndTurn(t.Context())
	must(t, err)
	gone(t, d.Path())
	_, err = d.TempDir()
	must(t, err)
	there(t, tmp)
	// A link put in the place of the temporary directory is not followed.
	out := t.TempDir()
	must(t, os.Remove(tmp))
	must(t, os.Symlink(out, tmp))
	_, err = d.TempDir()
	code(t, "link", err, scratch.CodeIO)
	must(t, os.Remove(tmp))

	_, err = d.Close(t.Context())
	must(t, err)
	code(t, "closed", d.Ensure(), scratch.CodeIO)
	gone(t, d.Path())
}

// S23: parent or state directory replaced by a link is refused by name, and
// never followed.
func TestS23_ReplacedByLinks(t *testing.T) {
	s := newSite(t)
	out := t.TempDir()
	must(t, os.Symlink(out, s.root+"/code/tmp"))
	_, err := s.m.New("s", s.workspace, scratch.DefaultConfig())
	code(t, "parent before", err, scratch.CodeRefused)
	if err == nil || !strings.Contains(err.Error(), s.root+"/code/tmp") {
		t.Errorf("the path is not named: %v", err)
	}
	must(t, os.Remove(s.root+"/code/tmp"))

	d := s.made("s", scratch.CleanOff)
	must(t, os.Rename(s.root+"/code/tmp", s.root+"/code/moved"))
	must(t, os.Symlink(out, s.root+"/code/tmp"))
	code(t, "parent between", d.Ensure(), scratch.CodeIO)
	_, err = d.Write(writer, "x", []byte("x"))
	code(t, "write", err, scratch.CodeIO)
	must(t, os.Remove(s.root+"/code/tmp"))
	must(t, os.Mkdir(s.root+"/code/tmp", 0o755))
	code(t, "another parent", d.Ensure(), scratch.CodeIO)

	fresh := s.dir("t", scratch.CleanOff)
	must(t, os.Remove(s.root+"/code/tmp"))
	must(t, os.Symlink(out, s.root+"/code/tmp"))
	code(t, "parent before first use", fresh.Ensure(), scratch.CodeRefused)

	must(t, os.Symlink(out, s.root+"/state/link"))
	_, err = scratch.NewManager(scratch.Options{StateDir: s.root + "/state/link"})
	code(t, "state", err, scratch.CodeRefused)
	must(t, os.Mkdir(s.root+"/state/w2", 0o700))
	must(t, os.Symlink(out, s.root+"/state/w2/scratch"))
	_, err = scratch.NewManager(scratch.Options{StateDir: s.root + "/state/w2"})
	code(t, "journal", err, scratch.CodeIO)
	must(t, os.Mkdir(s.root+"/state/open", 0o700))
	must(t, os.Chmod(s.root+"/state/open", 0o777))
	_, err = scratch.NewManager(scratch.Options{StateDir: s.root + "/state/open"})
	code(t, "open state", err, scratch.CodeRefused)
	if es, _ := os.ReadDir(out); len(es) != 0 {
		t.Errorf("a link was followed: %v", es)
	}
}
