package scratch_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/scratch"
)

var writer = scratch.Caller{Mode: fence.WorkspaceWrite}

// site is a place with a workspace and a state directory.
type site struct {
	t         testing.TB
	root      string // canonical; code/shop and state lie in it
	workspace string
	state     string
	m         *scratch.Manager
}

func newSite(t testing.TB) *site {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &site{t: t, root: root, workspace: root + "/code/shop", state: root + "/state/wattle"}
	must(t, os.MkdirAll(s.workspace, 0o755))
	must(t, os.WriteFile(s.workspace+"/main.c", []byte("int main(void) { return 0; }\n"), 0o644))
	must(t, os.MkdirAll(root+"/state", 0o700))
	s.m = s.manager()
	return s
}

// manager opens the state directory as another process would.
func (s *site) manager() *scratch.Manager {
	s.t.Helper()
	m, err := scratch.NewManager(scratch.Options{StateDir: s.state, Home: s.root + "/home", NoSync: true})
	must(s.t, err)
	s.t.Cleanup(func() { m.Close() })
	return m
}

func config(a scratch.AutoClean) scratch.Config {
	c := scratch.DefaultConfig()
	c.AutoClean = a
	return c
}

func (s *site) dir(session string, a scratch.AutoClean) *scratch.Dir {
	s.t.Helper()
	d, err := s.m.New(session, s.workspace, config(a))
	must(s.t, err)
	s.t.Cleanup(func() { d.Close(s.t.Context()) })
	return d
}

// made is a directory that exists, with a file in it.
func (s *site) made(session string, a scratch.AutoClean) *scratch.Dir {
	s.t.Helper()
	d := s.dir(session, a)
	_, err := d.Write(writer, "sub/file.txt", []byte("content"))
	must(s.t, err)
	return d
}

// records are the names in the journal.
func (s *site) records() []string {
	s.t.Helper()
	es, err := os.ReadDir(s.state + "/scratch")
	must(s.t, err)
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func there(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("should be there: %v", err)
		}
	}
}

func gone(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s should be gone (%v)", p, err)
		}
	}
}

func content(t testing.TB, p, want string) {
	t.Helper()
	if b, err := os.ReadFile(p); err != nil || string(b) != want {
		t.Errorf("%s: %q %v, want %q", p, b, err, want)
	}
}

// code checks the stable code of an error, "" for none.
func code(t testing.TB, what string, err error, want string) {
	t.Helper()
	got := ""
	var e *scratch.Error
	if errors.As(err, &e) {
		got = e.Code
	} else if err != nil {
		got = "no code"
	}
	if got != want {
		t.Errorf("%s: code %q (%v), want %q", what, got, err, want)
	}
}

func kept(t testing.TB, r scratch.SweepReport, path string, reason scratch.KeptReason) {
	t.Helper()
	for _, k := range r.Kept {
		if k.Path == path {
			if k.Reason != reason {
				t.Errorf("%s kept because of %s (%s), want %s", path, k.Reason, k.Detail, reason)
			}
			return
		}
	}
	t.Errorf("%s is not reported as kept: %+v", path, r)
}

func swept(t testing.TB, r scratch.SweepReport, paths ...string) {
	t.Helper()
	var got []string
	for _, c := range r.Swept {
		got = append(got, c.Path)
	}
	slices.Sort(got)
	slices.Sort(paths)
	if !slices.Equal(got, paths) {
		t.Errorf("swept %q, want %q; kept %+v", got, paths, r.Kept)
	}
}

// tree is every path below root with its content, to compare.
func tree(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := e.Info()
		if err != nil {
			return err
		}
		b.WriteString(strings.TrimPrefix(p, root) + " " + i.Mode().String())
		if i.Mode().IsRegular() {
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			defer f.Close()
			c, err := io.ReadAll(f)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(c))
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}
