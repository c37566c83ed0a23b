package trash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

func TestNativeRestore(t *testing.T) {
	ctx := context.Background()
	refusal := errors.New("the fence says no")
	for name, row := range map[string]struct {
		before  func(l *natLab)
		options func(l *natLab) trash.RestoreOptions
		id      string
		code    string // "" for success
		outcome record.Outcome
		at      string // where it is afterwards
		more    map[string]string
	}{
		"to where it was": {at: "W/sub/f"},
		"to another place": {
			options: func(l *natLab) trash.RestoreOptions {
				return trash.RestoreOptions{Destination: filepath.Join(l.W, "g")}
			},
			at: "W/g",
		},
		"through a link": {
			before: func(l *natLab) { natMust(l.t, os.Symlink("W", filepath.Join(l.Dir, "L"))) },
			options: func(l *natLab) trash.RestoreOptions {
				return trash.RestoreOptions{Destination: filepath.Join(l.Dir, "L", "g"), Allow: func(_ record.Entry, p string) error {
					if p != filepath.Join(l.W, "g") {
						l.t.Errorf("asked about %s", p)
					}
					return nil
				}}
			},
			at: "W/g",
		},
		"something is there": {
			before: func(l *natLab) { l.write("sub/f", "newer") },
			code:   "FS_ALREADY_EXISTS", outcome: record.Failed, at: "home/.Trash/f", more: map[string]string{"W/sub/f": "newer"},
		},
		"an empty directory is there": {
			before: func(l *natLab) { natMust(l.t, os.Mkdir(filepath.Join(l.W, "sub/f"), 0o755)) },
			code:   "FS_ALREADY_EXISTS", outcome: record.Failed, at: "home/.Trash/f", more: map[string]string{"W/sub/f": "directory"},
		},
		"a dangling link is there": {
			before: func(l *natLab) { natMust(l.t, os.Symlink("nowhere", filepath.Join(l.W, "sub/f"))) },
			code:   "FS_ALREADY_EXISTS", outcome: record.Failed, at: "home/.Trash/f", more: map[string]string{"W/sub/f": "link nowhere"},
		},
		"the parent is missing": {
			before: func(l *natLab) { natMust(l.t, os.Remove(filepath.Join(l.W, "sub"))) },
			code:   "FS_NOT_FOUND", outcome: record.Failed, at: "home/.Trash/f", more: map[string]string{"W/sub": "absent"},
		},
		"the parent is made": {
			before:  func(l *natLab) { natMust(l.t, os.Remove(filepath.Join(l.W, "sub"))) },
			options: func(*natLab) trash.RestoreOptions { return trash.RestoreOptions{Parents: true} },
			at:      "W/sub/f",
		},
		"the fence refuses": {
			before: func(l *natLab) { natMust(l.t, os.Remove(filepath.Join(l.W, "sub"))) },
			options: func(*natLab) trash.RestoreOptions {
				return trash.RestoreOptions{Parents: true, Allow: func(record.Entry, string) error { return refusal }}
			},
			code: "refusal", at: "home/.Trash/f", more: map[string]string{"W/sub": "absent"},
		},
		"into the trash": {
			options: func(l *natLab) trash.RestoreOptions {
				return trash.RestoreOptions{Destination: filepath.Join(l.T, "g")}
			},
			code: record.CodeRejected, outcome: record.Rejected, at: "home/.Trash/f",
		},
		"among the records": {
			options: func(l *natLab) trash.RestoreOptions {
				return trash.RestoreOptions{Destination: filepath.Join(l.Records, "g")}
			},
			code: record.CodeRejected, outcome: record.Rejected, at: "home/.Trash/f",
		},
		"relative": {
			options: func(*natLab) trash.RestoreOptions { return trash.RestoreOptions{Destination: "g"} },
			code:    record.CodeRejected, outcome: record.Rejected, at: "home/.Trash/f",
		},
		"the trash was emptied": {
			before: func(l *natLab) { natMust(l.t, os.Remove(filepath.Join(l.T, "f"))) },
			code:   record.CodeBroken, outcome: record.Failed, more: map[string]string{"W/sub/f": "absent"},
		},
		"the trash is gone": {
			before: func(l *natLab) { natMust(l.t, os.RemoveAll(l.T)) },
			code:   record.CodeBroken, outcome: record.Failed, more: map[string]string{"W/sub/f": "absent"},
		},
		"another thing has its place": {
			before: func(l *natLab) {
				natMust(l.t, os.WriteFile(filepath.Join(l.T, "new"), []byte("other"), 0o644))
				natMust(l.t, os.Rename(filepath.Join(l.T, "new"), filepath.Join(l.T, "f")))
			},
			code: "FS_STALE_VERSION", outcome: record.Failed, more: map[string]string{"W/sub/f": "absent", "home/.Trash/f": "other"},
		},
		"no such id":      {id: strings.Repeat("a", 20), code: record.CodeNotFound, outcome: record.Failed, at: "home/.Trash/f"},
		"an id as a path": {id: "../../../W/sub", code: record.CodeNotFound, outcome: record.Failed, at: "home/.Trash/f"},
		"a long path":     {id: "../../../../W/sub/abc"[1:], code: record.CodeNotFound, outcome: record.Failed, at: "home/.Trash/f"},
		"an empty id":     {id: " ", code: record.CodeNotFound, outcome: record.Failed, at: "home/.Trash/f"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newNatLab(t)
			e := l.put(l.write("sub/f", "x"))
			if row.before != nil {
				row.before(l)
			}
			var o trash.RestoreOptions
			if row.options != nil {
				o = row.options(l)
			}
			id := e.ID
			if row.id != "" {
				id = row.id
			}
			back, err := l.bin.Restore(ctx, id, o)
			switch row.code {
			case "":
				natMust(t, err)
				if back.Path != filepath.Join(l.Dir, row.at) || back.Entry.ID != e.ID || back.Copied {
					t.Errorf("restored %+v", back)
				}
				if all := l.list(); len(all) != 0 {
					t.Errorf("still listed: %+v", all)
				}
			case "refusal":
				if err != refusal {
					t.Errorf("error %v", err)
				}
			default:
				var re *record.Error
				if !errors.As(err, &re) || re.Code != row.code || re.Outcome != row.outcome {
					t.Errorf("error %v, not %s", err, row.code)
				}
				if len(l.list()) != 1 {
					t.Errorf("the record is gone")
				}
			}
			if row.at != "" {
				l.expect(row.at, "x")
			}
			for at, want := range row.more {
				l.expect(at, want)
			}
		})
	}
}

// Directories and links come back as they were; a link is never followed.
func TestNativeKinds(t *testing.T) {
	l := newNatLab(t)
	l.write("d/a/b", "deep")
	natMust(t, os.Mkdir(filepath.Join(l.W, "empty"), 0o750))
	kinds := map[string]string{"d": "directory", "empty": "directory"}
	if runtime.GOOS != "windows" {
		natMust(t, os.Symlink("nope", filepath.Join(l.W, "dangling")))
		natMust(t, os.Symlink("d", filepath.Join(l.W, "ld")))
		kinds["dangling"], kinds["ld"] = "symlink", "symlink"
	}
	for _, name := range []string{"ld", "dangling", "empty", "d"} {
		kind, ok := kinds[name]
		if !ok {
			continue
		}
		before := l.state("W/" + name)
		e := l.put(filepath.Join(l.W, name))
		if e.Type != kind || l.one().Type != kind || l.one().State != record.OK {
			t.Errorf("%s: %+v, listed %+v", name, e, l.one())
		}
		l.expect("W/"+name, "absent")
		_, err := l.bin.Restore(context.Background(), e.ID, trash.RestoreOptions{})
		natMust(t, err)
		l.expect("W/"+name, before)
		l.expect("W/d/a/b", "deep")
	}
}

// What was overwritten lies beside its place, under a hidden name: the system is
// asked for it there, and it goes back to its place.
func TestNativeUnderAHiddenName(t *testing.T) {
	l := newNatLab(t)
	l.write(".hidden-1", "old")
	p := l.write("f", "new")
	d, err := anchor.OpenDir(l.W)
	natMust(t, err)
	defer d.Close()
	want, err := d.Lstat(".hidden-1")
	natMust(t, err)
	e, err := l.bin.Put(context.Background(), d, ".hidden-1", p, want, false)
	natMust(t, err)
	if e.OriginalPath != p || e.State != record.OK {
		t.Errorf("%+v", e)
	}
	l.expect("W/f", "new")
	l.expect("W/.hidden-1", "absent")
	natMust(t, os.Remove(p))
	_, err = l.bin.Restore(context.Background(), e.ID, trash.RestoreOptions{})
	natMust(t, err)
	l.expect("W/f", "old")
	for _, name := range []string{"a/b", "..", "", "."} {
		_, err := l.bin.Put(context.Background(), d, name, p, want, false)
		natError(t, err, record.CodeRejected, record.Rejected, record.ReasonInvalidPath)
	}
	l.expect("W/f", "old")
}
