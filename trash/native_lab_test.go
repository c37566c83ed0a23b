package trash_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
