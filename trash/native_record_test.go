package trash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

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
	if g := l.bin.Guard(l.W); !slices.Equal(g, []string{l.Records}) {
		t.Errorf("guards %v", g)
	}
	l.put(l.write("f", "x"))
	if g := l.bin.Guard(l.W); !slices.Equal(g, []string{l.Records, l.T}) {
		t.Errorf("guards %v", g)
	}
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
