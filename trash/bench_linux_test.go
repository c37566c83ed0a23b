package trash_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
)

// BenchmarkPutFile measures a durable put, and one that leaves flushing to the
// kernel.
func BenchmarkPutFile(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		b.Run(fmt.Sprint("nosync=", noSync), func(b *testing.B) { benchPut(b, noSync, 0) })
	}
}

// BenchmarkPutDirectory100k: one rename, at most 5 ms (DESIGN section 8).
func BenchmarkPutDirectory100k(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		b.Run(fmt.Sprint("nosync=", noSync), func(b *testing.B) { benchPut(b, noSync, 100_000) })
	}
}

func benchPut(b *testing.B, noSync bool, entries int) {
	l := newLab(b)
	bin, err := trash.New(trash.Config{DataHome: l.Data, UID: os.Geteuid(), NoSync: noSync})
	must(b, err)
	defer bin.Close(b.Context())
	d, err := anchor.OpenDir(l.W)
	must(b, err)
	defer d.Close()
	path := l.W + "/x"
	make := func() {
		if entries == 0 {
			must(b, os.WriteFile(path, []byte("x"), 0o644))
		}
	}
	if entries > 0 {
		fill(b, path, entries)
		f, err := os.Open(path)
		must(b, err)
		must(b, f.Sync())
		f.Close()
	}
	for b.Loop() {
		b.StopTimer()
		make()
		want, err := d.Lstat("x")
		must(b, err)
		b.StartTimer()
		e, err := bin.Put(b.Context(), d, "x", path, want, false)
		b.StopTimer()
		must(b, err)
		if entries > 0 {
			_, err = bin.Restore(b.Context(), e.ID, trash.RestoreOptions{})
		} else {
			_, err = bin.Empty(b.Context(), trash.EmptyOptions{IDs: []string{e.ID}})
		}
		must(b, err)
		b.StartTimer()
	}
}

func BenchmarkList1000(b *testing.B) {
	l := newLab(b)
	bin, err := trash.New(trash.Config{DataHome: l.Data, UID: os.Geteuid(), NoSync: true})
	must(b, err)
	for i := range 1000 {
		path := fmt.Sprint(l.W, "/f", i)
		must(b, os.WriteFile(path, []byte("x"), 0o644))
		if _, err := put(b.Context(), bin, path, false); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		all, err := bin.List(b.Context())
		if err != nil || len(all.Entries) < 1000 {
			b.Fatalf("%d %v", len(all.Entries), err)
		}
	}
}

func BenchmarkHolds(b *testing.B) {
	l := newLab(b)
	l.put(l.write(l.W+"/f", "x"))
	for b.Loop() {
		if l.bin.Holds(l.W + "/f") {
			b.Fatal("held")
		}
	}
}
