//go:build unix

package providertest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// testTogether runs operations at once.
func testTogether(t *testing.T, mk Make) {
	t.Run("guarded by one version, one wins", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		for round := range 50 {
			w.File("W/f", "start")
			v := w.Version("W/f")
			var wg sync.WaitGroup
			codes := make([]provider.Code, 8)
			for i := range codes {
				wg.Go(func() {
					var err error
					if i%2 == 0 {
						_, err = w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), fmt.Sprint("writer ", i), ifVersion(v))
					} else {
						_, err = w.P.EditText(t.Context(), w.WS, w.Resolve("W/f"), provider.EditRequest{OldString: "start", NewString: fmt.Sprint("editor ", i)},
							provider.EditOptions{Expected: &provider.VersionGuard{Version: v}})
					}
					codes[i] = provider.CodeOf(err)
				})
			}
			wg.Wait()
			wins := 0
			for i, c := range codes {
				switch c {
				case "":
					wins++
					if b, _ := os.ReadFile(w.Path("W/f")); !strings.HasSuffix(string(b), fmt.Sprint(" ", i)) {
						t.Errorf("round %d: %d won, the file has %q", round, i, b)
					}
				case provider.CodeStaleVersion:
				default:
					t.Errorf("round %d: %s", round, c)
				}
			}
			if wins != 1 {
				t.Fatalf("round %d: %d wins", round, wins)
			}
		}
	})
	t.Run("createIfAbsent, one wins", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		for round := range 50 {
			name := fmt.Sprintf("W/a%d/b/f", round)
			var wg sync.WaitGroup
			codes := make([]provider.Code, 8)
			for i := range codes {
				wg.Go(func() {
					_, err := w.P.WriteText(t.Context(), w.WS, w.Resolve(name), fmt.Sprint(i), ifAbsent)
					codes[i] = provider.CodeOf(err)
				})
			}
			wg.Wait()
			wins := 0
			for i, c := range codes {
				if c == "" {
					wins++
					if b, _ := os.ReadFile(w.Path(name)); string(b) != fmt.Sprint(i) {
						t.Errorf("%d won, the file has %q", i, b)
					}
				} else if c != provider.CodeNotObserved {
					t.Errorf("%s", c)
				}
			}
			if wins != 1 {
				t.Fatalf("%d wins", wins)
			}
		}
	})
	t.Run("unguarded edits all land", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		const n = 40
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "<%d>\n", i)
		}
		w.File("W/f", text.String())
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				_, err := w.P.EditText(t.Context(), w.WS, w.Resolve("W/f"), provider.EditRequest{OldString: fmt.Sprintf("<%d>", i), NewString: fmt.Sprintf("[%d]", i)}, provider.EditOptions{})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want := strings.NewReplacer("<", "[", ">", "]").Replace(text.String())
		if b, _ := os.ReadFile(w.Path("W/f")); string(b) != want {
			t.Errorf("the file has %q", b)
		}
	})
	t.Run("a reader sees one content whole", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		contents := []string{strings.Repeat("a", 200_000), strings.Repeat("b", 200_000)}
		w.File("W/f", contents[0])
		target := w.Resolve("W/f")
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(done)
			for i := range 60 {
				if _, err := w.P.WriteText(t.Context(), w.WS, target, contents[i%2], noGuard); err != nil {
					t.Error(err)
				}
			}
		})
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			c, err := w.P.ReadText(t.Context(), w.WS, target, provider.ReadOptions{})
			if err != nil || c.Text != contents[0] && c.Text != contents[1] {
				t.Fatalf("torn: %d bytes, %v", len(c.Text), err)
			}
		}
		wg.Wait()
		if n := w.names("W"); len(n) != 1 {
			t.Errorf("left behind: %v", n)
		}
	})
	t.Run("locks are free after failures", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "x")
		for range 20 {
			if err := write("ws", "W/f", "y", ifAbsent)(w); provider.CodeOf(err) != provider.CodeNotObserved {
				t.Fatal(err)
			}
			if err := edit("ws", "W/f", "none", "y", provider.EditOptions{})(w); provider.CodeOf(err) != provider.CodeEditNotFound {
				t.Fatal(err)
			}
		}
		w.must(soon(t, "a write", func() error { return write("ws", "W/f", "y", noGuard)(w) }))
	})
}

func (w *World) names(dir string) []string {
	es, err := os.ReadDir(w.Path(dir))
	w.must(err)
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}
