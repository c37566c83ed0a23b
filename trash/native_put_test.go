package trash_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

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
