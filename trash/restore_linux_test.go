package trash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

var errFence = errors.New("the fence says no")

func TestRestore(t *testing.T) {
	type options = trash.RestoreOptions
	for _, c := range []struct {
		what   string
		before func(l *lab, e record.Entry)
		o      func(l *lab) options
		id     func(e record.Entry) string
		code   string
		// to is where it lands below W, when it does.
		to   string
		made []string
		says string
	}{
		{what: "where it was", to: "a/b/f"},
		{what: "another place", o: func(l *lab) options { return options{Destination: l.W + "/g"} }, to: "g"},
		{what: "through a link", before: func(l *lab, _ record.Entry) { must(l.t, os.Symlink("a", l.W+"/la")) },
			o: func(l *lab) options { return options{Destination: l.W + "/la/../la/g"} }, to: "a/g"},
		{what: "parents are missing", before: func(l *lab, _ record.Entry) { must(l.t, os.RemoveAll(l.W+"/a")) }, code: "FS_NOT_FOUND", says: "/W/a/b is missing"},
		{what: "parents are made", before: func(l *lab, _ record.Entry) { must(l.t, os.RemoveAll(l.W+"/a")) },
			o: func(l *lab) options { return options{Parents: true} }, to: "a/b/f", made: []string{"a", "a/b"}},
		{what: "a file is in the way", before: func(l *lab, _ record.Entry) { must(l.t, os.WriteFile(l.W+"/a/b/f", []byte("new"), 0o600)) }, code: "FS_ALREADY_EXISTS"},
		{what: "a dangling link is in the way", before: func(l *lab, _ record.Entry) { must(l.t, os.Symlink("none", l.W+"/a/b/f")) }, code: "FS_ALREADY_EXISTS"},
		{what: "an empty directory is in the way", before: func(l *lab, _ record.Entry) { must(l.t, os.Mkdir(l.W+"/a/b/f", 0o755)) }, code: "FS_ALREADY_EXISTS"},
		{what: "the parent is a file", o: func(l *lab) options { return options{Destination: l.W + "/keep/f", Parents: true} }, code: "FS_NOT_FOUND"},
		{what: "the fence refuses", o: func(l *lab) options {
			return options{Destination: l.W + "/new/g", Parents: true, Allow: func(_ record.Entry, p string) error {
				if p != l.W+"/new/g" {
					l.t.Errorf("asked about %s", p)
				}
				return errFence
			}}
		}, says: errFence.Error()},
		{what: "the fence sees where a link leads", before: func(l *lab, _ record.Entry) { must(l.t, os.Symlink(l.Dir, l.W+"/out")) },
			o: func(l *lab) options {
				return options{Destination: l.W + "/out/new/g", Parents: true, Allow: func(_ record.Entry, p string) error {
					if p != l.Dir+"/new/g" {
						l.t.Errorf("asked about %s", p)
					}
					return errFence
				}}
			}, says: errFence.Error()},
		{what: "into the trash", o: func(l *lab) options { return options{Destination: l.T + "/files/g"} }, code: record.CodeRejected},
		{what: "into the trash, new", o: func(l *lab) options { return options{Destination: l.T + "/files/x/y/g", Parents: true} }, code: record.CodeRejected},
		{what: "relative", o: func(l *lab) options { return options{Destination: "g"} }, code: record.CodeRejected},
		{what: "the root", o: func(l *lab) options { return options{Destination: "/"} }, code: "FS_ALREADY_EXISTS"},
		{what: "no id", id: func(record.Entry) string { return "" }, code: record.CodeNotFound},
		{what: "unknown id", id: func(e record.Entry) string { return strings.Repeat("a", 16) + e.ID[16:] }, code: record.CodeNotFound},
		{what: "a path as id", id: func(e record.Entry) string { return "../../etc/passwd" }, code: record.CodeNotFound},
		{what: "another thing has the name now", before: func(l *lab, _ record.Entry) {
			must(l.t, os.WriteFile(l.T+"/files/second", []byte("other"), 0o600))
			must(l.t, os.Rename(l.T+"/files/second", l.T+"/files/f"))
		}, code: "FS_STALE_VERSION"},
		{what: "the data went", before: func(l *lab, _ record.Entry) { must(l.t, os.Remove(l.T+"/files/f")) }, code: "FS_STALE_VERSION"},
		{what: "the record went", before: func(l *lab, _ record.Entry) { must(l.t, os.Remove(l.T+"/info/f.trashinfo")) }, code: record.CodeBroken},
		{what: "the record went, with a destination", before: func(l *lab, _ record.Entry) { must(l.t, os.Remove(l.T+"/info/f.trashinfo")) },
			o: func(l *lab) options { return options{Destination: l.W + "/g"} }, to: "g"},
		{what: "a record with dots", before: func(l *lab, _ record.Entry) {
			must(l.t, os.WriteFile(l.T+"/info/f.trashinfo", []byte("[Trash Info]\nPath=../../../../../../../../../../etc/wattle-f\n"), 0o600))
		}, code: record.CodeBroken},
		{what: "a relative record", before: func(l *lab, _ record.Entry) {
			must(l.t, os.WriteFile(l.T+"/info/f.trashinfo", []byte("[Trash Info]\nPath=f%20g\n"), 0o600))
		}, to: "../home/.local/share/f g"},
	} {
		t.Run(c.what, func(t *testing.T) {
			withPlain(t, func(t *testing.T, l *lab) {
				l.write(l.W+"/keep", "keep")
				e := l.put(l.write(l.W+"/a/b/f", "text"))
				if c.before != nil {
					c.before(l, e)
				}
				var o options
				if c.o != nil {
					o = c.o(l)
				}
				id := e.ID
				if c.id != nil {
					id = c.id(e)
				}
				before := names(t, l.Dir)
				r, err := l.bin.Restore(t.Context(), id, o)
				if c.to == "" {
					if c.code != "" {
						wants(t, err, c.code, map[bool]record.Outcome{true: record.Rejected, false: record.Failed}[c.code == record.CodeRejected])
					} else if !errors.Is(err, errFence) {
						t.Errorf("error %v", err)
					}
					if err != nil && !strings.Contains(err.Error(), c.says) {
						t.Errorf("says %v", err)
					}
					if after := names(t, l.Dir); after != before {
						t.Errorf("before:\n%s\nafter:\n%s", before, after)
					}
					return
				}
				want := filepath.Join(l.W, c.to)
				if err != nil || r.Path != want || r.Entry.ID != e.ID {
					t.Fatalf("restored %+v %v", r, err)
				}
				is(t, want, "text")
				var made []string
				for _, m := range r.Made {
					rel, _ := filepath.Rel(l.W, m)
					made = append(made, rel)
				}
				if !slices.Equal(made, c.made) {
					t.Errorf("made %v", made)
				}
				if len(l.list()) != 0 {
					t.Errorf("list %+v", l.list())
				}
			})
		})
	}
}

// A thing that is swapped in the trash in the last moment goes back.
func TestRestoreOfASwappedEntry(t *testing.T) {
	l := newLab(t)
	e := l.put(l.write(l.W+"/f", "meant"))
	l.bin.SetHook(func(p string) {
		if p == "restoring" {
			must(t, os.Rename(l.T+"/files/f", l.T+"/files/g"))
			must(t, os.WriteFile(l.T+"/files/f", []byte("other"), 0o600))
		}
	})
	_, err := l.bin.Restore(t.Context(), e.ID, trash.RestoreOptions{})
	wants(t, err, "FS_STALE_VERSION", record.Failed)
	gone(t, l.W+"/f")
	is(t, l.T+"/files/f", "other")
	is(t, l.T+"/files/g", "meant")
}

// The parent becomes a link after the fence was asked: it is not followed.
func TestRestoreThroughASwappedParent(t *testing.T) {
	l := newLab(t)
	e := l.put(l.write(l.W+"/d/f", "text"))
	must(t, os.Mkdir(l.Dir+"/out", 0o755))
	_, err := l.bin.Restore(t.Context(), e.ID, trash.RestoreOptions{Allow: func(record.Entry, string) error {
		must(t, os.Rename(l.W+"/d", l.W+"/was"))
		return os.Symlink(l.Dir+"/out", l.W+"/d")
	}})
	wants(t, err, record.CodeFailed, record.Failed)
	if n := names(t, l.Dir+"/out"); n != l.Dir+"/out" {
		t.Errorf("made %s", n)
	}
	is(t, l.T+"/files/f", "text")
}

func TestEmpty(t *testing.T) {
	fill := func(l *lab) (ids map[string]string) {
		ids = map[string]string{}
		ids["new"] = l.put(l.write(l.W+"/new", "12345")).ID
		ids["old"] = l.put(l.write(l.W+"/old", "123")).ID
		l.write(l.W+"/dir/sub/f", "1")
		dress(l.t, l.W+"/dir/sub", 0o500)
		must(l.t, os.Symlink(l.W, l.W+"/dir/link"))
		ids["dir"] = l.put(l.W + "/dir").ID
		l.bin.Close(context.Background()) // its size is there
		is := func(name, date string) {
			must(l.t, os.WriteFile(l.T+"/info/"+name+".trashinfo", []byte("[Trash Info]\nPath="+l.W+"/"+name+"\nDeletionDate="+date+"\n"), 0o600))
		}
		is("old", "2024-04-01T00:00:00")
		is("nodata", "2024-04-01T00:00:00")
		must(l.t, os.WriteFile(l.T+"/info/bad.trashinfo", []byte("nonsense"), 0o600))
		must(l.t, os.WriteFile(l.T+"/files/bad", []byte("1234567"), 0o600))
		must(l.t, os.MkdirAll(l.T+"/files/orphan/sub", 0o755))
		must(l.t, os.WriteFile(l.T+"/files/orphan/sub/f", []byte("12"), 0o600))
		l.write(l.W+"/keep", "keep")
		for _, e := range l.list() {
			if ids[e.Name] == "" {
				ids[e.Name] = e.ID
			}
		}
		return ids
	}
	for _, c := range []struct {
		what  string
		o     func(ids map[string]string) trash.EmptyOptions
		stays string
		files int64
		bytes int64
	}{
		{"everything with a record", func(map[string]string) trash.EmptyOptions { return trash.EmptyOptions{} }, "orphan", 5, 5 + 3 + 1 + 7},
		{"everything", func(map[string]string) trash.EmptyOptions { return trash.EmptyOptions{Orphans: true} }, "", 6, 5 + 3 + 1 + 7 + 2},
		{"ids", func(i map[string]string) trash.EmptyOptions {
			return trash.EmptyOptions{IDs: []string{i["old"], i["orphan"], i["nodata"]}}
		}, "bad dir new", 2, 5},
		{"no ids", func(i map[string]string) trash.EmptyOptions { return trash.EmptyOptions{IDs: []string{}} }, "bad dir new nodata old orphan", 0, 0},
		// The clock of the lab is behind that of the disk.
		{"older than ten days", func(map[string]string) trash.EmptyOptions {
			return trash.EmptyOptions{OlderThan: 10 * 24 * 3600e9, Orphans: true}
		}, "bad dir new orphan", 1, 3},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLab(t)
			ids := fill(l)
			l.bin = openBin(t, l.Data)
			if len(ids) != 6 {
				t.Fatalf("ids %v", ids)
			}
			done, err := l.bin.Empty(t.Context(), c.o(ids))
			if err != nil || len(done.Left) != 0 || done.Files != c.files || done.Bytes != c.bytes {
				t.Errorf("emptied %+v %v", done, err)
			}
			var stays []string
			for _, e := range l.list() {
				stays = append(stays, e.Name)
			}
			slices.Sort(stays)
			if got := strings.Join(stays, " "); got != c.stays {
				t.Errorf("stays %q", got)
			}
			if len(done.Entries)+len(stays) != 6 {
				t.Errorf("%d of 6 entries", len(done.Entries))
			}
			is(t, l.W+"/keep", "keep")
			sizes, _ := os.ReadFile(l.T + "/directorysizes")
			if has := strings.HasSuffix(string(sizes), " dir\n"); has != slices.Contains(stays, "dir") {
				t.Errorf("directorysizes %q", sizes)
			}
		})
	}
}

// What cannot be removed is named, and the rest goes.
func TestEmptyGoesOn(t *testing.T) {
	l := newLab(t)
	var ids []string
	for _, n := range []string{"a", "b", "c"} {
		ids = append(ids, l.put(l.write(l.W+"/"+n, n)).ID)
	}
	must(t, os.Rename(l.T+"/files/a", l.T+"/files/z"))
	must(t, os.WriteFile(l.T+"/files/a", []byte("other"), 0o600))
	done, err := l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: append([]string{"nonsense"}, ids...)})
	if err != nil || len(done.Entries) != 2 || len(done.Left) != 2 {
		t.Fatalf("emptied %+v %v", done, err)
	}
	wants(t, done.Left[0].Err, record.CodeNotFound, record.Failed)
	wants(t, done.Left[1].Err, "FS_STALE_VERSION", record.Failed)
	is(t, l.T+"/files/a", "other")
	gone(t, l.T+"/files/b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.bin.Empty(ctx, trash.EmptyOptions{Orphans: true}); err == nil {
		t.Error("a cancelled call emptied")
	}
	is(t, l.T+"/files/a", "other")
}

// Somebody puts a thing while the trash is emptied, in the worst moment: its
// data has a record afterwards.
func TestPutWhileEmptying(t *testing.T) {
	l := newLab(t)
	path := l.write(l.W+"/f", "x")
	other := openBin(t, l.Data)
	l.bin.SetHook(func(p string) {
		if p == "recorded" {
			done, err := other.Empty(t.Context(), trash.EmptyOptions{})
			if err != nil || len(done.Entries) != 1 {
				t.Errorf("emptied %+v %v", done, err)
			}
		}
	})
	l.put(path)
	if all := l.list(); len(all) != 1 || all[0].State != record.OK {
		t.Errorf("list %+v", all)
	}
	// The other order: the data comes after it was seen to be missing.
	must(t, os.WriteFile(l.T+"/info/g.trashinfo", []byte("[Trash Info]\nPath=/g\n"), 0o600))
	other.SetHook(func(p string) {
		if p == "erased" {
			_ = os.WriteFile(l.T+"/files/g", []byte("late"), 0o600)
		}
	})
	var ids []string
	for _, e := range l.list() {
		if e.Name == "g" {
			ids = append(ids, e.ID)
		}
	}
	_, err := other.Empty(t.Context(), trash.EmptyOptions{IDs: ids})
	must(t, err)
	is(t, l.T+"/info/g.trashinfo", "[Trash Info]\nPath=/g\n")
	is(t, l.T+"/files/g", "late")
}

// One bad entry is named and spoils nothing.
func TestListOfBadEntries(t *testing.T) {
	l := newLab(t)
	l.put(l.write(l.W+"/good", "x"))
	for name, text := range map[string]string{
		"empty": "", "nonsense": "x", "nopath": "[Trash Info]\n", "dots": "[Trash Info]\nPath=/a/../b\n",
		"escape": "[Trash Info]\nPath=/a%zz\n", "big": "[Trash Info]\nPath=/" + strings.Repeat("a", 1<<20),
	} {
		must(t, os.WriteFile(l.T+"/info/"+name+".trashinfo", []byte(text), 0o600))
		must(t, os.WriteFile(l.T+"/files/"+name, []byte("x"), 0o600))
	}
	must(t, os.WriteFile(l.T+"/info/nodate.trashinfo", []byte("[Trash Info]\nPath=/nodate\nDeletionDate=yesterday\n"), 0o600))
	must(t, os.WriteFile(l.T+"/files/nodate", nil, 0o600))
	must(t, os.WriteFile(l.T+"/info/nodata.trashinfo", []byte("[Trash Info]\nPath=/nodata\n"), 0o600))
	must(t, os.Symlink("good.trashinfo", l.T+"/info/link.trashinfo"))
	must(t, os.Mkdir(l.T+"/info/dir.trashinfo", 0o700))
	must(t, os.WriteFile(l.T+"/info/.trashinfo", []byte("x"), 0o600))
	must(t, os.WriteFile(l.T+"/info/note", []byte("x"), 0o600))
	must(t, os.WriteFile(l.T+"/files/orphan", []byte("x"), 0o600))
	must(t, os.WriteFile(l.T+"/files/"+strings.Repeat("o", 255), []byte("x"), 0o600))
	must(t, os.WriteFile(l.T+"/directorysizes", []byte("nonsense\n1 2 good\n"), 0o600))
	states := map[record.State][]string{}
	for _, e := range l.list() {
		states[e.State] = append(states[e.State], e.Name)
	}
	for _, s := range states {
		slices.Sort(s)
	}
	if !slices.Equal(states[record.OK], []string{"good", "nodate"}) ||
		!slices.Equal(states[record.Broken], []string{"big", "dir", "dots", "empty", "escape", "link", "nodata", "nonsense", "nopath"}) ||
		!slices.Equal(states[record.Orphan], []string{strings.Repeat("o", 255), "orphan"}) {
		t.Errorf("%v", states)
	}
	if n := len(l.problems()); n != 9 {
		t.Errorf("problems %v", l.problems())
	}
}

// An entry of which only half of the trash is there.
func TestListOfHalfATrash(t *testing.T) {
	for _, half := range []string{"info", "files"} {
		l := newLab(t)
		e := l.put(l.write(l.W+"/f", "x"))
		must(t, os.RemoveAll(l.T+"/"+half))
		all := l.list()
		want := map[string]record.State{"info": record.Orphan, "files": record.Broken}[half]
		if len(all) != 1 || all[0].State != want {
			t.Fatalf("without %s: %+v", half, all)
		}
		if _, err := l.bin.Restore(t.Context(), e.ID, trash.RestoreOptions{}); err == nil {
			t.Error("restored")
		}
		done, err := l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: []string{all[0].ID}})
		if err != nil || len(done.Entries) != 1 || len(l.list()) != 0 {
			t.Errorf("emptied %+v %v", done, err)
		}
	}
}
