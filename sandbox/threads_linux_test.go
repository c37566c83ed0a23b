package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// restrictedThreads tells whether a thread of this process is restricted, or
// the first one was used for a start.
func restrictedThreads() error {
	all, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return err
	}
	for _, p := range all {
		b, err := os.ReadFile(p)
		if err != nil {
			continue // the thread has ended
		}
		if bytes.Contains(b, []byte("NoNewPrivs:\t1")) || bytes.Contains(b, []byte("Seccomp:\t2")) {
			return fmt.Errorf("%s is restricted:\n%s", p, b)
		}
	}
	return nil
}
