package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// BenchmarkApplyPatch compares a patch with what the same writes take by hand:
// for each file write, fsync and rename, and for each an fsync of the
// directory, or one for all of them.
func BenchmarkApplyPatch(b *testing.B) {
	body := strings.Repeat("0123456789abcde\n", 255)
	for _, files := range []int{1, 10} {
		for name, each := range map[string]bool{"byHand": true, "byHandOneSync": false} {
			b.Run(fmt.Sprintf("%d/%s", files, name), func(b *testing.B) {
				_, _, w := benchLocal(b)
				for n := 0; b.Loop(); n++ {
					for i := range files {
						dst := filepath.Join(w, fmt.Sprint("f", i))
						f, err := os.OpenFile(dst+".tmp", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
						must(b, err)
						_, err = f.WriteString(body + fmt.Sprintf("line %09d\n", n))
						must(b, err)
						must(b, f.Sync())
						f.Close()
						must(b, os.Rename(dst+".tmp", dst))
						if each || i == files-1 {
							d, err := os.Open(w)
							must(b, err)
							must(b, d.Sync())
							d.Close()
						}
					}
				}
			})
		}
		b.Run(fmt.Sprintf("%d/applyPatch", files), func(b *testing.B) {
			l, f, w := benchLocal(b)
			for i := range files {
				must(b, os.WriteFile(filepath.Join(w, fmt.Sprint("f", i)), []byte(body+"line -1\n"), 0o644))
			}
			for n := -1; b.Loop(); n++ {
				var ops strings.Builder
				for i := range files {
					fmt.Fprintf(&ops, "*** Update File: f%d\n@@\n-line %d\n+line %d\n", i, n, n+1)
				}
				_, err := l.ApplyPatch(b.Context(), f, "*** Begin Patch\n"+ops.String()+"*** End Patch", provider.ApplyOptions{})
				must(b, err)
			}
		})
	}
}
