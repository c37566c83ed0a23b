package provider_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// fixtures are those of OpenAI Codex; facts/patch.md section 7.
const fixtures = "../../shared/fixtures/apply-patch"

// differing are the fixtures whose result is another one in the default form,
// with the content of the files that differ; "" is a file that is not there.
var differing = map[string]map[string]string{
	"010_move_overwrites_existing_destination":         nil, // refused
	"011_add_overwrites_existing_file":                 nil, // refused
	"015_failure_after_partial_success_leaves_changes": nil, // undone
	"024_preserves_mixed_line_endings":                 {"lines.txt": "one\r\ntwo\rTHREE\nfour\r\n"},
}

func TestPatchFixtures(t *testing.T) {
	es, err := os.ReadDir(fixtures)
	if err != nil {
		t.Skip("SKIP: the shared fixtures are not here")
	}
	n := 0
	for _, e := range es {
		if !e.IsDir() {
			continue
		}
		n++
		for _, compat := range []string{"", provider.CompatCodex} {
			t.Run(e.Name()+"/"+compat, func(t *testing.T) {
				p, _ := patchPlace(t, "", provider.Config{})
				from := filepath.Join(fixtures, e.Name())
				text, err := os.ReadFile(from + "/patch.txt")
				must(t, err)
				if _, err := os.Stat(from + "/input"); err == nil {
					must(t, os.CopyFS(p.W, os.DirFS(from+"/input")))
				}
				input := tree(t, p.W, false)
				// The exit status is not a part of the fixture.
				_, err = p.apply(string(text), provider.ApplyOptions{Compat: compat})
				got := tree(t, p.W, false)

				want := filepath.Join(t.TempDir(), "w")
				must(t, os.CopyFS(want, os.DirFS(from+"/expected")))
				expected := tree(t, want, false)
				change, differs := differing[e.Name()]
				switch {
				case !differs || compat != "":
				case change == nil:
					if err == nil {
						t.Error("it was not refused")
					}
					expected = input
				default:
					for name, content := range change {
						must(t, os.WriteFile(filepath.Join(want, name), []byte(content), 0o644))
					}
					expected = tree(t, want, false)
				}
				expected["."] = got["."]
				sameTree(t, got, expected)
			})
		}
	}
	if n != 25 {
		t.Errorf("%d fixtures, want 25", n)
	}
	var names []string
	for name := range differing {
		if _, err := os.Stat(filepath.Join(fixtures, name)); err != nil {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		t.Errorf("no such fixtures: %v", names)
	}
}
