package patch_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/provider/patch"
)

// tree is files by path. A directory is what has something below it.
type tree map[string]string

func readTree(t *testing.T, dir string) tree {
	out := tree{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == dir {
			return nil // no input
		}
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// do is one operation in memory, with the existence rules of section 6.
func (files tree) do(op patch.Operation, o patch.Options) error {
	text, there := files[op.Path]
	switch op.Kind {
	case patch.Add:
		if there && !o.Codex {
			return fs.ErrExist
		}
		files[op.Path] = op.Content
		return nil
	case patch.Delete:
		if !there {
			return fs.ErrNotExist
		}
		delete(files, op.Path)
		return nil
	}
	if !there {
		return fs.ErrNotExist
	}
	r, err := patch.Apply(text, op.Hunks, o)
	if err != nil {
		return err
	}
	if op.MoveTo == "" {
		files[op.Path] = r.Text
		return nil
	}
	if _, there := files[op.MoveTo]; there && !o.Codex {
		return fs.ErrExist
	}
	delete(files, op.Path)
	files[op.MoveTo] = r.Text
	return nil
}

// apply is a whole patch: all or nothing, with Codex one after the other up to
// the first failure.
func (files tree) apply(text string, o patch.Options) tree {
	ops, err := patch.Parse(text, o)
	if err != nil {
		return files
	}
	now := maps.Clone(files)
	for _, op := range ops {
		if err := now.do(op, o); err != nil {
			if o.Codex {
				break
			}
			return files
		}
	}
	return now
}

// The scenarios of OpenAI Codex (ORIGIN.md beside them), on files in memory.
// With compat all are equal; the four that differ otherwise are spelled out.
func TestCodexScenarios(t *testing.T) {
	const dir = "../../../shared/fixtures/apply-patch"
	found, err := filepath.Glob(dir + "/*/patch.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("SKIP: the scenarios are not beside this repository")
	}
	if len(found) != 25 {
		t.Errorf("%d scenarios", len(found))
	}
	differ := map[string]tree{
		"010": {"old/name.txt": "from\n", "old/other.txt": "unrelated file\n", "renamed/dir/name.txt": "existing\n"},
		"011": {"duplicate.txt": "old content\n"},
		"015": {},
		"024": {"lines.txt": "one\r\ntwo\rTHREE\nfour\r\n"},
	}
	for _, p := range found {
		dir := filepath.Dir(p)
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			input, expected := readTree(t, filepath.Join(dir, "input")), readTree(t, filepath.Join(dir, "expected"))
			if d := cmp.Diff(expected, input.apply(string(text), patch.Options{Codex: true})); d != "" {
				t.Error("compat:", d)
			}
			number, _, _ := strings.Cut(name, "_")
			if own, ok := differ[number]; ok {
				expected = own
			}
			if d := cmp.Diff(expected, input.apply(string(text), patch.Options{})); d != "" {
				t.Error("default:", d)
			}
		})
	}
}
