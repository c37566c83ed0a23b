package trash_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

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
		"contains the records, by a link": {
			make: func(l *natLab) string {
				natMust(l.t, os.MkdirAll(filepath.Join(l.W, "d", "real"), 0o700))
				natMust(l.t, os.Symlink(filepath.Join(l.W, "d", "real"), filepath.Join(l.Dir, "data")))
				return filepath.Join(l.W, "d")
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
