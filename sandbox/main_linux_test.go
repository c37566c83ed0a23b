package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Variables by which one test process tells the next where it is.
const (
	envInside = "SANDBOX_TEST_INSIDE" // set in the process that runs the tests
	envBase   = "SANDBOX_TEST_BASE"   // directory of all fixtures, outside every temporary directory
	envSoak   = "WATTLE_SOAK"         // 1: the long variants too
)

// base is the directory of all fixtures of this run. It lies in no system
// temporary directory (cases/fence.md, notation).
var base string

// mounted tells whether the mounts below base could be made: as root only.
var mounted bool

func soak() bool { return os.Getenv(envSoak) == "1" }

// TestMain runs the tests in a process of its own, as root in a mount
// namespace of its own, so that what a test mounts ends with it. The same
// binary is also the collection of small programs that fenced commands run
// (tool_linux_test.go): `sandbox.test tool NAME ARG…`.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "tool" {
		os.Exit(tool(os.Args[2], os.Args[3:]))
	}
	if os.Getenv(envInside) == "" {
		os.Exit(outside())
	}
	os.Exit(inside(m))
}

// outside makes the fixtures' directory, runs the tests in a child and removes
// the directory afterwards.
func outside() int {
	dir, err := makeBase()
	if err != nil {
		fmt.Fprintln(os.Stderr, "make test directory:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	// The signal at the parent's death follows the thread.
	runtime.LockOSThread()
	attr := &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if os.Getuid() == 0 {
		attr.Cloneflags = unix.CLONE_NEWNS
	}
	c := self(os.Args[1:]...)
	c.Env = append(os.Environ(), envInside+"=1", envBase+"="+dir)
	c.SysProcAttr = attr
	err = c.Run()
	if errors.Is(err, unix.EPERM) && attr.Cloneflags != 0 {
		attr.Cloneflags = 0
		env := c.Env
		c = self(os.Args[1:]...)
		c.Env, c.SysProcAttr = env, attr
		err = c.Run()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "run tests:", err)
	return 1
}

func self(args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c
}

// makeBase picks a place that is no temporary directory of the system.
func makeBase() (string, error) {
	parent := "/srv"
	if os.Getuid() != 0 {
		parent, _ = os.UserCacheDir()
	}
	if fi, err := os.Stat(parent); err != nil || !fi.IsDir() {
		parent = "/var/tmp"
	}
	dir, err := os.MkdirTemp(parent, "wattle-sandbox-test-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

func inside(m *testing.M) int {
	base = os.Getenv(envBase)
	unix.Umask(0o022)
	if os.Getuid() == 0 {
		if err := mountFixtures(); err != nil {
			fmt.Fprintln(os.Stderr, "no mounts for the tests:", err)
		}
		if err := makeForeign(); err != nil {
			fmt.Fprintln(os.Stderr, "no files of another user for the tests:", err)
		}
	}
	mounted = readOnlyMount(filepath.Join(base, "mounts", "ro"))
	for _, d := range []string{"labs", "temp"} {
		if err := os.MkdirAll(own(d), 0o700); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := os.Chmod(own("labs"), 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	closeShared()
	if code != 0 {
		return code
	}
	// A thread dies a moment after its goroutine.
	err := restrictedThreads()
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); err = restrictedThreads() {
		runtime.Gosched()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "after all tests:", err)
		return 1
	}
	return 0
}

// own is a directory of this process's user below base.
func own(name string) string {
	return filepath.Join(base, fmt.Sprintf("uid-%d", os.Getuid()), name)
}

// mountFixtures makes, below base/mounts: `ro`, a read-only bind mount of
// `src`, and `roin`, another; `bind`, a writable one of the same file system; and `small`, a tmpfs
// of 64 KiB. All may be used by anybody.
func mountFixtures() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	dir := filepath.Join(base, "mounts")
	for _, d := range []string{"src", "ro", "roin", "bind", "bindsrc", "small"} {
		p := filepath.Join(dir, d)
		if err := os.MkdirAll(p, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(p, 0o777); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "f"), []byte("f\n"), 0o666); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(dir, "src", "f"), 0o666); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "src", "d"), 0o777); err != nil {
		return err
	}
	for _, name := range []string{"ro", "roin"} {
		ro := filepath.Join(dir, name)
		if err := unix.Mount(filepath.Join(dir, "src"), ro, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind: %w", err)
		}
		if err := unix.Mount("", ro, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("remount read-only: %w", err)
		}
	}
	if err := unix.Mount(filepath.Join(dir, "bindsrc"), filepath.Join(dir, "bind"), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return unix.Mount("tmpfs", filepath.Join(dir, "small"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=0777")
}

func readOnlyMount(p string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(p, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}
