//go:build unix

package providertest

import (
	"os"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/provider"
)

// testVersion holds guards to decision D5: content decides.
func testVersion(t *testing.T, mk Make) {
	// Who made the version that guards.
	sources := map[string]func(w *World) provider.Version{
		"stat, then read": func(w *World) provider.Version {
			v := w.Version("W/f")
			w.must(read("ws", "W/f")(w))
			return v
		},
		"read": func(w *World) provider.Version {
			c, err := w.P.ReadText(w.T.Context(), w.WS, w.Resolve("W/f"), provider.ReadOptions{})
			w.must(err)
			return c.Version
		},
		"own write": func(w *World) provider.Version {
			o, err := w.P.WriteText(w.T.Context(), w.WS, w.Resolve("W/f"), "content", noGuard)
			w.must(err)
			return o.Version
		},
		"own edit": func(w *World) provider.Version {
			w.File("W/f", "CONTENT")
			o, err := w.P.EditText(w.T.Context(), w.WS, w.Resolve("W/f"), provider.EditRequest{OldString: "CONTENT", NewString: "content"}, provider.EditOptions{})
			w.must(err)
			return o.Version
		},
		"stat only": func(w *World) provider.Version { return w.Version("W/f") },
	}
	rewrite := func(w *World, content string) {
		w.must(os.WriteFile(w.Path("W/f"), []byte(content), 0o644))
	}
	changes := []struct {
		name string
		do   func(w *World)
		// stale: the content is another one. unread: without a hash this
		// cannot be told from a change of content.
		stale, unread bool
	}{
		{"nothing", func(*World) {}, false, false},
		{"chmod", func(w *World) { w.must(os.Chmod(w.Path("W/f"), 0o600)) }, false, true},
		{"touch", func(w *World) { w.must(os.Chtimes(w.Path("W/f"), time.Now(), time.Unix(1, 5))) }, false, true},
		{"new hard link", func(w *World) { w.must(os.Link(w.Path("W/f"), w.Path("W/g"))) }, false, true},
		{"renamed over with equal bytes", func(w *World) { w.File("W/g", "content"); w.must(os.Rename(w.Path("W/g"), w.Path("W/f"))) }, false, true},
		{"same size, restored mtime (E7)", func(w *World) {
			fi, err := os.Stat(w.Path("W/f"))
			w.must(err)
			rewrite(w, "CONTENT")
			w.must(os.Chtimes(w.Path("W/f"), fi.ModTime(), fi.ModTime()))
		}, true, true},
		{"other content (E7)", func(w *World) { rewrite(w, "two\n") }, true, true},
		{"appended", func(w *World) { rewrite(w, "content and more") }, true, true},
		{"there and back", func(w *World) { rewrite(w, "CONTENT"); rewrite(w, "content") }, false, true},
		{"removed (E7)", func(w *World) { w.must(os.Remove(w.Path("W/f"))) }, true, true},
	}
	for source, take := range sources {
		for _, ch := range changes {
			for _, what := range []string{"write", "edit"} {
				t.Run(source+"/"+ch.name+"/"+what, func(t *testing.T) {
					w := NewWorld(t, mk(t))
					w.File("W/f", "content")
					v := take(w)
					ch.do(w)
					before := w.snapshot()
					stale := ch.stale || ch.unread && source == "stat only"
					var err error
					var next provider.Version
					if what == "write" {
						var o provider.WriteOutcome
						o, err = w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "mine", ifVersion(v))
						next = o.Version
					} else {
						var o provider.EditOutcome
						o, err = w.P.EditText(t.Context(), w.WS, w.Resolve("W/f"), provider.EditRequest{OldString: "content", NewString: "mine"},
							provider.EditOptions{Expected: &provider.VersionGuard{Version: v}})
						next = o.Version
					}
					w.checkError(err)
					if stale {
						if provider.CodeOf(err) != provider.CodeStaleVersion {
							t.Fatalf("not stale: %v", err)
						}
						if d := diff(before, w.snapshot()); len(d) > 0 {
							t.Errorf("changes:%v", d)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if b, _ := os.ReadFile(w.Path("W/f")); string(b) != "mine" {
						t.Errorf("the file has %q", b)
					}
					// The old version is stale now, the new one is not.
					if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "again", ifVersion(v)); provider.CodeOf(err) != provider.CodeStaleVersion {
						t.Errorf("the old version: %v", err)
					}
					if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "again", ifVersion(next)); err != nil {
						t.Errorf("the new version: %v", err)
					}
				})
			}
		}
	}
	t.Run("versions are opaque and hold what they hold", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "content")
		for _, v := range []provider.Version{"", "x", "1", "1AAAA", "missing:" + provider.Version(w.Path("W/f")), "2" + w.Version("W/f")[1:], w.Version("W/f") + "A"} {
			if _, err := w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "x", ifVersion(v)); provider.CodeOf(err) != provider.CodeStaleVersion {
				t.Errorf("version %q: %v", v, err)
			}
		}
	})
	t.Run("a version holds for another provider of the same files", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "content")
		c, err := w.P.ReadText(t.Context(), w.WS, w.Resolve("W/f"), provider.ReadOptions{})
		w.must(err)
		other := mk(t)
		w.must(os.Chmod(w.Path("W/f"), 0o600))
		if _, err := other.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "mine", ifVersion(c.Version)); err != nil {
			t.Error(err)
		}
	})
	t.Run("the mode at publication is the current one", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.File("W/f", "content", 0o644)
		c, err := w.P.ReadText(t.Context(), w.WS, w.Resolve("W/f"), provider.ReadOptions{})
		w.must(err)
		w.must(os.Chmod(w.Path("W/f"), 0o751))
		_, err = w.P.WriteText(t.Context(), w.WS, w.Resolve("W/f"), "mine", ifVersion(c.Version))
		w.must(err)
		if fi, _ := os.Stat(w.Path("W/f")); fi.Mode() != 0o751 {
			t.Errorf("mode %v", fi.Mode())
		}
	})
}

func diff(before, after disk) disk { return changes(before, after) }
