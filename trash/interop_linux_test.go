package trash_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// foreign runs the trash programs of others in a lab's home.
type foreign struct {
	l   *lab
	put func(path string)
	// restore lists what is there, checks that it names the path, and brings it
	// back.
	restore func(path string)
}

// run runs a program as the lab's user with nothing of this process's own
// desktop.
func (l *lab) run(dir, stdin string, name string, args ...string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + l.Dir + "/home", "XDG_DATA_HOME=" + l.Data,
		"XDG_RUNTIME_DIR=" + l.Dir + "/run", "GVFS_DISABLE_FUSE=1", "LC_ALL=C.UTF-8"}
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		l.t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, errs.String())
	}
	return string(out)
}

func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skip("SKIP-CAPABLE: no " + n + " (apt install libglib2.0-bin gvfs gvfs-daemons dbus trash-cli)")
		}
	}
}

// inSession runs gio with a message bus of its own: the trash: scheme is a
// daemon's.
func (l *lab) inSession(args ...string) string {
	l.t.Helper()
	return l.run(l.W, "", "dbus-run-session", append([]string{"--", "gio"}, args...)...)
}

func gio(t *testing.T, l *lab) *foreign {
	tools(t, "gio", "dbus-run-session")
	if _, err := os.Stat("/usr/share/dbus-1/services/org.gtk.vfs.Daemon.service"); err != nil {
		t.Skip("SKIP-CAPABLE: no gvfs (apt install gvfs gvfs-daemons)")
	}
	return &foreign{
		l:   l,
		put: func(path string) { l.t.Helper(); l.run(l.W, "", "gio", "trash", "--", path) },
		restore: func(path string) {
			l.t.Helper()
			out := l.inSession("list", "-h", "-u", "-a", "trash::orig-path", "trash://")
			for line := range strings.Lines(out) {
				uri, rest, _ := strings.Cut(line, "\t")
				if _, orig, ok := strings.Cut(rest, "trash::orig-path="); ok && unescapeGio(strings.TrimSuffix(orig, "\n")) == path {
					if strings.Contains(orig, `\x`) {
						// gio trash --restore gives the file the escaped name
						// (2.74.6); file managers move as gio move does.
						l.inSession("move", uri, path)
					} else {
						l.inSession("trash", "--restore", uri)
					}
					return
				}
			}
			l.t.Fatalf("gio does not list %q: %q", path, out)
		},
	}
}

// unescapeGio undoes the \xNN of gio's attributes.
func unescapeGio(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.HasPrefix(s[i:], `\x`) && i+4 <= len(s) {
			n := 0
			for _, c := range s[i+2 : i+4] {
				n = n*16 + strings.IndexRune("0123456789abcdef", c)
			}
			b.WriteByte(byte(n))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func trashCLI(t *testing.T, l *lab) *foreign {
	tools(t, "trash-put", "trash-list", "trash-restore")
	return &foreign{
		l:   l,
		put: func(path string) { l.t.Helper(); l.run(l.W, "", "trash-put", "--", path) },
		restore: func(path string) {
			l.t.Helper()
			if out := l.run(l.W, "", "trash-list"); !strings.Contains(out, path) {
				l.t.Fatalf("trash-list does not list %q: %q", path, out)
			}
			l.run(filepath.Dir(path), "0\n", "trash-restore")
		},
	}
}

// What one puts the other lists and restores, byte for byte, mode, times and
// extended attributes included.
func TestInterop(t *testing.T) {
	// 238 bytes: for longer names gio 2.74.6 moves the file and leaves an empty
	// record.
	for _, tool := range []struct {
		name string
		open func(*testing.T, *lab) *foreign
		// without are the names that this tool cannot do, and why.
		without map[string]string
	}{
		{"gio", gio, nil},
		{"trash-cli", trashCLI, map[string]string{"a\xffb": "prints names as UTF-8"}},
	} {
		for _, name := range []string{"f.txt", "a b%+é;c", "-dash", "a\nb", "a\xffb", ".hidden", strings.Repeat("n", 238), "dir", "link", "dangling"} {
			for _, where := range []string{"home", "volume", "shared"} {
				label := name
				if len(name) > 100 {
					label = "long"
				}
				if where != "home" && !slices.Contains([]string{"f.txt", "a b%+é;c", "dir", "dangling"}, name) {
					continue // the names are written alike everywhere
				}
				t.Run(tool.name+"/"+where+"/"+label, func(t *testing.T) {
					if why := tool.without[name]; why != "" {
						t.Skip("SKIP: " + tool.name + " " + why)
					}
					l := newLab(t)
					f := tool.open(t, l)
					must(t, os.Mkdir(l.Dir+"/run", 0o700))
					dir, trashDir := l.W, l.T
					if where != "home" {
						dir, trashDir = l.volume(where == "shared")
					}
					path := dir + "/" + name
					switch name {
					case "dir":
						l.write(path+"/sub/f", "deep")
						must(t, os.Mkdir(path+"/closed", 0o755))
						dress(t, path+"/closed", 0o555)
						dress(t, path, 0o750)
					case "link":
						l.write(dir+"/target", "x")
						must(t, os.Symlink("target", path))
					case "dangling":
						must(t, os.Symlink("nowhere", path))
					default:
						l.write(path, "text of "+name)
					}
					before := shot(t, path)
					same := func(who string) {
						t.Helper()
						if after := shot(t, path); after != before {
							t.Errorf("%s: was %s, is %s", who, before, after)
						}
					}

					f.put(path)
					gone(t, path)
					all := l.list()
					if len(all) != 1 || all[0].OriginalPath != path || all[0].State != record.OK || all[0].TrashDir != trashDir || all[0].DeletionDate == "" {
						t.Fatalf("list %+v", all)
					}
					l.restore(all[0].ID)
					same("theirs, restored by us")

					if e := l.put(path); e.TrashDir != trashDir {
						t.Errorf("entry %+v", e)
					}
					gone(t, path)
					f.restore(path)
					same("ours, restored by them")
					if all := l.list(); len(all) != 0 {
						t.Errorf("left %+v", all)
					}
				})
			}
		}
	}
}

// volume mounts a disk of its own: desktops take no tmpfs for a place of files.
func (l *lab) volume(shared bool) (dir, trashDir string) {
	l.t.Helper()
	needRoot(l.t)
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		l.t.Skip("SKIP-CAPABLE: no mkfs.ext4 (apt install e2fsprogs)")
	}
	img := l.Dir + "/img"
	must(l.t, os.WriteFile(img, nil, 0o600))
	must(l.t, os.Truncate(img, 16<<20))
	l.run("/", "", "mkfs.ext4", "-q", "-F", img)
	dir = l.Dir + "/V"
	must(l.t, os.Mkdir(dir, 0o755))
	if out, err := exec.Command("mount", "-o", "loop", img, dir).CombinedOutput(); err != nil {
		l.t.Skipf("SKIP: no loop mount: %s", out)
	}
	l.t.Cleanup(func() { must(l.t, unix.Unmount(dir, 0)) })
	if !shared {
		return dir, dir + "/.Trash-0"
	}
	must(l.t, os.Mkdir(dir+"/.Trash", 0o777))
	must(l.t, unix.Chmod(dir+"/.Trash", 0o1777))
	return dir, dir + "/.Trash/0"
}

// What gio empties is gone for us, and the other way round.
func TestInteropEmpty(t *testing.T) {
	l := newLab(t)
	f := gio(t, l)
	must(t, os.Mkdir(l.Dir+"/run", 0o700))
	l.put(l.write(l.W+"/ours", "x"))
	f.put(l.write(l.W+"/theirs", "x"))
	if all := l.list(); len(all) != 2 {
		t.Fatalf("list %+v", all)
	}
	done, err := l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: []string{l.list()[0].ID, l.list()[1].ID}})
	if err != nil || len(done.Entries) != 2 {
		t.Errorf("emptied %+v %v", done, err)
	}
	if out := l.inSession("list", "-h", "-u", "trash://"); strings.Contains(out, "trash:///") {
		t.Errorf("gio still lists %q", out)
	}
}

// The sizes that others write are read, and ours are where others look.
func TestInteropDirectorySizes(t *testing.T) {
	l := newLab(t)
	l.write(l.W+"/d/f", strings.Repeat("x", 50_000))
	l.put(l.W + "/d")
	l.bin.Close(t.Context())
	b, err := os.ReadFile(l.T + "/directorysizes")
	must(t, err)
	all := record.ParseSizes(b)
	var st unix.Stat_t
	must(t, unix.Stat(l.T+"/info/d.trashinfo", &st))
	if len(all) != 1 || all[0].Name != "d" || all[0].Mtime != st.Mtim.Sec || all[0].Bytes < 50_000 {
		t.Errorf("%q", b)
	}
	// A line of another time is about another thing.
	must(t, os.WriteFile(l.T+"/directorysizes", []byte("777 5 d\n"), 0o600))
	if e := l.list(); e[0].Size != nil {
		t.Errorf("size %d", *e[0].Size)
	}
}
