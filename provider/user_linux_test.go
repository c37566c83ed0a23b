package provider_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestAsNormalUser runs the whole package again as uid 65534: root passes
// where modes would refuse.
func TestAsNormalUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: already a normal user")
	}
	dir, err := os.MkdirTemp("/var/tmp", "provider-user-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Mkdir(dir+"/tmp", 0o700))
	must(t, os.Chown(dir+"/tmp", 65534, 65534))
	self, err := os.Open("/proc/self/exe")
	must(t, err)
	defer self.Close()
	bin, err := os.OpenFile(dir+"/test", os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(bin, self)
	must(t, err)
	must(t, bin.Close())
	// The poorer file systems differ in nothing that depends on the user.
	args := []string{"-test.v", "-test.timeout=20m", "-test.skip=^TestContractWithLessFeatures$"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	c := exec.CommandContext(t.Context(), dir+"/test", args...)
	c.Dir = dir + "/tmp"
	c.Env = []string{"TMPDIR=" + dir + "/tmp", "HOME=" + dir + "/tmp", "PATH=/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	text := string(out)
	if err != nil {
		for line := range strings.Lines(text) {
			if strings.Contains(line, ".go:") || strings.Contains(line, "FAIL") || strings.Contains(line, "panic") {
				t.Log("as uid 65534: " + strings.TrimRight(line, "\n"))
			}
		}
		t.Fatalf("as uid 65534: %v", err)
	}
	for _, want := range []string{"TestContract", "TestSwappedDirectory", "TestNoLostUpdate"} {
		if !strings.Contains(text, "\n--- PASS: "+want) {
			t.Errorf("%s did not run as uid 65534", want)
		}
	}
	t.Logf("as uid 65534: %d passed, %d skipped", strings.Count(text, "--- PASS:"), strings.Count(text, "--- SKIP:"))
	for line := range strings.Lines(text) {
		if strings.Contains(line, "tries:") {
			t.Log("as uid 65534: " + strings.TrimSpace(line))
		}
	}
}
