package sandbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/trash"
)

// BenchmarkRemove is `rm -rf` of 10,000 files in 100 directories: without a
// fence, in one, and in one with trash_commands; and what it costs to bring them
// back. Making the files is not timed. On tmpfs no disk hides the cost.
func BenchmarkRemove(b *testing.B) {
	b.Run("disk", func(b *testing.B) { benchRemove(b, newKeepLab(b)) })
	b.Run("tmpfs", func(b *testing.B) {
		k := newKeepLab(b)
		if err := unix.Mount("tmpfs", k.H, "tmpfs", 0, "mode=755"); err != nil {
			b.Skipf("SKIP: cannot mount tmpfs: %v", err)
		}
		b.Cleanup(func() { _ = unix.Unmount(k.H, unix.MNT_DETACH) })
		k.W = k.H + "/ws"
		if err := os.Mkdir(k.W, 0o755); err != nil {
			b.Fatal(err)
		}
		benchRemove(b, k)
	})
}

func benchRemove(b *testing.B, k *keepLab) {
	const dirs, files = 100, 100
	populate := func() {
		for d := range dirs {
			dir := fmt.Sprintf("%s/tree/d%d", k.W, d)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
			for f := range files {
				if err := os.WriteFile(fmt.Sprintf("%s/f%d", dir, f), []byte("x"), 0o644); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	run := func(f *fence.Fence) time.Duration {
		begin := time.Now()
		p, err := k.r.Start(context.Background(), sandbox.Spec{ID: "bench", Argv: []string{"/bin/rm", "-rf", k.W + "/tree"}, Dir: k.W,
			Caller: k.callerEnv(), TempDir: k.T, Fence: f, Inherit: &[3]*os.File{null, null, null}})
		if err != nil {
			b.Fatal(err)
		}
		<-p.Over()
		took := time.Since(begin)
		absent(b, k.W+"/tree")
		return took
	}
	ways := []struct {
		name  string
		fence *fence.Fence
	}{
		{"bare", k.fence(fence.FullAccess)}, {"fenced", k.fence(fence.WorkspaceWrite)}, {"kept", k.fence(fence.WorkspaceWrite, trashing)},
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, i := range rand.Perm(len(ways)) {
			w := ways[i]
			populate()
			took[w.name] = append(took[w.name], run(w.fence))
			if w.name != "kept" {
				continue
			}
			begin := time.Now()
			r, err := k.bin.RestoreGroup(context.Background(), "bench", trash.RestoreOptions{})
			if err != nil || r.Files != dirs*files || r.Directories != dirs+1 || r.NotRestored != 0 {
				b.Fatal(err, r)
			}
			took["restore"] = append(took["restore"], time.Since(begin))
			run(ways[0].fence)
		}
	}
	// The least as well: others use the machine, and then it says more.
	fenced, least := float64(median(took["fenced"])), float64(slices.Min(took["fenced"]))
	for name, all := range took {
		p50, low := float64(median(all)), float64(slices.Min(all))
		b.ReportMetric(p50/1e6, name+"-ms")
		b.ReportMetric(low/1e6, name+"-least-ms")
		if name == "kept" {
			b.ReportMetric(p50/fenced, "kept/fenced")
			b.ReportMetric(low/least, "kept/fenced-least")
		}
	}
}
