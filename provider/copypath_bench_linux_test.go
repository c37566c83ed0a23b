package provider_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// A tree of 1,000 files of 2 KiB: copied by cp, by cp and a sync of the file
// system, and by copyPath, which syncs before the tree gets its name.
func BenchmarkCopyTree(b *testing.B) {
	content := []byte(strings.Repeat("0123456789abcde\n", 128))
	l, f, w := benchLocal(b)
	for i := range 10 {
		must(b, os.MkdirAll(fmt.Sprintf("%s/d/%d", w, i), 0o755))
		for j := range 100 {
			must(b, os.WriteFile(fmt.Sprintf("%s/d/%d/%d", w, i, j), content, 0o644))
		}
	}
	again := func(b *testing.B) {
		b.StopTimer()
		must(b, os.RemoveAll(w+"/x"))
		b.StartTimer()
	}
	for _, how := range []string{"cp", "cp+sync"} {
		b.Run(how, func(b *testing.B) {
			for b.Loop() {
				must(b, exec.Command("cp", "-a", w+"/d", w+"/x").Run())
				if how == "cp+sync" {
					must(b, exec.Command("sync", "-f", w).Run())
				}
				again(b)
			}
		})
	}
	b.Run("wattle", func(b *testing.B) {
		for b.Loop() {
			_, err := l.CopyPath(b.Context(), f, "d", "x", provider.CopyPathOptions{Recursive: true})
			must(b, err)
			again(b)
		}
	})
}

// A directory to another name: rename(2), the same with an fsync of the
// directory, and movePath.
func BenchmarkMoveDirectory(b *testing.B) {
	l, f, w := benchLocal(b)
	must(b, os.Mkdir(w+"/a", 0o755))
	names := [2]string{"a", "b"}
	b.Run("rename", func(b *testing.B) {
		for b.Loop() {
			must(b, unix.Rename(w+"/"+names[0], w+"/"+names[1]))
			names[0], names[1] = names[1], names[0]
		}
	})
	b.Run("rename+sync", func(b *testing.B) {
		for b.Loop() {
			must(b, unix.Rename(w+"/"+names[0], w+"/"+names[1]))
			d, err := os.Open(w)
			must(b, err)
			must(b, d.Sync())
			d.Close()
			names[0], names[1] = names[1], names[0]
		}
	})
	b.Run("wattle", func(b *testing.B) {
		for b.Loop() {
			_, err := l.MovePath(b.Context(), f, names[0], names[1], provider.MovePathOptions{})
			must(b, err)
			names[0], names[1] = names[1], names[0]
		}
	})
}
