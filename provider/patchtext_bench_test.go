package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// One line in the middle of a file, and there again. By hand: read, replace,
// write, fsync, rename, fsync of the directory. "match" is the part that the
// patch language costs. The numbers to reach are DESIGN section 8, as for a
// write.
func BenchmarkPatchOneLine(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		var text strings.Builder
		for n := 0; text.Len() < size; n++ {
			if text.Len() >= size/2 && !strings.Contains(text.String(), "here") {
				text.WriteString("here 0\n")
			}
			fmt.Fprintf(&text, "line %07d of a file\n", n)
		}
		content := text.String()
		steps := []string{"here 0", "here 1"}
		hunks := func(i int) []patch.Hunk {
			return []patch.Hunk{{LineNumber: 3, OldLines: steps[i%2 : i%2+1], NewLines: []string{steps[(i+1)%2]}, Kinds: "-+"}}
		}
		name := fmt.Sprintf("%dKiB", size>>10)
		b.Run(name+"/byHand", func(b *testing.B) {
			_, _, w := benchLocal(b)
			dst := filepath.Join(w, "f")
			if err := os.WriteFile(dst, []byte(content), 0o644); err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				if err := patchByHand(w, dst, steps[i%2], steps[(i+1)%2]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/patchText", func(b *testing.B) {
			l, f, w := benchLocal(b)
			if err := os.WriteFile(filepath.Join(w, "f"), []byte(content), 0o644); err != nil {
				b.Fatal(err)
			}
			t := benchTarget(b, l, f, "f")
			for i := 0; b.Loop(); i++ {
				if _, err := l.PatchText(b.Context(), f, t, hunks(i), provider.PatchOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/editText", func(b *testing.B) {
			l, f, w := benchLocal(b)
			if err := os.WriteFile(filepath.Join(w, "f"), []byte(content), 0o644); err != nil {
				b.Fatal(err)
			}
			t := benchTarget(b, l, f, "f")
			for i := 0; b.Loop(); i++ {
				e := provider.EditRequest{OldString: steps[i%2], NewString: steps[(i+1)%2]}
				if _, err := l.EditText(b.Context(), f, t, e, provider.EditOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/match", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := patch.Apply(content, hunks(0), patch.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func patchByHand(dir, path, from, to string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "tmp"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Replace(string(old), from, to, 1)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
