package trash_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// natLab is a workspace, a data directory, and the trash of a system that is a
// fake: it moves things into T, and does what a test makes it do besides.
type natLab struct {
	t          testing.TB
	Dir, W, T  string
	Records    string
	bin        *trash.Bin
	calls      atomic.Int32
	do         func(path string) (string, error) // instead of move
	refuse     *record.Error
	companions bool
	limit      time.Duration
}

var natNow = time.Date(2024, 5, 6, 7, 8, 9, 0, time.Local)

func newNatLab(t testing.TB, with ...func(*natLab)) *natLab {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	natMust(t, err)
	l := &natLab{t: t, Dir: dir, W: filepath.Join(dir, "W"), T: filepath.Join(dir, "home", ".Trash"), Records: filepath.Join(dir, "data", "wattle", "trash"), limit: time.Minute}
	natMust(t, os.Mkdir(l.W, 0o755))
	natMust(t, os.MkdirAll(l.T, 0o700))
	l.do = l.move
	for _, w := range with {
		w(l)
	}
	l.bin = trash.NewNativeBin(l.config(), l.limit, trash.FakeSystem{
		Trash:  func(p string) (string, error) { l.calls.Add(1); return l.do(p) },
		Refuse: func(string) *record.Error { return l.refuse },
		Companion: func(landed string) string {
			if rest, ok := strings.CutPrefix(landed, "$R"); ok && l.companions {
				return "$I" + rest
			}
			return ""
		},
	})
	return l
}

func (l *natLab) config() trash.Config {
	return trash.Config{DataHome: filepath.Join(l.Dir, "data"), UID: os.Getuid(), Now: func() time.Time { return natNow }}
}

func natMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// move is what a system does.
func (l *natLab) move(path string) (string, error) {
	to := filepath.Join(l.T, filepath.Base(path))
	for n := 'a'; ; n++ {
		if _, err := os.Lstat(to); err != nil {
			break
		}
		to = filepath.Join(l.T, filepath.Base(path)+" "+string(n))
	}
	return to, os.Rename(path, to)
}

func (l *natLab) write(rel, text string) string {
	l.t.Helper()
	p := filepath.Join(l.W, rel)
	natMust(l.t, os.MkdirAll(filepath.Dir(p), 0o755))
	natMust(l.t, os.WriteFile(p, []byte(text), 0o644))
	return p
}

func (l *natLab) try(ctx context.Context, path string) (record.Entry, error) {
	l.t.Helper()
	d, err := anchor.OpenDir(filepath.Dir(path))
	natMust(l.t, err)
	defer d.Close()
	want, err := d.Lstat(filepath.Base(path))
	natMust(l.t, err)
	return l.bin.Put(ctx, d, filepath.Base(path), path, want, false)
}

func (l *natLab) put(path string) record.Entry {
	l.t.Helper()
	e, err := l.try(context.Background(), path)
	natMust(l.t, err)
	return e
}

func (l *natLab) list() []record.Entry {
	l.t.Helper()
	all, err := l.bin.List(context.Background())
	natMust(l.t, err)
	return all.Entries
}

func (l *natLab) one() record.Entry {
	l.t.Helper()
	all := l.list()
	if len(all) != 1 {
		l.t.Fatalf("%d entries, not 1: %+v", len(all), all)
	}
	return all[0]
}

// state is the disk in a few words: path relative to the lab, then content.
func (l *natLab) state(rel string) string {
	p := filepath.Join(l.Dir, rel)
	fi, err := os.Lstat(p)
	switch {
	case err != nil:
		return "absent"
	case fi.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(p)
		return "link " + to
	case fi.IsDir():
		return "directory"
	case !fi.Mode().IsRegular():
		return "special"
	}
	b, _ := os.ReadFile(p)
	return string(b)
}

func (l *natLab) expect(rel, want string) {
	l.t.Helper()
	if got := l.state(rel); got != want {
		l.t.Errorf("%s is %q, not %q", rel, got, want)
	}
}

func natError(t testing.TB, err error, code string, o record.Outcome, r record.Reason) *record.Error {
	t.Helper()
	var e *record.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is none of the trash", err)
	}
	if e.Code != code || e.Outcome != o || e.Reason != r {
		t.Errorf("%s %s %s, not %s %s %s: %v", e.Code, e.Outcome, e.Reason, code, o, r, err)
	}
	return e
}

func TestNativeOutcomes(t *testing.T) {
	denied := trash.SystemError(fs.ErrPermission, "no permission (NSCocoaErrorDomain 513)")
	for name, row := range map[string]struct {
		do func(l *natLab, path string) (string, error)
		// code is "" for trashed.
		code    string
		outcome record.Outcome
		reason  record.Reason
		file    string // W/f afterwards
		records int
	}{
		"trashed": {
			do:   func(l *natLab, p string) (string, error) { return l.move(p) },
			file: "absent", records: 1,
		},
		"refused for want of permission": {
			do:   func(*natLab, string) (string, error) { return "", denied },
			code: "FS_PERMISSION_DENIED", outcome: record.Failed, reason: record.ReasonOperationFailed, file: "x",
		},
		"the volume has no trash": {
			do:   func(*natLab, string) (string, error) { return "", trash.SystemError(errors.ErrUnsupported, "no trash") },
			code: record.CodeUnavailable, outcome: record.Failed, reason: record.ReasonBackend, file: "x",
		},
		"refused, said to be absent": {
			do:   func(*natLab, string) (string, error) { return "", trash.SystemError(fs.ErrNotExist, "no such file") },
			code: record.CodeFailed, outcome: record.Failed, reason: record.ReasonOperationFailed, file: "x",
		},
		"refused for any reason, with a landing place": {
			do:   func(l *natLab, _ string) (string, error) { return filepath.Join(l.T, "f"), errors.New("in use") },
			code: record.CodeFailed, outcome: record.Failed, reason: record.ReasonOperationFailed, file: "x",
		},
		"failed after it moved": {
			do: func(l *natLab, p string) (string, error) {
				to, _ := l.move(p)
				return to, errors.New("crash")
			},
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "absent", records: 1,
		},
		"failed, and another thing is there": {
			do: func(l *natLab, p string) (string, error) {
				_, _ = l.move(p)
				return "", errors.Join(os.WriteFile(p, []byte("other"), 0o644), errors.New("crash"))
			},
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "other", records: 1,
		},
		"failed, out of time": {
			do:   func(*natLab, string) (string, error) { return "", context.DeadlineExceeded },
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonTimeout, file: "x", records: 1,
		},
		"success, and it is still there": {
			do:   func(l *natLab, _ string) (string, error) { return filepath.Join(l.T, "f"), nil },
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "x", records: 1,
		},
		"success by a copy": {
			do: func(l *natLab, p string) (string, error) {
				to := filepath.Join(l.T, "f")
				return to, os.WriteFile(to, []byte("x"), 0o644)
			},
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "x", records: 1,
		},
		"success by a second name": {
			do: func(l *natLab, p string) (string, error) {
				to := filepath.Join(l.T, "f")
				return to, os.Link(p, to)
			},
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "x", records: 1,
		},
		"success without a landing place: erased": {
			do:   func(l *natLab, p string) (string, error) { return "", os.Remove(p) },
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "absent", records: 1,
		},
		"success, and nothing is at the landing place": {
			do:   func(l *natLab, p string) (string, error) { return filepath.Join(l.T, "elsewhere"), os.Remove(p) },
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "absent", records: 1,
		},
		"success, and the landing place is relative": {
			do: func(l *natLab, p string) (string, error) {
				_, err := l.move(p)
				return "f", err
			},
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "absent", records: 1,
		},
		"success, and the landing place leads through ..": {
			do: func(l *natLab, p string) (string, error) {
				_, err := l.move(p)
				return l.T + "/../.Trash/f", err
			},
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "absent", records: 1,
		},
		"trashed, and a new thing is there": {
			do: func(l *natLab, p string) (string, error) {
				to, _ := l.move(p)
				return to, os.WriteFile(p, []byte("new"), 0o644)
			},
			file: "new", records: 1,
		},
		"another thing was swapped in": {
			do: func(l *natLab, p string) (string, error) {
				natMust(l.t, os.Rename(p, p+".kept"))
				natMust(l.t, os.WriteFile(p, []byte("swapped"), 0o644))
				return l.move(p)
			},
			code: "FS_STALE_VERSION", outcome: record.Failed, reason: record.ReasonOperationFailed, file: "swapped",
		},
		"another thing was swapped in, and there is no way back": {
			do: func(l *natLab, p string) (string, error) {
				natMust(l.t, os.Rename(p, p+".kept"))
				natMust(l.t, os.WriteFile(p, []byte("swapped"), 0o644))
				to, _ := l.move(p)
				return to, os.WriteFile(p, []byte("third"), 0o644)
			},
			code: record.CodeUnknown, outcome: record.Unknown, reason: record.ReasonOperationUnknown, file: "third", records: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newNatLab(t)
			l.do = func(p string) (string, error) { return row.do(l, p) }
			p := l.write("f", "x")
			e, err := l.try(context.Background(), p)
			l.expect("W/f", row.file)
			all := l.list()
			if len(all) != row.records {
				t.Errorf("%d records, not %d: %+v", len(all), row.records, all)
			}
			if n := l.calls.Load(); n != 1 {
				t.Errorf("the system was asked %d times", n)
			}
			if row.code == "" {
				natMust(t, err)
				if got := l.one(); got.State != record.OK || got.ID != e.ID || got.OriginalPath != p || got.TrashDir != l.T || got.Name != "f" || got.Type != "file" || *got.Size != 1 || got.DeletionDate != "2024-05-06T07:08:09" {
					t.Errorf("listed as %+v", got)
				}
				return
			}
			got := natError(t, err, row.code, row.outcome, row.reason)
			if row.code == record.CodeUnavailable && !strings.Contains(got.Error(), "permanently") {
				t.Errorf("%v names no way forward", got)
			}
			for _, e := range all {
				if e.State != record.Broken || e.OriginalPath != p {
					t.Errorf("listed as %+v", e)
				}
			}
			if (got.Outcome == record.Unknown) != (got.Entry != nil) {
				t.Errorf("entry %+v", got.Entry)
			}
		})
	}
}

// A call that takes too long is unknown, is not repeated, and is written down
// when it ends all the same.
func TestNativeTimeout(t *testing.T) {
	release := make(chan struct{})
	l := newNatLab(t, func(l *natLab) { l.limit = 50 * time.Millisecond })
	l.do = func(p string) (string, error) { <-release; return l.move(p) }
	p := l.write("f", "x")
	_, err := l.try(context.Background(), p)
	e := natError(t, err, record.CodeUnknown, record.Unknown, record.ReasonTimeout)
	l.expect("W/f", "x")
	if e.Entry == nil || l.one().ID != e.Entry.ID || l.one().State != record.Broken {
		t.Errorf("entry %+v, listed as %+v", e.Entry, l.one())
	}
	// Close waits, but not for ever.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.bin.Close(ctx)
	close(release)
	l.bin.Close(context.Background())
	l.expect("W/f", "absent")
	if got := l.one(); got.State != record.OK || got.ID != e.Entry.ID {
		t.Errorf("listed as %+v", got)
	}
	if n := l.calls.Load(); n != 1 {
		t.Errorf("the system was asked %d times", n)
	}
	back, err := l.bin.Restore(context.Background(), e.Entry.ID, trash.RestoreOptions{})
	natMust(t, err)
	l.expect("W/f", "x")
	if back.Path != p {
		t.Errorf("restored to %s", back.Path)
	}
}

// What the system answers too late, and is not true, is not written down.
func TestNativeLateLie(t *testing.T) {
	release := make(chan struct{})
	l := newNatLab(t, func(l *natLab) { l.limit = 50 * time.Millisecond })
	l.do = func(p string) (string, error) { <-release; return filepath.Join(l.T, "f"), nil }
	p := l.write("f", "x")
	_, err := l.try(context.Background(), p)
	natError(t, err, record.CodeUnknown, record.Unknown, record.ReasonTimeout)
	close(release)
	l.bin.Close(context.Background())
	l.expect("W/f", "x")
	if got := l.one(); got.State != record.Broken {
		t.Errorf("listed as %+v", got)
	}
}

// A system that answers nothing gets no more calls, and what waits for it stays
// in place.
func TestNativeStuck(t *testing.T) {
	release := make(chan struct{})
	l := newNatLab(t, func(l *natLab) { l.limit = 50 * time.Millisecond })
	l.do = func(p string) (string, error) { <-release; return l.move(p) }
	for i := range trash.MaxNativeCalls {
		_, err := l.try(context.Background(), l.write("f"+string(rune('0'+i)), "x"))
		natError(t, err, record.CodeUnknown, record.Unknown, record.ReasonTimeout)
	}
	p := l.write("last", "x")
	_, err := l.try(context.Background(), p)
	natError(t, err, record.CodeUnavailable, record.Failed, record.ReasonBackend)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = l.try(ctx, p)
	natError(t, err, "FS_ABORTED", record.Failed, record.ReasonOperationFailed)
	if n := l.calls.Load(); n != trash.MaxNativeCalls {
		t.Errorf("the system was asked %d times", n)
	}
	close(release)
	l.bin.Close(context.Background())
	l.expect("W/last", "x")
	if n := len(l.list()); n != trash.MaxNativeCalls {
		t.Errorf("%d records", n)
	}
	l.put(p)
}

// Whatever is refused beforehand is in place, the system was not asked, and
// there is no record.
func TestNativeRefusals(t *testing.T) {
	for name, row := range map[string]struct {
		make    func(l *natLab) string // the path
		path    func(p string) string  // what is said to be its path
		put     func(l *natLab, p string) error
		code    string
		outcome record.Outcome
		reason  record.Reason
	}{
		"the system would erase it": {
			make: func(l *natLab) string {
				l.refuse = &record.Error{Code: record.CodeUnavailable, Outcome: record.Failed, Reason: record.ReasonBackend}
				return l.write("f", "x")
			},
			code: record.CodeUnavailable, outcome: record.Failed, reason: record.ReasonBackend,
		},
		"not clean": {
			make: func(l *natLab) string { return l.write("f", "x") },
			path: func(p string) string { return filepath.Dir(p) + "/./f" },
			code: record.CodeRejected, outcome: record.Rejected, reason: record.ReasonInvalidPath,
		},
		"relative": {
			make: func(l *natLab) string { return l.write("f", "x") },
			path: func(string) string { return "f" },
			code: record.CodeRejected, outcome: record.Rejected, reason: record.ReasonInvalidPath,
		},
		"another name": {
			make: func(l *natLab) string { return l.write("f", "x") },
			path: func(p string) string { return p + "2" },
			code: record.CodeRejected, outcome: record.Rejected, reason: record.ReasonInvalidPath,
		},
		"in the trash": {
			make: func(l *natLab) string {
				p := filepath.Join(l.T, "f")
				natMust(l.t, os.WriteFile(p, []byte("x"), 0o644))
				return p
			},
			code: record.CodeRejected, outcome: record.Rejected, reason: record.ReasonProtected,
		},
		"the trash": {
			make: func(l *natLab) string { return l.T },
			code: record.CodeRejected, outcome: record.Rejected, reason: record.ReasonProtected,
		},
		"contains a trash": {
			make: func(l *natLab) string {
				p := filepath.Join(l.W, "volume")
				natMust(l.t, os.MkdirAll(filepath.Join(p, ".Trashes"), 0o755))
				natMust(l.t, os.Rename(filepath.Join(p, ".Trashes"), filepath.Join(p, ".trashes")))
				return p
			},
			code: record.CodeRejected, outcome: record.Rejected, reason: record.ReasonProtected,
		},
		"contains the records": {
			make: func(l *natLab) string {
				l.put(l.write("g", "x"))
				l.calls.Store(0)
				natMust(l.t, os.Remove(filepath.Join(l.T, "g")))
				_, err := l.bin.Empty(context.Background(), trash.EmptyOptions{})
				natMust(l.t, err)
				return filepath.Join(l.Dir, "data", "wattle")
			},
			code: record.CodeRejected, outcome: record.Rejected, reason: record.ReasonProtected,
		},
		"another thing than meant": {
			make: func(l *natLab) string { return l.write("f", "x") },
			put: func(l *natLab, p string) error {
				d, err := anchor.OpenDir(l.W)
				natMust(l.t, err)
				defer d.Close()
				want, err := d.Lstat("f")
				natMust(l.t, err)
				natMust(l.t, os.Rename(p, p+".kept"))
				l.write("f", "longer")
				_, err = l.bin.Put(context.Background(), d, "f", p, want, false)
				return err
			},
			code: "FS_STALE_VERSION", outcome: record.Failed, reason: record.ReasonOperationFailed,
		},
		"the directory is elsewhere, and another is at the path": {
			make: func(l *natLab) string { return l.write("d/f", "x") },
			put: func(l *natLab, p string) error {
				d, err := anchor.OpenDir(filepath.Dir(p))
				natMust(l.t, err)
				defer d.Close()
				want, err := d.Lstat("f")
				natMust(l.t, err)
				natMust(l.t, os.Rename(filepath.Join(l.W, "d"), filepath.Join(l.W, "moved")))
				l.write("d/f", "innocent")
				_, err = l.bin.Put(context.Background(), d, "f", p, want, false)
				return err
			},
			code: "FS_STALE_VERSION", outcome: record.Failed, reason: record.ReasonOperationFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newNatLab(t)
			p := row.make(l)
			var err error
			switch {
			case row.put != nil:
				err = row.put(l, p)
			default:
				d, derr := anchor.OpenDir(filepath.Dir(p))
				natMust(t, derr)
				defer d.Close()
				want, derr := d.Lstat(filepath.Base(p))
				natMust(t, derr)
				said := p
				if row.path != nil {
					said = row.path(p)
				}
				_, err = l.bin.Put(context.Background(), d, filepath.Base(p), said, want, false)
			}
			natError(t, err, row.code, row.outcome, row.reason)
			if n := l.calls.Load(); n != 0 {
				t.Errorf("the system was asked %d times", n)
			}
			if l.state(strings.TrimPrefix(p, l.Dir)) == "absent" {
				t.Error("it is gone")
			}
			if all := l.list(); len(all) != 0 {
				t.Errorf("records: %+v", all)
			}
		})
	}
}

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
				return trash.RestoreOptions{Destination: filepath.Join(l.Dir, "L", "g"), Allow: func(p string) error {
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
				return trash.RestoreOptions{Parents: true, Allow: func(string) error { return refusal }}
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

func TestNativeEmpty(t *testing.T) {
	ctx := context.Background()
	l := newNatLab(t)
	natMust(t, os.WriteFile(filepath.Join(l.T, "foreign"), []byte("y"), 0o644))
	one, two, three, four := l.put(l.write("one", "x")), l.put(l.write("two", "x")), l.put(l.write("three/sub/f", "12345")), l.put(l.write("four", "x"))
	if three.Name != "f" {
		t.Fatalf("%+v", three)
	}
	three = l.put(filepath.Join(l.W, "three"))
	natMust(t, os.Rename(filepath.Join(l.T, "foreign"), filepath.Join(l.T, "two"))) // another thing has its place

	done, err := l.bin.Empty(ctx, trash.EmptyOptions{IDs: []string{one.ID, two.ID, "nothing", strings.Repeat("q", 20)}})
	natMust(t, err)
	if len(done.Entries) != 1 || done.Entries[0].ID != one.ID || done.Files != 1 || done.Bytes != 1 || len(done.Left) != 3 {
		t.Errorf("emptied %+v", done)
	}
	natError(t, done.Left[0].Err, "FS_STALE_VERSION", record.Failed, record.ReasonOperationFailed)
	natError(t, done.Left[1].Err, record.CodeNotFound, record.Failed, record.ReasonOperationFailed)
	l.expect("home/.Trash/one", "absent")
	l.expect("home/.Trash/two", "y")

	done, err = l.bin.Empty(ctx, trash.EmptyOptions{OlderThan: time.Hour})
	natMust(t, err)
	if len(done.Entries) != 0 || len(l.list()) != 4 {
		t.Errorf("emptied %+v, listed %+v", done, l.list())
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	_, err = l.bin.Empty(stopped, trash.EmptyOptions{})
	natError(t, err, "FS_ABORTED", record.Failed, record.ReasonOperationFailed)
	if n := len(l.list()); n != 4 {
		t.Errorf("%d records", n)
	}
	done, err = l.bin.Empty(ctx, trash.EmptyOptions{})
	natMust(t, err)
	if len(done.Entries) != 4 || len(done.Left) != 0 || len(l.list()) != 0 {
		t.Errorf("emptied %+v, listed %+v", done, l.list())
	}
	// What is not ours by its record stays.
	l.expect("home/.Trash/two", "y")
	l.expect("home/.Trash/three", "absent")
	l.expect("home/.Trash/four", "absent")
	_ = four
	_ = three
}

// What the system keeps beside the data goes when the data goes.
func TestNativeCompanion(t *testing.T) {
	l := newNatLab(t, func(l *natLab) { l.companions = true })
	l.do = func(p string) (string, error) {
		to := filepath.Join(l.T, "$R"+filepath.Base(p))
		natMust(t, os.WriteFile(filepath.Join(l.T, "$I"+filepath.Base(p)), []byte(p), 0o600))
		return to, os.Rename(p, to)
	}
	a, b := l.put(l.write("a", "x")), l.put(l.write("b", "x"))
	l.expect("home/.Trash/$Ia", filepath.Join(l.W, "a"))
	_, err := l.bin.Restore(context.Background(), a.ID, trash.RestoreOptions{})
	natMust(t, err)
	_, err = l.bin.Empty(context.Background(), trash.EmptyOptions{IDs: []string{b.ID}})
	natMust(t, err)
	left, err := os.ReadDir(l.T)
	natMust(t, err)
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	l.expect("W/a", "x")

	// Also when it was another thing, and goes back.
	move := l.do
	l.do = func(p string) (string, error) {
		natMust(t, os.Rename(p, p+".kept"))
		l.write("a", "swapped")
		return move(p)
	}
	_, err = l.try(context.Background(), filepath.Join(l.W, "a"))
	natError(t, err, "FS_STALE_VERSION", record.Failed, record.ReasonOperationFailed)
	l.expect("W/a", "swapped")
	if left, err := os.ReadDir(l.T); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Records that say nothing, or say it half, are broken and never crash a list.
func TestNativeRecords(t *testing.T) {
	whole := "[Trash Info]\nPath=%s\nDeletionDate=2024-05-06T07:08:09\nX-Wattle-Type=file\n"
	for name, row := range map[string]struct {
		text  func(l *natLab) string
		state record.State
	}{
		"empty":                {func(*natLab) string { return "" }, record.Broken},
		"no heading":           {func(*natLab) string { return "Path=/x\n" }, record.Broken},
		"a relative path":      {func(*natLab) string { return strings.Replace(whole, "%s", "x", 1) }, record.Broken},
		"a path through ..":    {func(l *natLab) string { return strings.Replace(whole, "%s", l.W+"/../x", 1) }, record.Broken},
		"no landing place":     {func(l *natLab) string { return strings.Replace(whole, "%s", l.W+"/f", 1) }, record.Broken},
		"half a landing place": {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Landing=" + l.T + "/f" }, record.Broken},
		"a whole one":          {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Landing=" + l.T + "/f\n" }, record.OK},
		"the first counts": {func(l *natLab) string {
			return l.text(whole, "f") + "X-Wattle-Landing=" + l.T + "/f\nX-Wattle-Landing=/etc/passwd\n"
		}, record.OK},
		"a relative landing":   {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Landing=f\n" }, record.Broken},
		"a landing through ..": {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Landing=" + l.T + "/../f\n" }, record.Broken},
		"a landing with NUL":   {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Landing=" + l.T + "/f%00\n" }, record.Broken},
		"another type": {func(l *natLab) string {
			return strings.Replace(l.text(whole, "f"), "=file", "=directory", 1) + "X-Wattle-Landing=" + l.T + "/f\n"
		}, record.Broken},
		"no type that there is": {func(l *natLab) string { return strings.Replace(l.text(whole, "f"), "=file", "=disk", 1) }, record.Broken},
		"an inode in letters":   {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Inode=abc\n" }, record.Broken},
		"another inode": {func(l *natLab) string {
			return l.text(whole, "f") + "X-Wattle-Inode=1\nX-Wattle-Landing=" + l.T + "/f\n"
		}, record.Broken},
		"longer than allowed":     {func(l *natLab) string { return l.text(whole, "f") + strings.Repeat("X", record.MaxInfo) }, record.Broken},
		"percent without digits":  {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Landing=" + l.T + "/%f\n" }, record.Broken},
		"a landing with a plus +": {func(l *natLab) string { return l.text(whole, "f") + "X-Wattle-Landing=" + l.T + "/f+g\n" }, record.OK},
	} {
		t.Run(name, func(t *testing.T) {
			if filepath.Separator != '/' {
				t.Skip("SKIP: paths of another form")
			}
			l := newNatLab(t)
			natMust(t, os.WriteFile(filepath.Join(l.T, "f"), []byte("x"), 0o644))
			natMust(t, os.WriteFile(filepath.Join(l.T, "f+g"), []byte("x"), 0o644))
			natMust(t, os.MkdirAll(l.Records, 0o700))
			id := strings.Repeat("a", 20)
			natMust(t, os.WriteFile(filepath.Join(l.Records, id+".trashinfo"), []byte(row.text(l)), 0o600))
			natMust(t, os.WriteFile(filepath.Join(l.Records, "README"), nil, 0o600)) // no record
			got := l.one()
			if got.State != row.state || got.ID != id || got.Name == "" {
				t.Errorf("listed as %+v", got)
			}
			all, err := l.bin.List(context.Background())
			natMust(t, err)
			if (len(all.Problems) == 1) != (row.state == record.Broken) {
				t.Errorf("problems %+v", all.Problems)
			}
			if row.state == record.Broken {
				_, err := l.bin.Restore(context.Background(), id, trash.RestoreOptions{Destination: filepath.Join(l.W, "g")})
				var re *record.Error
				if !errors.As(err, &re) || re.Code != record.CodeBroken && re.Code != "FS_STALE_VERSION" {
					t.Errorf("restored with %v", err)
				}
				l.expect("home/.Trash/f", "x")
				l.expect("W/g", "absent")
				_, err = l.bin.Empty(context.Background(), trash.EmptyOptions{})
				natMust(t, err)
				l.expect("home/.Trash/f", "x")
				if n := len(l.list()); n != 0 {
					t.Errorf("%d records left", n)
				}
			}
		})
	}
}

func (l *natLab) text(form, name string) string {
	return strings.Replace(form, "%s", filepath.Join(l.W, name), 1)
}

// A path with any bytes comes back from its record as it was.
func TestNativeNames(t *testing.T) {
	l := newNatLab(t)
	names := []string{"a b%+é;c", "-rf", "$(touch x)", "100%", strings.Repeat("n", 200)}
	if runtime.GOOS != "windows" {
		names = append(names, "line\nbreak", `"quo'te\`, "tab\t", "*?")
	}
	for _, name := range names {
		e := l.put(l.write(name, name))
		if e.OriginalPath != filepath.Join(l.W, name) || !slices.ContainsFunc(l.list(), func(f record.Entry) bool { return f == e || f.ID == e.ID && f.Name == e.Name && f.State == record.OK }) {
			t.Errorf("%q: %+v", name, e)
		}
		_, err := l.bin.Restore(context.Background(), e.ID, trash.RestoreOptions{})
		natMust(t, err)
		l.expect("W/"+name, name)
	}
}

// Two of one name are two entries, and each comes back as itself.
func TestNativeSameName(t *testing.T) {
	l := newNatLab(t)
	first := l.put(l.write("f", "first"))
	second := l.put(l.write("f", "second"))
	if first.ID == second.ID || first.Name == second.Name || len(l.list()) != 2 {
		t.Fatalf("%+v, %+v", first, second)
	}
	for id, want := range map[string]string{first.ID: "first", second.ID: "second"} {
		_, err := l.bin.Restore(context.Background(), id, trash.RestoreOptions{Destination: filepath.Join(l.W, want)})
		natMust(t, err)
		l.expect("W/"+want, want)
	}
}

func TestNativeHoldsAndDirs(t *testing.T) {
	l := newNatLab(t)
	if d := l.bin.Dirs(); len(d) != 0 {
		t.Errorf("dirs %v before anything was put", d)
	}
	l.put(l.write("f", "x"))
	if d := l.bin.Dirs(); !slices.Equal(d, []string{l.Records, l.T}) {
		t.Errorf("dirs %v", d)
	}
	for path, want := range map[string]bool{
		l.T: true, filepath.Join(l.T, "f"): true, filepath.Dir(l.T): runtime.GOOS != "linux", l.W: false, filepath.Join(l.W, "f"): false,
		filepath.Join(l.Dir, "home", ".TRASH", "x"): true, l.Records: true, filepath.Dir(l.Records): true, filepath.Join(l.Records, "x"): true,
		l.Dir: true, filepath.Join(l.W, "wattle"): false, "relative": false, filepath.Join(l.W, ".Trash-1000"): false,
	} {
		if got := l.bin.Holds(path); got != want {
			t.Errorf("holds %s: %v", path, got)
		}
	}
	natMust(t, os.Mkdir(filepath.Join(l.W, ".trash"), 0o700))
	if !l.bin.Holds(l.W) {
		t.Error("a trash directory beneath is not seen")
	}
}
