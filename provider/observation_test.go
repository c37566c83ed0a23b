package provider_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// Every cell of the table of fs-contract section 6.
func TestObservationDecides(t *testing.T) {
	at := provider.Target{TargetKey: "/w/f", DisplayPath: "/w/l"}
	for _, tt := range []struct {
		state   provider.ObservationState
		seen    *provider.Observation
		write   provider.WriteIntent
		version provider.Version // of edit and delete
		code    provider.Code    // or their refusal
	}{
		{provider.Unseen, nil, provider.WriteIntent{Kind: provider.CreateIfAbsent}, "", provider.CodeNotObserved},
		{provider.Absent, &provider.Observation{}, provider.WriteIntent{Kind: provider.CreateIfAbsent}, "", provider.CodeNotFound},
		{provider.Present, &provider.Observation{Version: "v1"}, provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: "v1"}, "v1", ""},
	} {
		t.Run(string(tt.state), func(t *testing.T) {
			o := provider.NewObservations(0)
			if tt.seen != nil {
				o.Observed(at, *tt.seen)
			}
			if s, v := o.State(at); s != tt.state || v != tt.version {
				t.Errorf("state %s, %q", s, v)
			}
			if g, err := o.WriteIntent(at); err != nil || g == nil || *g != tt.write {
				t.Errorf("write intent %+v, %v", g, err)
			}
			for name, ask := range map[string]func(provider.Target) (*provider.VersionGuard, error){"edit": o.EditIntent, "delete": o.DeleteIntent} {
				g, err := ask(at)
				if provider.CodeOf(err) != tt.code || tt.code == "" && (g == nil || g.Version != tt.version) || tt.code != "" && g != nil {
					t.Errorf("%s intent %+v, %v", name, g, err)
				}
			}
			// Another alias of the file is the same file, another file is not,
			// and another owner knows nothing.
			if s, _ := o.State(provider.Target{TargetKey: "/w/f", DisplayPath: "/w/other"}); s != tt.state {
				t.Errorf("by another name it is %s", s)
			}
			if s, _ := o.State(provider.Target{TargetKey: "/w/g"}); s != provider.Unseen {
				t.Errorf("another file is %s", s)
			}
			if s, _ := provider.NewObservations(0).State(at); s != provider.Unseen {
				t.Errorf("for another owner it is %s", s)
			}
		})
	}
}

// present, absent, present, forgotten: the last one counts.
func TestObservationChanges(t *testing.T) {
	at := provider.Target{TargetKey: "/w/f"}
	o := provider.NewObservations(0)
	for i, want := range []provider.Version{"v1", "v2", "", "v3"} {
		o.Observed(at, provider.Observation{Version: want})
		if _, v := o.State(at); v != want {
			t.Errorf("step %d: %q", i, v)
		}
	}
	o.Forget(at)
	if s, _ := o.State(at); s != provider.Unseen {
		t.Errorf("forgotten, it is %s", s)
	}
}

// The table is bounded, the newest half is always known, and what is asked for
// stays. What fell out is unseen: it can be created only, not overwritten.
func TestObservationsAreBounded(t *testing.T) {
	const limit = 100
	key := func(i int) provider.Target {
		return provider.Target{TargetKey: provider.TargetKey(fmt.Sprint("/w/", i))}
	}
	for last := range 4 * limit {
		o := provider.NewObservations(limit)
		for i := range last + 1 {
			o.Observed(key(i), provider.Observation{Version: "v"})
			if s, _ := o.State(key(0)); s != provider.Present {
				t.Fatalf("what is asked for was forgotten after %d", i)
			}
		}
		known := 1 // the first
		for i := last; i > 0; i-- {
			s, _ := o.State(key(i))
			if s == provider.Present {
				known++
			} else if i > last-limit/2+2 {
				t.Fatalf("%d was forgotten after %d", i, last)
			}
		}
		if known > limit {
			t.Fatalf("%d are known after %d", known, last)
		}
		if g, err := o.WriteIntent(key(last + 1)); err != nil || g.Kind != provider.CreateIfAbsent {
			t.Fatalf("%+v, %v", g, err)
		}
	}
}

func TestObservationsTogether(t *testing.T) {
	o := provider.NewObservations(64)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				at := provider.Target{TargetKey: provider.TargetKey(fmt.Sprint(i % 100))}
				o.Observed(at, provider.Observation{Version: provider.Version(fmt.Sprint(g))})
				if s, v := o.State(at); s == provider.Present && v == "" {
					t.Error("present without a version")
				}
				o.Forget(at)
			}
		})
	}
	wg.Wait()
}
