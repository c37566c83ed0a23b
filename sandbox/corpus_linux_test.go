package sandbox_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// entry is one line of testdata/corpus.
type entry struct {
	line    int
	mode    fence.Mode
	status  string
	needs   []string
	denials []string // "access path", variables not yet replaced
	command string
}

func readCorpus(t *testing.T) []entry {
	f, err := os.Open("testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []entry
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		text := s.Text()
		if text == "" || text[0] == '#' {
			continue
		}
		parts := strings.SplitN(text, " | ", 3)
		if len(parts) != 3 {
			t.Fatalf("corpus:%d: not three parts", n)
		}
		head := strings.Fields(parts[0])
		e := entry{line: n, status: head[1], needs: head[2:], command: parts[2]}
		switch head[0] {
		case "ws":
			e.mode = fence.WorkspaceWrite
		case "ro":
			e.mode = fence.ReadOnly
		default:
			t.Fatalf("corpus:%d: no such mode", n)
		}
		if parts[1] != "-" {
			for _, d := range strings.Split(parts[1], ",") {
				e.denials = append(e.denials, strings.TrimSpace(d))
			}
		}
		out = append(out, e)
	}
	return out
}

// lacks tells what an entry needs and this run has not.
func (e entry) lacks() string {
	for _, n := range e.needs {
		switch {
		case n == "root" && os.Getuid() != 0, n == "user" && os.Getuid() == 0, n == "mount" && !mounted:
			return n
		}
		if prog, ok := strings.CutPrefix(n, "has:"); ok {
			if _, err := exec.LookPath(prog); err != nil {
				return prog
			}
		}
	}
	return ""
}

// corpusLab is a lab with everything that the head of testdata/corpus lists.
type corpusLab struct {
	*lab
	F, S     string
	fences   map[fence.Mode]*fence.Fence
	listener net.Listener
}

func newCorpusLab(t *testing.T) *corpusLab {
	c := &corpusLab{lab: newLab(t), F: filepath.Join(base, "foreign", "of-root"), S: filepath.Join(base, "foreign", "shared-of-root")}
	if os.Getuid() == 0 {
		c.F, c.S = filepath.Join(base, "foreign", "of-user"), filepath.Join(base, "foreign", "shared-of-user")
	}
	open := func(p *fence.Policy) {
		p.Writable = append(p.Writable, fence.Entry{Path: c.S, Source: "session"})
		if mounted {
			for _, d := range []string{"roin", "bind", "small"} {
				p.Writable = append(p.Writable, fence.Entry{Path: filepath.Join(base, "mounts", d), Source: "session"})
			}
		}
	}
	c.fences = map[fence.Mode]*fence.Fence{
		fence.WorkspaceWrite: c.fence(fence.WorkspaceWrite, open),
		fence.ReadOnly:       c.fence(fence.ReadOnly, open),
	}
	return c
}

// reset makes the stage new.
func (c *corpusLab) reset() {
	t := c.t
	t.Helper()
	if c.listener != nil {
		_ = c.listener.Close()
	}
	for _, d := range []string{c.W, c.O, c.T, c.H} {
		entries, err := os.ReadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			p := filepath.Join(d, e.Name())
			if e.Name() == "dir555" || e.Name() == "dir000" {
				_ = os.Chmod(p, 0o755)
			}
			if err := os.RemoveAll(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, d := range []string{c.W, c.O} {
		write(t, d+"/f", "f\n", 0o644)
		write(t, d+"/ro444", "ro\n", 0o444)
		write(t, d+"/d/x", "x\n", 0o644)
		write(t, d+"/dir555/x", "x\n", 0o644)
		_ = os.Chmod(d+"/dir555", 0o555)
		_ = os.Mkdir(d+"/empty", 0o755)
		_ = os.Symlink("loop", d+"/loop")
	}
	_ = os.Rename(c.O+"/d", c.O+"/dir")
	write(t, c.O+"/secret", "secret\n", 0o600)
	write(t, c.W+"/g", "g\n", 0o644)
	write(t, c.W+"/none000", "none\n", 0o000)
	write(t, c.W+"/script", "#!/bin/sh\ntrue\n", 0o644)
	write(t, c.W+"/run", "#!/bin/sh\necho ran\n", 0o755)
	write(t, c.W+"/mod.py", "x = 1\n", 0o644)
	_ = os.Mkdir(c.W+"/dir000", 0)
	_ = os.Symlink("f", c.W+"/link")
	_ = os.Symlink("nothing", c.W+"/dangling")
	_ = os.Symlink(c.O+"/f", c.W+"/outfile")
	_ = os.Symlink(c.O, c.W+"/outdir")
	_ = os.Symlink(c.O+"/new", c.W+"/outnew")
	c.repository(c.W)
	l, err := net.Listen("unix", c.O+"/host.sock")
	if err != nil {
		t.Fatal(err)
	}
	c.listener = l
}

// repository makes an empty git repository by hand: faster than git itself.
func (l *lab) repository(dir string) {
	write(l.t, dir+"/.git/HEAD", "ref: refs/heads/master\n", 0o644)
	write(l.t, dir+"/.git/config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n", 0o644)
	write(l.t, dir+"/.git/hooks/pre-commit.sample", "#!/bin/sh\n", 0o755)
	for _, d := range []string{"objects", "refs/heads", "info"} {
		if err := os.MkdirAll(dir+"/.git/"+d, 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
}

// score counts what a run of the corpus found.
type score struct{ tp, fp, tn, fn int }

// TestCorpus is promise 6 of DESIGN section 9: no ordinary failure is called a
// denial, and no denial is missed.
func TestCorpus(t *testing.T) {
	need(t, "git", "python3", "perl", "tar", "chattr", "lsattr")
	c := newCorpusLab(t)
	defer func() { _ = c.listener.Close() }()
	var all, ordinary score
	skipped := map[string]int{}
	ran, failing := 0, 0
	for _, e := range readCorpus(t) {
		if what := e.lacks(); what != "" {
			skipped[what]++
			continue
		}
		c.reset()
		r := c.run(c.fences[e.mode], e.command, withVars(map[string]string{"F": c.F, "S": c.S}))
		ran++
		if e.status == "fail" && len(e.denials) == 0 {
			failing++
		}
		if msg := c.judge(e, r, &all, &ordinary); msg != "" {
			t.Errorf("corpus:%d: %s\n%s\n%v", e.line, e.command, msg, r)
		}
	}
	// foreign things and mounts are shared by all entries: nothing may be there
	absent(t, filepath.Join(base, "mounts", "new"), c.F+"/new", "/etc/SHOULD_FAIL", "/tmp/wattle-probe")
	t.Logf("corpus as uid %d: %d commands, %d of them fail for ordinary reasons, skipped for want of: %v\n"+
		"                        denial on record   none on record\n"+
		"refused by the fence    %4d true positive  %4d false negative\n"+
		"anything else           %4d false positive %4d true negative", os.Getuid(), ran, failing, skipped, all.tp, all.fn, all.fp, all.tn)
	if ran < 200 || failing < 100 {
		t.Errorf("the corpus has shrunk: %d commands, %d ordinary failures", ran, failing)
	}
	for what := range skipped {
		if what == "mount" {
			t.Run("mounts", func(t *testing.T) { t.Skip("SKIP: no mounts could be made for the corpus") })
		}
	}
}

// judge compares what is on record with what must be, by denial. A command
// without denials counts as one negative.
func (c *corpusLab) judge(e entry, r result, all, ordinary *score) string {
	var msgs []string
	switch {
	case e.status == "ok" && r.code() != 0, e.status == "fail" && r.code() == 0:
		msgs = append(msgs, fmt.Sprintf("want %s, exit status is %d", e.status, r.code()))
	}
	got := denialsOf(r.Denials)
	used := make([]bool, len(got))
	for _, w := range e.denials {
		want := os.Expand(w, func(k string) string {
			return map[string]string{"W": c.W, "O": c.O, "T": c.T, "H": c.H, "F": c.F, "S": c.S, "M": filepath.Join(base, "mounts")}[k]
		})
		found := false
		for i, g := range got {
			if ok, _ := path.Match(want, g); ok && !used[i] {
				used[i], found = true, true
			}
		}
		if found {
			all.tp++
		} else {
			all.fn++
			msgs = append(msgs, "missed: "+want)
		}
	}
	for i, g := range got {
		if !used[i] {
			all.fp++
			msgs = append(msgs, "false: "+g)
		}
	}
	if len(e.denials) == 0 && len(got) == 0 {
		all.tn++
	}
	if r.DenialsTruncated {
		msgs = append(msgs, "denials are truncated")
	}
	sort.Strings(msgs)
	return strings.Join(msgs, "\n")
}

// makeForeign makes, as root, things of root and of the other user, each below
// a directory that anybody can reach.
func makeForeign() error {
	for _, d := range []struct {
		name string
		uid  int
	}{{"of-root", 0}, {"shared-of-root", 0}, {"of-user", otherUser}, {"shared-of-user", otherUser}} {
		dir := filepath.Join(base, "foreign", d.name)
		if err := os.MkdirAll(filepath.Join(dir, "dir"), 0o755); err != nil {
			return err
		}
		for name, mode := range map[string]os.FileMode{"priv": 0o600, "pub": 0o644, "dir/x": 0o644} {
			p := filepath.Join(dir, name)
			if err := os.WriteFile(p, []byte("a\n"), mode); err != nil {
				return err
			}
			if err := os.Lchown(p, d.uid, d.uid); err != nil {
				return err
			}
		}
		for _, p := range []string{filepath.Join(dir, "dir"), dir} {
			if err := unix.Chown(p, d.uid, d.uid); err != nil {
				return err
			}
		}
		if !strings.Contains(d.name, "shared") {
			if err := os.Chmod(filepath.Join(dir, "dir"), 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}
