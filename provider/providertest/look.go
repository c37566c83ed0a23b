//go:build unix

package providertest

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/provider"
)

func testLook(t *testing.T, mk Make) {
	tests := []struct {
		name string
		disk func(w *World)
		at   string
		// stat and lstat are the types, "" for absent; a code in capitals for
		// an error.
		stat, lstat string
		size        int64 // of stat, -1: do not care
		as          string
	}{
		{name: "file", disk: func(w *World) { w.File("W/x", "12345") }, at: "W/x", stat: "file", lstat: "file", size: 5},
		{name: "empty file", disk: func(w *World) { w.File("W/x", "") }, at: "W/x", stat: "file", lstat: "file"},
		{name: "directory", disk: func(w *World) { w.Dir("W/x") }, at: "W/x", stat: "directory", lstat: "directory", size: -1},
		{name: "FIFO", disk: func(w *World) { w.FIFO("W/x") }, at: "W/x", stat: "other", lstat: "other"},
		{name: "socket", disk: func(w *World) { w.Socket("W/x") }, at: "W/x", stat: "other", lstat: "other"},
		{name: "absent", at: "W/x"},
		{name: "absent parents", at: "W/a/b/x"},
		{name: "link to a file (F09)", disk: func(w *World) { w.File("W/f", "123"); w.Link("W/x", "f") }, at: "W/x", stat: "file", lstat: "symlink", size: 3},
		{name: "link to a directory", disk: func(w *World) { w.Dir("W/d"); w.Link("W/x", "d") }, at: "W/x", stat: "directory", lstat: "symlink", size: -1},
		{name: "dangling link (F09)", disk: func(w *World) { w.Link("W/x", "none") }, at: "W/x", lstat: "symlink"},
		{name: "below a dangling link", disk: func(w *World) { w.Link("W/d", "none") }, at: "W/d/x"},
		{name: "below a file", disk: func(w *World) { w.File("W/d", "1") }, at: "W/d/x"},
		{name: "link out", disk: func(w *World) { w.File("O/f", "1"); w.Link("W/x", w.O+"/f") }, at: "W/x", stat: "file", lstat: "symlink", size: 1},
		{name: "hidden", disk: func(w *World) { w.File("W/x.secret", "1") }, at: "W/x.secret", stat: "FS_SANDBOX_DENIED", lstat: "FS_SANDBOX_DENIED"},
		{name: "link to hidden", disk: func(w *World) { w.File("W/x.secret", "1"); w.Link("W/x", "x.secret") }, at: "W/x", stat: "FS_SANDBOX_DENIED", lstat: "symlink"},
		{name: "closed parent", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/x", "1"); w.Dir("W/d", 0o600) }, at: "W/d/x",
			stat: "FS_PERMISSION_DENIED", lstat: "FS_PERMISSION_DENIED", as: "user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.as == "user" && os.Geteuid() == 0 {
				t.Skip("SKIP: this row is for user")
			}
			w := NewWorld(t, mk(t))
			if tt.disk != nil {
				tt.disk(w)
			}
			key := provider.Target{TargetKey: provider.TargetKey(w.Path(tt.at)), DisplayPath: w.Path(tt.at)}
			i, err := w.P.Stat(t.Context(), w.WS, key)
			w.checkError(err)
			got := string(provider.CodeOf(err))
			if i != nil {
				got = string(i.Type)
				if i.Version == "" || i.Size == nil || tt.size >= 0 && *i.Size != tt.size {
					t.Errorf("stat gave %+v", i)
				}
			}
			if got != tt.stat {
				t.Errorf("stat: %q (%v), want %q", got, err, tt.stat)
			}
			l, err := w.P.Lstat(t.Context(), w.WS, w.Path(tt.at), provider.ResolveOptions{})
			w.checkError(err)
			got = string(provider.CodeOf(err))
			if l != nil {
				got = string(l.Type)
			}
			if got != tt.lstat {
				t.Errorf("lstat: %q (%v), want %q", got, err, tt.lstat)
			}
		})
	}
	t.Run("lstat below a link, relative, blank, root", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		w.Link("W/d/l", "none")
		w.Link("W/k", "d")
		for path, want := range map[string]provider.FileType{"k/l": provider.TypeSymlink, "k": provider.TypeSymlink, "k/": provider.TypeDirectory, "k/.": provider.TypeDirectory, "k/..": provider.TypeDirectory, "/": provider.TypeDirectory} {
			l, err := w.P.Lstat(t.Context(), w.WS, path, provider.ResolveOptions{Cwd: w.W})
			if err != nil || l == nil || l.Type != want {
				t.Errorf("lstat %s: %+v, %v; want %s", path, l, err, want)
			}
		}
		if _, err := w.P.Lstat(t.Context(), w.WS, "  ", provider.ResolveOptions{}); provider.CodeOf(err) != provider.CodeNotFound {
			t.Errorf("blank: %v", err)
		}
	})
	t.Run("stat of the root of the file system", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		i, err := w.P.Stat(t.Context(), w.WS, provider.Target{TargetKey: "/", DisplayPath: "/"})
		if err != nil || i == nil || i.Type != provider.TypeDirectory {
			t.Errorf("%+v, %v", i, err)
		}
	})
	t.Run("version changes after a rewrite of the same size with mtime restored", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "one")
		v := w.Version("W/f")
		fi, err := os.Stat(w.Path("W/f"))
		w.must(err)
		w.must(os.WriteFile(w.Path("W/f"), []byte("two"), 0o644))
		w.must(os.Chtimes(w.Path("W/f"), fi.ModTime(), fi.ModTime()))
		if w.Version("W/f") == v {
			t.Error("the version is the same")
		}
	})
	t.Run("version of an untouched file is the same", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "one")
		if a, b := w.Version("W/f"), w.Version("W/f"); a != b {
			t.Errorf("%s, then %s", a, b)
		}
	})
	t.Run("a key that no resolve makes", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		for _, k := range []string{"", "rel", "/a/../b", "/a//b", "/a/", "/a\x00"} {
			if _, err := w.P.Stat(t.Context(), w.WS, provider.Target{TargetKey: provider.TargetKey(k), DisplayPath: w.W}); provider.CodeOf(err) != provider.CodeNotFound {
				t.Errorf("key %q: %v", k, err)
			}
		}
	})
}

// soon fails the test when do does not come back: nothing here may wait for a
// FIFO or a device (E8), which would be for ever.
func soon(t *testing.T, what string, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
		return nil
	}
}

func testReadText(t *testing.T, mk Make) {
	big := make([]byte, 9000)
	for i := range big {
		big[i] = 'a'
	}
	tests := []struct {
		name, content, text string
		bom                 bool
		code                provider.Code
	}{
		{name: "empty"},
		{name: "plain", content: "a\nb\n", text: "a\nb\n"},
		{name: "line breaks stay", content: "a\r\nb\rc\n", text: "a\r\nb\rc\n"},
		{name: "byte-order mark", content: "\xef\xbb\xbfa\n", text: "a\n", bom: true},
		{name: "one mark of two", content: "\xef\xbb\xbf\xef\xbb\xbfa", text: "\xef\xbb\xbfa", bom: true},
		{name: "multibyte at the chunk's border", content: string(make1(65535)) + "é", text: string(make1(65535)) + "é"},
		{name: "NUL (E16)", content: string(big[:8191]) + "\x00", code: provider.CodeNotText},
		{name: "NUL after the sample (E16)", content: string(big[:8192]) + "\x00", text: string(big[:8192]) + "\x00"},
		{name: "latin1 (P35)", content: "caf\xe9\nb\n", code: provider.CodeNotText},
		{name: "GBK (E4)", content: "name=\xd6\xd0\xce\xc4\n", code: provider.CodeNotText},
		{name: "UTF-16 without mark (E4)", content: "p\x00o\x00r\x00t\x00", code: provider.CodeNotText},
		{name: "surrogate", content: "\xed\xa0\x80", code: provider.CodeNotText},
		{name: "overlong", content: "\xc0\x80", code: provider.CodeNotText},
		{name: "cut short", content: "a\xe2\x82", code: provider.CodeNotText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			w.File("W/f", tt.content)
			got, err := w.P.ReadText(t.Context(), w.RO, w.Resolve("W/f"), provider.ReadOptions{})
			if provider.CodeOf(err) != tt.code {
				t.Fatalf("error %v, want %q", err, tt.code)
			}
			w.checkError(err)
			if got.Text != tt.text || got.BOM != tt.bom || err == nil && got.Version == "" {
				t.Errorf("%.40q, bom %v, version %q", got.Text, got.BOM, got.Version)
			}
		})
	}
	t.Run("the offset of the byte that is no text is told (P35)", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "caf\xe9\nb\n")
		_, err := w.P.ReadText(t.Context(), w.RO, w.Resolve("W/f"), provider.ReadOptions{})
		if err == nil || !contains(err.Error(), "offset 3") {
			t.Errorf("%v", err)
		}
	})
	t.Run("cap", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "12345")
		for limit, want := range map[int64]provider.Code{4: provider.CodeTooLarge, 5: "", 6: ""} {
			if _, err := w.P.ReadText(t.Context(), w.RO, w.Resolve("W/f"), provider.ReadOptions{MaxBytes: limit}); provider.CodeOf(err) != want {
				t.Errorf("limit %d: %v", limit, err)
			}
		}
	})
	run(t, mk, []row{
		{name: "missing", do: read("ws", "W/f"), code: provider.CodeNotFound},
		{name: "missing parent", do: read("ws", "W/a/f"), code: provider.CodeNotFound},
		{name: "directory", disk: func(w *World) { w.Dir("W/f") }, do: read("ws", "W/f"), code: provider.CodeNotRegularFile},
		{name: "dangling link", disk: func(w *World) { w.Link("W/f", "none") }, do: read("ws", "W/f"), code: provider.CodeNotFound},
		{name: "through a link out", disk: func(w *World) { w.File("O/f", "x"); w.Link("W/d", w.O) }, do: read("ro", "W/d/f")},
		{name: "hidden", disk: func(w *World) { w.File("W/f.secret", "x") }, do: read("ws", "W/f.secret"), code: provider.CodeSandboxDenied},
		{name: "hidden, through a link", disk: func(w *World) { w.File("W/f.secret", "x"); w.Link("W/l", "f.secret") }, do: read("ws", "W/l"), code: provider.CodeSandboxDenied},
		{name: "hidden, in full access", disk: func(w *World) { w.File("W/f.secret", "x") }, do: read("full", "W/f.secret")},
		{name: "unreadable", disk: func(w *World) { w.File("W/f", "x", 0o200) }, do: read("ws", "W/f"), code: provider.CodePermissionDenied, as: "user"},
		{name: "key became a link", disk: func(w *World) { w.File("W/f", "x"); w.Link("W/l", "f") }, do: func(w *World) error {
			_, err := w.P.ReadText(w.T.Context(), w.WS, provider.Target{TargetKey: provider.TargetKey(w.Path("W/l")), DisplayPath: w.Path("W/l")}, provider.ReadOptions{})
			return err
		}, code: provider.CodeNotRegularFile},
		{name: "parent of the key became a link", disk: func(w *World) { w.Dir("W/d"); w.File("W/d/f", "x"); w.Link("W/l", "d") }, do: func(w *World) error {
			_, err := w.P.ReadText(w.T.Context(), w.WS, provider.Target{TargetKey: provider.TargetKey(w.Path("W/l/f")), DisplayPath: "W/l/f"}, provider.ReadOptions{})
			return err
		}},
		{name: "parent of the key became a link to something hidden", disk: func(w *World) { w.Dir("W/d.secret"); w.File("W/d.secret/f", "x"); w.Link("W/l", "d.secret") }, do: func(w *World) error {
			_, err := w.P.ReadText(w.T.Context(), w.WS, provider.Target{TargetKey: provider.TargetKey(w.Path("W/l/f")), DisplayPath: "W/l/f"}, provider.ReadOptions{})
			return err
		}, code: provider.CodeSandboxDenied},
	})
	for _, kind := range []string{"FIFO", "socket", "/dev/zero", "/dev/null"} {
		t.Run("never waits: "+kind+" (E8)", func(t *testing.T) {
			w := NewWorld(t, mk(t))
			switch kind {
			case "FIFO":
				w.FIFO("W/s")
			case "socket":
				w.Socket("W/s")
			default:
				w.Link("W/s", kind)
			}
			target := w.Resolve("W/s")
			var writer *exec.Cmd
			if kind == "FIFO" {
				// A program that waits for a reader must go on waiting.
				writer = exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo x > "$0"`, w.Path("W/s"))
				w.must(writer.Start())
			}
			for what, do := range map[string]func() error{
				"readText": func() error {
					_, err := w.P.ReadText(t.Context(), w.Full, target, provider.ReadOptions{})
					return err
				},
				"editText": func() error {
					_, err := w.P.EditText(t.Context(), w.Full, target, provider.EditRequest{OldString: "a", NewString: "b"}, provider.EditOptions{})
					return err
				},
				"writeText": func() error {
					_, err := w.P.WriteText(t.Context(), w.Full, target, "x", noGuard)
					return err
				},
			} {
				if err := soon(t, what, do); provider.CodeOf(err) != provider.CodeNotRegularFile {
					t.Errorf("%s: %v", what, err)
				}
			}
			if writer != nil {
				ended := make(chan error, 1)
				go func() { ended <- writer.Wait() }()
				select {
				case <-ended:
					t.Error("the waiting writer was released")
				case <-time.After(100 * time.Millisecond):
				}
				writer.Process.Kill()
			}
		})
	}
}

func make1(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return b
}
