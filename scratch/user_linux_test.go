package scratch_test

import (
	"testing"

	"github.com/wattle-dev/wattle/internal/asuser"
)

// TestAsNormalUser runs the whole package again: trap b needs a parent that
// cannot be written.
func TestAsNormalUser(t *testing.T) {
	asuser.Run(t, []string{"-test.short"}, "TestTrapB_NoPlaceBesideTheWorkspace", "TestTrapG_KilledProcess", "TestTampering")
}
