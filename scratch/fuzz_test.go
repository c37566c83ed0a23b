package scratch_test

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/scratch"
)

func FuzzEntryName(f *testing.F) {
	for _, s := range []string{"a", "a/b", "../x", "/a", "a//b", "a/./b", "", "a\x00", "\xff", scratch.MarkerName, "..", "...", "a/.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		dir, base, err := scratch.EntryName(name)
		if err != nil {
			return
		}
		whole := path.Join("/s", dir, base)
		if whole != "/s/"+name || path.Clean(whole) != whole || base == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			t.Errorf("%q: %q %q", name, dir, base)
		}
		if first, _, _ := strings.Cut(name, "/"); strings.EqualFold(first, scratch.MarkerName) {
			t.Errorf("%q is the marker", name)
		}
	})
}

func FuzzDirName(f *testing.F) {
	f.Add("shop", "session")
	f.Add(strings.Repeat("é", 200), "x")
	f.Add("\xff\xff", "")
	f.Fuzz(func(t *testing.T, workspace, session string) {
		for _, n := range []int{7, 9, 21} {
			name := scratch.DirName(workspace, session, n)
			if len(name) > 255 || !scratch.LooksOurs(name) {
				t.Errorf("%d bytes: %q", len(name), name)
			}
			if utf8.ValidString(workspace) && !utf8.ValidString(name) {
				t.Errorf("cut inside a character: %q", name)
			}
		}
	})
}

// FuzzOnDisk: what cannot be read is refused, never half accepted, and what is
// accepted says which schema it has.
func FuzzOnDisk(f *testing.F) {
	f.Add([]byte(`{"schema":1,"owner":"wattle","workspace":"/w","sessionId":"s","createdAt":"2026-01-02T03:04:05Z","pid":1,"startTime":2,"bootId":"b","dev":1,"ino":2,"autoClean":"turn"}`))
	f.Add([]byte(`{"schema":1,"kind":"scratch","path":"/w/tmp/x-1234567"}`))
	f.Add([]byte(`{"schema":1,"schema":1}`))
	f.Add([]byte(`[]`))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, err := range []error{scratch.DecodeMarker(b), scratch.DecodeRecord("scratch-x.json", b)} {
			if err != nil {
				continue
			}
			var any map[string]any
			if err := json.Unmarshal(b, &any); err != nil || any["schema"] != 1.0 {
				t.Errorf("accepted %q (%v)", b, err)
			}
		}
	})
}
