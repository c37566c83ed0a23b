package provider_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// TestNoLostUpdate lets guarded writers of two providers, as two processes
// have them, and a foreign writer that renames over the file, work on one file.
//
// Every content is unique and names the content that it was made from. A
// guarded write that succeeded has replaced exactly that one; so no content
// may be the origin of two of them, or the first was lost.
func TestNoLostUpdate(t *testing.T) {
	for _, disk := range []string{"memory", "disk"} {
		for _, clock := range []string{"system", "coarse"} {
			for _, foreign := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/foreign=%v", disk, clock, foreign), func(t *testing.T) {
					noLostUpdate(t, disk == "memory", clock == "coarse", foreign)
				})
			}
		}
	}
}

func noLostUpdate(t *testing.T, memory, slow, foreign bool) {
	base, c := "", provider.Config{}
	if memory {
		base = fastDir(t)
	}
	if slow {
		c.Clock = coarse{}
	}
	p := newPlace(t, base, c)
	second, err := provider.NewLocal(c)
	must(t, err)
	f := p.put("f", "start of:none")
	target := p.target("f")
	until := 1500 * time.Millisecond
	if testing.Short() {
		until = 300 * time.Millisecond
	}
	begin := time.Now()

	var mu sync.Mutex
	origin := map[string]string{} // of guarded contents that were published
	taken := map[string]string{}  // the other way round
	refused := map[string]bool{}
	kept := []string{"f"}
	var got tally
	// On a slow machine it takes longer until both have happened.
	running := func() bool {
		if d := time.Since(begin); d > until {
			return d < 20*until && (got.count("done") < 10 || got.count(string(provider.CodeStaleVersion)) < 10)
		}
		return true
	}
	var wg sync.WaitGroup
	for w, l := range []*provider.Local{p.l, p.l, second, second} {
		wg.Go(func() {
			for n := 0; running(); n++ {
				read, err := l.ReadText(t.Context(), p.f, target, provider.ReadOptions{})
				if err != nil {
					got.add(err)
					continue
				}
				from, _, _ := strings.Cut(read.Text, " ")
				id := fmt.Sprintf("w%d.%d", w, n)
				text := id + " of:" + from
				if n%3 == 0 {
					_, err = l.EditText(t.Context(), p.f, target, provider.EditRequest{OldString: read.Text, NewString: text},
						provider.EditOptions{Expected: &provider.VersionGuard{Version: read.Version}})
				} else {
					_, err = l.WriteText(t.Context(), p.f, target, text, ifVersion(read.Version))
				}
				got.add(err)
				mu.Lock()
				if err == nil {
					if other, ok := taken[from]; ok {
						t.Errorf("%s and %s both replaced %s", id, other, from)
					}
					origin[id], taken[from] = from, id
				} else {
					refused[id] = true
				}
				mu.Unlock()
				switch {
				case err == nil, provider.CodeOf(err) == provider.CodeStaleVersion:
				case foreign && strings.Contains(err.Error(), "kept as "):
					// The foreign writer exchanges, so it may take a refused
					// content away; what that had replaced is kept.
					_, rest, _ := strings.Cut(err.Error(), "kept as ")
					name, _, _ := strings.Cut(rest, ":")
					mu.Lock()
					kept = append(kept, name)
					mu.Unlock()
				default:
					t.Errorf("%v", err)
				}
			}
		})
	}
	// replaced[i] is what the foreign content i replaced.
	var replaced []string
	if foreign {
		wg.Go(func() {
			for running() {
				id := fmt.Sprintf("x%d", len(replaced))
				// A file of its own each time: what came out is read by others.
				if len(replaced) > 0 {
					must(t, os.Remove(p.O+"/n"))
				}
				must(t, os.WriteFile(p.O+"/n", []byte(id+" of:none"), 0o644))
				must(t, unix.Renameat2(unix.AT_FDCWD, p.O+"/n", unix.AT_FDCWD, f, unix.RENAME_EXCHANGE))
				out, err := os.ReadFile(p.O + "/n")
				must(t, err)
				at, _, _ := strings.Cut(string(out), " ")
				replaced = append(replaced, at)
			}
		})
	}
	wg.Wait()
	moments := 0
	for i, at := range replaced[min(1, len(replaced)):] {
		// It must be what the foreign writer put there last, or made from it
		// by guarded writes. A refused content may have lain there for a
		// moment, on its way out; and if a foreign one met a refused content,
		// the one before it may have come back for a moment.
		for ok := true; ok; {
			var from string
			if from, ok = origin[at]; ok {
				at = from
			}
		}
		n := -1
		fmt.Sscanf(at, "x%d", &n)
		switch {
		case n == i:
		case refused[at], n >= 0 && refused[replaced[n+1]]:
			moments++
		default:
			t.Errorf("x%d was lost: x%d replaced %s", i, i+1, replaced[i+1])
		}
	}
	t.Logf("tries: %v; %d foreign, %d of them met a refused content", &got, len(replaced), moments)
	if got.n["done"] == 0 || got.n[string(provider.CodeStaleVersion)] == 0 {
		t.Errorf("the race did not happen: %v", &got)
	}
	p.only(kept...)
}
