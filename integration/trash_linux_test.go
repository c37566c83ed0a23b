package integration_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// What `wattle fs rm` puts into the trash, the desktop's own programs list and
// restore; what they put there, `wattle trash` does. Byte for byte, with mode,
// times and extended attributes. The same at the level of the room, with many
// more names and places: trash/interop_linux_test.go.
func TestTrashWithTheDesktop(t *testing.T) {
	for name, open := range map[string]func(*testing.T, *place) desktop{"gio": gioDesktop, "trash-cli": trashCLIDesktop} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.env = append(p.env, "XDG_RUNTIME_DIR="+filepath.Join(p.dir, "run"), "GVFS_DISABLE_FUSE=1")
			if err := os.Mkdir(filepath.Join(p.dir, "run"), 0o700); err != nil {
				t.Fatal(err)
			}
			d := open(t, p)
			for _, thing := range []string{"a b%+;c", "dir"} {
				at := p.path(thing)
				p.dressed(thing)
				before := p.shot(at)

				p.must("fs", "rm", thing)
				absent(t, at)
				d.restore(at)
				if after := p.shot(at); after != before {
					t.Errorf("%s: %s restored\n%s\nwas\n%s", thing, name, after, before)
				}

				d.put(at)
				absent(t, at)
				var e struct {
					ID           string `json:"id"`
					OriginalPath string `json:"originalPath"`
					State        string `json:"state"`
				}
				line := strings.TrimSuffix(p.must("trash", "list", "--json"), "\n")
				if err := json.Unmarshal([]byte(line), &e); err != nil || e.OriginalPath != at || e.State != "ok" {
					t.Fatalf("%s: %v, %s", thing, err, line)
				}
				if out := p.must("trash", "restore", e.ID); out != "restored  "+at+"\n" {
					t.Errorf("%q", out)
				}
				if after := p.shot(at); after != before {
					t.Errorf("%s: wattle restored\n%s\nwas\n%s", thing, after, before)
				}
				if out := p.must("trash", "list", "--all"); strings.Contains(out, p.dir) {
					t.Errorf("left in the trash: %s", out)
				}
			}
		})
	}
}

// desktop is a program of the desktop that uses the trash.
type desktop struct{ put, restore func(path string) }

func needed(t *testing.T, programs ...string) {
	t.Helper()
	for _, n := range programs {
		if _, err := exec.LookPath(n); err != nil {
			t.Skip("SKIP-CAPABLE: no " + n)
		}
	}
}

func gioDesktop(t *testing.T, p *place) desktop {
	needed(t, "gio", "dbus-run-session", "/usr/libexec/gvfsd-trash")
	// The trash: scheme is a daemon's, found by a message bus.
	session := func(args ...string) string {
		return p.ok("", append([]string{"dbus-run-session", "--", "gio"}, args...)...)
	}
	return desktop{
		put: func(path string) { p.ok("", "gio", "trash", "--", path) },
		restore: func(path string) {
			for line := range strings.Lines(session("list", "-h", "-u", "-a", "trash::orig-path", "trash://")) {
				uri, rest, _ := strings.Cut(line, "\t")
				if strings.HasSuffix(strings.TrimSuffix(rest, "\n"), "="+path) {
					session("trash", "--restore", uri)
					return
				}
			}
			t.Fatalf("gio does not list %s", path)
		},
	}
}

func trashCLIDesktop(t *testing.T, p *place) desktop {
	needed(t, "trash-put", "trash-list", "trash-restore")
	return desktop{
		put: func(path string) { p.ok("", "trash-put", "--", path) },
		restore: func(path string) {
			if out := p.ok("", "trash-list"); !strings.Contains(out, path) {
				t.Fatalf("trash-list does not list %s: %s", path, out)
			}
			p.ok("0\n", "trash-restore")
		},
	}
}

// ok runs a program and wants it to succeed.
func (p *place) ok(stdin string, argv ...string) string {
	p.t.Helper()
	r := p.run(stdin, argv...)
	if r.code != 0 {
		p.t.Fatalf("%q: %+v", argv, r)
	}
	return r.out
}

func (p *place) must(args ...string) string {
	p.t.Helper()
	return p.ok("", append([]string{wattle}, args...)...)
}

// dressed makes a file, or a directory that holds one, with everything that
// must survive.
func (p *place) dressed(name string) {
	p.t.Helper()
	at := p.path(name)
	all := []string{at}
	if name == "dir" {
		all = []string{filepath.Join(at, "f"), at}
		if err := os.Mkdir(at, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	old := time.Date(2011, 12, 13, 14, 15, 16, 171819, time.UTC)
	if err := os.WriteFile(all[0], []byte("some\x00text"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	for _, f := range all {
		if err := unix.Setxattr(f, "user.wattle", []byte("kept"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
			p.t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(f, 0o750), os.Chtimes(f, old, old)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// shot describes a path and all beneath it.
func (p *place) shot(path string) string {
	p.t.Helper()
	var b strings.Builder
	err := filepath.Walk(path, func(at string, fi fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(strings.TrimPrefix(at, path) + " " + fi.Mode().String() + " " + fi.ModTime().UTC().Format(time.RFC3339Nano))
		if fi.Mode().IsRegular() {
			c, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(c))
		}
		val := make([]byte, 100)
		if n, err := unix.Lgetxattr(at, "user.wattle", val); err == nil {
			b.WriteString(" " + string(val[:n]))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return b.String()
}
