package provider_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// creators are all calls that make something under a name where nothing may be.
var creators = map[string]func(p *place) error{
	"writeText": func(p *place) error {
		o := provider.WriteOptions{Expected: &provider.WriteIntent{Kind: provider.CreateIfAbsent}}
		_, err := p.l.WriteText(p.t.Context(), p.f, p.target("new"), "mine", o)
		return err
	},
	"applyPatch, add": func(p *place) error {
		_, err := p.apply(patchOf(addOp("new", "mine")), provider.ApplyOptions{})
		return err
	},
	"applyPatch, move": func(p *place) error {
		_, err := p.apply(patchOf(moveOp("f", "new", "mine", "mine")), provider.ApplyOptions{})
		return err
	},
	"moveFile": func(p *place) error {
		o := provider.MoveOptions{ExpectedDestination: &provider.WriteIntent{Kind: provider.CreateIfAbsent}}
		_, err := p.l.MoveFile(p.t.Context(), p.f, p.target("f"), p.target("new"), o)
		return err
	},
	"moveFile, hunks": func(p *place) error {
		o := provider.MoveOptions{ExpectedDestination: &provider.WriteIntent{Kind: provider.CreateIfAbsent}, Hunks: chunks(p.t, "-mine", "+mine")}
		_, err := p.l.MoveFile(p.t.Context(), p.f, p.target("f"), p.target("new"), o)
		return err
	},
	"movePath, file":      func(p *place) error { return moveNew(p, "f") },
	"movePath, link":      func(p *place) error { return moveNew(p, "l") },
	"movePath, directory": func(p *place) error { return moveNew(p, "d") },
	"copyPath, file":      func(p *place) error { return copyNew(p, "f") },
	"copyPath, link":      func(p *place) error { return copyNew(p, "l") },
	"copyPath, directory": func(p *place) error { return copyNew(p, "d") },
	"makeDir": func(p *place) error {
		_, err := p.l.MakeDir(p.t.Context(), p.f, p.W+"/new", provider.MakeDirOptions{})
		return err
	},
}

func moveNew(p *place, from string) error {
	_, err := p.l.MovePath(p.t.Context(), p.f, p.W+"/"+from, p.W+"/new", provider.MovePathOptions{})
	return err
}

func copyNew(p *place, from string) error {
	_, err := p.l.CopyPath(p.t.Context(), p.f, p.W+"/"+from, p.W+"/new", provider.CopyPathOptions{Recursive: true})
	return err
}

// creatorDisk is what they start from.
func creatorDisk(p *place) {
	p.put("f", "mine\n")
	must(p.t, os.Symlink("f", p.W+"/l"))
	must(p.t, os.Mkdir(p.W+"/d", 0o755))
	p.put("d/x", "mine\n")
}

// competitors take the name in between; taken looks whether it is still theirs.
var competitors = map[string]struct {
	make  func(path string) error
	taken func(path string) bool
}{
	"file": {func(path string) error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteString("theirs")
		return errors.Join(err, f.Close())
	}, func(path string) bool {
		b, err := os.ReadFile(path)
		return err == nil && string(b) == "theirs"
	}},
	"directory": {func(path string) error {
		// rename(2) replaces an empty directory; what has something in it is told
		// apart from ours.
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		return os.WriteFile(path+"/theirs", nil, 0o644)
	}, func(path string) bool { return there(path + "/theirs") }},
	"link": {func(path string) error { return os.Symlink("theirs", path) }, func(path string) bool {
		to, err := os.Readlink(path)
		return err == nil && to == "theirs"
	}},
	"FIFO": {func(path string) error { return syscall.Mkfifo(path, 0o644) }, func(path string) bool {
		fi, err := os.Lstat(path)
		return err == nil && fi.Mode()&fs.ModeNamedPipe != 0
	}},
}

// A create never replaces: whoever takes the name at any point of a call keeps
// it, on file systems with every combination of the features that they have.
func TestCreateNeverReplaces(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	if os.Getenv("WATTLE_SOAK") == "" {
		all = []int{0, 3, 7} // all features, those of a poor one that exchanges, none
	}
	for _, lacks := range all {
		lack := func(p *place) { p.l.Lack(lacks&1 != 0, lacks&2 != 0, lacks&4 != 0) }
		for name, create := range creators {
			var points []string
			p, _ := patchPlace(t, "", provider.Config{})
			creatorDisk(p)
			lack(p)
			p.l.SetHook(func(at string) { points = append(points, at) })
			must(t, create(p))
			slices.Sort(points)
			for _, point := range slices.Compact(points) {
				for kind, other := range competitors {
					p, _ := patchPlace(t, "", provider.Config{})
					creatorDisk(p)
					lack(p)
					took := false
					p.once(point, func() {
						err := other.make(p.W + "/new")
						if took = err == nil; err != nil && !errors.Is(err, fs.ErrExist) {
							t.Error(err)
						}
					})
					err := create(p)
					what := fmt.Sprintf("%s, %s takes the name at %q, lacks %03b", name, kind, point, lacks)
					if took && err == nil && !other.taken(p.W+"/new") {
						t.Errorf("%s: it was replaced", what)
					}
					if took && err != nil && !other.taken(p.W+"/new") {
						t.Errorf("%s: it is gone: %v", what, err)
					}
					if took && (p.get("f") != "mine\n" || p.get("d/x") != "mine\n") && !there(p.W+"/new") {
						t.Errorf("%s: the source is gone: %v", what, err)
					}
					if err != nil && provider.CodeOf(err) == provider.CodeIOError {
						t.Logf("%s: %v", what, err)
					}
					p.nothingStaged(t)
				}
			}
		}
	}
}
