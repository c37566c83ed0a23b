package sandbox_test

import (
	"testing"

	"github.com/wattle-dev/wattle/sandbox"
)

// TestOutputOfSingleBytes: what is kept is bounded by what it takes, not by the
// bytes alone.
func TestOutputOfSingleBytes(t *testing.T) {
	if n := sandbox.KeptChunks(64<<10, 200000); n > 1024 || n < 500 {
		t.Errorf("%d chunks of one byte are kept within 64 KiB", n)
	}
}
