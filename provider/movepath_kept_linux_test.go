package provider_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

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
	b := newBin(t, base)
	if how == "refused" {
		b.refuse = func(string) error {
			return &record.Error{Code: record.CodeFailed, Outcome: record.Failed, Op: "put", Cause: unix.EROFS}
		}
	}
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
			t.Fatalf("%s %+v", replaced, trashed)
		}
		if got := whole(t, b.dir+"/files/"+trashed.Name); got != dest {
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
