package trash_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// killed runs a child that must die by its own hand.
func killed(t *testing.T, o order) {
	t.Helper()
	out, err := child(t, o, false).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %q: %v %s", o.Kill, err, out)
	}
}

// consistent: no data without a record that names it, and no record that
// claims data that is still in place. It gives the entries.
func consistent(t *testing.T, l *lab, path, before string) []record.Entry {
	t.Helper()
	_, err := os.Lstat(path)
	inPlace := err == nil
	all := l.list()
	claimed := 0
	for _, e := range all {
		switch e.State {
		case record.Orphan:
			t.Errorf("data without a record: %+v", e)
		case record.OK:
			if claimed++; e.OriginalPath != path || inPlace {
				t.Errorf("claims what is in place: %+v", e)
			}
			if after := shot(t, e.TrashDir+"/files/"+e.Name); after != before {
				t.Errorf("was %s, is %s", before, after)
			}
		case record.Broken:
			if !inPlace && claimed == 0 && e.Type == "other" && e.OriginalPath == path {
				t.Errorf("nothing is anywhere: %+v", e)
			}
		}
	}
	if inPlace {
		if after := shot(t, path); after != before {
			t.Errorf("was %s, is %s", before, after)
		}
	} else if claimed != 1 {
		t.Errorf("%d records claim it: %+v", claimed, all)
	}
	return all
}

// points runs an order with a hook that only notes the steps.
func points(t *testing.T, plain bool, do func(b *trash.Bin, l *lab)) []string {
	t.Helper()
	l := newLab(t)
	if plain {
		l.bin.SetPlainRename()
	}
	var all []string
	l.bin.SetHook(func(p string) { all = append(all, p) })
	do(l.bin, l)
	if len(all) < 2 {
		t.Fatalf("steps %v", all)
	}
	return all
}

// Death between every two steps of a put.
func TestKilledWhilePutting(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, kind := range []string{"file", "directory"} {
			make := func(l *lab) string {
				if kind == "directory" {
					l.write(l.W+"/x/sub/f", "deep")
					dress(t, l.W+"/x", 0o750)
					return l.W + "/x"
				}
				return l.write(l.W+"/x", "text")
			}
			for _, at := range points(t, plain, func(_ *trash.Bin, l *lab) { l.put(make(l)) }) {
				name := kind + "/" + at
				if plain {
					name += "/placeholder"
				}
				t.Run(name, func(t *testing.T) {
					l := newLab(t)
					path := make(l)
					before := shot(t, path)
					killed(t, order{Do: "put", Data: l.Data, Path: path, Kill: at, Plain: plain})
					for _, e := range consistent(t, l, path, before) {
						if e.State == record.OK {
							l.restore(e.ID)
							if after := shot(t, path); after != before {
								t.Errorf("was %s, is %s", before, after)
							}
							continue
						}
						// What is left of it goes by its id.
						done, err := l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: []string{e.ID}})
						if err != nil || len(done.Entries) != 1 {
							t.Errorf("emptied %+v %v", done, err)
						}
					}
					// And the next put is not in its way.
					l.put(path)
				})
			}
		}
	}
}

// Death between every two steps of a restore: the thing is here or there, and
// whole.
func TestKilledWhileRestoring(t *testing.T) {
	for _, at := range points(t, false, func(_ *trash.Bin, l *lab) { l.restore(l.put(l.write(l.W+"/x", "text")).ID) }) {
		t.Run(at, func(t *testing.T) {
			l := newLab(t)
			path := l.write(l.W+"/x", "text")
			before := shot(t, path)
			e := l.put(path)
			switch at {
			case "restoring", "restored", "forgotten":
			default:
				t.Skip("SKIP: a step of putting")
			}
			killed(t, order{Do: "restore", Data: l.Data, ID: e.ID, Kill: at})
			consistent(t, l, path, before)
		})
	}
}

func TestKilledWhileEmptying(t *testing.T) {
	l := newLab(t)
	e := l.put(l.write(l.W+"/x", "text"))
	killed(t, order{Do: "empty", Data: l.Data, ID: e.ID, Kill: "erased"})
	all := l.list()
	if len(all) != 1 || all[0].State != record.Broken {
		t.Fatalf("list %+v", all)
	}
	done, err := l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: []string{all[0].ID}})
	if err != nil || len(done.Entries) != 1 || len(l.list()) != 0 {
		t.Errorf("emptied %+v %v", done, err)
	}
}

// Death between every two steps of a copy into the home trash.
func TestKilledWhileCopying(t *testing.T) {
	needRoot(t)
	make := func(l *lab) string {
		v := l.Dir + "/V"
		tmpfs(l.t, v, "")
		// No trash can be made here.
		must(l.t, os.WriteFile(v+"/.Trash-0", nil, 0o600))
		l.write(v+"/x/sub/f", strings.Repeat("deep", 10_000))
		must(l.t, os.Symlink("sub", v+"/x/l"))
		dress(l.t, v+"/x", 0o750)
		return v + "/x"
	}
	steps := points(t, false, func(b *trash.Bin, l *lab) {
		if _, err := put(t.Context(), b, make(l), true); err != nil {
			t.Fatal(err)
		}
	})
	for _, at := range steps {
		t.Run(at, func(t *testing.T) {
			l := newLab(t)
			path := make(l)
			before := shot(t, path)
			killed(t, order{Do: "put", Data: l.Data, Path: path, Across: true, Kill: at})
			consistent(t, l, path, before)
		})
	}
}

// Many processes trash the same name at once: all land, each whole.
func TestManyProcessesOneName(t *testing.T) {
	const n = 64
	l := newLab(t)
	var running []*exec.Cmd
	for i := range n {
		dir := l.W + "/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		path := l.write(dir+"/same.txt", dir)
		c := child(t, order{Do: "put", Data: l.Data, Path: path}, false)
		var out strings.Builder
		c.Stdout = &out
		must(t, c.Start())
		running = append(running, c)
	}
	ids := map[string]bool{}
	for _, c := range running {
		must(t, c.Wait())
		var a answer
		must(t, json.Unmarshal([]byte(c.Stdout.(*strings.Builder).String()), &a))
		if a.Code != "" {
			t.Errorf("%+v", a)
		}
		ids[a.Entry.ID] = true
	}
	all := l.list()
	if len(all) != n || len(ids) != n {
		t.Fatalf("%d entries, %d ids", len(all), len(ids))
	}
	for _, e := range all {
		if e.State != record.OK || !ids[e.ID] {
			t.Errorf("entry %+v", e)
		}
		l.restore(e.ID)
		is(t, e.OriginalPath, filepath.Dir(e.OriginalPath))
	}
}
