package provider_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// Two processes with guarded writers and a foreign one that asks nobody work on
// one file (issue B3). Every version that anybody can have seen is written
// down; afterwards each of them must still be there, or must have been replaced
// by somebody who had seen it.
//
// Contents are unique, of one length, and name what they were made from:
// "ID of:ORIGIN". The foreign writer writes in place, truncates and writes, and
// renames over the file, in turn. Of each content it knows for sure whether it
// stood at the path after it was written: the file there is the one it wrote.
// From that moment on only guarded writers change the file, until it writes
// again; so what it finds then must descend from its content. A guarded write
// over a content that its author had not seen breaks that line.

const (
	lostLength = 40
	// lostAttempts of all writers together, in the whole form; each is a read
	// and a write, so two operations.
	lostAttempts = 50_000
)

// content pads to the one length.
func lostContent(id, from string) string {
	return fmt.Sprintf("%-*s", lostLength, id+" of:"+from)
}

// lostID is the identity in a content; what is torn has none.
func lostID(content string) string {
	id, _, ok := strings.Cut(content, " of:")
	if !ok || len(content) != lostLength {
		return "torn"
	}
	return id
}

// TestLostUpdateChild is one process of guarded writers: not a test by itself.
func TestLostUpdateChild(t *testing.T) {
	arg := os.Getenv("WATTLE_LOST_CHILD") // DIR NUMBER ATTEMPTS CLOCK
	if arg == "" {
		t.Skip("SKIP: runs in a process of its own, started by TestNoLostUpdateAcrossProcesses")
	}
	var dir, clock string
	var me, attempts int
	_, err := fmt.Sscanf(arg, "%s %d %d %s", &dir, &me, &attempts, &clock)
	must(t, err)
	c := provider.Config{Cwd: dir}
	if clock == "coarse" {
		c.Clock = coarse{}
	}
	l, err := provider.NewLocal(c)
	must(t, err)
	f, err := fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: dir})
	must(t, err)
	target, err := l.Resolve(t.Context(), f, "f", provider.ResolveOptions{})
	must(t, err)

	out, err := os.OpenFile(fmt.Sprintf("%s/../log%d", dir, me), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	must(t, err)
	log := bufio.NewWriter(out)
	var mu sync.Mutex
	say := func(format string, a ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(log, format+"\n", a...)
	}
	var left atomic.Int64
	left.Store(int64(attempts))
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for n := 0; left.Add(-1) >= 0; n++ {
				read, err := l.ReadText(t.Context(), f, target, provider.ReadOptions{})
				if err != nil {
					say("E read %v", err)
					continue
				}
				from := lostID(read.Text)
				id := fmt.Sprintf("p%d.%d.%d", me, w, n)
				if n%3 == 0 && read.Text != "" {
					_, err = l.EditText(t.Context(), f, target, provider.EditRequest{OldString: read.Text, NewString: lostContent(id, from)},
						provider.EditOptions{Expected: &provider.VersionGuard{Version: read.Version}})
				} else {
					_, err = l.WriteText(t.Context(), f, target, lostContent(id, from), ifVersion(read.Version))
				}
				switch {
				case err == nil:
					say("S %s %s", id, from)
				case provider.CodeOf(err) == provider.CodeStaleVersion:
					say("R %s", id)
				default:
					say("E write %s %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	must(t, log.Flush())
	must(t, out.Close())
}

// foreignWrite is one content of the foreign writer.
type foreignWrite struct {
	how   string
	found string // what stood at the path before, whole
	pre   string // what the file that it wrote into held, when it wrote in place
	stood bool   // the path led to it after it was written
}

func TestNoLostUpdateAcrossProcesses(t *testing.T) {
	attempts := lostAttempts
	switch {
	case testing.Short():
		attempts /= 50
	case raceDetector && os.Getenv("WATTLE_SOAK") == "":
		attempts /= 10 // it is whole without the detector, see test.sh
	}
	for _, clock := range []string{"system", "coarse"} {
		t.Run(clock, func(t *testing.T) { lostAcross(t, clock, attempts) })
	}
}

func lostAcross(t *testing.T, clock string, attempts int) {
	base := fastDir(t)
	dir := base + "/ws"
	must(t, os.Mkdir(dir, 0o755))
	path := dir + "/f"
	must(t, os.WriteFile(path, []byte(lostContent("start", "none")), 0o644))

	exe, err := os.Executable()
	must(t, err)
	var children sync.WaitGroup
	var running atomic.Int64
	for i := range 2 {
		cmd := exec.Command(exe, "-test.run=^TestLostUpdateChild$", "-test.timeout=10m")
		cmd.Env = append(os.Environ(), fmt.Sprintf("WATTLE_LOST_CHILD=%s %d %d %s", dir, i, attempts/2, clock))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		running.Add(1)
		children.Go(func() {
			defer running.Add(-1)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("writer %d: %v\n%s", i, err, out)
			}
		})
	}
	var wrote []foreignWrite
	for running.Load() > 0 {
		wrote = append(wrote, writeForeign(t, base, path, len(wrote)))
		// Let the others come before the next one.
		id := fmt.Sprintf("x%d", len(wrote)-1)
		for n := 0; n < 200 && running.Load() > 0; n++ {
			if now, err := os.ReadFile(path); err == nil && lostID(string(now)) != id && n > 20 {
				break
			}
			runtime.Gosched()
		}
	}
	children.Wait()
	judgeLost(t, base, path, wrote)
}

// quietly reads the file at a moment at which no Wattle process replaces one in
// this directory: a refused content, and what it took the place of, can lie
// there until it is taken back (doc.go), and nobody can tell them apart then.
func quietly(t *testing.T, path string) string {
	d, err := os.Open(filepath.Dir(path))
	must(t, err)
	defer d.Close()
	must(t, syscall.Flock(int(d.Fd()), syscall.LOCK_EX))
	b, err := os.ReadFile(path)
	must(t, err) // the path always leads to something: replacing is atomic
	return string(b)
}

// writeForeign puts the content x<n> at the path, in one of three ways.
func writeForeign(t *testing.T, base, path string, n int) foreignWrite {
	w := foreignWrite{how: [...]string{"in place", "truncated", "renamed"}[n%3]}
	content := lostContent(fmt.Sprintf("x%d", n), "none")
	w.found = quietly(t, path)
	var f *os.File
	var err error
	switch w.how {
	case "renamed":
		f, err = os.Create(base + "/n")
		must(t, err)
		_, err = f.WriteString(content)
		must(t, err)
		must(t, os.Rename(base+"/n", path))
	default:
		f, err = os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		var b [2 * lostLength]byte
		k, _ := f.ReadAt(b[:], 0)
		w.pre = string(b[:k])
		if w.how == "truncated" {
			must(t, f.Truncate(0))
		}
		_, err = f.WriteAt([]byte(content), 0)
		must(t, err)
	}
	defer f.Close()
	var own, now unix.Stat_t
	must(t, unix.Fstat(int(f.Fd()), &own))
	must(t, unix.Stat(path, &now))
	w.stood = own.Ino == now.Ino && own.Dev == now.Dev
	return w
}

// judgeLost reads what the writers wrote down and looks for a version that was
// replaced by somebody who had not seen it.
func judgeLost(t *testing.T, base, path string, wrote []foreignWrite) {
	origin, refused := map[string]string{}, map[string]bool{}
	children := map[string]string{}
	done, reads := 0, 0
	for i := range 2 {
		b, err := os.ReadFile(fmt.Sprintf("%s/log%d", base, i))
		must(t, err)
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			switch f[0] {
			case "S":
				done++
				origin[f[1]] = f[2]
				if other, ok := children[f[2]]; ok && f[2] != "torn" {
					t.Errorf("%s and %s both replaced %s", f[1], other, f[2])
				}
				children[f[2]] = f[1]
			case "R":
				refused[f[1]] = true
			default:
				t.Errorf("writer %d: %s", i, strings.TrimSpace(line))
			}
			reads++
		}
	}
	line := func(id string) string {
		var b strings.Builder
		for {
			from, ok := origin[id]
			fmt.Fprintf(&b, " %s", id)
			if !ok {
				return b.String()
			}
			id = from
		}
	}
	root := func(id string) string {
		for {
			from, ok := origin[id]
			if !ok {
				return id
			}
			id = from
		}
	}
	last, err := os.ReadFile(path)
	must(t, err)
	stood := 0
	for i, w := range wrote {
		// What it wrote into a file that had been replaced, or that lay there
		// for a moment, it has lost itself: nobody else can have seen it.
		if !w.stood || w.how != "renamed" && root(lostID(w.pre)) != root(lostID(w.found)) {
			continue
		}
		next := string(last)
		if i+1 < len(wrote) {
			next = wrote[i+1].found
		}
		stood++
		if at := root(lostID(next)); at != "x"+strconv.Itoa(i) {
			t.Errorf("x%d (%s, into %q, found %q before) was lost: after it stood %q, which descends:%s", i, w.how, strings.TrimSpace(w.pre), strings.TrimSpace(w.found), strings.TrimSpace(next), line(lostID(next)))
		}
	}
	t.Logf("tries: %d operations; %d guarded writes done, %d stale; foreign: %d, %d of them stood and were followed",
		2*reads, done, len(refused), len(wrote), stood)
	if done == 0 || len(refused) == 0 || stood == 0 {
		t.Error("the race did not happen")
	}
	es, err := os.ReadDir(base + "/ws")
	must(t, err)
	for _, e := range es {
		if e.Name() != "f" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
	if _, err := os.Lstat(base + "/n"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the foreign writer's own file: %v", err)
	}
}
