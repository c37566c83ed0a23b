package asuser_test

import (
	"os"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/internal/asuser"
)

// What runs the second time is this binary, as somebody whom permissions
// refuse.
func TestRun(t *testing.T) {
	out := asuser.Run(t, []string{"-test.run=^TestIsRefused$"}, "TestIsRefused")
	if strings.Count(out, "--- PASS: TestIsRefused") != 1 || strings.Contains(out, "TestRun") {
		t.Error(out)
	}
}

func TestIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIP: root is refused nothing; the second run of these tests is a normal user")
	}
	dir := t.TempDir()
	if os.Geteuid() != asuser.ID || os.Chmod(dir, 0o500) != nil || os.WriteFile(dir+"/f", nil, 0o600) == nil {
		t.Errorf("uid %d may write into a directory that is closed to it", os.Geteuid())
	}
}
