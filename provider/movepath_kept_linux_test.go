package provider_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// bin is a trash that is a directory.
type bin struct {
	dir    string
	refuse bool
}

func (b *bin) Put(_ context.Context, dir *anchor.Dir, name, path string, want anchor.Info, _ bool) (record.Entry, error) {
	if b.refuse {
		return record.Entry{}, &record.Error{Code: record.CodeFailed, Outcome: record.Failed, Op: "put", Cause: unix.EROFS}
	}
	to, err := anchor.OpenDir(b.dir)
	if err != nil {
		return record.Entry{}, err
	}
	defer to.Close()
	now, err := dir.Lstat(name)
	if err != nil || !now.SameFile(want) {
		return record.Entry{}, &record.Error{Code: record.CodeFailed, Outcome: record.Failed, Op: "put", Cause: err}
	}
	if err := dir.Rename(name, to, filepath.Base(path), anchor.NoReplace); err != nil {
		return record.Entry{}, &record.Error{Code: record.CodeFailed, Outcome: record.Failed, Op: "put", Cause: err}
	}
	return record.Entry{OriginalPath: path, Name: filepath.Base(path), TrashDir: b.dir}, nil
}

func (b *bin) Holds(path string) bool { return fence.PathCovers(b.dir, path) }

// trash.md section 6: what is overwritten can be kept.
func TestOverwrittenIsKept(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		for _, op := range []string{"move", "copy"} {
			for _, kind := range []string{"file", "link", "directory"} {
				for _, how := range []string{"kept", "refused", "no trash", "trash off", "not asked"} {
					t.Run(fmt.Sprintf("%s/%s/%s/lacks=%v", op, kind, how, lacks), func(t *testing.T) {
						keptCase(t, op, kind, how, lacks)
					})
				}
			}
		}
	}
}

func keptCase(t *testing.T, op, kind, how string, lacks bool) {
	base := t.TempDir()
	b := &bin{dir: base + "/bin", refuse: how == "refused"}
	must(t, os.Mkdir(b.dir, 0o700))
	c := provider.Config{Trash: b, TrashOff: how == "trash off"}
	if how == "no trash" {
		c.Trash = nil
	}
	p := newPlace(t, base, c)
	var err error
	p.f, err = fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: p.W, KeepOverwritten: how != "not asked"})
	must(t, err)
	if lacks {
		p.l.Lack(true, true, true)
	}
	switch kind {
	case "file":
		p.put("f", "new")
		p.put("g", "old")
	case "link":
		must(t, os.Symlink("new", p.W+"/f"))
		must(t, os.Symlink("old", p.W+"/g"))
	case "directory":
		p.grove("f")
		must(t, os.Mkdir(p.W+"/g", 0o700))
	}
	source, dest := whole(t, p.W+"/f"), whole(t, p.W+"/g")
	var replaced record.Outcome
	var trashed *record.Entry
	if op == "move" {
		var o provider.MovePathOutcome
		o, err = p.move("f", "g", true)
		replaced, trashed = o.Replaced, o.Trashed
	} else {
		var o provider.CopyPathOutcome
		o, err = p.copy("f", "g", true)
		replaced, trashed = o.Replaced, o.Trashed
	}
	kept := how == "kept" && !(lacks && kind == "directory") // an empty directory is lost with nothing
	switch {
	case how == "no trash":
		code(t, err, record.CodeUnavailable)
	case how == "refused" && !lacks:
		code(t, err, record.CodeFailed)
	case how == "refused":
		return // without an exchange nothing can be put back
	case kept:
		must(t, err)
		if replaced != record.Trashed || trashed == nil || trashed.OriginalPath != p.W+"/g" {
			t.Errorf("%s %+v", replaced, trashed)
		}
		if got := whole(t, b.dir+"/g"); got != dest {
			t.Errorf("in the trash: %s, want %s", got, dest)
		}
	default:
		must(t, err)
		if replaced != record.Deleted || trashed != nil {
			t.Errorf("%s %+v", replaced, trashed)
		}
	}
	if err != nil {
		if whole(t, p.W+"/f") != source || whole(t, p.W+"/g") != dest {
			t.Error("something was changed")
		}
		p.only("f", "g")
		return
	}
	if got := whole(t, p.W+"/g"); got != source {
		t.Errorf("%s, want %s", got, source)
	}
	if op == "move" {
		p.only("g")
	} else {
		p.only("f", "g")
	}
}
