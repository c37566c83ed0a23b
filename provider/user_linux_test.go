package provider_test

import (
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/internal/asuser"
)

// TestAsNormalUser runs the whole package again as somebody whom modes refuse.
func TestAsNormalUser(t *testing.T) {
	t.Parallel()
	// The poorer file systems differ in nothing that depends on the user, and
	// neither do memory, windows and the patience of a lock.
	args := []string{"-test.timeout=20m", "-test.skip=^(TestContractWithLessFeatures|TestMemoryOfReads|TestWindowAgainstModel|TestHeldDirectoryLock)$"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	out := asuser.Run(t, args, "TestContract", "TestExchangeRaces", "TestNoLostUpdate")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "tries:") {
			t.Log("as a normal user: " + strings.TrimSpace(line))
		}
	}
}
