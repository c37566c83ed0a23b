package scratch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/scratch"
)

func TestCleaningTimes(t *testing.T) {
	for _, c := range []struct {
		auto                  scratch.AutoClean
		afterTurn, afterClose bool // still there
	}{
		{scratch.CleanTurn, false, false},
		{scratch.CleanSession, true, false},
		{scratch.CleanOff, true, true},
	} {
		s := newSite(t)
		d := s.made("s", c.auto)
		got, err := d.EndTurn(t.Context())
		must(t, err)
		if there := exists(d.Path()); there != c.afterTurn || (got != nil) == c.afterTurn {
			t.Errorf("%s: after the turn %v, %+v", c.auto, there, got)
		}
		if !c.afterTurn && (got.Files != 1 || got.Bytes != 7 || got.Path != d.Path()) {
			t.Errorf("%s: %+v", c.auto, got)
		}
		got, err = d.EndTurn(t.Context())
		if got != nil || err != nil {
			t.Errorf("%s: again %+v %v", c.auto, got, err)
		}
		_, err = d.Close(t.Context())
		must(t, err)
		if exists(d.Path()) != c.afterClose {
			t.Errorf("%s: after the session", c.auto)
		}
		if got, err := d.Close(t.Context()); got != nil || err != nil {
			t.Errorf("%s: closed again %+v %v", c.auto, got, err)
		}
		// The sweep respects "off", also when the journal is lost.
		r, err := s.manager().Sweep(t.Context())
		must(t, err)
		if c.afterClose {
			kept(t, r, d.Path(), scratch.KeptOff)
		}
		if exists(d.Path()) != c.afterClose {
			t.Errorf("%s: after the sweep", c.auto)
		}
	}
}

func TestCleanActionAndAbsence(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanOff)
	c, err := d.Clean(t.Context(), writer)
	must(t, err)
	if c.Files != 1 || c.Bytes != 7 {
		t.Errorf("%+v", c)
	}
	gone(t, d.Path(), s.root+"/code/tmp")
	for range 2 {
		c, err = d.Clean(t.Context(), writer)
		if err != nil || c.Files != 0 || c.Path != d.Path() {
			t.Errorf("absent: %+v %v", c, err)
		}
	}
	// A command removed it itself.
	must(t, d.Ensure())
	must(t, os.RemoveAll(d.Path()))
	_, err = d.Clean(t.Context(), writer)
	must(t, err)
	gone(t, s.root+"/code/tmp")
	if r := s.records(); len(r) != 0 {
		t.Errorf("journal %q", r)
	}
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// precious is a directory that must survive everything.
func (s *site) precious() string {
	p := s.root + "/precious"
	must(s.t, os.MkdirAll(p+"/sub", 0o755))
	must(s.t, os.WriteFile(p+"/file", []byte("keep"), 0o644))
	must(s.t, os.WriteFile(p+"/sub/file", []byte("keep"), 0o644))
	return p
}

// tampering is what a process can do to a scratch directory, and what a clean
// in the session and a sweep after it must say.
var tampering = []struct {
	name   string
	do     func(t *testing.T, s *site, dir string)
	reason scratch.KeptReason
}{
	{"TrapE_ReplacedByALink", func(t *testing.T, s *site, dir string) {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.Symlink(s.precious(), dir))
	}, scratch.KeptReplaced},
	{"TrapE_ReplacedByALinkToTheWorkspace", func(t *testing.T, s *site, dir string) {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.Symlink(s.workspace, dir))
	}, scratch.KeptReplaced},
	{"TrapE_ReplacedByALinkToItself", func(t *testing.T, s *site, dir string) {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.Symlink(dir+".away", dir))
	}, scratch.KeptReplaced},
	{"TrapE_ReplacedByAFile", func(t *testing.T, s *site, dir string) {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.WriteFile(dir, []byte("keep"), 0o644))
	}, scratch.KeptReplaced},
	{"TrapE_ReplacedByADirectoryWithACopiedMarker", func(t *testing.T, s *site, dir string) {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.Rename(s.precious(), dir))
		b, err := os.ReadFile(dir + ".away/" + scratch.MarkerName)
		must(t, err)
		must(t, os.WriteFile(dir+"/"+scratch.MarkerName, b, 0o600))
	}, scratch.KeptMismatch},
	{"TrapF_MarkerDeleted", func(t *testing.T, s *site, dir string) {
		must(t, os.Remove(dir+"/"+scratch.MarkerName))
	}, scratch.KeptNoMarker},
	{"TrapF_MarkerMoved", func(t *testing.T, s *site, dir string) {
		must(t, os.Rename(dir+"/"+scratch.MarkerName, dir+"/sub/"+scratch.MarkerName))
	}, scratch.KeptNoMarker},
	{"MarkerNamesAnotherInode", func(t *testing.T, s *site, dir string) {
		var st unix.Stat_t
		must(t, unix.Stat(dir, &st))
		rewrite(t, dir, fmt.Sprintf(`"ino":%d`, st.Ino), fmt.Sprintf(`"ino":%d`, st.Ino+1))
	}, scratch.KeptMismatch},
	{"MarkerNamesNoInode", func(t *testing.T, s *site, dir string) {
		var st unix.Stat_t
		must(t, unix.Stat(dir, &st))
		rewrite(t, dir, fmt.Sprintf(`"ino":%d`, st.Ino), `"ino":0`)
	}, scratch.KeptMismatch},
	{"MarkerNamesAnotherBirth", func(t *testing.T, s *site, dir string) {
		b, err := os.ReadFile(dir + "/" + scratch.MarkerName)
		must(t, err)
		old := regexp.MustCompile(`"btime":\d+`).FindString(string(b))
		if old == "" {
			t.Skip("SKIP: no birth times on this file system")
		}
		rewrite(t, dir, old, `"btime":12345`)
	}, scratch.KeptMismatch},
	{"MarkerIsHardLinked", func(t *testing.T, s *site, dir string) {
		must(t, os.Link(dir+"/"+scratch.MarkerName, dir+"/sub/second"))
	}, scratch.KeptBadMarker},
	{"MarkerIsALink", func(t *testing.T, s *site, dir string) {
		must(t, os.Rename(dir+"/"+scratch.MarkerName, dir+"/sub/m"))
		must(t, os.Symlink("sub/m", dir+"/"+scratch.MarkerName))
	}, scratch.KeptBadMarker},
	{"MarkerIsAFIFO", func(t *testing.T, s *site, dir string) {
		must(t, os.Remove(dir+"/"+scratch.MarkerName))
		must(t, unix.Mkfifo(dir+"/"+scratch.MarkerName, 0o600))
	}, scratch.KeptBadMarker},
	{"MarkerIsADirectory", func(t *testing.T, s *site, dir string) {
		must(t, os.Remove(dir+"/"+scratch.MarkerName))
		must(t, os.Mkdir(dir+"/"+scratch.MarkerName, 0o700))
	}, scratch.KeptBadMarker},
	{"MarkerIsEmpty", func(t *testing.T, s *site, dir string) {
		must(t, os.Truncate(dir+"/"+scratch.MarkerName, 0))
	}, scratch.KeptBadMarker},
	{"MarkerIsTorn", func(t *testing.T, s *site, dir string) {
		must(t, os.Truncate(dir+"/"+scratch.MarkerName, 40))
	}, scratch.KeptBadMarker},
	{"MarkerIsHuge", func(t *testing.T, s *site, dir string) {
		must(t, os.Truncate(dir+"/"+scratch.MarkerName, 1<<17))
	}, scratch.KeptBadMarker},
	{"MarkerHasAnUnknownField", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"schema":1`, `"schema":1,"more":1`)
	}, scratch.KeptBadMarker},
	{"MarkerRepeatsAField", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"schema":1`, `"schema":1,"schema":1`)
	}, scratch.KeptBadMarker},
	{"MarkerOfAnotherCase", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"schema":1`, `"Schema":1`)
	}, scratch.KeptBadMarker},
	{"MarkerOfAnotherProduct", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"owner":"wattle"`, `"owner":"harness"`)
	}, scratch.KeptBadMarker},
	{"MarkerOfAnotherSchema", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"schema":1`, `"schema":2`)
	}, scratch.KeptBadMarker},
	{"MarkerOfAnotherSession", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"sessionId":"s"`, `"sessionId":"t"`)
	}, scratch.KeptMismatch},
	{"MarkerOfAnotherWorkspace", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"workspace":"`, `"workspace":"/elsewhere`)
	}, scratch.KeptMismatch},
	{"MarkerNamesItselfAsWorkspace", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"workspace":"`+s.workspace, `"workspace":"`+dir)
	}, scratch.KeptPlace},
	{"MarkerNamesItsParentAsWorkspace", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"workspace":"`+s.workspace, `"workspace":"`+filepath.Dir(dir))
	}, scratch.KeptPlace},
	{"MarkerNamesAWorkspaceInIt", func(t *testing.T, s *site, dir string) {
		rewrite(t, dir, `"workspace":"`+s.workspace, `"workspace":"`+dir+`/sub`)
	}, scratch.KeptPlace},
}

func TestTampering(t *testing.T) {
	for _, c := range tampering {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			must(t, os.MkdirAll(s.root+"/code/tmp", 0o755)) // so that only the directory itself is at stake
			d := s.made("s", scratch.CleanTurn)
			c.do(t, s, d.Path())
			before := tree(t, s.root)

			got, err := d.EndTurn(t.Context())
			code(t, "turn", err, scratch.CodeCleanFailed)
			if got != nil {
				t.Errorf("cleaned %+v", got)
			}
			if err == nil || !strings.Contains(err.Error(), d.Path()) {
				t.Errorf("the path is not named: %v", err)
			}
			_, err = d.Clean(t.Context(), writer)
			code(t, "clean", err, scratch.CodeCleanFailed)
			_, err = d.EndTurn(t.Context())
			if c.reason == scratch.KeptNoMarker {
				code(t, "warned once", err, "")
			} else {
				code(t, "again", err, scratch.CodeCleanFailed)
			}
			d.Close(t.Context())
			if after := tree(t, s.root); after != before {
				t.Errorf("a clean changed something:\n%s\nbefore:\n%s", after, before)
			}

			r, err := s.manager().Sweep(t.Context())
			must(t, err)
			kept(t, r, d.Path(), c.reason)
			if r.SweptCount != 0 {
				t.Errorf("swept %+v", r.Swept)
			}
			if after := tree(t, s.root); after != before {
				t.Errorf("the sweep changed something:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// Home is never removed, nor what holds it.
func TestHomeIsNeverRemoved(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanSession)
	must(t, os.Mkdir(d.Path()+"/me", 0o755))
	for _, home := range []string{d.Path(), d.Path() + "/me"} {
		m, err := scratch.NewManager(scratch.Options{StateDir: s.state, Home: home, NoSync: true})
		must(t, err)
		defer m.Close()
		e, err := m.New("t"+filepath.Base(home), s.workspace, config(scratch.CleanSession))
		must(t, err)
		must(t, e.Ensure())
		_, err = e.Close(t.Context())
		must(t, err)
	}
	d.Close(t.Context())
	d = s.made("s", scratch.CleanOff)
	d.Close(t.Context())
	rewriteRecord(t, s, `"autoClean":"off"`, `"autoClean":"turn"`)
	m, err := scratch.NewManager(scratch.Options{StateDir: s.state, Home: d.Path() + "/sub", NoSync: true})
	must(t, err)
	defer m.Close()
	r, err := m.Sweep(t.Context())
	must(t, err)
	kept(t, r, d.Path(), scratch.KeptPlace)
	there(t, d.Path()+"/sub/file.txt")
}

// rewriteRecord changes the only scratch record.
func rewriteRecord(t *testing.T, s *site, old, new string) {
	t.Helper()
	ps, err := filepath.Glob(s.state + "/scratch/scratch-*.json")
	must(t, err)
	if len(ps) != 1 {
		t.Fatalf("records %q", ps)
	}
	b, err := os.ReadFile(ps[0])
	must(t, err)
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s not in %s", old, b)
	}
	must(t, os.WriteFile(ps[0], []byte(strings.Replace(string(b), old, new, 1)), 0o600))
}

// TestTrapH: what is cleaned comes from our own record, not from TMPDIR.
func TestTrapH_TMPDIRMovesNothing(t *testing.T) {
	s := newSite(t)
	precious := s.precious()
	d := s.made("s", scratch.CleanTurn)
	t.Setenv("TMPDIR", precious)
	t.Setenv("TMP", precious)
	t.Setenv("HOME", precious)
	_, err := d.EndTurn(t.Context())
	must(t, err)
	gone(t, d.Path())
	content(t, precious+"/file", "keep")
}

func TestCleanOfHostileContent(t *testing.T) {
	s := newSite(t)
	precious := s.precious()
	before := tree(t, precious)
	d := s.made("s", scratch.CleanTurn)
	p := d.Path()
	must(t, os.Symlink(precious, p+"/link"))
	must(t, os.Symlink("/", p+"/sub/root"))
	must(t, os.Link(precious+"/file", p+"/hard"))
	must(t, unix.Mkfifo(p+"/fifo", 0))
	for _, mode := range []os.FileMode{0o555, 0o111, 0} {
		q := fmt.Sprintf("%s/closed%o", p, mode)
		must(t, os.MkdirAll(q+"/in", 0o755))
		must(t, os.WriteFile(q+"/in/f", nil, 0))
		must(t, os.Chmod(q+"/in", mode))
		must(t, os.Chmod(q, mode))
	}
	must(t, os.MkdirAll(p+strings.Repeat("/d", 1000), 0o755))
	must(t, os.Chmod(p, 0))
	c, err := d.EndTurn(t.Context())
	must(t, err)
	if c.Files != 8 || c.Bytes != 7 {
		t.Errorf("%+v", c)
	}
	gone(t, p)
	if after := tree(t, precious); after != before {
		t.Errorf("outside changed:\n%s", after)
	}
}

// A process of the turn still writes: the clean fails or succeeds, and what it
// leaves is still ours, so that the next one can end it.
func TestCleanBesideAWriter(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanSession)
	for range 20 {
		must(t, d.Ensure())
		var stop atomic.Bool
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := 0; !stop.Load(); i++ {
					os.WriteFile(fmt.Sprintf("%s/%d-%d", d.Path(), w, i), nil, 0o644)
				}
			})
		}
		_, err := d.Clean(t.Context(), writer)
		stop.Store(true)
		wg.Wait()
		if err != nil {
			code(t, "beside a writer", err, scratch.CodeCleanFailed)
			there(t, d.Path()+"/"+scratch.MarkerName)
		}
		_, err = d.Clean(t.Context(), writer)
		must(t, err)
		gone(t, d.Path())
	}
}

func TestInterruptedCleanIsResumed(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanTurn)
	for i := range 2000 {
		must(t, os.WriteFile(fmt.Sprintf("%s/sub/%d", d.Path(), i), nil, 0o644))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.EndTurn(ctx)
	code(t, "cancelled", err, scratch.CodeCleanFailed)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	there(t, d.Path()+"/"+scratch.MarkerName)
	c, err := d.EndTurn(t.Context())
	must(t, err)
	if c == nil || c.Files == 0 {
		t.Errorf("%+v", c)
	}
	gone(t, d.Path())
}

func bind(t *testing.T, from, to string) {
	t.Helper()
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skip("SKIP: this root may not mount")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(to, unix.MNT_DETACH) })
}

func TestMountsAreNeverCrossed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: mounting needs root")
	}
	s := newSite(t)
	precious := s.precious()
	before := tree(t, precious)
	d := s.made("s", scratch.CleanTurn)
	inner := d.Path() + "/inner/mnt"
	must(t, os.MkdirAll(inner, 0o755))
	bind(t, precious, inner)
	_, err := d.EndTurn(t.Context())
	code(t, "nested", err, scratch.CodeCleanFailed)
	there(t, d.Path()+"/"+scratch.MarkerName)
	gone(t, d.Path()+"/sub")
	d.Close(t.Context())
	r, err := s.manager().Sweep(t.Context())
	must(t, err)
	kept(t, r, d.Path(), scratch.KeptFailed)
	there(t, d.Path()+"/"+scratch.MarkerName)
	must(t, unix.Unmount(inner, unix.MNT_DETACH))
	r, err = s.manager().Sweep(t.Context())
	must(t, err)
	swept(t, r, d.Path())
	if after := tree(t, precious); after != before {
		t.Errorf("outside changed:\n%s", after)
	}

	// The directory itself is a mount point, of itself or of something else.
	d = s.made("t", scratch.CleanTurn)
	bind(t, d.Path(), d.Path())
	_, err = d.EndTurn(t.Context())
	code(t, "itself", err, scratch.CodeCleanFailed)
	there(t, d.Path()+"/sub/file.txt")
	bind(t, precious, d.Path())
	_, err = d.EndTurn(t.Context())
	code(t, "something else", err, scratch.CodeCleanFailed)
	if after := tree(t, precious); after != before {
		t.Errorf("outside changed:\n%s", after)
	}

	// The workspace under a second name: the scratch parent is the workspace.
	ws := s.root + "/code/other"
	must(t, os.Mkdir(ws, 0o755))
	must(t, os.Mkdir(s.root+"/code/bound", 0o755))
	bind(t, ws, s.root+"/code/bound")
	c := scratch.DefaultConfig()
	c.SiblingDir = "bound"
	e, err := s.m.New("u", ws, c)
	must(t, err)
	if e.Parent() != s.root+"/code/bound-scratch" {
		t.Errorf("parent %s", e.Parent())
	}
}
