package provider_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// hunks turns the line "two" into "2".
var hunks = []patch.Hunk{{OldLines: []string{"two"}, NewLines: []string{"2"}, Kinds: "-+"}}

// Somebody else acts at a named point inside a move. What they wrote stays
// somewhere, and what is reported is what is there.
func TestForeignChangeDuringMoveFile(t *testing.T) {
	const text, old = "one\ntwo\n", "old\n"
	over := func(p *place, name, content string) {
		must(t, os.WriteFile(p.O+"/n", []byte(content), 0o644))
		must(t, os.Rename(p.O+"/n", p.W+"/"+name))
	}
	acts := []struct {
		name string
		do   func(p *place)
		mine string // what they wrote, none if nothing
	}{
		{"source rewritten", func(p *place) { must(t, os.WriteFile(p.W+"/f", []byte("theirs\ntwo\n"), 0o644)) }, "theirs"},
		{"source renamed over", func(p *place) { over(p, "f", "theirs\ntwo\n") }, "theirs"},
		{"source removed", func(p *place) { os.Remove(p.W + "/f") }, ""},
		{"source a directory", func(p *place) { os.Remove(p.W + "/f"); must(t, os.Mkdir(p.W+"/f", 0o755)) }, ""},
		{"source a link out", func(p *place) { os.Remove(p.W + "/f"); must(t, os.Symlink(p.O+"/victim", p.W+"/f")) }, ""},
		{"destination rewritten", func(p *place) { must(t, os.WriteFile(p.W+"/g", []byte("theirs\n"), 0o644)) }, "theirs"},
		{"destination renamed over", func(p *place) { over(p, "g", "theirs\n") }, "theirs"},
		{"destination removed", func(p *place) { os.Remove(p.W + "/g") }, ""},
		{"destination a directory", func(p *place) { os.Remove(p.W + "/g"); must(t, os.Mkdir(p.W+"/g", 0o755)) }, ""},
		{"destination a link out", func(p *place) { os.Remove(p.W + "/g"); must(t, os.Symlink(p.O+"/victim", p.W+"/g")) }, ""},
	}
	inMemory(t)
	reached := map[string]int{}
	points := []string{"locked", "judged", "prepared", "staged", "checked", "exchanged", "published", "aside"}
	defer func() {
		for _, point := range points {
			if reached[point] == 0 {
				t.Errorf("no move came to %q", point)
			}
		}
	}()
	for _, point := range points {
		for _, a := range acts {
			for _, there := range []bool{false, true} {
				for _, how := range []string{"plain", "hunks", "no flags"} {
					for _, guarded := range []bool{false, true} {
						name := strings.Join([]string{point, a.name, how}, "/")
						if there {
							name += "/over"
						}
						if guarded {
							name += "/guarded"
						}
						t.Run(name, func(t *testing.T) {
							p := newPlace(t, "", provider.Config{})
							p.put("f", text)
							must(t, os.WriteFile(p.O+"/victim", []byte("victim"), 0o644))
							o := provider.MoveOptions{}
							if there {
								p.put("g", old)
							}
							if how == "hunks" {
								o.Hunks = hunks
							}
							if how == "no flags" {
								p.l.Lack(true, true, true)
							}
							if guarded {
								o.ExpectedSource = &provider.VersionGuard{Version: p.version("f")}
								o.ExpectedDestination = &provider.WriteIntent{Kind: provider.CreateIfAbsent}
								if there {
									o.ExpectedDestination = &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: p.version("g")}
								}
							}
							from, to, acted := p.target("f"), p.target("g"), false
							p.l.SetHook(func(at string) {
								if at == point && !acted {
									acted = true
									a.do(p)
								}
							})
							out, err := p.l.MoveFile(t.Context(), p.f, from, to, o)
							if !acted {
								return // this way of moving has no such point
							}
							reached[point]++
							if guarded && point == "prepared" && a.mine != "" && provider.CodeOf(err) != provider.CodeStaleVersion && provider.CodeOf(err) != provider.CodeNotObserved {
								t.Errorf("%v, although the guard does not hold", err)
							}
							if strings.HasPrefix(a.name, "destination") {
								// The first "checked" is that of a replacement; without
								// one it comes after the publication.
								early := slices.Contains([]string{"locked", "judged", "prepared", "staged"}, point) || point == "checked" && there
								if err != nil && p.regular("f") != text || err == nil && early && !strings.HasPrefix(p.regular("g"), "one\n") {
									t.Errorf("the content is lost: %v, f %q, g %q", err, p.regular("f"), p.regular("g"))
								}
							}
							c := provider.CodeOf(err)
							if c == provider.CodeIOError {
								t.Errorf("given up: %v", err)
							}
							checkMoved(t, p, out, err, point == "aside")
							if b, _ := os.ReadFile(p.O + "/victim"); string(b) != "victim" {
								t.Errorf("outside: %q", b)
							}
							// What they wrote is there, unless it came where an
							// unguarded move may write over it.
							if a.mine != "" && !strings.Contains(p.all(), a.mine) && (guarded || !strings.HasPrefix(a.name, "destination") || out.Destination.Before == nil || !strings.Contains(*out.Destination.Before, a.mine)) &&
								// Without an exchange what is replaced is not seen
								// (fs-contract section 11).
								!(how == "no flags" && (point == "checked" || !guarded)) {
								t.Errorf("%q is lost: %q, %v", a.mine, p.all(), err)
							}
							for _, n := range p.names() {
								if n != "f" && n != "g" {
									t.Errorf("left behind: %s", n)
								}
							}
						})
					}
				}
			}
		}
	}
}

// inMemory puts the test's directories where small writes cost nothing, if
// there is such a place.
func inMemory(t *testing.T) {
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// checkMoved holds a result to the disk: an error leaves the source, a success
// has the content at the destination and says truly what became of the source.
// anew: somebody may have made a new file of that name since.
func checkMoved(t *testing.T, p *place, out provider.MoveOutcome, err error, anew bool) {
	t.Helper()
	if err != nil {
		if strings.Contains(p.regular("g"), "2\n") {
			t.Errorf("failed with %v, and published", err)
		}
		return
	}
	_, lerr := os.Lstat(p.W + "/f")
	if out.SourceDeleted != os.IsNotExist(lerr) && !anew {
		t.Errorf("source deleted: %v, on disk: %v", out.SourceDeleted, lerr)
	}
	if out.SourceDeleted != (out.SourceFailure == nil) {
		t.Errorf("%+v", out)
	}
}

func (p *place) names() []string {
	es, err := os.ReadDir(p.W)
	must(p.t, err)
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

// regular is the content of a regular file, or nothing.
func (p *place) regular(name string) string {
	fi, err := os.Lstat(p.W + "/" + name)
	if err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	return p.get(name)
}

// all is what all regular files of the workspace hold.
func (p *place) all() string {
	s := ""
	for _, n := range p.names() {
		s += p.regular(n)
	}
	return s
}

// The file that is moved has a name elsewhere, which must not be taken for the
// place from which it was driven out.
func TestMoveDrivenOut(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	p.put("f", "mine")
	p.put("g", "old")
	over := func(content string) {
		must(t, os.WriteFile(p.O+"/n", []byte(content), 0o644))
		must(t, os.Rename(p.O+"/n", p.W+"/g"))
	}
	once := map[string]bool{}
	p.l.SetHook(func(at string) {
		if once[at] {
			return
		}
		once[at] = true
		switch at {
		case "checked":
			over("first")
		case "restoring":
			over("newest")
		}
	})
	_, err := p.l.MoveFile(t.Context(), p.f, p.target("f"), p.target("g"), provider.MoveOptions{
		ExpectedDestination: &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: p.version("g")},
	})
	code(t, err, provider.CodeStaleVersion)
	if p.get("f") != "mine" || p.get("g") != "newest" || !once["restoring"] {
		t.Errorf("f %q, g %q", p.get("f"), p.get("g"))
	}
	p.only("f", "g")
}

func TestMoveKeepsTheFile(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	p.put("f", "x")
	p.put("g", "old")
	var before, after unix.Stat_t
	must(t, unix.Stat(p.W+"/f", &before))
	out, err := p.l.MoveFile(t.Context(), p.f, p.target("f"), p.target("g"), provider.MoveOptions{})
	must(t, err)
	must(t, unix.Stat(p.W+"/g", &after))
	if before.Ino != after.Ino || after.Nlink != 1 || before.Mtim != after.Mtim {
		t.Errorf("%+v, then %+v", before, after)
	}
	if out.Destination.Version == "" {
		t.Error("no version")
	}
	p.only("g")
}

// Across file systems a move is a copy and a removal.
func TestMoveAcross(t *testing.T) {
	const shm = "/dev/shm"
	var a, b unix.Stat_t
	if unix.Stat(shm, &a) != nil || unix.Stat(t.TempDir(), &b) != nil || a.Dev == b.Dev {
		t.Skip("SKIP: no second file system")
	}
	far, err := os.MkdirTemp(shm, "wattle-move-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(far) })
	for _, tt := range []struct {
		name, content string
		there         bool
		hunks         []patch.Hunk
		want          string
	}{
		{name: "new", content: "one\ntwo\n", want: "one\ntwo\n"},
		{name: "over", content: "one\ntwo\n", there: true, want: "one\ntwo\n"},
		{name: "binary of many chunks", content: strings.Repeat("\x00\xff123", 1<<16), want: strings.Repeat("\x00\xff123", 1<<16)},
		{name: "hunks", content: "one\ntwo\n", hunks: hunks, want: "one\n2\n"},
		{name: "hunks, over", content: "one\r\ntwo\r\n", there: true, hunks: hunks, want: "one\r\n2\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			p.f, err = fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: p.W, Writable: []fence.Entry{{Path: far, Source: "session"}}})
			must(t, err)
			p.put("f", tt.content)
			must(t, os.Chmod(p.W+"/f", 0o751))
			to := far + "/" + strings.ReplaceAll(tt.name, " ", "-")
			if tt.there {
				must(t, os.WriteFile(to, []byte("old"), 0o600))
			}
			target, err := p.l.Resolve(t.Context(), p.f, to, provider.ResolveOptions{})
			must(t, err)
			out, err := p.l.MoveFile(t.Context(), p.f, p.target("f"), target, provider.MoveOptions{Hunks: tt.hunks})
			must(t, err)
			got, err := os.ReadFile(to)
			must(t, err)
			fi, err := os.Stat(to)
			must(t, err)
			if string(got) != tt.want || fi.Mode() != 0o751 || !out.SourceDeleted || (out.Destination.Before != nil) != tt.there {
				t.Errorf("%d bytes, mode %v, %+v", len(got), fi.Mode(), out.Destination)
			}
			p.only()
		})
	}
	es, err := os.ReadDir(far)
	must(t, err)
	for _, e := range es {
		if strings.HasPrefix(e.Name(), provider.TempPrefix) {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestCancelDuringMoveFile(t *testing.T) {
	for point, want := range map[string]provider.Code{"locked": provider.CodeAborted, "judged": provider.CodeAborted, "staged": "", "checked": "", "published": "", "aside": ""} {
		for _, to := range []string{"g", "x/y/g"} {
			t.Run(point+" "+to, func(t *testing.T) {
				p := newPlace(t, "", provider.Config{})
				p.put("f", "one\ntwo\n")
				p.put("old", "old")
				ctx, cancel := context.WithCancel(t.Context())
				a, b := p.target("f"), p.target(to)
				p.l.SetHook(func(at string) {
					if at == point {
						cancel()
					}
				})
				_, err := p.l.MoveFile(ctx, p.f, a, b, provider.MoveOptions{Hunks: hunks})
				code(t, err, want)
				if want != "" {
					p.only("f", "old")
				} else if p.get(to) != "one\n2\n" || slices.Contains(p.names(), "f") {
					t.Errorf("%q, %v", p.get(to), p.names())
				}
			})
		}
	}
}

// Moves in a circle neither wait for each other nor lose a file.
func TestMovesInACircle(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	names := []string{"a", "b", "c"}
	targets := map[string]provider.Target{}
	for _, n := range names {
		targets[n] = p.target(n)
	}
	p.put("a", "the only one")
	var wg sync.WaitGroup
	for i := range names {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 100 {
				_, err := p.l.MoveFile(t.Context(), p.f, targets[names[i]], targets[names[(i+1)%3]], provider.MoveOptions{})
				if c := provider.CodeOf(err); err != nil && c != provider.CodeStaleVersion {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if all := p.all(); all != "the only one" {
		t.Errorf("%q in %v", all, p.names())
	}
}
