package provider_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

func chunks(t *testing.T, lines ...string) []patch.Hunk {
	t.Helper()
	ops, err := patch.Parse("*** Begin Patch\n*** Update File: f\n"+strings.Join(lines, "\n")+"\n*** End Patch", patch.Options{})
	must(t, err)
	return ops[0].Hunks
}

func TestPatchMismatchIsFound(t *testing.T) {
	p := newPlace(t, t.TempDir(), provider.Config{})
	p.put("f", "a\nb\n")
	_, err := p.l.PatchText(t.Context(), p.f, p.target("f"), chunks(t, "@@ a", "-x", "-y", "+z"), provider.PatchOptions{})
	var f *patch.Failure
	if !errors.As(err, &f) || f.HunkLineNumber != 3 || f.Stage != patch.StageOldLines || f.SearchStart != 1 || !slices.Equal(f.Pattern, []string{"x", "y"}) {
		t.Fatalf("%v: %+v", err, f)
	}
	want := "patchText " + p.W + "/f: patch line 3 does not fit (stage oldLines): the 2 lines that begin with \"x\" do not occur from line 2 of the file on"
	if err.Error() != want {
		t.Errorf("%s\nwant %s", err, want)
	}
	if provider.CodeOf(err) != provider.CodePatchMismatch || p.get("f") != "a\nb\n" {
		t.Errorf("%v, file %q", err, p.get("f"))
	}
}

// The dialect of Codex is asked for in process only (E3, section 7).
func TestPatchCodex(t *testing.T) {
	for _, tt := range []struct {
		name, file, want string
		at               []int
		lines            []string
	}{
		{"E3", "x\nctx\ny\n", "x\nctx\ny\nnew\n", []int{4}, []string{"@@ ctx", "+new"}},
		{"a final line end", "a\r\nb", "a\r\nc\r\n", nil, []string{"@@", "-b", "+c"}},
		{"the first line end, and the mark stays", "\ufeffp\r\nq\nr\n", "\ufeffp\r\nQ\r\nr\n", nil, []string{"@@", "-q", "+Q"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, t.TempDir(), provider.Config{})
			p.put("f", tt.file)
			got, err := p.l.PatchText(t.Context(), p.f, p.target("f"), chunks(t, tt.lines...), provider.PatchOptions{Codex: true})
			must(t, err)
			if p.get("f") != tt.want || !slices.Equal(got.InsertedAt, tt.at) {
				t.Errorf("%q at %v", p.get("f"), got.InsertedAt)
			}
		})
	}
}

func TestPatchLimits(t *testing.T) {
	change := []patch.Hunk{{OldLines: []string{"aa"}, NewLines: []string{"bbbb"}}}
	for _, tt := range []struct {
		name  string
		limit int64
		file  string
		hunks []patch.Hunk
		code  provider.Code
	}{
		{"the result at the limit", 5, "aa\n", change, ""},
		{"the result above it", 4, "aa\n", change, provider.CodeTooLarge},
		{"the mark counts", 8, "\ufeffaa\n", change, ""},
		{"the mark counts, above it", 7, "\ufeffaa\n", change, provider.CodeTooLarge},
		{"the mark fills it", 3, "\ufeff", []patch.Hunk{{NewLines: []string{""}}}, provider.CodeTooLarge},
		{"the file above it", 2, "aa\n", []patch.Hunk{{OldLines: []string{"aa"}}}, provider.CodeTooLarge},
		{"it need not fit then", 2, "aa\n", []patch.Hunk{{OldLines: []string{"x"}}}, provider.CodeTooLarge},
		{"a new line that is not UTF-8", 100, "aa\n", []patch.Hunk{{OldLines: []string{"aa"}, NewLines: []string{"a\xff"}}}, provider.CodeNotText},
		{"an old line that is not UTF-8", 100, "aa\n", []patch.Hunk{{OldLines: []string{"aa\xff"}}}, provider.CodePatchMismatch},
		{"no hunks", 100, "aa\n", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, t.TempDir(), provider.Config{EditMaxBytes: tt.limit})
			p.put("f", tt.file)
			_, err := p.l.PatchText(t.Context(), p.f, p.target("f"), tt.hunks, provider.PatchOptions{})
			if provider.CodeOf(err) != tt.code || (err == nil) != (tt.code == "") {
				t.Error(err)
			}
			if tt.code != "" && p.get("f") != tt.file {
				t.Errorf("file %q", p.get("f"))
			}
			p.only("f")
		})
	}
}

// Cancelled at any step, a patch did nothing and says so, or it did all.
func TestPatchCancelledAtEveryStep(t *testing.T) {
	for n := 0; ; n++ {
		if n > 200 {
			t.Fatal("never succeeds")
		}
		p := newPlace(t, t.TempDir(), provider.Config{})
		p.put("f", "old\n")
		_, err := p.l.PatchText(&countdown{t.Context(), n}, p.f, p.target("f"), chunks(t, "-old", "+new"), provider.PatchOptions{})
		p.only("f")
		if err == nil {
			if n == 0 || p.get("f") != "new\n" {
				t.Errorf("step %d: done, file %q", n, p.get("f"))
			}
			return
		}
		if provider.CodeOf(err) != provider.CodeAborted || p.get("f") != "old\n" {
			t.Errorf("step %d: %v, file %q", n, err, p.get("f"))
		}
	}
}

// Somebody else changes the file while a patch is made of it (E7): with a guard
// it is stale, without one the hunks are matched anew.
func TestForeignChangeDuringPatch(t *testing.T) {
	for _, point := range []string{"locked", "judged", "opened", "staged", "checked"} {
		for _, guarded := range []bool{true, false} {
			name := point
			if guarded {
				name += ", guarded"
			}
			t.Run(name, func(t *testing.T) {
				p := newPlace(t, t.TempDir(), provider.Config{})
				f := p.put("f", "ctx\nend\n")
				const foreign = "more\nctx\nend\nof another\n"
				target := p.target("f")
				o := provider.PatchOptions{}
				if guarded {
					i, err := p.l.Stat(t.Context(), p.f, target)
					must(t, err)
					o.Expected = &provider.VersionGuard{Version: i.Version}
				}
				done := false
				p.l.SetHook(func(at string) {
					if at == point && !done {
						done = true
						must(t, os.WriteFile(f, []byte(foreign), 0o644))
					}
				})
				got, err := p.l.PatchText(t.Context(), p.f, target, chunks(t, "@@ ctx", "+new"), o)
				want := foreign
				if guarded {
					if provider.CodeOf(err) != provider.CodeStaleVersion {
						t.Error(err)
					}
				} else {
					must(t, err)
					want = "more\nctx\nnew\nend\nof another\n"
					if got.Before != foreign || got.After != want || !slices.Equal(got.InsertedAt, []int{3}) {
						t.Errorf("%+v", got)
					}
				}
				if p.get("f") != want {
					t.Errorf("file %q", p.get("f"))
				}
				p.only("f")
			})
		}
	}
}
