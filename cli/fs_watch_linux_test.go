package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A watch tells changes by others, line by line, and ends by a signal with its
// status or with what is watched.
func TestWatchCommand(t *testing.T) {
	for _, way := range []string{"in process", "daemon"} {
		t.Run(way, func(t *testing.T) {
			h := newHouse(t)
			h.seed()
			if way == "daemon" {
				h.serve()
			}
			s := h.start("fs", "watch", "d", "--json")
			begun := h.object(s.line())
			keys(t, begun, "watchId")
			h.file(h.ws, "d/x\ny", "1", 0o644)
			e := h.object(s.line())
			keys(t, e, "epoch", "seq", "time", "type", "sessionId", "data")
			data := e["data"].(map[string]any)
			keys(t, data, "watchId", "path", "name")
			if e["time"].(string) < "2020" || e["type"] != "watch.changed" || data["watchId"] != begun["watchId"] || data["name"] != "x\ny" || data["path"] != filepath.Join(h.ws, "d", "x\ny") {
				t.Errorf("%v", e)
			}
			s.signal(syscall.SIGINT)
			if code := s.end(); code != 130 || s.stderr.String() != "" {
				t.Errorf("status %d\n%s", code, s.stderr.String())
			}

			s = h.start("fs", "watch", "later/new.txt", "--json")
			if code := s.end(); code != 1 {
				t.Errorf("status %d for a missing directory", code)
			}
			// Active when it answers: the file is made right then.
			s = h.start("fs", "watch", "d/later", "--json")
			s.line()
			h.file(h.ws, "d/later", "", 0o644)
			if e := h.object(s.line()); e["data"].(map[string]any)["path"] != filepath.Join(h.ws, "d", "later") {
				t.Errorf("%v", e)
			}
			s.signal(syscall.SIGTERM)
			if code := s.end(); code != 143 {
				t.Errorf("status %d", code)
			}

			// Text, and the end of what is watched.
			text := h.command("fs", "watch", "empty")
			pr, pw, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer pr.Close()
			text.Stdout = pw
			said := make(chan string, 4096)
			s = &started{h: h, lines: said}
			text.Stderr = pw
			if err := text.Start(); err != nil {
				t.Fatal(err)
			}
			pw.Close()
			s.cmd = text
			go feed(pr, said)
			t.Cleanup(func() { text.Process.Kill(); text.Process.Wait() })
			if l := s.line(); l != "wattle: watching empty" {
				t.Errorf("%q", l)
			}
			h.file(h.ws, "empty/\x1b[2J", "", 0o644)
			if l := s.line(); l != "changed  "+filepath.Join(h.ws, "empty", `\x1b[2J`) {
				t.Errorf("%q", l)
			}
			if err := os.RemoveAll(filepath.Join(h.ws, "empty")); err != nil {
				t.Fatal(err)
			}
			last := ""
			for l := range said {
				last = l
			}
			if code := waited(text); code != 1 || !strings.HasPrefix(last, "wattle: FS_NOT_FOUND: ") {
				t.Errorf("status %d, last line %q", code, last)
			}
			// What the kernel makes up cannot be watched, and the watch says so.
			s = h.start("fs", "watch", "/proc/sys", "--json")
			if blind := h.object(s.line())["blind"]; !strings.HasPrefix(blind.(string), "proc: ") {
				t.Errorf("%v", blind)
			}
			s.signal(syscall.SIGHUP)
			if code := s.end(); code != 129 {
				t.Errorf("status %d", code)
			}
			if way == "daemon" {
				h.eventually("the sessions to end", func() bool { return h.object(h.do("status", "--json").stdout)["sessions"] == 0.0 })
			}
			h.noScratch()
		})
	}
}
