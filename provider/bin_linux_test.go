package provider_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// bin is a trash as small as one can be: a directory whose refusals a test can
// choose. It keeps the promises of the interface: one rename, identity looked
// at afterwards, a foreign file put back.
type bin struct {
	dir string
	// refuse, if set, may turn a path down.
	refuse func(path string) error
}

// newBin makes one in base, or in a directory of its own.
func newBin(t *testing.T, base string) *bin {
	t.Helper()
	if base == "" {
		base = t.TempDir()
	}
	b := binIn(base)
	must(t, os.MkdirAll(b.dir+"/files", 0o700))
	return b
}

func binIn(base string) *bin { return &bin{dir: base + "/Trash"} }

func (b *bin) Put(ctx context.Context, dir *anchor.Dir, name, path string, want anchor.Info, _ bool) (record.Entry, error) {
	fail := func(code string, o record.Outcome, cause error) (record.Entry, error) {
		e := &record.Error{Code: code, Outcome: o, Op: "trash", Path: path, Cause: cause}
		var errno syscall.Errno
		if errors.As(cause, &errno) {
			e.Errno = map[syscall.Errno]string{syscall.EACCES: "EACCES", syscall.EPERM: "EPERM"}[errno]
		}
		return record.Entry{}, e
	}
	if b.refuse != nil {
		if err := b.refuse(path); err != nil {
			return record.Entry{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return fail(record.CodeFailed, record.Failed, err)
	}
	files, err := anchor.OpenDir(b.dir + "/files")
	if err != nil {
		return fail(record.CodeUnavailable, record.Failed, err)
	}
	defer files.Close()
	as := name + "." + rand.Text()
	if err := dir.Rename(name, files, as, anchor.NoReplace); err != nil {
		code := record.CodeFailed
		switch {
		case errors.Is(err, os.ErrPermission):
			code = string(provider.CodePermissionDenied)
		case errors.Is(err, os.ErrNotExist):
			code = string(provider.CodeStaleVersion)
		}
		return fail(code, record.Failed, err)
	}
	if i, err := files.Lstat(as); err != nil || !i.SameFile(want) {
		if err := files.Rename(as, dir, name, anchor.NoReplace); err != nil {
			return fail(record.CodeUnknown, record.Unknown, err)
		}
		return fail(string(provider.CodeStaleVersion), record.Failed, nil)
	}
	return record.Entry{ID: as, OriginalPath: path, TrashDir: b.dir, Name: as, State: record.OK}, nil
}

func (b *bin) Holds(path string) bool {
	return fence.PathCovers(b.dir, path) || fence.PathCovers(path, b.dir)
}

// has gives the contents of the files in the trash, sorted.
func (b *bin) has(t *testing.T) []string {
	t.Helper()
	var out []string
	es, err := os.ReadDir(b.dir + "/files")
	must(t, err)
	for _, e := range es {
		c, _ := os.ReadFile(b.dir + "/files/" + e.Name())
		out = append(out, string(c))
	}
	slices.Sort(out)
	return out
}
