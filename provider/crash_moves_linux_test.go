package provider_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

const pathCrashEnv = "WATTLE_TEST_PATH_CRASH"

// crashOp is a call that dies half-way. W has the files f and g, of some size,
// and the tree d; the sources of calls across file systems are in far.
type crashOp struct {
	name string
	do   func(p *place, far string) error
	// may are the states of the names that are allowed afterwards: what is
	// under each of them is content of that name in crashDisk, "gone", or, for a
	// tree, "part": some of its entries, each whole.
	may []string
}

// crashText is larger than what is copied at once.
func crashText(name string) string { return strings.Repeat(name+" 0123456789\n", 30_000) }

var crashTree = []string{"a", "b/c", "b/d/e", "z"}

// crashDisk makes the disk before a call.
func crashDisk(t *testing.T, p *place, far string) {
	for _, n := range []string{p.W + "/f", p.W + "/g", far + "/f"} {
		must(t, os.WriteFile(n, []byte(crashText(filepath.Base(n))), 0o644))
	}
	for _, root := range []string{p.W + "/d", far + "/d"} {
		for _, n := range crashTree {
			must(t, os.MkdirAll(filepath.Dir(root+"/"+n), 0o755))
			must(t, os.WriteFile(root+"/"+n, []byte(crashText(n)), 0o644))
		}
	}
	must(t, os.Mkdir(p.W+"/empty", 0o755))
}

func crashMove(from, to string, over bool) func(p *place, far string) error {
	return func(p *place, far string) error {
		_, err := p.l.MovePath(context.Background(), p.wide(), strings.ReplaceAll(from, "FAR", far), p.W+"/"+to, provider.MovePathOptions{Overwrite: over})
		return err
	}
}

func crashCopy(from, to string, over bool) func(p *place, far string) error {
	return func(p *place, _ string) error {
		_, err := p.l.CopyPath(context.Background(), p.f, p.W+"/"+from, p.W+"/"+to, provider.CopyPathOptions{Overwrite: over, Recursive: true})
		return err
	}
}

var crashOps = []crashOp{
	{"moveFile", func(p *place, _ string) error {
		_, err := p.l.MoveFile(context.Background(), p.f, p.target("f"), p.target("n/new"), provider.MoveOptions{})
		return err
	}, []string{"f=f n/new=gone", "f=f n/new=f", "f=gone n/new=f"}},
	{"moveFile, over", func(p *place, _ string) error {
		_, err := p.l.MoveFile(context.Background(), p.f, p.target("f"), p.target("g"), provider.MoveOptions{})
		return err
	}, []string{"f=f g=g", "f=f g=f", "f=gone g=f"}},
	{"moveFile, across", func(p *place, far string) error {
		_, err := p.l.MoveFile(context.Background(), p.wide(), p.target(far+"/f"), p.target("g"), provider.MoveOptions{})
		return err
	}, []string{"FAR/f=f g=g", "FAR/f=f g=f", "FAR/f=gone g=f"}},
	{"movePath", crashMove("f", "new", false), []string{"f=f new=gone", "f=f new=f", "f=gone new=f"}},
	// Between the exchange and the removal of what came out, each has the name
	// of the other one.
	{"movePath, over", crashMove("f", "g", true), []string{"f=f g=g", "f=g g=f", "f=gone g=f"}},
	{"movePath, tree", crashMove("d", "new", false), []string{"d=tree new=gone", "d=tree new=part", "d=gone new=tree"}},
	{"movePath, tree, over", crashMove("d", "empty", true), []string{"d=tree empty=part", "d=tree empty=gone", "d=gone empty=tree"}},
	{"movePath, across", crashMove("FAR/f", "g", true), []string{"FAR/f=f g=g", "FAR/f=f g=f", "FAR/f=gone g=f"}},
	{"movePath, tree, across", crashMove("FAR/d", "new", false), []string{"FAR/d=tree new=gone", "FAR/d=tree new=part", "FAR/d=part new=tree", "FAR/d=tree new=tree", "FAR/d=gone new=tree"}},
	{"copyPath", crashCopy("f", "new", false), []string{"f=f new=gone", "f=f new=f"}},
	{"copyPath, over", crashCopy("f", "g", true), []string{"f=f g=g", "f=f g=f"}},
	{"copyPath, tree", crashCopy("d", "new", false), []string{"d=tree new=gone", "d=tree new=part", "d=tree new=tree"}},
	{"deleteFile", func(p *place, _ string) error {
		_, err := p.l.DeleteFile(context.Background(), p.f, p.target("f"), provider.DeleteOptions{Permanent: true})
		return err
	}, []string{"f=f", "f=gone"}},
	{"deletePath, tree", func(p *place, _ string) error {
		_, err := p.l.DeletePath(context.Background(), p.f, p.W+"/d", provider.DeletePathOptions{Permanent: true, Recursive: true})
		return err
	}, []string{"d=tree", "d=part", "d=gone"}},
}

// crashState tells what is under a path.
func crashState(t *testing.T, path string) string {
	fi, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return "gone"
	}
	must(t, err)
	if !fi.IsDir() {
		b, err := os.ReadFile(path)
		must(t, err)
		for _, n := range append([]string{"f", "g"}, crashTree...) {
			if string(b) == crashText(n) {
				return n
			}
		}
		return fmt.Sprintf("broken (%d bytes)", len(b))
	}
	has := 0
	must(t, filepath.WalkDir(path, func(at string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(path, at)
		if crashState(t, at) == rel {
			has++
		} else if !strings.Contains(at, provider.TempPrefix) {
			has = -100
		}
		return nil
	}))
	switch {
	case has < 0:
		return "broken"
	case has == len(crashTree):
		return "tree"
	}
	return "part"
}

// TestPathCrashChild is no test: it is the process that kills itself at the n-th
// point of a call, for TestKilledAtEveryPoint.
func TestPathCrashChild(t *testing.T) {
	args := strings.Split(os.Getenv(pathCrashEnv), "|")
	if len(args) != 5 {
		return
	}
	n, err := strconv.Atoi(args[1])
	must(t, err)
	p := newPlace(t, args[2], provider.Config{})
	p.l.Lack(args[4] == "true", args[4] == "true", args[4] == "true")
	crashDisk(t, p, args[3])
	seen := 0
	p.l.SetHook(func(string) {
		if seen == n {
			must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		seen++
	})
	i := slices.IndexFunc(crashOps, func(o crashOp) bool { return o.name == args[0] })
	must(t, crashOps[i].do(p, args[3]))
}

// A process that is killed at any point of a call leaves every file as it was or
// as it will be, whole, and nothing under other names than hidden ones.
func TestKilledAtEveryPoint(t *testing.T) {
	// A process with the race detector takes long to start, and finds no race
	// here that others do not.
	step, features := 1, []bool{false, true}
	if testing.Short() || raceDetector && os.Getenv("WATTLE_SOAK") == "" {
		step, features = 4, features[:1]
	}
	for _, op := range crashOps {
		for _, poor := range features {
			seen := map[string]int{}
			killed, hidden := 0, 0
			for n := 0; ; n += step {
				base, far := fastDir(t), openDir(t)
				c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestPathCrashChild$")
				c.Env = append(os.Environ(), pathCrashEnv+"="+strings.Join([]string{op.name, strconv.Itoa(n), base, far, fmt.Sprint(poor)}, "|"))
				out, err := c.CombinedOutput()
				if err != nil && c.ProcessState.Exited() {
					t.Fatalf("%s: %v\n%s", op.name, err, out)
				}
				state, ok := "", false
				for _, may := range op.may {
					var now []string
					for field := range strings.FieldsSeq(may) {
						name, _, _ := strings.Cut(field, "=")
						path := base + "/ws/" + name
						if rest, is := strings.CutPrefix(name, "FAR"); is {
							path = far + rest
						}
						now = append(now, name+"="+crashState(t, path))
					}
					state = strings.Join(now, " ")
					ok = ok || state == may
				}
				seen[state]++
				if !ok {
					t.Errorf("%s, few features %v, killed at %d: %s", op.name, poor, n, state)
				}
				hidden += crashRest(t, op, base+"/ws", far)
				if err == nil {
					break // it was through
				}
				killed++
			}
			t.Logf("%s, few features %v: %d kills, %d hidden names; %v", op.name, poor, killed, hidden, seen)
			if killed < 1 {
				t.Errorf("%s was killed %d times", op.name, killed)
			}
			if len(seen) < 2 && step == 1 {
				t.Errorf("%s: all kills came before or after everything", op.name)
			}
		}
	}
}

// crashRest looks at all names that the call has nothing to do with.
func crashRest(t *testing.T, op crashOp, w, far string) (hidden int) {
	for _, d := range []string{w, far} {
		es, err := os.ReadDir(d)
		must(t, err)
		for _, e := range es {
			switch {
			case strings.HasPrefix(e.Name(), provider.TempPrefix):
				hidden++
			case !slices.Contains([]string{"f", "g", "d", "empty", "n", "new"}, e.Name()):
				t.Errorf("%s left %s", op.name, e.Name())
			}
		}
	}
	if hidden > 2 {
		t.Errorf("%s left %d hidden names", op.name, hidden)
	}
	return hidden
}
