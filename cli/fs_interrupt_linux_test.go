package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A read that is interrupted ends with the status of the signal, and says so.
func TestInterruptedRead(t *testing.T) {
	for _, way := range []string{"in process", "daemon"} {
		t.Run(way, func(t *testing.T) {
			h := newHouse(t)
			h.file(h.ws, "big.txt", strings.Repeat("a line that is read\n", 1<<20), 0o644)
			if way == "daemon" {
				h.serve()
			}
			s := h.start("fs", "read", "big.txt")
			s.line() // it writes, until we take no more
			s.signal(syscall.SIGINT)
			h.eventually("the signal to be taken", func() bool { return !pending(h, s.cmd.Process.Pid, syscall.SIGINT) })
			if code := s.end(); code != 130 || !strings.HasPrefix(s.stderr.String(), "wattle: FS_ABORTED: ") {
				t.Errorf("status %d\n%s", code, s.stderr.String())
			}
			if way == "daemon" {
				h.eventually("the session to end", func() bool { return h.object(h.do("status", "--json").stdout)["sessions"] == 0.0 })
			}
		})
	}
}

// A copy that is interrupted is whole or not there, and leaves nothing else.
func TestInterruptedCopy(t *testing.T) {
	for _, way := range []string{"in process", "daemon"} {
		t.Run(way, func(t *testing.T) {
			h := newHouse(t)
			const files = 1500
			for i := range files {
				h.file(h.ws, fmt.Sprintf("tree/%d/%d", i%50, i), "content\n", 0o644)
			}
			if way == "daemon" {
				h.serve()
			}
			hidden := func() []string {
				l, _ := filepath.Glob(filepath.Join(h.ws, ".wattle-*"))
				return l
			}
			s := h.start("fs", "cp", "--recursive", "tree", "copy")
			done := func() bool { _, err := os.Lstat(filepath.Join(h.ws, "copy")); return err == nil }
			h.eventually("the copy to begin", func() bool { return len(hidden()) > 0 || done() })
			s.signal(syscall.SIGTERM)
			switch code := s.end(); code {
			case 143:
				h.eventually("the copy to be taken back", func() bool { return len(hidden()) == 0 })
				if done() && way == "in process" {
					t.Error("it was reported as interrupted and is there")
				}
			case 0:
				t.Log("the copy was faster than the signal")
			default:
				t.Errorf("status %d\n%s", code, s.stderr.String())
			}
			if done() {
				n := 0
				err := filepath.WalkDir(filepath.Join(h.ws, "copy"), func(_ string, e os.DirEntry, err error) error {
					if err == nil && !e.IsDir() {
						n++
					}
					return err
				})
				if err != nil || n != files {
					t.Errorf("a copy of %d files (%v)", n, err)
				}
			}
			if l := hidden(); len(l) > 0 {
				t.Errorf("left: %q", l)
			}
		})
	}
}
