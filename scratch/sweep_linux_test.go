package scratch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/scratch"
)

// TestMain lets the binary be started again as another process of Wattle, to
// be killed. Arguments come in the environment.
func TestMain(m *testing.M) {
	if os.Getenv("WATTLE_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child makes scratch directories, says so, and waits to be killed; or makes
// and cleans them for ever.
func child() error {
	m, err := scratch.NewManager(scratch.Options{StateDir: os.Getenv("CHILD_STATE"), NoSync: os.Getenv("CHILD_NOSYNC") != ""})
	if err != nil {
		return err
	}
	c := scratch.DefaultConfig()
	if c.AutoClean, err = scratch.ParseAutoClean(os.Getenv("CHILD_AUTOCLEAN")); err != nil {
		return err
	}
	for i := 0; ; i++ {
		d, err := m.New(fmt.Sprint(os.Getenv("CHILD_SESSION"), i), os.Getenv("CHILD_WORKSPACE"), c)
		if err != nil {
			return err
		}
		if _, err := d.Write(writer, "sub/file.txt", []byte("content")); err != nil {
			return err
		}
		if os.Getenv("WATTLE_TEST_CHILD") == "wait" {
			fmt.Println(d.Path())
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		}
		if i == 0 {
			fmt.Println("running")
		}
		if _, err := d.Close(context.Background()); err != nil {
			return err
		}
	}
}

type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	line string
}

// start runs a child until it says its first line.
func (s *site) start(t *testing.T, mode, session string, a scratch.AutoClean, env ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "WATTLE_TEST_CHILD="+mode, "CHILD_STATE="+s.state, "CHILD_WORKSPACE="+s.workspace,
		"CHILD_SESSION="+session, "CHILD_AUTOCLEAN="+string(a))
	c.Env = append(c.Env, env...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	p := &process{t: t, cmd: c, in: in}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	p.line = strings.TrimSpace(line)
	return p
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGKILL)
	p.cmd.Wait()
}

// TestTrapG: a killed process's directory is swept, and only that one.
func TestTrapG_KilledProcess(t *testing.T) {
	s := newSite(t)
	precious := s.precious()
	orphan := s.start(t, "wait", "orphan", scratch.CleanTurn)
	live := s.start(t, "wait", "live", scratch.CleanTurn)
	off := s.start(t, "wait", "off", scratch.CleanOff)
	mine := s.made("mine", scratch.CleanTurn)
	foreign := s.root + "/code/tmp/shop-1234567"
	must(t, os.MkdirAll(foreign, 0o755))
	must(t, os.WriteFile(foreign+"/file", []byte("keep"), 0o644))
	must(t, os.Symlink(precious, orphan.line+"/link"))
	before := tree(t, precious) + tree(t, s.workspace) + tree(t, foreign)

	r, err := s.m.Sweep(t.Context())
	must(t, err)
	swept(t, r)
	kept(t, r, orphan.line, scratch.KeptInUse)

	orphan.kill()
	off.kill()
	r, err = s.m.Sweep(t.Context())
	must(t, err)
	swept(t, r, orphan.line)
	if r.Files != 2 || r.Bytes != 7 {
		t.Errorf("%+v", r)
	}
	kept(t, r, live.line, scratch.KeptInUse)
	kept(t, r, off.line, scratch.KeptOff)
	kept(t, r, mine.Path(), scratch.KeptInUse)
	gone(t, orphan.line)
	there(t, live.line+"/sub/file.txt", off.line+"/sub/file.txt", mine.Path()+"/sub/file.txt")
	if after := tree(t, precious) + tree(t, s.workspace) + tree(t, foreign); after != before {
		t.Errorf("outside changed:\n%s", after)
	}
	r, err = s.m.Sweep(t.Context())
	must(t, err)
	swept(t, r)

	live.kill()
	_, err = mine.Close(t.Context())
	must(t, err)
	must(t, os.RemoveAll(off.line))
	must(t, os.RemoveAll(foreign))
	r, err = s.m.Sweep(t.Context())
	must(t, err)
	swept(t, r, live.line)
	gone(t, s.root+"/code/tmp")
	if rs := s.records(); len(rs) != 0 {
		t.Errorf("journal %q", rs)
	}
}

// The journal was lost, or is another state directory's: a marked directory in
// a parent that is still named, or in a configured root, is found.
func TestSweepFindsMarkedDirectoriesWithoutARecord(t *testing.T) {
	s := newSite(t)
	a := s.start(t, "wait", "a", scratch.CleanTurn)
	b := s.start(t, "wait", "b", scratch.CleanOff)
	a.kill()
	b.kill()
	must(t, os.RemoveAll(s.state))
	must(t, os.Mkdir(s.root+"/code/tmp/unmarked-1234567", 0o755))
	m, err := scratch.NewManager(scratch.Options{StateDir: s.state, Roots: []string{s.root + "/code/tmp", s.root + "/none"}, NoSync: true})
	must(t, err)
	defer m.Close()
	r, err := m.Sweep(t.Context())
	must(t, err)
	swept(t, r, a.line)
	kept(t, r, b.line, scratch.KeptOff)
	there(t, b.line, s.root+"/code/tmp/unmarked-1234567")
	if r.KeptCount != 1 {
		t.Errorf("%+v", r)
	}
}

// What a crash can leave, step by step.
func TestCrashBetweenTheSteps(t *testing.T) {
	for _, c := range []struct {
		name   string
		undo   func(t *testing.T, dir string)
		reason scratch.KeptReason // "" when nothing is left to keep
	}{
		{"journal and mkdir", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, ""},
		{"mkdir and marker", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.Mkdir(dir, 0o700))
		}, scratch.KeptNoMarker},
		{"marker and its content", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir+"/sub"))
			must(t, os.Truncate(dir+"/"+scratch.MarkerName, 0))
		}, scratch.KeptBadMarker},
		{"the clean's last two steps", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.Mkdir(dir, 0o700))
		}, scratch.KeptNoMarker},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			p := s.start(t, "wait", "s", scratch.CleanTurn)
			p.kill()
			c.undo(t, p.line)
			r, err := s.m.Sweep(t.Context())
			must(t, err)
			swept(t, r)
			if c.reason == "" {
				if r.KeptCount != 0 || len(s.records()) != 0 {
					t.Errorf("%+v %q", r, s.records())
				}
				gone(t, s.root+"/code/tmp")
				return
			}
			kept(t, r, p.line, c.reason)
			there(t, p.line)
			// The user removes it; then it is forgotten.
			must(t, os.RemoveAll(p.line))
			r, err = s.m.Sweep(t.Context())
			must(t, err)
			if r.KeptCount != 0 || len(s.records()) != 0 {
				t.Errorf("%+v %q", r, s.records())
			}
		})
	}
}

// TestKilledAtAnyMoment kills a process that makes and cleans without a pause.
// A sweep removes what it left; only a directory that was killed in the moment
// between mkdir and marker is left, empty, and reported.
func TestKilledAtAnyMoment(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	s := newSite(t)
	before := tree(t, s.workspace)
	left, found := 0, 0
	for i := range rounds {
		env := []string{}
		if i%2 == 0 {
			env = append(env, "CHILD_NOSYNC=1")
		}
		p := s.start(t, "run", fmt.Sprint("r", i, "-"), scratch.CleanTurn, env...)
		timer := time.NewTimer(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		<-timer.C
		p.kill()
		dirs, err := filepath.Glob(s.root + "/code/tmp/*")
		must(t, err)
		found += len(dirs)
		r, err := s.m.Sweep(t.Context())
		must(t, err)
		for _, k := range r.Kept {
			if k.Reason != scratch.KeptNoMarker && k.Reason != scratch.KeptBadMarker {
				t.Errorf("kept %+v", k)
			}
			es, err := os.ReadDir(k.Path)
			must(t, err)
			if len(es) > 1 {
				t.Errorf("%s has content: %v", k.Path, es)
			}
			left++
			must(t, os.RemoveAll(k.Path))
		}
		if len(r.Kept) > 0 {
			_, err = s.m.Sweep(t.Context())
			must(t, err)
		}
		gone(t, s.root+"/code/tmp")
		if rs := slices.DeleteFunc(s.records(), func(n string) bool { return strings.HasPrefix(n, ".new-") }); len(rs) != 0 {
			t.Errorf("journal %q", rs)
		}
	}
	if after := tree(t, s.workspace); after != before {
		t.Errorf("workspace changed:\n%s", after)
	}
	t.Logf("%d kills, %d directories found, %d of them unmarked and left", rounds, found, left)
}

// Liveness: the process named in the marker decides when there is no lock.
func TestOwnerThatLivesWithoutALock(t *testing.T) {
	s := newSite(t)
	p := s.start(t, "wait", "s", scratch.CleanTurn)
	// A copy in place of the marker is not locked, but names a living process.
	m := p.line + "/" + scratch.MarkerName
	b, err := os.ReadFile(m)
	must(t, err)
	must(t, os.Remove(m))
	must(t, os.WriteFile(m, b, 0o600))
	r, err := s.m.Sweep(t.Context())
	must(t, err)
	kept(t, r, p.line, scratch.KeptOwnerAlive)
	there(t, p.line+"/sub/file.txt")
	// The same pid, started at another time: a pid that was used again.
	i := strings.Index(string(b), `"startTime":`)
	rewrite(t, p.line, string(b)[i:i+13], string(b)[i:i+12]+"9"+string(b)[i+12:i+13])
	r, err = s.m.Sweep(t.Context())
	must(t, err)
	swept(t, r, p.line)
}

// A zombie does not live.
func TestZombieOwner(t *testing.T) {
	s := newSite(t)
	p := s.start(t, "wait", "s", scratch.CleanTurn)
	must(t, p.cmd.Process.Signal(syscall.SIGKILL))
	// Dead with all its threads, but not waited for.
	must(t, unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	r, err := s.m.Sweep(t.Context())
	must(t, err)
	swept(t, r, p.line)
}

// Age is no criterion.
func TestOldDirectoriesOfLivingSessionsStay(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanTurn)
	old := time.Now().AddDate(-5, 0, 0)
	must(t, filepath.Walk(d.Path(), func(p string, _ os.FileInfo, _ error) error { return os.Chtimes(p, old, old) }))
	r, err := s.m.Sweep(t.Context())
	must(t, err)
	kept(t, r, d.Path(), scratch.KeptInUse)
	there(t, d.Path()+"/sub/file.txt")
}

func TestBrokenRecordsDisturbNobody(t *testing.T) {
	s := newSite(t)
	p := s.start(t, "wait", "s", scratch.CleanTurn)
	p.kill()
	precious := s.precious()
	j := s.state + "/scratch/"
	valid, err := os.ReadFile(j + s.records()[0])
	must(t, err)
	for name, c := range map[string]string{
		"scratch-empty.json":  "",
		"scratch-torn.json":   string(valid[:len(valid)/2]),
		"scratch-moved.json":  string(valid),
		"scratch-binary.json": "\x00\xff\x00",
		"parent-evil.json":    `{"schema":1,"kind":"parent","path":"` + precious + `"}`,
	} {
		must(t, os.WriteFile(j+name, []byte(c), 0o600))
	}
	must(t, os.Symlink(precious+"/file", j+"scratch-link.json"))
	must(t, syscall.Mkfifo(j+"scratch-fifo.json", 0o600))
	must(t, os.WriteFile(j+".new-OLD", nil, 0o600))
	must(t, os.WriteFile(j+".new-YOUNG", nil, 0o600))
	old := time.Now().Add(-2 * time.Hour)
	must(t, os.Chtimes(j+".new-OLD", old, old))
	r, err := s.m.Sweep(t.Context())
	must(t, err)
	swept(t, r, p.line)
	if r.KeptCount != 7 {
		t.Errorf("%+v", r.Kept)
	}
	for _, k := range r.Kept {
		if k.Reason != scratch.KeptBadRecord {
			t.Errorf("%+v", k)
		}
	}
	gone(t, j+".new-OLD")
	there(t, j+".new-YOUNG", precious+"/file")
}

// A path that cannot be reached now is not forgotten.
func TestUnreachableFileSystem(t *testing.T) {
	s := newSite(t)
	d := s.made("s", scratch.CleanOff)
	d.Close(t.Context())
	rewriteRecord(t, s, `"dev":`, `"dev":9`)
	must(t, os.Rename(s.root+"/code", s.root+"/unmounted"))
	n := len(s.records())
	r, err := s.m.Sweep(t.Context())
	must(t, err)
	kept(t, r, d.Path(), scratch.KeptUnreachable)
	if len(s.records()) == 0 || len(s.records()) > n {
		t.Errorf("journal %q", s.records())
	}
}

// Several sweeps at once remove each orphan once.
func TestSweepsAtOnce(t *testing.T) {
	s := newSite(t)
	var orphans []string
	for i := range 6 {
		p := s.start(t, "wait", fmt.Sprint("o", i), scratch.CleanTurn)
		p.kill()
		orphans = append(orphans, p.line)
	}
	reports := make(chan scratch.SweepReport)
	for range 4 {
		m := s.manager()
		go func() {
			r, err := m.Sweep(t.Context())
			if err != nil {
				t.Error(err)
			}
			reports <- r
		}()
	}
	n := 0
	for range 4 {
		r := <-reports
		n += r.SweptCount
	}
	if n < len(orphans) {
		t.Errorf("%d removals of %d orphans", n, len(orphans))
	}
	gone(t, append(orphans, s.root+"/code/tmp")...)
}
