package trash_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	envInside = "TRASH_TEST_INSIDE" // set in the process that runs the tests
	envBase   = "TRASH_TEST_BASE"   // directory of all fixtures
)

// base is the directory of all fixtures of this run; canonical.
var base string

// TestMain runs the tests in a process of its own, as root in a mount namespace
// of its own, so that what a test mounts ends with it. The same binary is also
// the small program that tests start as children: `trash.test tool ARG…`.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "tool" {
		os.Exit(tool(os.Args[2:]))
	}
	if os.Getenv(envInside) == "" {
		os.Exit(outside())
	}
	base = os.Getenv(envBase)
	unix.Umask(0o022)
	if os.Getuid() == 0 {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			fmt.Fprintln(os.Stderr, "make mounts private:", err)
		}
	}
	os.Exit(m.Run())
}

func outside() int {
	dir, err := os.MkdirTemp(fixtureParent(), "wattle-trash-test-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
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
	err = start(attr, dir)
	if errors.Is(err, unix.EPERM) && attr.Cloneflags != 0 {
		attr.Cloneflags = 0
		err = start(attr, dir)
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

func start(attr *unix.SysProcAttr, dir string) error {
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), envInside+"=1", envBase+"="+dir)
	c.SysProcAttr = attr
	return c.Run()
}

// fixtureParent is no temporary directory of the system as root, and the user's
// own otherwise.
func fixtureParent() string {
	if os.Getuid() == 0 {
		return "/var/tmp"
	}
	return os.TempDir()
}
