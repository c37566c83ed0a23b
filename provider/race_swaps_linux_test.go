package provider_test

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// swap exchanges two names, one of which is a link to the outside. What the
// tries remove is put there anew.
type swap struct {
	t    testing.TB
	a, b string
	aux  string // a directory beside the workspace
	link string // text of the link
	// fresh makes what is inside anew under a name that it is given; nil for a
	// directory that nothing removes.
	fresh func(as string) error

	mu sync.Mutex
	n  int // exchanges
}

func isLink(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode()&os.ModeSymlink != 0
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

func (s *swap) once() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if unix.Renameat2(unix.AT_FDCWD, s.a, unix.AT_FDCWD, s.b, unix.RENAME_EXCHANGE) == nil {
		if s.n++; s.n%32 != 0 {
			return
		}
	}
	if s.fresh != nil {
		s.mend()
	}
}

// mend sees to it that one name is a link and the other one is not.
func (s *swap) mend() {
	for _, n := range []struct{ name, other string }{{s.a, s.b}, {s.b, s.a}} {
		if there(n.name) && isLink(n.name) == isLink(n.other) && n.name == s.b {
			// Two of one kind.
			tmp := s.aux + "/" + rand.Text()
			if err := os.Rename(n.name, tmp); err == nil {
				os.RemoveAll(tmp)
			}
		}
		if there(n.name) {
			continue
		}
		tmp := s.aux + "/" + rand.Text()
		err := error(nil)
		if isLink(n.other) {
			err = s.fresh(tmp)
		} else {
			err = os.Symlink(s.link, tmp)
		}
		if err != nil {
			s.t.Errorf("cannot go on with the race: %v", err)
			return
		}
		if err := unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, n.name, unix.RENAME_NOREPLACE); err != nil {
			os.RemoveAll(tmp)
		}
	}
}

// freshFile and freshTree make what a race is about.
func freshFile(as string) error { return os.WriteFile(as, []byte("inside\n"), 0o644) }

func freshTree(as string) error {
	return errors.Join(os.MkdirAll(as+"/sub", 0o755), freshFile(as+"/f"), freshFile(as+"/sub/f"))
}

// swap makes the exchange of two names in W, or in g/a itself when they begin
// with "@/".
func (a *arena) swap(one, other, link string, fresh func(string) error) *swap {
	path := func(name string) string {
		if rest, ok := strings.CutPrefix(name, "@"); ok {
			return a.self + rest
		}
		return a.W + "/" + name
	}
	s := &swap{t: a.t, a: path(one), b: path(other), aux: a.base + "/aux", link: link, fresh: fresh}
	if !there(s.a) && fresh != nil {
		must(a.t, fresh(s.a))
	}
	must(a.t, os.Symlink(link, s.b))
	return s
}

// within is a swap of a name in the tree g/a/t, which comes back whole when a
// try has removed it.
func (a *arena) within(name, link string, fresh func(string) error) *swap {
	must(a.t, freshTree(a.W+"/g/a/t"))
	return a.swap("@/t/"+name, "g/"+name+".link", link, func(as string) error {
		if !there(a.W + "/g/a/t") {
			tmp := a.base + "/aux/" + rand.Text()
			if err := freshTree(tmp); err != nil {
				return err
			}
			if os.Rename(tmp, a.W+"/g/a/t") != nil {
				os.RemoveAll(tmp)
			}
		}
		return fresh(as)
	})
}

func parentSwap(a *arena) []*swap {
	return []*swap{a.swap("g/a", "g/al", "../../out/a", nil)}
}

func fileSwap(a *arena) []*swap {
	must(a.t, freshTree(a.W+"/g/a/t"))
	return []*swap{a.swap("@/f", "@/fl", a.O+"/a/f", freshFile)}
}

func treeSwap(a *arena) []*swap {
	must(a.t, freshFile(a.W+"/g/a/f"))
	return []*swap{a.swap("@/t", "@/tl", a.O+"/a/t", freshTree)}
}

// races are the exchanges: in every place of a path, at both ends, and of what
// the provider itself makes.
var races = []race{
	{name: "grandparent", prepare: func(a *arena) []*swap { return []*swap{a.swap("g", "gl", a.O, nil)} }},
	{name: "parent", prepare: parentSwap},
	{name: "both parents", prepare: func(a *arena) []*swap {
		return append(parentSwap(a), a.swap("s", "sl", a.O+"/a", nil))
	}},
	{name: "file", last: true, prepare: fileSwap},
	{name: "dangling link", last: true, prepare: func(a *arena) []*swap {
		must(a.t, freshTree(a.W+"/g/a/t"))
		return []*swap{a.swap("@/f", "@/fl", "../../../out/a/none", freshFile)}
	}},
	{name: "directory", last: true, prepare: treeSwap},
	{name: "directory in a tree", last: true, prepare: func(a *arena) []*swap {
		must(a.t, freshFile(a.W+"/g/a/f"))
		return []*swap{a.within("sub", a.O+"/a/sub", func(as string) error {
			return errors.Join(os.Mkdir(as, 0o755), freshFile(as+"/f"))
		})}
	}},
	{name: "file in a tree", last: true, prepare: func(a *arena) []*swap {
		must(a.t, freshFile(a.W+"/g/a/f"))
		return []*swap{a.within("f", a.O+"/a/f", freshFile)}
	}},
	{name: "parent and file", last: true, prepare: func(a *arena) []*swap { return append(fileSwap(a), parentSwap(a)...) }},
	{name: "file, full access", last: true, full: true, prepare: fileSwap},
	{name: "parent, few features", poor: true, prepare: parentSwap},
	{name: "file, few features", last: true, poor: true, prepare: fileSwap},
	{name: "directory, few features", last: true, poor: true, prepare: treeSwap},
	{name: "hidden names", temp: true, prepare: func(*arena) []*swap { return nil }},
	{name: "hidden names, few features", temp: true, poor: true, prepare: func(*arena) []*swap { return nil }},
}

var hiddenSwaps atomic.Int64

// swapHidden exchanges whatever the provider has under a hidden name with a
// link to the outside: to a directory or to a file.
func (a *arena) swapHidden() {
	for _, d := range []string{a.W + "/g/a", a.W + "/s"} {
		es, _ := os.ReadDir(d)
		for _, e := range es {
			if !strings.HasPrefix(e.Name(), provider.TempPrefix) || isLink(d+"/"+e.Name()) {
				continue
			}
			link := a.O + "/a/f"
			if e.IsDir() {
				link = a.O + "/a/t"
			}
			tmp := a.base + "/aux/" + rand.Text()
			if os.Symlink(link, tmp) != nil {
				continue
			}
			if unix.Renameat2(unix.AT_FDCWD, d+"/"+e.Name(), unix.AT_FDCWD, tmp, unix.RENAME_EXCHANGE) == nil {
				hiddenSwaps.Add(1)
			}
			os.RemoveAll(tmp)
		}
	}
}
