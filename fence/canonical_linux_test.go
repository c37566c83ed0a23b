package fence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// kernelSays opens a path without touching what it names and asks where the
// descriptor is: path_resolution(7) by the one who defines it.
func kernelSays(p string, flags int) (string, error) {
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// compare asks Canonical and the kernel about one path and explains where they
// differ, or returns "".
func compare(p string) string {
	r, err := fence.Canonical(p)
	real, kerr := kernelSays(p, 0)
	switch {
	case err == nil && r.Exists:
		if kerr != nil || real != r.Path {
			return fmt.Sprintf("%q: resolved to %q, the kernel says %q, %v", p, r.Path, real, kerr)
		}
	case err == nil && r.Dangling != "":
		// A link that leads to nothing: the link itself is there, by that name.
		if !errors.Is(kerr, unix.ENOENT) {
			return fmt.Sprintf("%q: dangling, the kernel says %q, %v", p, real, kerr)
		}
		if at, e := kernelSays(r.Path, unix.O_NOFOLLOW); e != nil || at != r.Path || len(r.Missing) > 0 {
			return fmt.Sprintf("%q: %+v, but the link is %q, %v", p, r, at, e)
		}
	case err == nil:
		// Missing: what is above is there, by that name; the first missing name
		// is not.
		if !errors.Is(kerr, unix.ENOENT) {
			return fmt.Sprintf("%q: missing, the kernel says %q, %v", p, real, kerr)
		}
		above := r.Path
		for range r.Missing {
			above = filepath.Dir(above)
		}
		if at, e := kernelSays(above, unix.O_NOFOLLOW); e != nil || at != above || filepath.Join(above, filepath.Join(r.Missing...)) != r.Path {
			return fmt.Sprintf("%q: %+v, but above it is %q, %v", p, r, at, e)
		}
		if _, e := kernelSays(filepath.Join(above, r.Missing[0]), unix.O_NOFOLLOW); !errors.Is(e, unix.ENOENT) {
			return fmt.Sprintf("%q: %+v, but that is there: %v", p, r, e)
		}
	default:
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			return fmt.Sprintf("%q: no errno in %v", p, err)
		}
		switch {
		case errors.Is(kerr, errno):
		case errno == unix.EINVAL && (strings.IndexByte(p, 0) >= 0 || !strings.HasPrefix(p, "/")):
			// Ours: the kernel never sees a NUL, and would take the directory.
		case kerr == nil:
			return fmt.Sprintf("%q: %v, but the kernel finds %q", p, err, real)
		default:
			return fmt.Sprintf("%q: %v, the kernel says %v", p, err, kerr)
		}
	}
	return ""
}

var treeNames = []string{"a", "b", "c", "dd", "É", "\xff", "x y"}

// grow makes a random tree of directories, files and links of every kind, and
// returns a maker of random paths in it.
func grow(t testing.TB, r *rand.Rand, root string) func() string {
	t.Helper()
	dirs := []string{root}
	pick := func(s []string) string { return s[r.IntN(len(s))] }
	walk := func() string {
		var parts []string
		for range 1 + r.IntN(5) {
			switch r.IntN(12) {
			case 0, 1:
				parts = append(parts, "..")
			case 2:
				parts = append(parts, ".")
			case 3:
				parts = append(parts, "")
			case 4:
				parts = append(parts, "none")
			default:
				parts = append(parts, pick(treeNames))
			}
		}
		p := strings.Join(parts, "/")
		if r.IntN(8) == 0 {
			p += "/"
		}
		return p
	}
	for range 30 {
		p := filepath.Join(pick(dirs), pick(treeNames))
		var err error
		switch r.IntN(5) {
		case 0, 1:
			if err = os.Mkdir(p, 0o755); err == nil {
				dirs = append(dirs, p)
			}
		case 2:
			err = os.WriteFile(p, nil, 0o644)
		default:
			target := walk()
			if r.IntN(3) == 0 {
				target = pick(dirs) + "/" + target
			}
			if target == "" {
				target = "."
			}
			err = os.Symlink(target, p)
		}
		if err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.ELOOP) && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) {
			t.Fatal(err)
		}
	}
	return func() string {
		p := pick(dirs) + "/" + walk()
		if r.IntN(10) == 0 {
			p = "/proc/self/root" + p
		}
		return p
	}
}

// TestCanonicalAgainstTheKernel: on random trees, for random paths.
func TestCanonicalAgainstTheKernel(t *testing.T) {
	trees, paths := 150, 100
	if testing.Short() {
		trees = 20
	}
	seed := uint64(os.Getpid())
	t.Logf("seed %d, %d trees of %d paths", seed, trees, paths)
	kinds := map[string]int{}
	for i := range trees {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		next := grow(t, r, root)
		for range paths {
			p := next()
			if msg := compare(p); msg != "" {
				t.Errorf("tree %d: %s", i, msg)
			}
			res, err := fence.Canonical(p)
			switch {
			case err != nil:
				kinds["error"]++
			case res.Exists:
				kinds["exists"]++
			case res.Dangling != "":
				kinds["dangling"]++
			default:
				kinds["missing"]++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Log(kinds)
	for _, k := range []string{"error", "exists", "dangling", "missing"} {
		if kinds[k] < trees {
			t.Errorf("only %d paths of the kind %s", kinds[k], k)
		}
	}
}

// FuzzCanonical: any string, in any of some random trees.
func FuzzCanonical(f *testing.F) {
	roots := make([]string, 8)
	for i := range roots {
		root, err := filepath.EvalSymlinks(f.TempDir())
		if err != nil {
			f.Fatal(err)
		}
		next := grow(f, rand.New(rand.NewPCG(7, uint64(i))), root)
		roots[i] = root
		for range 5 {
			f.Add(uint8(i), strings.TrimPrefix(next(), root))
		}
	}
	for _, s := range []string{"", "/", "\x00", "/a/../../b", "//", "/a/", "/./", "/" + strings.Repeat("a/", 3000), "/\xff/..", "/" + strings.Repeat("é", 200)} {
		f.Add(uint8(0), s)
	}
	f.Fuzz(func(t *testing.T, tree uint8, path string) {
		root := roots[int(tree)%len(roots)]
		// The walk may leave the tree by .., but what changes while it looks is
		// no oracle.
		if strings.Count(path, "..") > 0 && strings.Contains(path, "proc") {
			return
		}
		if msg := compare(root + path); msg != "" {
			t.Fatal(msg)
		}
	})
}

// TestCanonicalOfAClosedDirectory: a normal user who may not search gets the
// kernel's EACCES, which is no denial.
func TestCanonicalOfAClosedDirectory(t *testing.T) {
	if dir := os.Getenv("WATTLE_TEST_CLOSED"); dir != "" {
		for _, p := range []string{dir + "/closed/x", dir + "/closed/x/y", dir + "/closed/../closed/x", dir + "/link"} {
			if _, err := fence.Canonical(p); !errors.Is(err, unix.EACCES) {
				t.Errorf("%s: %v", p, err)
			}
			if msg := compare(p); msg != "" {
				t.Error(msg)
			}
		}
		if r, err := fence.Canonical(dir + "/closed"); err != nil || !r.Exists {
			t.Error(r, err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can become another user")
	}
	base, err := os.MkdirTemp("", "closed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	mustDir(t, base+"/closed")
	mustFile(t, base+"/closed/x")
	mustLink(t, "closed/x", base+"/link")
	if err := os.Chmod(base+"/closed", 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+"/test", self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(base+"/test", "-test.run=^TestCanonicalOfAClosedDirectory$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"WATTLE_TEST_CLOSED=" + base, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestCanonicalOfAClosedDirectory") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestUnaliasOfABindMount: the workspace by another name is the workspace, its
// protections included.
func TestUnaliasOfABindMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	w := newWorld(t)
	alias := w.base + "/alias"
	mustDir(t, alias)
	if err := unix.Mount(w.ws, alias, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("SKIP: no bind mounts here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(alias, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, tc := range []struct{ in, want string }{
		{alias, w.ws}, {alias + "/f", w.ws + "/f"}, {alias + "/new/x", w.ws + "/new/x"}, {alias + "/.git/hooks/x", w.ws + "/.git/hooks/x"},
		{alias + "-evil/x", alias + "-evil/x"},
	} {
		if got := f.Unalias(tc.in); got != tc.want {
			t.Errorf("%s became %s", tc.in, got)
		}
	}
	for path, want := range map[string]string{
		alias + "/f": "ok", alias + "/new/x": "ok", alias + "/.git/hooks/x": "protected", alias + "/../out/secret": "outside-writable-roots",
		alias + "/d/../.git/config": "protected",
	} {
		if got := decide(f, path, fence.Write); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// In read-only there is no root to be an alias of.
	if got := decide(mustNew(t, w.policy(fence.ReadOnly)), alias+"/f", fence.Write); got != "read-only" {
		t.Error(got)
	}
}
