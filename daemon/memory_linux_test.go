package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// wattleBinary builds the program as users get it, without the race detector,
// which has memory of its own.
func wattleBinary(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "wattle")
	build := exec.Command("go", "build", "-o", bin, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build wattle: %v\n%s", err, out)
	}
	return bin
}

// served is a house with `wattle serve` in it.
func served(t *testing.T, bin string) *house {
	t.Helper()
	h := newHouse(t)
	h.cmd = exec.Command(bin, "serve", "--socket", h.socket, "--log-level", "warn")
	h.cmd.Env = h.env
	h.cmd.Stderr = os.Stderr
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	return h
}

// kib is a figure of /proc/PID/status (proc_pid_status(5)).
func (h *house) kib(name string) int {
	h.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				h.t.Fatal(err)
			}
			return n
		}
	}
	h.t.Fatalf("no %s", name)
	return 0
}

// wholeOrTenth keeps the long form for WATTLE_SOAK.
func wholeOrTenth(n int64) int64 {
	if os.Getenv("WATTLE_SOAK") == "" {
		return n / 10
	}
	return n
}

// The memory of the daemon does not grow with files and directories: at no
// moment of these calls it has 64 MiB more than idle.
func TestMemoryOfFileCalls(t *testing.T) {
	const most = 64 << 10 // KiB
	bin := wattleBinary(t)
	text := strings.Repeat("0123456789abcde\n", 4096) // 64 KiB
	put := func(h *house, name, content string) string {
		path := filepath.Join(h.ws, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sparse := func(h *house, size int64) {
		if err := os.Truncate(put(h, "f", text), size); err != nil {
			t.Fatal(err)
		}
	}
	// Text, not holes: a NUL takes six bytes on the wire.
	long := func(h *house) {
		f, err := os.Create(filepath.Join(h.ws, "f"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for range wholeOrTenth(1<<30) >> 16 {
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The largest content whose base travels too, and which fits in a frame.
	large := strings.Repeat("0123456789abcde\n", 9_900<<10/16)
	for _, tt := range []struct {
		name string
		disk func(h *house)
		do   func(t *testing.T, h *house, c *client.Client, f *client.Files, session string)
	}{
		{"readLines of a window of a sparse file", func(h *house) { sparse(h, wholeOrTenth(8<<30)) },
			func(t *testing.T, h *house, _ *client.Client, f *client.Files, _ string) {
				o, err := f.ReadLines(h.ctx(), at(t, h, f, "f"), provider.LineWindow{Offset: 4000})
				if err != nil || o.TotalLines != 4097 || len(o.Lines) != 98 {
					t.Errorf("%d lines, %d in all, %v", len(o.Lines), o.TotalLines, err)
				}
			}},
		{"streamText to a slow reader", long, slowStream},
		{"streamText by window", long,
			func(t *testing.T, h *house, _ *client.Client, f *client.Files, _ string) {
				s, err := f.StreamText(h.ctx(), at(t, h, f, "f"))
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				n := int64(0)
				for {
					piece, err := s.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					n += int64(len(piece))
				}
				if n>>16 != wholeOrTenth(1<<30)>>16 {
					t.Errorf("%d bytes", n)
				}
			}},
		{"listDir by pages", func(h *house) {
			for i := range wholeOrTenth(200_000) {
				put(h, fmt.Sprintf("a name of some length %d", i), "")
			}
		}, func(t *testing.T, h *house, _ *client.Client, f *client.Files, _ string) {
			n, after := int64(0), ""
			for {
				es, err := f.ListDir(h.ctx(), at(t, h, f, "."), provider.ListOptions{After: after, Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				n += int64(len(es))
				if len(es) < 1000 {
					break
				}
				after = es[999].Name
			}
			if n != wholeOrTenth(200_000) {
				t.Errorf("%d entries", n)
			}
		}},
		{"writeText over a file, with the text before it", func(h *house) { put(h, "f", large) },
			func(t *testing.T, h *house, _ *client.Client, f *client.Files, _ string) {
				o, err := f.WriteText(h.ctx(), at(t, h, f, "f"), strings.ToUpper(large), provider.WriteOptions{})
				if err != nil || o.Before == nil || *o.Before != large {
					t.Errorf("%v, before %v", err, o.Before != nil)
				}
			}},
		{"editText of a file that is too large", func(h *house) { sparse(h, 65<<20) },
			func(t *testing.T, h *house, _ *client.Client, f *client.Files, _ string) {
				_, err := f.EditText(h.ctx(), at(t, h, f, "f"), provider.EditRequest{OldString: "0", NewString: "1"}, provider.EditOptions{})
				if provider.CodeOf(err) != provider.CodeTooLarge {
					t.Errorf("%v", err)
				}
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := served(t, bin)
			tt.disk(h)
			c := h.dial()
			session := h.open(c, fence.WorkspaceWrite).SessionID
			idle := h.kib("VmRSS")
			begin := time.Now()
			tt.do(t, h, c, client.NewFiles(c, session), session)
			peak := h.kib("VmHWM")
			t.Logf("%v, idle %.1f MiB, peak %.1f MiB above", time.Since(begin).Round(time.Millisecond), float64(idle)/1024, float64(peak-idle)/1024)
			if peak-idle > most {
				t.Errorf("%d KiB above idle", peak-idle)
			}
		})
	}
}

func at(t *testing.T, h *house, f *client.Files, name string) provider.Target {
	t.Helper()
	target, err := f.Resolve(h.ctx(), name, provider.ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// slowStream asks for a stream without a window, and takes nothing until the
// daemon has come to a halt; then it takes everything.
func slowStream(t *testing.T, h *house, _ *client.Client, _ *client.Files, _ string) {
	p := dialBare(h)
	id := p.open(fence.WorkspaceWrite)
	p.call("fs/streamText", `{"sessionId":"`+id+`","path":"f"}`)
	last, same := 0, 0
	until(t, "a halt", func() bool {
		now := h.readSoFar()
		if same++; now != last {
			last, same = now, 0
		}
		return same >= 50
	})
	n := int64(0)
	for {
		e := p.event()
		d := e["data"].(map[string]any)
		if e["type"] == "fs.streamEnd" {
			if d["error"] != nil {
				b, _ := json.Marshal(d)
				t.Errorf("%s", b)
			}
			break
		}
		n += int64(len(d["text"].(string)))
	}
	if n>>16 != wholeOrTenth(1<<30)>>16 {
		t.Errorf("%d bytes", n)
	}
}
