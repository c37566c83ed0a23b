package fence_test

import (
	"testing"

	"github.com/wattle-dev/wattle/fence"
)

// BenchmarkCheck is what the decision costs a command for each call that
// changes something, with protections and hidden paths as they are shipped.
func BenchmarkCheck(b *testing.B) {
	w := newWorld(b)
	f, err := fence.New(w.policy(fence.WorkspaceWrite))
	if err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{
		"inside":    w.ws + "/node_modules/some-package/lib/internal/file.js",
		"git":       w.ws + "/.git/objects/ab/cdef0123456789",
		"protected": w.ws + "/vendor/sub/.git/hooks/pre-commit",
		"outside":   "/usr/share/doc/file",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Check(path, fence.Create)
			}
		})
	}
}
