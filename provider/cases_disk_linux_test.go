package provider_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// grower is a call that writes more than fits. It changes f or makes new, and
// takes big from outside.
type grower struct {
	name string
	do   func(p *place, big string) error
}

// growers are all primitives that write content.
var growers = []grower{
	{"writeText", func(p *place, big string) error {
		_, err := p.l.WriteText(p.t.Context(), p.f, p.target("t/f"), big, provider.WriteOptions{})
		return err
	}},
	{"writeText, new", func(p *place, big string) error {
		_, err := p.l.WriteText(p.t.Context(), p.f, p.target("t/a/b/new"), big, provider.WriteOptions{})
		return err
	}},
	{"editText", func(p *place, big string) error {
		_, err := p.l.EditText(p.t.Context(), p.f, p.target("t/f"), provider.EditRequest{OldString: "begin", NewString: big}, provider.EditOptions{})
		return err
	}},
	{"patchText", func(p *place, big string) error {
		_, err := p.l.PatchText(p.t.Context(), p.f, p.target("t/f"), chunks(p.t, "-begin", "+"+big), provider.PatchOptions{})
		return err
	}},
	{"applyPatch, update", func(p *place, big string) error {
		_, err := p.l.ApplyPatch(p.t.Context(), p.f, patchOf(updateOp("t/g", "small", "SMALL"), updateOp("t/f", "begin", big)), provider.ApplyOptions{})
		return err
	}},
	{"applyPatch, add", func(p *place, big string) error {
		_, err := p.l.ApplyPatch(p.t.Context(), p.f, patchOf(updateOp("t/g", "small", "SMALL"), addOp("t/a/new", big)), provider.ApplyOptions{})
		return err
	}},
	{"moveFile, hunks", func(p *place, big string) error {
		_, err := p.l.MoveFile(p.t.Context(), p.f, p.target("t/f"), p.target("t/a/new"), provider.MoveOptions{Hunks: chunks(p.t, "-begin", "+"+big)})
		return err
	}},
	{"moveFile, from elsewhere", func(p *place, big string) error {
		must(p.t, os.WriteFile(p.O+"/big", []byte(big), 0o644))
		_, err := p.l.MoveFile(p.t.Context(), p.wide(), p.target(p.O+"/big"), p.target("t/f"), provider.MoveOptions{})
		return err
	}},
	{"movePath, from elsewhere", func(p *place, big string) error {
		must(p.t, os.WriteFile(p.O+"/big", []byte(big), 0o644))
		_, err := p.l.MovePath(p.t.Context(), p.wide(), p.O+"/big", p.W+"/t/f", provider.MovePathOptions{Overwrite: true})
		return err
	}},
	{"copyPath", func(p *place, big string) error {
		must(p.t, os.WriteFile(p.O+"/big", []byte(big), 0o644))
		_, err := p.l.CopyPath(p.t.Context(), p.f, p.O+"/big", p.W+"/t/f", provider.CopyPathOptions{Overwrite: true})
		return err
	}},
	{"copyPath, tree", func(p *place, big string) error {
		must(p.t, os.MkdirAll(p.O+"/tree/sub", 0o755))
		for _, n := range []string{"a", "sub/b", "c"} {
			must(p.t, os.WriteFile(p.O+"/tree/"+n, []byte(big[:len(big)/3]), 0o644))
		}
		_, err := p.l.CopyPath(p.t.Context(), p.f, p.O+"/tree", p.W+"/t/new", provider.CopyPathOptions{Recursive: true})
		return err
	}},
}

// full runs every grower where only so much fits, with and without the features
// of file systems, and looks that f is as it was, to the inode, and that
// nothing is left.
func full(t *testing.T, p *place, size int, errnos ...syscall.Errno) {
	old := "begin\n" + strings.Repeat("a", 19_994)
	p.put("t/f", old)
	p.put("t/g", "small\n")
	free := func() uint64 {
		if !slices.Contains(errnos, syscall.ENOSPC) {
			return 0 // others use this file system too
		}
		var s unix.Statfs_t
		must(t, unix.Statfs(p.W+"/t", &s))
		return s.Bfree
	}
	before, blocks := tree(t, p.W, true), free()
	for _, poor := range []bool{false, true} {
		p.l.Lack(poor, poor, poor)
		for _, g := range growers {
			err := g.do(p, strings.Repeat("b", size))
			var e *provider.Error
			if provider.CodeOf(err) != provider.CodeIOError || !errors.As(err, &e) || !slices.ContainsFunc(errnos, func(n syscall.Errno) bool { return errors.Is(err, n) }) {
				t.Errorf("%s, few features %v: %v", g.name, poor, err)
			}
			// A patch that was undone has touched what it put back.
			if strings.HasPrefix(g.name, "applyPatch") {
				if p.get("t/g") != "small\n" {
					t.Errorf("%s: the other file is %q", g.name, p.get("t/g"))
				}
				before = tree(t, p.W, true)
			}
			if after := tree(t, p.W, true); p.get("t/f") != old || !maps.Equal(after, before) {
				t.Errorf("%s, few features %v: %.200v", g.name, poor, after)
			}
			p.nothingStaged(t)
			es, rerr := os.ReadDir(p.W + "/t")
			must(t, rerr)
			if now := free(); len(es) != 2 || now != blocks {
				t.Errorf("%s: %v, %d blocks free, were %d", g.name, es, now, blocks)
			}
			must(t, os.RemoveAll(p.O+"/big"))
			must(t, os.RemoveAll(p.O+"/tree"))
		}
	}
	_, err := p.l.WriteText(t.Context(), p.f, p.target("t/f"), "small", provider.WriteOptions{})
	must(t, err)
}

// E6 openclaw#118470: the disk is full.
func TestCaseE6FullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to mount a small file system")
	}
	p, _ := patchPlace(t, openDir(t), provider.Config{})
	must(t, os.Mkdir(p.W+"/t", 0o755))
	if err := unix.Mount("none", p.W+"/t", "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIP: cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(p.W+"/t", unix.MNT_DETACH) })
	full(t, p, 100_000, syscall.ENOSPC)
}

const limitEnv = "WATTLE_TEST_FILE_LIMIT"

// TestFileLimitChild is no test: it is the process with the limit.
func TestFileLimitChild(t *testing.T) {
	base := os.Getenv(limitEnv)
	if base == "" {
		return
	}
	p, _ := patchPlace(t, base, provider.Config{})
	must(t, os.Mkdir(p.W+"/t", 0o755))
	// The test itself cannot make what is too large to be copied.
	all := growers
	growers = slices.DeleteFunc(slices.Clone(all), func(g grower) bool {
		return strings.Contains(g.name, "elsewhere") || strings.HasPrefix(g.name, "copyPath")
	})
	defer func() { growers = all }()
	full(t, p, 100_000, syscall.EFBIG)
}

// E6 openclaw#118470: a file may not become so large (ulimit -f 24). The
// process goes on.
func TestCaseE6FileSizeLimit(t *testing.T) {
	base := openDir(t)
	self, err := os.Executable()
	must(t, err)
	c := exec.CommandContext(t.Context(), "bash", "-c", `ulimit -f 24; exec "$0" -test.run='^TestFileLimitChild$'`, self)
	c.Env = append(os.Environ(), limitEnv+"="+base)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(base + "/ws/t/f"); err != nil {
		t.Errorf("the process did nothing: %v", err)
	}
}

// wide is a fence that allows everything.
func (p *place) wide() *fence.Fence {
	f, err := fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: p.W})
	must(p.t, err)
	return f
}
