package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// TestNothingIsLeft: after many starts of every kind this process has the
// threads, descriptors, goroutines and children that it had before.
func TestNothingIsLeft(t *testing.T) {
	l := newLab(t)
	fences := []*fence.Fence{l.fence(fence.WorkspaceWrite), l.fence(fence.ReadOnly), l.fence(fence.FullAccess)}
	round := func(n int) {
		for i := range n {
			s := l.spec(fences[i%3], `sleep 100 & setsid sleep 100 & ( setsid sleep 100 & ) ; read -r x < /dev/null; exit 0`)
			switch i % 10 {
			case 3:
				s.TTY = &sandbox.TTY{Cols: 80, Rows: 25}
			case 5:
				s.Stdin = true
			case 7:
				s.Argv = []string{"./none"}
			case 8:
				s.Dir = l.W + "/none"
			}
			p, err := l.r.Start(context.Background(), s)
			if err != nil {
				continue
			}
			if i%10 == 6 {
				p.Kill()
			}
			<-p.Over()
		}
	}
	round(60)
	var stats []string // of the children that are left
	settled := func() (threads, fds, goroutines, children int) {
		stats = nil
		tasks, _ := os.ReadDir("/proc/self/task")
		files, _ := os.ReadDir("/proc/self/fd")
		for _, task := range tasks {
			b, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
			for _, pid := range strings.Fields(string(b)) {
				st, _ := os.ReadFile("/proc/" + pid + "/stat")
				stats = append(stats, string(st))
			}
		}
		children = len(stats)
		return len(tasks), len(files), runtime.NumGoroutine(), children
	}
	t0, f0, g0, c0 := settled()
	n := 500
	if soak() {
		n = 5000
	}
	round(n)
	var t1, f1, g1, c1 int
	defer func() {
		t.Logf("threads %d → %d, descriptors %d → %d, goroutines %d → %d, children %d → %d %q", t0, t1, f0, f1, g0, g1, c0, c1, stats)
	}()
	eventually(t, "all is as before", func() bool {
		t1, f1, g1, c1 = settled()
		return t1 <= t0+4 && f1 <= f0 && g1 <= g0 && c1 <= c0
	})
	if left, _ := filepath.Glob(own("temp") + "/cmd-*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestOwnChildren: a process that says so has every orphan reaped, also one
// that bears no sign of its command.
func TestOwnChildren(t *testing.T) {
	need(t, "python3")
	l := newLab(t)
	if out := l.host(`"$TOOL" tool orphans "$W" 2>&1`); out != "none left\n" {
		t.Error(out)
	}
}

func init() {
	// orphans W: leaves orphans without any sign of their command, and waits
	// until they are gone and reaped.
	tools["orphans"] = func(a []string) error {
		r := sandbox.NewRunner(sandbox.Options{OwnChildren: true})
		f, err := fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: a[0]})
		if err != nil {
			return err
		}
		p, err := r.Start(context.Background(), sandbox.Spec{Argv: []string{"/usr/bin/python3", "-S", "-c", `import os
for i in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: os.execve("/bin/sleep", ["sleep", "0.1"], {})
        os._exit(0)
`}, Dir: a[0], Fence: f, OnExit: sandbox.ExitKeep})
		if err != nil {
			return err
		}
		<-p.Over()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for end := time.After(patience); ; {
			if b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())); err == nil && len(b) == 0 {
				fmt.Println("none left")
				return nil
			}
			select {
			case <-tick.C:
			case <-end:
				return errors.New("orphans are left")
			}
		}
	}
}
