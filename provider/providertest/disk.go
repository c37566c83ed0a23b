//go:build unix

package providertest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// disk is what lies below the world's directories: name to description. Names
// begin with the directory's letter: W/a, O/b.
type disk map[string]string

// describe gives type, mode and content, or a link's target.
func describe(path string, fi fs.FileInfo) string {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		t, _ := os.Readlink(path)
		return "link " + t
	case fi.IsDir():
		return fmt.Sprintf("dir %04o", mode(fi))
	case fi.Mode().IsRegular():
		b, err := os.ReadFile(path)
		if err != nil {
			b = []byte("<unreadable>")
		}
		return file(mode(fi), string(b))
	}
	return fmt.Sprintf("other %v", fi.Mode().Type())
}

func mode(fi fs.FileInfo) uint32 {
	m := uint32(fi.Mode().Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if fi.Mode()&flag != 0 {
			m |= bit
		}
	}
	return m
}

// file describes a regular file for [row.after]: one that is too long to be
// read in a message by its size and hash.
func file(mode uint32, content string) string {
	if len(content) > 1<<20 {
		return fmt.Sprintf("file %04o %d bytes, SHA-256 %x", mode, len(content), sha256.Sum256([]byte(content)))
	}
	return fmt.Sprintf("file %04o %q", mode, content)
}

func dir(mode uint32) string { return fmt.Sprintf("dir %04o", mode) }

// snapshot reads the whole world. Directories that this user may not read are
// described and not entered.
func (w *World) snapshot() disk {
	d := disk{}
	for letter, root := range w.roots() {
		err := filepath.WalkDir(root, func(p string, de fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrPermission) {
				return fs.SkipDir
			}
			if err != nil {
				return err
			}
			fi, err := os.Lstat(p)
			if errors.Is(err, fs.ErrPermission) {
				return nil // in a directory that may be read but not searched
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			d[filepath.Join(letter, rel)] = describe(p, fi)
			return nil
		})
		if err != nil {
			w.T.Fatalf("snapshot %s: %v", root, err)
		}
	}
	return d
}

// changes lists what differs between two snapshots; "gone" for a name that
// disappeared.
func changes(before, after disk) disk {
	d := disk{}
	for n, what := range after {
		if before[n] != what {
			d[n] = what
		}
	}
	for n := range before {
		if _, ok := after[n]; !ok {
			d[n] = "gone"
		}
	}
	return d
}

func (d disk) String() string {
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(d)) {
		fmt.Fprintf(&b, "\n\t%s: %s", n, d[n])
	}
	if len(d) == 0 {
		return " nothing"
	}
	return b.String()
}

// The builders of a row's disk. Modes are exact, whatever the umask.

func (w *World) Path(name string) string {
	letter, rest, _ := strings.Cut(name, "/")
	root, ok := w.roots()[letter]
	if !ok {
		w.T.Fatalf("bad name in a row: %s", name)
	}
	// Not joined: a row may want ".." and trailing slashes as written.
	if rest == "" {
		return root
	}
	return root + "/" + rest
}

func (w *World) File(name, content string, mode ...fs.FileMode) {
	w.T.Helper()
	w.must(os.WriteFile(w.Path(name), []byte(content), 0o600))
	m := fs.FileMode(0o644)
	if len(mode) > 0 {
		m = mode[0]
	}
	w.must(os.Chmod(w.Path(name), m))
}

func (w *World) Dir(name string, mode ...fs.FileMode) {
	w.T.Helper()
	w.must(os.MkdirAll(w.Path(name), 0o755))
	if len(mode) > 0 {
		w.must(os.Chmod(w.Path(name), mode[0]))
		// So that the directory can be removed at the end.
		w.T.Cleanup(func() { os.Chmod(w.Path(name), 0o755) })
	}
}

func (w *World) Link(name, to string) {
	w.T.Helper()
	w.must(os.Symlink(to, w.Path(name)))
}

func (w *World) FIFO(name string) {
	w.T.Helper()
	w.must(syscall.Mkfifo(w.Path(name), 0o644))
}

func (w *World) Socket(name string) {
	w.T.Helper()
	// Bound by a short relative way: socket paths have at most 107 bytes.
	short, err := os.MkdirTemp("/tmp", "s")
	w.must(err)
	w.T.Cleanup(func() { os.RemoveAll(short) })
	w.must(os.Symlink(filepath.Dir(w.Path(name)), short+"/d"))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short + "/d/" + filepath.Base(name), Net: "unix"})
	w.must(err)
	l.SetUnlinkOnClose(false)
	w.T.Cleanup(func() { l.Close() })
}

func (w *World) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}
