package provider_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/provider"
)

// BenchmarkByHand does each thing in turn by hand, with plain system calls and
// without fence, version, hash or guard, and by the provider. x-by-hand is the
// ratio of the medians. Both sides see the same disk at the same time, so it
// holds on a machine that does other things too.
func BenchmarkByHand(b *testing.B) {
	l, f, w := benchLocal(b)
	old := time.Now().Add(-time.Hour)
	put := func(name, content string) string {
		path := filepath.Join(w, name)
		must(b, os.MkdirAll(filepath.Dir(path), 0o755))
		must(b, os.WriteFile(path, []byte(content), 0o644))
		must(b, os.Chtimes(path, old, old))
		return path
	}
	text := func(size int) string { return strings.Repeat("0123456789abcde\n", size/16) }

	for _, size := range []int{4 << 10, 1 << 20} {
		path := put(fmt.Sprint("read/", size), text(size))
		t := benchTarget(b, l, f, path)
		both(b, fmt.Sprintf("readText/%dK", size>>10), func(int) error {
			data, err := handRead(path)
			if err == nil && (bytes.IndexByte(data[:min(len(data), 8192)], 0) >= 0 || !utf8.Valid(data)) {
				err = errors.New("not text")
			}
			return err
		}, func(int) error {
			_, err := l.ReadText(b.Context(), f, t, provider.ReadOptions{})
			return err
		})
	}
	for _, size := range []int{4 << 10, 1 << 20} {
		content := text(size)
		path := put(fmt.Sprint("write/", size), content)
		t := benchTarget(b, l, f, path)
		both(b, fmt.Sprintf("writeText/%dK", size>>10), func(int) error {
			return handWrite(path+".hand", content, true)
		}, func(int) error {
			_, err := l.WriteText(b.Context(), f, t, content, provider.WriteOptions{})
			return err
		})
	}
	for _, size := range []int{4 << 10, 1 << 20} {
		hand := put(fmt.Sprint("edit/hand", size), text(size)+"number 0.\n")
		path := put(fmt.Sprint("edit/", size), text(size)+"number 0.\n")
		t := benchTarget(b, l, f, path)
		both(b, fmt.Sprintf("editText/%dK", size>>10), func(n int) error {
			return handEdit(hand, numbered(n), numbered(n+1), true)
		}, func(n int) error {
			_, err := l.EditText(b.Context(), f, t, provider.EditRequest{OldString: numbered(n), NewString: numbered(n + 1)}, provider.EditOptions{})
			return err
		})
	}
	for _, files := range []int{1, 5} {
		var hand []string
		for i := range files {
			hand = append(hand, put(fmt.Sprintf("patch%d/hand%d", files, i), text(4<<10)+"number 0.\n"))
			put(fmt.Sprintf("patch%d/%d", files, i), text(4<<10)+"number 0.\n")
		}
		both(b, fmt.Sprintf("applyPatch/%d files", files), func(n int) error {
			for i, path := range hand {
				if err := handEdit(path, numbered(n), numbered(n+1), i == len(hand)-1); err != nil {
					return err
				}
			}
			return nil
		}, func(n int) error {
			var ops []string
			for i := range files {
				ops = append(ops, updateOp(fmt.Sprintf("patch%d/%d", files, i), numbered(n), numbered(n+1)))
			}
			_, err := l.ApplyPatch(b.Context(), f, patchOf(ops...), provider.ApplyOptions{})
			return err
		})
	}
	for _, n := range []int{100, 10_000} {
		for i := range n {
			put(fmt.Sprintf("list%d/n%d", n, i), "")
		}
		dir := filepath.Join(w, fmt.Sprint("list", n))
		t := benchTarget(b, l, f, dir)
		// The first listing waits for the times of the new files to settle.
		_, err := l.ListDir(b.Context(), f, t, provider.ListOptions{})
		must(b, err)
		both(b, fmt.Sprint("listDir/", n), func(int) error { return handList(dir, n) }, func(int) error {
			_, err := l.ListDir(b.Context(), f, t, provider.ListOptions{})
			return err
		})
	}
}

func numbered(n int) string { return fmt.Sprintf("number %d.", n) }

// handWrite is how a file is replaced by hand. sync makes its name durable too.
func handWrite(path, content string, sync bool) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil || !sync {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// handEdit is how a file is edited by hand.
func handEdit(path, from, to string, sync bool) error {
	data, err := handRead(path)
	if err != nil {
		return err
	}
	text := string(data)
	if !utf8.ValidString(text) || strings.Count(text, from) != 1 {
		return fmt.Errorf("%q is not there once", from)
	}
	return handWrite(path, strings.Replace(text, from, to, 1), sync)
}

// both runs both sides in turn, and reports the median of each and their ratio.
func both(b *testing.B, name string, byHand, wattle func(n int) error) {
	n := 0 // goes on when the benchmark is run again
	b.Run(name, func(b *testing.B) {
		var took [2][]time.Duration
		for b.Loop() {
			for i, do := range []func(int) error{byHand, wattle} {
				begin := time.Now()
				if err := do(n); err != nil {
					b.Fatal(err)
				}
				took[i] = append(took[i], time.Since(begin))
			}
			n++
		}
		var median [2]float64
		for i := range took {
			slices.Sort(took[i])
			median[i] = float64(took[i][len(took[i])/2].Nanoseconds())
		}
		b.ReportMetric(median[0], "by-hand-ns")
		b.ReportMetric(median[1], "wattle-ns")
		b.ReportMetric(median[1]/median[0], "x-by-hand")
		b.ReportMetric(0, "ns/op")
	})
}
