package scratch_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestAsNormalUser runs the whole package again as uid 65534: root passes
// where modes would refuse, and trap b needs a parent that cannot be written.
func TestAsNormalUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: already a normal user")
	}
	dir, err := os.MkdirTemp("/var/tmp", "scratch-user-")
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
	c := exec.CommandContext(t.Context(), dir+"/test", "-test.v", "-test.short")
	c.Dir = dir + "/tmp"
	c.Env = []string{"TMPDIR=" + dir + "/tmp", "HOME=" + dir + "/tmp", "PATH=/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid 65534: %v\n%s", err, out)
	}
	for _, want := range []string{"TestTrapB_NoPlaceBesideTheWorkspace", "TestTrapG_KilledProcess", "TestTampering"} {
		if !strings.Contains(string(out), "\n--- PASS: "+want) {
			t.Errorf("%s did not run:\n%s", want, out)
		}
	}
}
