package provider_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for !ok() {
		if t.Context().Err() != nil {
			t.Fatalf("never: %s", what)
		}
		runtime.Gosched()
	}
}

func TestTurnsAreFirstComeFirstServed(t *testing.T) {
	var l provider.Turns
	release, err := l.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r, err := l.Lock(t.Context(), "k")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			r()
		})
		until(t, "the next one waits", func() bool { _, w := l.State(); return w == i+1 })
	}
	// Another key is free meanwhile.
	other, err := l.Lock(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	other()
	release()
	wg.Wait()
	for i, got := range order {
		if got != i {
			t.Fatalf("order %v", order)
		}
	}
	if keys, waiting := l.State(); keys != 0 || waiting != 0 {
		t.Errorf("left: %d keys, %d waiting", keys, waiting)
	}
}

func TestTurnsLetWaitersGo(t *testing.T) {
	var l provider.Turns
	release, err := l.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { _, err := l.Lock(ctx, "k"); done <- err }()
	until(t, "one waits", func() bool { _, w := l.State(); return w == 1 })
	go func() {
		r, err := l.Lock(t.Context(), "k")
		if err == nil {
			r()
		}
		done <- err
	}()
	until(t, "two wait", func() bool { _, w := l.State(); return w == 2 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lock(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled caller got the lock: %v", err)
	}
	if keys, waiting := l.State(); keys != 0 || waiting != 0 {
		t.Errorf("left: %d keys, %d waiting", keys, waiting)
	}
}

// Cancelling and handing over in the same moment must lose no turn.
func TestTurnsHandOverAgainstCancel(t *testing.T) {
	var l provider.Turns
	for range 2000 {
		release, err := l.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if r, err := l.Lock(ctx, "k"); err == nil {
				r()
			}
		})
		until(t, "one waits", func() bool { _, w := l.State(); return w == 1 })
		wg.Go(cancel)
		wg.Go(release)
		wg.Wait()
		if keys, waiting := l.State(); keys != 0 || waiting != 0 {
			t.Fatalf("left: %d keys, %d waiting", keys, waiting)
		}
	}
}

func TestHashesAreBounded(t *testing.T) {
	if n := provider.FillHashes(100_000); n > 8192 || n < 4096 {
		t.Errorf("%d entries kept", n)
	}
	if provider.TwoHashes() {
		t.Error("two contents under one stamp, and one is believed")
	}
}

func FuzzVersion(f *testing.F) {
	f.Add("1AAAA")
	f.Add("1AwAAAAAAAP4AAAAAAACc2FUAAAAAAAAABhjs5gQ7fkpmGOzmBDv4XGZYkbW1ItXfCG0P8LEQ-9nSG7T8cWOvNNCChqLoRva-Aw")
	f.Add("missing:/a")
	f.Fuzz(func(t *testing.T, s string) {
		if again, ok := provider.Reversion(provider.Version(s)); ok && string(again) != s {
			t.Errorf("%q became %q", s, again)
		}
	})
}
