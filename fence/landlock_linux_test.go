package fence_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// kernelOr skips where there is no Landlock of that ABI.
func kernelOr(t *testing.T, abi int) fence.Kernel {
	t.Helper()
	k := fence.ProbeKernel()
	if k.LandlockABI < abi {
		t.Skipf("SKIP: this kernel has Landlock ABI %d, the test needs %d: %s", k.LandlockABI, abi, k.Why)
	}
	return k
}

// TestOpenNeverMeansNoFence: a ruleset that would restrict nothing is an error,
// and never a descriptor of -1 without one.
func TestOpenNeverMeansNoFence(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.plain(fence.ReadOnly))
	for name, r := range map[string]*fence.Ruleset{
		"no kernel": f.CompileLandlock(fence.Kernel{Why: "none"}),
		"zero":      {},
		"no rights": {ABI: 7},
		"no ABI":    {HandledFS: 1},
	} {
		if fd, _, err := r.Open(); !errors.Is(err, fence.ErrNoLandlock) || fd != -1 {
			t.Errorf("%s: %d, %v", name, fd, err)
		}
	}
}

// TestOpenByABI: every ABI up to the kernel's own gives a descriptor that is
// not inherited; a newer one is an error, not less than was asked for.
func TestOpenByABI(t *testing.T) {
	k := kernelOr(t, 1)
	w := newWorld(t)
	for abi := 1; abi <= fence.MaxLandlockABI; abi++ {
		for _, p := range []fence.Policy{w.plain(fence.WorkspaceWrite), w.policy(fence.ReadOnly)} {
			r := mustNew(t, p).CompileLandlock(fence.Kernel{LandlockABI: abi, Errata: k.Errata})
			fd, _, err := r.Open()
			newRights := r.HandledFS&^(1<<16-1) != 0 && k.LandlockABI < 9 || r.HandledNet&^3 != 0 && k.LandlockABI < 10
			if abi > k.LandlockABI && newRights {
				if err == nil || fd != -1 {
					t.Errorf("ABI %d on a kernel of %d: %d, %v", abi, k.LandlockABI, fd, err)
				}
				continue
			}
			if err != nil || fd < 0 {
				t.Errorf("ABI %d: %d, %v", abi, fd, err)
				continue
			}
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("ABI %d: the descriptor is inherited (%v)", abi, err)
			}
			_ = unix.Close(fd)
		}
	}
}

// TestOpenAfterAChange: what may vanish between the look and the use does not
// matter; a root that vanishes does.
func TestOpenAfterAChange(t *testing.T) {
	k := kernelOr(t, 1)
	w := newWorld(t)
	mustFile(t, w.home+"/beside")
	r := mustNew(t, w.policy(fence.WorkspaceWrite)).CompileLandlock(k)
	if err := os.Remove(w.home + "/beside"); err != nil {
		t.Fatal(err)
	}
	fd, _, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	if err := os.RemoveAll(w.ws); err != nil {
		t.Fatal(err)
	}
	if fd, _, err := r.Open(); err == nil || fd != -1 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its root: %d, %v", fd, err)
	}
}

// inFence runs f on a thread that is restricted by the ruleset and dies
// afterwards.
func inFence(t *testing.T, r *fence.Ruleset, f func()) {
	t.Helper()
	fd, flags, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	done, moved := make(chan error), make(chan struct{})
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // never the first thread
			go run()
			<-moved
			runtime.UnlockOSThread()
			return
		}
		close(moved)
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = ll.LandlockRestrictSelf(fd, flags)
		}
		if err == nil {
			f()
		}
		done <- err
	}
	go run()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestGrantAroundInTheKernel: the same as TestGrantAround, asked of the kernel.
func TestGrantAroundInTheKernel(t *testing.T) {
	k := kernelOr(t, 1)
	w := newWorld(t)
	deep := w.home + "/.ssh/config.d"
	mustDir(t, deep+"/private")
	for _, f := range []string{deep + "/a", deep + "/private/key", w.home + "/.profile"} {
		mustFile(t, f)
	}
	mustLink(t, w.home+"/.ssh/id", w.ws+"/link")
	mustLink(t, w.home+"/.ssh", w.ws+"/dirlink")
	p := w.policy(fence.WorkspaceWrite)
	p.Visible = append(p.Visible, fence.Entry{Path: deep, Source: "session"})
	p.Hidden = append(p.Hidden, fence.Entry{Path: deep + "/private", Source: "session"})
	f := mustNew(t, p)
	r := f.CompileLandlock(k)
	read := func(p string) string {
		_, err := os.ReadFile(p)
		return errnoText(err)
	}
	list := func(p string) string {
		_, err := os.ReadDir(p)
		return errnoText(err)
	}
	inFence(t, r, func() {
		for _, c := range []struct{ what, got, want string }{
			{"hidden file", read(w.home + "/.ssh/id"), "EACCES"},
			{"hidden by a glob", read(w.home + "/.keepass2"), "EACCES"},
			{"our own", read(w.own + "/token"), "EACCES"},
			{"missing in a hidden directory", read(w.home + "/.ssh/none"), "ENOENT"},
			{"hidden through a link", read(w.ws + "/link"), "EACCES"},
			{"hidden through a linked directory", read(w.ws + "/dirlink/id"), "EACCES"},
			{"hidden through the root", read("/proc/self/root" + w.home + "/.ssh/id"), "EACCES"},
			{"exception", read(w.home + "/.ssh/config"), "ok"},
			{"exception that is a directory", read(deep + "/a"), "ok"},
			{"hidden below an exception", read(deep + "/private/key"), "EACCES"},
			{"beside", read(w.home + "/.profile"), "ok"},
			{"elsewhere", read(w.out + "/secret"), "ok"},
			{"names in a hidden directory", list(w.home + "/.ssh"), "ok"},
			{"names above", list(w.home), "ok"},
			{"names of the root", list("/"), "ok"},
			{"write in the workspace", errnoText(os.WriteFile(w.ws+"/new", nil, 0o644)), "ok"},
			{"write outside", errnoText(os.WriteFile(w.out+"/new", nil, 0o644)), "EACCES"},
			{"write in a hidden place", errnoText(os.WriteFile(w.home+"/.ssh/new", nil, 0o644)), "EACCES"},
			{"between two roots", errnoText(os.Rename(w.ws+"/new", w.extra+"/new")), map[bool]string{true: "ok", false: "EXDEV"}[k.LandlockABI >= 2]},
			{"link from outside", errnoText(os.Link(w.out+"/secret", w.ws+"/hard")), "EXDEV"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
			}
		}
		mustFileOutside(t, w.home+"/later")
		if got := read(w.home + "/later"); got != "EACCES" {
			t.Errorf("a name made beside a hidden one: %s", got)
		}
	})
	if r.Fresh() {
		t.Error("a ruleset with a new name beside a hidden one is fresh")
	}
	inFence(t, f.CompileLandlock(k), func() {
		if got := read(w.home + "/later"); got != "ok" {
			t.Errorf("after the next start: %s", got)
		}
	})
}

// mustFileOutside makes a file from an unrestricted thread while the calling
// one is restricted.
func mustFileOutside(t *testing.T, path string) {
	done := make(chan error)
	go func() { done <- os.WriteFile(path, []byte("x"), 0o644) }()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRulesetsAgreeWithCheck: for every existing path of a tree and both modes
// the kernel lets be read and written what the decision says, and no more;
// what a rule cannot take back is in the gaps.
func TestRulesetsAgreeWithCheck(t *testing.T) {
	k := kernelOr(t, 3)
	w := newWorld(t)
	for _, mode := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		f := mustNew(t, w.policy(mode))
		type probe struct {
			path string
			dir  bool
		}
		var probes []probe
		err := filepath.WalkDir(w.base, func(p string, d os.DirEntry, err error) error {
			probes = append(probes, probe{p, d.IsDir()})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		inFence(t, f.CompileLandlock(k), func() {
			for _, p := range probes {
				if p.dir {
					name := p.path + "/probe"
					err := os.Mkdir(name, 0o755)
					if err == nil {
						_ = os.Remove(name)
					}
					if want := f.Check(name, fence.Mkdir); (want == nil) != (err == nil) && !protected(want) {
						t.Errorf("%s mkdir %s: kernel %v, decision %v", mode, name, err, want)
					}
					continue
				}
				_, err := os.ReadFile(p.path)
				if want := f.Check(p.path, fence.Read); (want == nil) != (err == nil) {
					t.Errorf("%s read %s: kernel %v, decision %v", mode, p.path, err, want)
				}
				h, err := os.OpenFile(p.path, os.O_WRONLY, 0)
				if err == nil {
					_ = h.Close()
				}
				if want := f.Check(p.path, fence.Write); (want == nil) != (err == nil) && !protected(want) {
					t.Errorf("%s write %s: kernel %v, decision %v", mode, p.path, err, want)
				}
			}
		})
	}
}

// protected: what Landlock cannot hold inside a root; the supervisor does.
func protected(d *fence.Denial) bool { return d != nil && d.Rule == fence.RuleProtected }

func errnoText(err error) string {
	var e unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return unix.ErrnoName(e)
	}
	return fmt.Sprint(err)
}

func TestProbeKernel(t *testing.T) {
	k := fence.ProbeKernel()
	if (k.LandlockABI == 0) != (k.Why != "") {
		t.Errorf("%+v", k)
	}
	if k.LandlockABI == 0 && !strings.Contains(k.Why, "(E") && !strings.Contains(k.Why, "cannot be asked") {
		t.Errorf("no reason: %s", k.Why)
	}
}

// TestCompilersAsUser runs the tests of both compilers again as a normal user,
// who cannot list everything and owns nothing but the fixtures.
func TestCompilersAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIP: already a normal user")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("SKIP-CAPABLE: setpriv (util-linux) is not installed")
	}
	const user = 65534
	parent := "/srv"
	if _, err := os.Stat(parent); err != nil {
		parent = "/var/tmp"
	}
	dir, err := os.MkdirTemp(parent, "wattle-fence-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(dir+"/fence.test", b, 0o755), os.Chmod(dir, 0o755))
	for _, d := range []string{dir + "/home", dir + "/tmp"} {
		err = errors.Join(err, os.Mkdir(d, 0o755), os.Chown(d, user, user))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(setpriv, fmt.Sprintf("--reuid=%d", user), fmt.Sprintf("--regid=%d", user), "--clear-groups",
		dir+"/fence.test", "-test.run=^(TestOpen|TestGrant|TestRulesets|TestProbe|TestLandlock|TestFresh|TestHiddenInARoot|TestSeccomp|TestCall)", "-test.count=1")
	c.Dir = dir
	c.Env = []string{"HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp", "XDG_CACHE_HOME=" + dir + "/home", "PATH=" + os.Getenv("PATH")}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("as uid %d: %v\n%s", user, err, out)
	}
}
