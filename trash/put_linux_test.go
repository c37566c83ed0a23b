package trash_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// withPlain runs a test with the kernel's own rename without replacing, and
// with the placeholder method.
func withPlain(t *testing.T, f func(t *testing.T, l *lab)) {
	t.Run("noreplace", func(t *testing.T) { f(t, newLab(t)) })
	t.Run("placeholder", func(t *testing.T) {
		l := newLab(t)
		l.bin.SetPlainRename()
		f(t, l)
	})
}

// Whatever has a name goes there and comes back as it was.
func TestPutAndRestore(t *testing.T) {
	long := strings.Repeat("n", 255)
	for _, c := range []struct {
		what, name string
		make       func(l *lab, path string)
		typ        string
		// record is what the record says after Path=W/, trashed the name there.
		record, trashed string
	}{
		{"file", "f.txt", nil, "file", "f.txt", "f.txt"},
		{"blanks, percent, plus, semicolon", "a b%+é;c", nil, "file", "a%20b%25%2B%C3%A9%3Bc", "a b%+é;c"},
		{"line feed", "a\nb", nil, "file", "a%0Ab", "a\nb"},
		{"invalid UTF-8", "a\xff\xfeb", nil, "file", "a%FF%FEb", "a\xff\xfeb"},
		{"hidden", ".bashrc", nil, "file", ".bashrc", ".bashrc"},
		{"dash", "-rf", nil, "file", "-rf", "-rf"},
		{"backslash", `a\b`, nil, "file", "a%5Cb", `a\b`},
		{"245 bytes", long[:245], nil, "file", long[:245], long[:245]},
		{"255 bytes", long, nil, "file", long, long[:245]},
		{"255 bytes with extension", long[:250] + ".text", nil, "file", long[:250] + ".text", long[:240] + ".text"},
		{"255 bytes of UTF-8", strings.Repeat("é", 127) + "x", nil, "file", strings.Repeat("%C3%A9", 127) + "x", strings.Repeat("é", 122)},
		{"255 bytes of no UTF-8", strings.Repeat("\xff", 255), nil, "file", strings.Repeat("%FF", 255), strings.Repeat("\xff", 245)},
		{"named like a record", "x.trashinfo", nil, "file", "x.trashinfo", "x.trashinfo"},
		{"directory", "d", func(l *lab, p string) {
			l.write(p+"/sub/f", "deep")
			must(l.t, os.Symlink("f", p+"/sub/l"))
			must(l.t, os.Mkdir(p+"/closed", 0o755))
			dress(l.t, p+"/closed", 0o555)
			dress(l.t, p, 0o750)
		}, "directory", "d", "d"},
		{"empty directory", "e", func(l *lab, p string) { must(l.t, os.Mkdir(p, 0o700)) }, "directory", "e", "e"},
		{"link", "l", func(l *lab, p string) { l.write(l.W+"/target", "t"); must(l.t, os.Symlink("target", p)) }, "symlink", "l", "l"},
		{"link to a directory", "ld", func(l *lab, p string) { l.write(l.W+"/dir/f", "t"); must(l.t, os.Symlink("dir", p)) }, "symlink", "ld", "ld"},
		{"dangling link", "dl", func(l *lab, p string) { must(l.t, os.Symlink("/nowhere/at all", p)) }, "symlink", "dl", "dl"},
		{"file of mode 000", "none", func(l *lab, p string) { must(l.t, os.WriteFile(p, []byte("x"), 0)) }, "file", "none", "none"},
	} {
		t.Run(c.what, func(t *testing.T) {
			withPlain(t, func(t *testing.T, l *lab) {
				path := l.W + "/" + c.name
				if c.make == nil {
					l.write(path, "text of "+c.what)
				} else {
					c.make(l, path)
				}
				before := shot(t, l.W)
				// The directory's own time changes.
				before = before[strings.IndexByte(before, '\n'):]
				e := l.put(path)
				gone(t, path)
				if e.OriginalPath != path || e.State != record.OK || e.Type != c.typ || e.TrashDir != l.T || e.Name != c.trashed || e.DeletionDate != "2024-05-06T07:08:09" {
					t.Errorf("entry %+v", e)
				}
				text := "[Trash Info]\nPath=" + l.W + "/" + c.record + "\nDeletionDate=2024-05-06T07:08:09\n"
				if strings.HasSuffix(t.Name(), "/placeholder") {
					text += "X-Wattle-Pending=0\n"
				}
				is(t, l.T+"/info/"+c.trashed+".trashinfo", text)
				if fi, err := os.Lstat(l.T + "/info/" + c.trashed + ".trashinfo"); err != nil || fi.Mode() != 0o600 {
					t.Errorf("the record is %v %v", fi.Mode(), err)
				}
				l.bin.Close(context.Background()) // the size of a directory is there then
				all := l.list()
				if len(all) != 1 || all[0].ID != e.ID || all[0].OriginalPath != path || all[0].State != record.OK || all[0].Type != c.typ {
					t.Errorf("list %+v", all)
				}
				if c.typ == "directory" && (all[0].Size == nil || *all[0].Size < 4096) {
					t.Errorf("the size of a directory is %v", all[0].Size)
				}
				if got := l.restore(e.ID); got != path {
					t.Errorf("restored to %s", got)
				}
				after := shot(t, l.W)
				if after = after[strings.IndexByte(after, '\n'):]; after != before {
					t.Errorf("before:%s\nafter:%s", before, after)
				}
				if n := names(t, l.T+"/files", l.T+"/info"); n != l.T+"/files\n"+l.T+"/info" {
					t.Errorf("left: %s", n)
				}
				if b, err := os.ReadFile(l.T + "/directorysizes"); err == nil && len(b) > 0 {
					t.Errorf("directorysizes: %q", b)
				}
			})
		})
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		limit int
		want  string
	}{
		{"a.txt", 1, 255, "a.txt"}, {"a.txt", 2, 255, "a.2.txt"}, {"a.txt", 100, 255, "a.100.txt"},
		{"a", 2, 255, "a.2"}, {".bashrc", 2, 255, ".bashrc.2"}, {"a.tar.gz", 3, 255, "a.tar.3.gz"},
		{"a.", 2, 255, "a.2."}, {"é.é", 1, 14, ".é"}, {"ééé", 1, 15, "éé"}, {"ééé", 1, 14, "éé"},
	} {
		if got := trash.NthName(c.name, c.n, c.limit); got != c.want {
			t.Errorf("%q %d %d: %q, want %q", c.name, c.n, c.limit, got, c.want)
		}
	}
	for _, name := range []string{strings.Repeat("x", 255), strings.Repeat("€", 85), "." + strings.Repeat("e", 254), "a." + strings.Repeat("e", 253), strings.Repeat("\x80", 255)} {
		for _, n := range []int{1, 2, 10, 99_999} {
			for _, limit := range []int{255, 143} {
				if got := trash.NthName(name, n, limit); len(got)+len(".trashinfo") > limit || got == "" {
					t.Errorf("%q %d: %d bytes", name, n, len(got))
				}
			}
		}
	}
}

// A name that is taken, by a record or by data without one, is never replaced.
func TestNameTaken(t *testing.T) {
	withPlain(t, func(t *testing.T, l *lab) {
		first := l.put(l.write(l.W+"/f.txt", "1"))
		second := l.put(l.write(l.W+"/f.txt", "2"))
		if first.Name != "f.txt" || second.Name != "f.2.txt" {
			t.Errorf("%s %s", first.Name, second.Name)
		}
		for name, make := range map[string]func(p string) error{
			"file": func(p string) error { return os.WriteFile(p, []byte("orphan"), 0o600) },
			"link": func(p string) error { return os.Symlink("nowhere", p) },
			"dir":  func(p string) error { return os.Mkdir(p, 0o700) },
		} {
			for _, dir := range []bool{false, true} {
				in := l.T + "/files/" + name
				if dir {
					in += "-dir"
				}
				must(t, make(in))
				before := shot(t, in)
				path := l.W + "/" + filepath.Base(in)
				if dir {
					must(t, os.Mkdir(path, 0o755))
				} else {
					l.write(path, "new")
				}
				e := l.put(path)
				if e.Name != filepath.Base(in)+".2" {
					t.Errorf("%s is called %s", path, e.Name)
				}
				if after := shot(t, in); after != before {
					t.Errorf("orphan was %s, is %s", before, after)
				}
				gone(t, l.T+"/info/"+filepath.Base(in)+".trashinfo")
			}
		}
		is(t, l.T+"/files/f.txt", "1")
		is(t, l.T+"/files/f.2.txt", "2")
	})
}

// What is refused stays, and nothing is made.
func TestPutRefused(t *testing.T) {
	for _, c := range []struct {
		what    string
		path    func(l *lab) string
		code    string
		outcome record.Outcome
		says    string
	}{
		{"home trash", func(l *lab) string { return l.T }, record.CodeRejected, record.Rejected, "trash"},
		{"its half", func(l *lab) string { return l.T + "/files" }, record.CodeRejected, record.Rejected, "trash"},
		{"what lies in it", func(l *lab) string { return l.T + "/files/old" }, record.CodeRejected, record.Rejected, "trash"},
		{"a record", func(l *lab) string { return l.T + "/info/old.trashinfo" }, record.CodeRejected, record.Rejected, "trash"},
		{"what contains it", func(l *lab) string { return l.Data }, record.CodeRejected, record.Rejected, "trash"},
		{"what contains that", func(l *lab) string { return l.Dir + "/home" }, record.CodeRejected, record.Rejected, "trash"},
		{"FIFO", func(l *lab) string { must(l.t, unix.Mkfifo(l.W+"/p", 0o600)); return l.W + "/p" }, record.CodeRejected, record.Rejected, "neither"},
		{"socket", func(l *lab) string {
			must(l.t, unix.Mknod(l.W+"/s", unix.S_IFSOCK|0o600, 0))
			return l.W + "/s"
		}, record.CodeRejected, record.Rejected, "neither"},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLab(t)
			l.put(l.write(l.W+"/old", "old"))
			path := c.path(l)
			before := names(t, l.Dir)
			_, err := put(t.Context(), l.bin, path, true)
			if s := wants(t, err, c.code, c.outcome); !strings.Contains(s, c.says) {
				t.Errorf("says %s", s)
			}
			if after := names(t, l.Dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// The home trash is never moved into itself, also when it is not there yet.
func TestPutOfWhereTheTrashWillBe(t *testing.T) {
	l := newLab(t)
	_, err := put(t.Context(), l.bin, l.Dir+"/home", false)
	wants(t, err, record.CodeRejected, record.Rejected)
	if n := names(t, l.Dir+"/home"); n != l.Dir+"/home" {
		t.Errorf("made: %s", n)
	}
}

func TestPutGuards(t *testing.T) {
	l := newLab(t)
	path := l.write(l.W+"/f", "one")
	d, err := anchor.OpenDir(l.W)
	must(t, err)
	defer d.Close()
	want, err := d.Lstat("f")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := names(t, l.Dir)
	_, err = l.bin.Put(ctx, d, "f", path, want, false)
	wants(t, err, "FS_ABORTED", record.Failed)
	other := want
	other.Ino++
	_, err = l.bin.Put(t.Context(), d, "f", path, other, false)
	wants(t, err, "FS_STALE_VERSION", record.Failed)
	_, err = l.bin.Put(t.Context(), d, "g", l.W+"/g", want, false)
	wants(t, err, "FS_NOT_FOUND", record.Failed)
	for _, p := range []string{"W/f", l.W + "/../W/f", ""} {
		_, err = l.bin.Put(t.Context(), d, "f", p, want, false)
		wants(t, err, record.CodeRejected, record.Rejected)
	}
	if after := names(t, l.Dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Somebody swaps the thing in the last moment: his comes back to its place.
func TestSwappedInTheLastMoment(t *testing.T) {
	withPlain(t, func(t *testing.T, l *lab) {
		path := l.write(l.W+"/f", "meant")
		swapped := false
		l.bin.SetHook(func(p string) {
			if p == "recorded" && !swapped {
				swapped = true
				must(t, os.Rename(path, l.W+"/elsewhere"))
				must(t, os.WriteFile(path, []byte("other"), 0o644))
			}
		})
		_, err := put(t.Context(), l.bin, path, false)
		wants(t, err, "FS_STALE_VERSION", record.Failed)
		is(t, path, "other")
		is(t, l.W+"/elsewhere", "meant")
		if n := names(t, l.T+"/files", l.T+"/info"); n != l.T+"/files\n"+l.T+"/info" {
			t.Errorf("left: %s", n)
		}
	})
}

// The same, and meanwhile something has taken the place: nothing is replaced,
// and the error says where the thing is.
func TestSwappedAndNoWayBack(t *testing.T) {
	l := newLab(t)
	path := l.write(l.W+"/f", "meant")
	l.bin.SetHook(func(p string) {
		switch p {
		case "recorded":
			must(t, os.Rename(path, l.W+"/elsewhere"))
			must(t, os.WriteFile(path, []byte("other"), 0o644))
		case "moved":
			must(t, os.WriteFile(path, []byte("third"), 0o644))
		}
	})
	_, err := put(t.Context(), l.bin, path, false)
	wants(t, err, record.CodeUnknown, record.Unknown)
	is(t, path, "third")
	is(t, l.W+"/elsewhere", "meant")
	is(t, l.T+"/files/f", "other")
	if all := l.list(); len(all) != 1 || all[0].State != record.OK {
		t.Errorf("list %+v", all)
	}
}

// Whoever empties the trash may take a record without data for a leftover.
func TestRecordTakenAway(t *testing.T) {
	l := newLab(t)
	path := l.write(l.W+"/f", "x")
	l.bin.SetHook(func(p string) {
		if p == "moved" {
			must(t, os.Remove(l.T+"/info/f.trashinfo"))
		}
	})
	e := l.put(path)
	if all := l.list(); len(all) != 1 || all[0].State != record.OK || all[0].OriginalPath != path || all[0].ID != e.ID {
		t.Errorf("list %+v", all)
	}
}

// A trash that is removed between its opening and the record is made again.
func TestTrashTakenAway(t *testing.T) {
	l := newLab(t)
	path := l.write(l.W+"/f", "x")
	l.put(l.write(l.W+"/g", "y"))
	times := 0
	l.bin.SetHook(func(p string) {
		if p == "opened" && times < 2 {
			times++
			must(t, os.RemoveAll(l.T))
		}
	})
	l.put(path)
	is(t, l.T+"/files/f", "x")
}

// What was overwritten lies beside its place, under a hidden name: it is called
// by the name of the place, and goes back there.
func TestPutUnderAHiddenName(t *testing.T) {
	withPlain(t, func(t *testing.T, l *lab) {
		l.write(l.W+"/.hidden-1", "old")
		l.write(l.W+"/f.txt", "new")
		d, err := anchor.OpenDir(l.W)
		must(t, err)
		defer d.Close()
		want, err := d.Lstat(".hidden-1")
		must(t, err)
		e, err := l.bin.Put(context.Background(), d, ".hidden-1", l.W+"/f.txt", want, false)
		must(t, err)
		if e.Name != "f.txt" || e.OriginalPath != l.W+"/f.txt" {
			t.Errorf("%+v", e)
		}
		is(t, l.W+"/f.txt", "new")
		must(t, os.Remove(l.W+"/f.txt"))
		if got := l.restore(e.ID); got != l.W+"/f.txt" {
			t.Errorf("restored to %s", got)
		}
		is(t, l.W+"/f.txt", "old")
		for _, name := range []string{"a/b", "..", "", "."} {
			if _, err := l.bin.Put(context.Background(), d, name, l.W+"/f.txt", want, false); err == nil {
				t.Errorf("%q was taken for a name", name)
			}
		}
	})
}
