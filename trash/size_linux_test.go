package trash_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/internal/asuser"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// fill makes n empty files.
func fill(t testing.TB, dir string, n int) {
	t.Helper()
	must(t, os.Mkdir(dir, 0o755))
	d, err := anchor.OpenDir(dir)
	must(t, err)
	defer d.Close()
	for i := range n {
		f, err := d.Open(fmt.Sprint("file", i), os.O_CREATE|os.O_WRONLY, 0o644)
		must(t, err)
		f.Close()
	}
}

// A directory goes by one rename, however much is in it; it is measured
// afterwards.
func TestHundredThousandEntries(t *testing.T) {
	n := 100_000
	if testing.Short() || os.Geteuid() != 0 {
		n = 10_000
	}
	l := newLab(t)
	fill(t, l.W+"/big", n)
	var before, after unix.Stat_t
	must(t, unix.Stat(l.W+"/big", &before))
	e := l.put(l.W + "/big")
	if e.Size != nil {
		t.Error("it was measured before put returned")
	}
	must(t, unix.Stat(l.T+"/files/big", &after))
	if before.Ino != after.Ino || before.Mtim != after.Mtim {
		t.Errorf("it is another directory: %+v %+v", before, after)
	}
	l.bin.Close(t.Context())
	all := l.list()
	if len(all) != 1 || all[0].Size == nil || *all[0].Size < before.Blocks*512 {
		t.Errorf("list %+v", all)
	}
	l.restore(e.ID)
	es, err := os.ReadDir(l.W + "/big")
	if err != nil || len(es) != n {
		t.Errorf("%d entries came back, %v", len(es), err)
	}
}

// Close does not wait longer than it is told to.
func TestCloseBreaksOff(t *testing.T) {
	l := newLab(t)
	fill(t, l.W+"/big", 20_000)
	l.put(l.W + "/big")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.bin.Close(ctx)
	l.bin.Close(ctx)
	// What comes later is put all the same, and measured no more.
	must(t, os.Mkdir(l.W+"/d", 0o755))
	l.put(l.W + "/d")
	if all := l.list(); len(all) != 2 {
		t.Errorf("list %+v", all)
	}
}

// No handle stays open, whatever happens.
func TestHandlesAreClosed(t *testing.T) {
	l := newLab(t)
	round := func(i int) {
		path := l.write(l.W+"/f", "x")
		e := l.put(path)
		must(t, os.WriteFile(path, nil, 0o600))
		_, err := l.bin.Restore(t.Context(), e.ID, trash.RestoreOptions{})
		wants(t, err, "FS_ALREADY_EXISTS", record.Failed)
		must(t, os.Remove(path))
		_, err = l.bin.Restore(t.Context(), e.ID, trash.RestoreOptions{Destination: l.W + fmt.Sprint("/p", i, "/q/f"), Parents: true})
		must(t, err)
		e = l.put(l.W + fmt.Sprint("/p", i))
		_, err = put(t.Context(), l.bin, l.T, false)
		wants(t, err, record.CodeRejected, record.Rejected)
		_, err = l.bin.Empty(t.Context(), trash.EmptyOptions{IDs: []string{e.ID, "x"}})
		must(t, err)
		l.bin.Holds(l.W)
		l.list()
	}
	open := func() int {
		es, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(es)
	}
	round(0)
	// The measuring ends by itself a moment later.
	before := open()
	for i := range 20 {
		round(i + 1)
	}
	for end := time.Now().Add(10 * time.Second); open() > before && time.Now().Before(end); {
		l.list()
	}
	if now := open(); now > before {
		t.Errorf("%d descriptors before, %d after", before, now)
	}
}

// What the kernel refuses is FS_PERMISSION_DENIED, and nothing is left behind.
func TestKernelRefuses(t *testing.T) {
	l := newLab(t)
	if os.Geteuid() == 0 {
		// A sticky directory of somebody else, and a file of a third one.
		v := l.Dir + "/V"
		tmpfs(t, v, "mode=1777")
		must(t, os.WriteFile(v+"/f", []byte("x"), 0o644))
		data := l.Dir + "/userhome"
		must(t, os.Mkdir(data, 0o755))
		must(t, os.Chown(data, asuser.ID, asuser.ID))
		a := asUser(t, order{Do: "put", Data: data, Path: v + "/f", Across: true})
		if a.Code != "FS_PERMISSION_DENIED" || a.Outcome != record.Failed || !strings.Contains(a.Text, "sticky") {
			t.Errorf("%+v", a)
		}
		if n := names(t, v); n != v+"\n"+v+"/f" {
			t.Errorf("there is %s", n)
		}
		return
	}
	// A file of mode 000 moves; its record and place are ours.
	must(t, os.WriteFile(l.W+"/f", []byte("x"), 0))
	e := l.put(l.W + "/f")
	// A home trash that cannot be used, and no other.
	must(t, os.Chmod(l.T+"/files", 0o777))
	before := names(t, l.Dir)
	must(t, os.WriteFile(l.W+"/g", []byte("x"), 0o600))
	_, err := put(t.Context(), l.bin, l.W+"/g", true)
	if s := wants(t, err, record.CodeUnavailable, record.Failed); !strings.Contains(s, "others may write to it") || strings.Contains(s, "copyAcross") {
		t.Errorf("says %s", s)
	}
	must(t, os.Remove(l.W+"/g"))
	if after := names(t, l.Dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if _, ok := l.problems()["home/.local/share/Trash/files"]; !ok {
		t.Errorf("problems %v", l.problems())
	}
	must(t, os.Chmod(l.T+"/files", 0o500))
	_, err = l.bin.Restore(t.Context(), e.ID, trash.RestoreOptions{})
	wants(t, err, "FS_PERMISSION_DENIED", record.Failed)
	must(t, os.Chmod(l.T+"/files", 0o700))
	must(t, os.Chmod(l.W, 0o555))
	_, err = l.bin.Restore(t.Context(), e.ID, trash.RestoreOptions{Destination: l.W + "/n/f", Parents: true})
	if s := wants(t, err, "FS_PERMISSION_DENIED", record.Failed); !strings.Contains(s, l.W) {
		t.Errorf("says %s", s)
	}
	must(t, os.Chmod(l.W, 0o755))
	l.restore(e.ID)
}
