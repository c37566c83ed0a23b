package provider_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

const patchCrashEnv = "WATTLE_TEST_PATCH_CRASH"

// TestPatchCrashChild is no test: it is the process that kills itself at the
// n-th point of a patch, for TestPatchKilledAtEveryPoint.
func TestPatchCrashChild(t *testing.T) {
	n, base, ok := strings.Cut(os.Getenv(patchCrashEnv), ":")
	if !ok {
		return
	}
	at, err := strconv.Atoi(n)
	must(t, err)
	p, _, patch := mixed(t, base, provider.Config{})
	if os.Getenv(patchCrashEnv+"_LACKS") != "" {
		p.l.Lack(true, true, true)
	}
	seen := 0
	p.l.SetHook(func(string) {
		if seen == at {
			must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		seen++
	})
	_, err = p.l.ApplyPatch(context.Background(), p.f, patch, provider.ApplyOptions{})
	must(t, err)
}

// Each file of a patch is its old or its new content, whole, whatever dies
// when; what is deleted is in its place, hidden beside it, or in the trash.
func TestPatchKilledAtEveryPoint(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		all := points(t)
		step := 1
		if testing.Short() {
			step = 7
		}
		hidden, killed := 0, 0
		for n := 0; n < len(all)+3; n += step {
			base := fastDir(t)
			c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestPatchCrashChild$")
			c.Env = append(os.Environ(), patchCrashEnv+"="+strconv.Itoa(n)+":"+base)
			if lacks {
				c.Env = append(c.Env, patchCrashEnv+"_LACKS=1")
			}
			out, err := c.CombinedOutput()
			if st, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
				killed++
			} else if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			name := fmt.Sprintf("point %d, lacks=%v", n, lacks)
			p := &place{t: t, W: base + "/ws"}
			got := map[string]string{}
			for path := range tree(t, p.W, false) {
				if fi, err := os.Stat(p.W + "/" + path); err == nil && fi.Mode().IsRegular() {
					got[path] = p.get(path)
				}
			}
			for path, content := range got {
				base := path[strings.LastIndexByte(path, '/')+1:]
				if strings.HasPrefix(base, provider.TempPrefix) {
					hidden++
					continue
				}
				if allowed := []string{base + " old\n", base + " new\n"}; base != "bystander" && !slices.Contains(allowed, content) {
					t.Errorf("%s: %s is %q", name, path, content)
				}
			}
			for _, path := range []string{"a", "b", "e", "bystander"} {
				if _, ok := got[path]; !ok {
					t.Errorf("%s: %s is not there", name, path)
				}
			}
			_, from := got["d"]
			_, to := got["new/d"]
			if !from && !to {
				t.Errorf("%s: d is neither here nor there", name)
			}
			everywhere := binIn(base).has(t)
			for _, content := range got {
				everywhere = append(everywhere, content)
			}
			for _, lost := range []string{"f old\n", "g old\n"} {
				if !slices.Contains(everywhere, lost) {
					t.Errorf("%s: %q is lost", name, lost)
				}
			}
		}
		t.Logf("lacks=%v: %d kills, %d hidden files left", lacks, killed, hidden)
		if killed == 0 {
			t.Error("nobody was killed")
		}
	}
}
