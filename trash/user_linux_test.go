package trash_test

import (
	"testing"

	"github.com/wattle-dev/wattle/internal/asuser"
)

// TestAsNormalUser runs the whole package again as somebody whom modes refuse.
func TestAsNormalUser(t *testing.T) {
	asuser.Run(t, []string{"-test.skip=^TestInterop"}, "TestC3FileInAReadOnlyDirectory", "TestPutAndRestore", "TestEmpty", "TestGroup", "TestGroupNames", "TestKernelRefuses")
}
