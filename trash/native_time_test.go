package trash_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// A call that takes too long is unknown, is not repeated, and is written down
// when it ends all the same.
func TestNativeTimeout(t *testing.T) {
	release := make(chan struct{})
	l := newNatLab(t, func(l *natLab) { l.limit = 50 * time.Millisecond })
	l.do = func(p string) (string, error) { <-release; return l.move(p) }
	p := l.write("f", "x")
	_, err := l.try(context.Background(), p)
	e := natError(t, err, record.CodeUnknown, record.Unknown, record.ReasonTimeout)
	l.expect("W/f", "x")
	if e.Entry == nil || l.one().ID != e.Entry.ID || l.one().State != record.Broken {
		t.Errorf("entry %+v, listed as %+v", e.Entry, l.one())
	}
	// Close waits, but not for ever.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.bin.Close(ctx)
	close(release)
	l.bin.Close(context.Background())
	l.expect("W/f", "absent")
	if got := l.one(); got.State != record.OK || got.ID != e.Entry.ID {
		t.Errorf("listed as %+v", got)
	}
	if n := l.calls.Load(); n != 1 {
		t.Errorf("the system was asked %d times", n)
	}
	back, err := l.bin.Restore(context.Background(), e.Entry.ID, trash.RestoreOptions{})
	natMust(t, err)
	l.expect("W/f", "x")
	if back.Path != p {
		t.Errorf("restored to %s", back.Path)
	}
}

// What the system answers too late, and is not true, is not written down.
func TestNativeLateLie(t *testing.T) {
	release := make(chan struct{})
	l := newNatLab(t, func(l *natLab) { l.limit = 50 * time.Millisecond })
	l.do = func(p string) (string, error) { <-release; return filepath.Join(l.T, "f"), nil }
	p := l.write("f", "x")
	_, err := l.try(context.Background(), p)
	natError(t, err, record.CodeUnknown, record.Unknown, record.ReasonTimeout)
	close(release)
	l.bin.Close(context.Background())
	l.expect("W/f", "x")
	if got := l.one(); got.State != record.Broken {
		t.Errorf("listed as %+v", got)
	}
}

// A system that answers nothing gets no more calls, and what waits for it stays
// in place.
func TestNativeStuck(t *testing.T) {
	release := make(chan struct{})
	l := newNatLab(t, func(l *natLab) { l.limit = 50 * time.Millisecond })
	l.do = func(p string) (string, error) { <-release; return l.move(p) }
	for i := range trash.MaxNativeCalls {
		_, err := l.try(context.Background(), l.write("f"+string(rune('0'+i)), "x"))
		natError(t, err, record.CodeUnknown, record.Unknown, record.ReasonTimeout)
	}
	p := l.write("last", "x")
	_, err := l.try(context.Background(), p)
	natError(t, err, record.CodeUnavailable, record.Failed, record.ReasonBackend)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = l.try(ctx, p)
	natError(t, err, "FS_ABORTED", record.Failed, record.ReasonOperationFailed)
	if n := l.calls.Load(); n != trash.MaxNativeCalls {
		t.Errorf("the system was asked %d times", n)
	}
	close(release)
	l.bin.Close(context.Background())
	l.expect("W/last", "x")
	if n := len(l.list()); n != trash.MaxNativeCalls {
		t.Errorf("%d records", n)
	}
	l.put(p)
}

// Any number of callers, and two that close.
func TestNativeAtOnce(t *testing.T) {
	l := newNatLab(t)
	const many = 24
	var paths [many]string
	for i := range many {
		paths[i] = l.write(fmt.Sprint("f", i), "x")
	}
	var all sync.WaitGroup
	var mu sync.Mutex // of the fake system, which looks for a free name
	l.do = func(p string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return l.move(p)
	}
	for i := range many {
		all.Go(func() {
			e, err := l.try(context.Background(), paths[i])
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := l.bin.List(context.Background()); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if _, err := l.bin.Restore(context.Background(), e.ID, trash.RestoreOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		all.Go(func() { l.bin.Close(context.Background()) })
	}
	all.Wait()
	if n := len(l.list()); n != many/2 {
		t.Errorf("%d entries", n)
	}
	for i := range many {
		want := "absent"
		if i%2 == 0 {
			want = "x"
		}
		l.expect(fmt.Sprint("W/f", i), want)
	}
}
