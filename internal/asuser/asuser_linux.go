// Package asuser runs the tests of a package a second time, as a normal user:
// as root the ordinary permissions refuse nothing, and what a program does when
// they refuse shows only then. It is imported by tests alone.
package asuser

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// ID is the user and group that the tests run as: nobody's.
const ID = 65534

// Run runs the calling test binary again with these arguments and returns what
// it printed. It skips the test when it does not run as root, and fails it when
// the second run fails or when a test of required, by the beginning of its
// name, has not passed in it. The second run has a home and temporary directory
// of its own, and of the environment nothing but PATH.
func Run(t *testing.T, args []string, required ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIP: already a normal user")
	}
	dir, err := os.MkdirTemp("/var/tmp", "wattle-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin, home := dir+"/test", dir+"/home"
	if err := prepare(dir, bin, home); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), bin, append([]string{"-test.v"}, args...)...)
	c.Dir = home
	c.Env = []string{"TMPDIR=" + home, "HOME=" + home, "PATH=/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ID, Gid: ID}}
	b, err := c.CombinedOutput()
	out := string(b)
	if err != nil {
		for line := range strings.Lines(out) {
			if strings.Contains(line, ".go:") || strings.Contains(line, "FAIL") || strings.Contains(line, "panic") {
				t.Log("as a normal user: " + strings.TrimRight(line, "\n"))
			}
		}
		t.Fatalf("as a normal user: %v", err)
	}
	for _, want := range required {
		if !strings.Contains(out, "\n--- PASS: "+want) {
			t.Errorf("%s did not run as a normal user", want)
		}
	}
	t.Logf("as a normal user: %d passed, %d skipped", strings.Count(out, "--- PASS:"), strings.Count(out, "--- SKIP:"))
	return out
}

// prepare copies the test binary to where the user can execute it and gives it
// a home.
func prepare(dir, bin, home string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if err := os.Chown(home, ID, ID); err != nil {
		return err
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	to, err := os.OpenFile(bin, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, self)
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	return err
}
