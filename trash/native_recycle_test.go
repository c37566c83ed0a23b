package trash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

func TestRecycleDrives(t *testing.T) {
	const gb = 1 << 30
	for name, row := range map[string]struct {
		facts trash.BinFacts
		why   string // part of it; "" for yes
	}{
		"fixed, bin in use":          {trash.BinFacts{Drive: "fixed", Settings: true, Quota: gb, Volume: 100 * gb}, ""},
		"fixed, bin never used":      {trash.BinFacts{Drive: "fixed", Volume: 100 * gb}, ""},
		"fixed, no quota set":        {trash.BinFacts{Drive: "fixed", Settings: true, Volume: 100 * gb}, ""},
		"fixed, size unknown":        {trash.BinFacts{Drive: "fixed"}, "learned"},
		"removable":                  {trash.BinFacts{Drive: "removable", Settings: true, Quota: gb, Volume: gb}, "removable"},
		"network":                    {trash.BinFacts{Drive: "remote", Settings: true, Quota: gb, Volume: gb}, "network"},
		"CD, RAM disk":               {trash.BinFacts{Drive: "other", Settings: true, Quota: gb, Volume: gb}, "fixed"},
		"unknown":                    {trash.BinFacts{Settings: true, Quota: gb, Volume: gb}, "fixed"},
		"policy":                     {trash.BinFacts{Drive: "fixed", Policy: true, Settings: true, Quota: gb, Volume: gb}, "NoRecycleFiles"},
		"turned off":                 {trash.BinFacts{Drive: "fixed", Settings: true, Nuke: true, Quota: gb, Volume: gb}, "NukeOnDelete"},
		"network and everything off": {trash.BinFacts{Drive: "remote", Policy: true, Nuke: true}, "network"},
	} {
		why := trash.RefuseBin(row.facts)
		if row.why == "" && why != "" || row.why != "" && !strings.Contains(why, row.why) {
			t.Errorf("%s: %q", name, why)
		}
	}
	quota := trash.BinFacts{Drive: "fixed", Settings: true, Quota: 100, Volume: 10_000}
	none := trash.BinFacts{Drive: "fixed", Volume: 10_000} // a twentieth
	for _, row := range []struct {
		facts        trash.BinFacts
		kind         string
		files, bytes int64
		ok           bool
	}{
		{quota, "file", 1, 100, true}, {quota, "file", 1, 101, false}, {quota, "file", 1, 0, true},
		{none, "file", 1, 500, true}, {none, "file", 1, 501, false},
		{quota, "directory", 0, 0, false}, {quota, "directory", 1, 0, true}, {quota, "directory", 5, 101, false},
	} {
		if why := trash.RefuseThing(row.facts, row.kind, row.files, row.bytes); (why == "") != row.ok {
			t.Errorf("%+v: %q", row, why)
		}
	}
}

func TestRecyclePaths(t *testing.T) {
	long := `C:\` + strings.Repeat("x", 256)
	for path, ok := range map[string]bool{
		`C:\a`: true, `c:\Users\me\a b.txt`: true, `Z:\日本\é.txt`: true, `C:\.hidden`: true, `C:\a..b`: true, `C:\comet`: true, `C:\COM10`: true,
		`C:\nullable.txt`: true, `C:\-rf`: true, `C:\$(x)`: true, `C:\100%`: true, long: true,
		long + "x": false, `C:\`: false, `C:a`: false, `\\server\share\a`: false, `\\?\C:\a`: false, `\\.\C:\a`: false, `/a/b`: false, `1:\a`: false, ``: false,
		`C:\a.`: false, `C:\a `: false, `C:\dir.\a`: false, `C:\dir \a`: false, `C:\NUL`: false, `C:\nul.txt`: false, `C:\con .txt`: false,
		`C:\a\Aux\b`: false, `C:\com1.log`: false, `C:\LPT9`: false, `C:\com²`: false, `C:\conin$`: false,
		`C:\a:stream`: false, `C:\a/b`: false, `C:\a*`: false, `C:\a\\b`: false, `C:\..\a`: false, `C:\a\`: false, "C:\\a\nb": false, `C:\a"b`: false, `C:\a|b`: false,
	} {
		if why := trash.RefusePath(path); (why == "") != ok {
			t.Errorf("%q: %q", path, why)
		}
	}
	for landed, want := range map[string]string{"$RABCDEF.txt": "$IABCDEF.txt", "$RABCDEF": "$IABCDEF", "$R": "", "plain": "", "R$": "", "$IABCDEF": "", "$r": ""} {
		if got := trash.Companion(landed); got != want {
			t.Errorf("%q: %q", landed, got)
		}
	}
}

// TestRecycleRefuses: everything that the shell would erase is refused with the
// reason that a caller can act on, after a look at the thing itself.
func TestRecycleRefuses(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	natMust(t, err)
	natMust(t, os.MkdirAll(filepath.Join(dir, "empty", "sub"), 0o755))
	natMust(t, os.MkdirAll(filepath.Join(dir, "full", "sub"), 0o755))
	natMust(t, os.WriteFile(filepath.Join(dir, "full", "sub", "f"), make([]byte, 60), 0o644))
	natMust(t, os.WriteFile(filepath.Join(dir, "full", "g"), make([]byte, 40), 0o644))
	natMust(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 100), 0o644))
	natMust(t, os.Symlink("file", filepath.Join(dir, "link")))
	d, err := anchor.OpenDir(dir)
	natMust(t, err)
	defer d.Close()
	facts := func(quota int64) func(string) (trash.BinFacts, error) {
		return func(string) (trash.BinFacts, error) {
			return trash.BinFacts{Drive: "fixed", Settings: true, Quota: quota, Volume: 1 << 40}, nil
		}
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	for _, row := range []struct {
		name, path string
		ctx        context.Context
		facts      func(string) (trash.BinFacts, error)
		code       string // "" for yes
	}{
		{"file", `C:\w\file`, nil, facts(100), ""},
		{"file", `C:\w\file`, nil, facts(99), record.CodeUnavailable},
		{"full", `C:\w\full`, nil, facts(100), ""},
		{"full", `C:\w\full`, nil, facts(99), record.CodeUnavailable},
		{"empty", `C:\w\empty`, nil, facts(100), record.CodeUnavailable},
		{"link", `C:\w\link`, nil, facts(100), record.CodeRejected},
		{"file", `\\server\w\file`, nil, facts(100), record.CodeUnavailable},
		{"file", `C:\w\file`, nil, func(string) (trash.BinFacts, error) { return trash.BinFacts{}, errors.New("no") }, record.CodeUnavailable},
		{"file", `C:\w\file`, nil, func(string) (trash.BinFacts, error) { return trash.BinFacts{Drive: "remote"}, nil }, record.CodeUnavailable},
		{"full", `C:\w\full`, stopped, facts(100), "FS_ABORTED"},
	} {
		ctx := row.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		e := trash.RefuseRecycle(ctx, d, row.name, row.path, row.facts)
		switch {
		case row.code == "" && e != nil:
			t.Errorf("%s: %v", row.path, e)
		case row.code != "" && (e == nil || e.Code != row.code):
			t.Errorf("%s: %v, not %s", row.path, e, row.code)
		case e != nil && e.Code == record.CodeUnavailable && (e.Reason != record.ReasonBackend || e.Outcome != record.Failed || !strings.Contains(e.Error(), "permanently")):
			t.Errorf("%s: %+v", row.path, e)
		}
	}
}
