package trash_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

func TestNativeEmpty(t *testing.T) {
	ctx := context.Background()
	l := newNatLab(t)
	natMust(t, os.WriteFile(filepath.Join(l.T, "foreign"), []byte("y"), 0o644))
	one, two, inner := l.put(l.write("one", "x")), l.put(l.write("two", "x")), l.put(l.write("three/sub/f", "12345"))
	l.put(l.write("four", "x"))
	if inner.Name != "f" {
		t.Fatalf("%+v", inner)
	}
	l.put(filepath.Join(l.W, "three"))
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
