package fence_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wattle-dev/wattle/fence"
)

func TestCanonical(t *testing.T) {
	w := newWorld(t)
	mustLink(t, "d", w.ws+"/l")
	mustLink(t, w.out, w.ws+"/out")
	mustLink(t, "none/x", w.ws+"/dangling")
	mustLink(t, "../none", w.ws+"/d/dangling-up")
	mustLink(t, "dangling", w.ws+"/to-dangling")
	mustLink(t, "none/../f", w.ws+"/dangling-dots")
	mustLink(t, "self", w.ws+"/self")
	mustLink(t, "f", w.ws+"/to-f")
	mustLink(t, "f/", w.ws+"/to-f-slash")
	mustLink(t, "..", w.ws+"/up")
	mustLink(t, ".", w.ws+"/here")
	prev := "f"
	for i := 1; i <= 41; i++ { // chain-N takes N links
		name := "chain-" + strings.Repeat("i", i)
		mustLink(t, prev, w.ws+"/"+name)
		prev = name
	}
	chain := func(n int) string { return w.ws + "/chain-" + strings.Repeat("i", n) }
	for _, tc := range []struct {
		in   string
		want fence.Resolved
		err  error
	}{
		{w.ws, fence.Resolved{Path: w.ws, Exists: true}, nil},
		{"/", fence.Resolved{Path: "/", Exists: true}, nil},
		{"/..//./..", fence.Resolved{Path: "/", Exists: true}, nil},
		{w.ws + "//d/.//f", fence.Resolved{Path: w.ws + "/d/f", Exists: true}, nil},
		{w.ws + "/l/f", fence.Resolved{Path: w.ws + "/d/f", Exists: true}, nil},
		{w.ws + "/l/../f", fence.Resolved{Path: w.ws + "/f", Exists: true}, nil},
		{w.ws + "/out/..", fence.Resolved{Path: w.base, Exists: true}, nil}, // not the workspace: links first
		{w.ws + "/up/ws/up/ws/here/f", fence.Resolved{Path: w.ws + "/f", Exists: true}, nil},
		{w.ws + "/new", fence.Resolved{Path: w.ws + "/new", Missing: []string{"new"}}, nil},
		{w.ws + "/out/a/b/", fence.Resolved{Path: w.out + "/a/b", Missing: []string{"a", "b"}}, nil},
		{w.ws + "/new/..", fence.Resolved{}, syscall.ENOENT},
		{w.ws + "/new/../f", fence.Resolved{}, syscall.ENOENT},
		{w.ws + "/dangling", fence.Resolved{Path: w.ws + "/dangling", Dangling: w.ws + "/none/x"}, nil},
		{w.ws + "/dangling/", fence.Resolved{Path: w.ws + "/dangling", Dangling: w.ws + "/none/x"}, nil},
		{w.ws + "/d/dangling-up", fence.Resolved{Path: w.ws + "/d/dangling-up", Dangling: w.ws + "/none"}, nil},
		{w.ws + "/to-dangling", fence.Resolved{Path: w.ws + "/to-dangling", Dangling: w.ws + "/none/x"}, nil},
		{w.ws + "/dangling-dots", fence.Resolved{Path: w.ws + "/dangling-dots", Dangling: w.ws + "/f"}, nil},
		{w.ws + "/dangling/y", fence.Resolved{Path: w.ws + "/none/x/y", Missing: []string{"none", "x", "y"}}, nil},
		{w.ws + "/self", fence.Resolved{}, syscall.ELOOP},
		{w.ws + "/self/x", fence.Resolved{}, syscall.ELOOP},
		{chain(40), fence.Resolved{Path: w.ws + "/f", Exists: true}, nil},
		{chain(41), fence.Resolved{}, syscall.ELOOP},
		{w.ws + "/to-f", fence.Resolved{Path: w.ws + "/f", Exists: true}, nil},
		{w.ws + "/to-f/", fence.Resolved{}, syscall.ENOTDIR},
		{w.ws + "/to-f-slash", fence.Resolved{}, syscall.ENOTDIR},
		{w.ws + "/f/..", fence.Resolved{}, syscall.ENOTDIR},
		{w.ws + "/f/new", fence.Resolved{}, syscall.ENOTDIR},
		{"", fence.Resolved{}, syscall.EINVAL},
		{"ws", fence.Resolved{}, syscall.EINVAL},
		{w.ws + "/\x00", fence.Resolved{}, syscall.EINVAL},
		{"/" + strings.Repeat("/", 4094), fence.Resolved{Path: "/", Exists: true}, nil},
		{"/" + strings.Repeat("/", 4095), fence.Resolved{}, syscall.ENAMETOOLONG},
		{w.ws + "/" + strings.Repeat("n", 256), fence.Resolved{}, syscall.ENAMETOOLONG},
	} {
		got, err := fence.Canonical(tc.in)
		if !errors.Is(err, tc.err) {
			t.Errorf("%q: error %v, want %v", tc.in, err, tc.err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: %s", tc.in, diff)
		}
		if err != nil && len(err.Error()) > 5000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	}
	left, err := os.ReadDir(w.ws)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name() == "none" || e.Name() == "new" {
			t.Errorf("looking made %s", e.Name())
		}
	}
}

// TestUnaliasLeavesOthersAlone: only a path in a root's other name changes.
func TestUnaliasLeavesOthersAlone(t *testing.T) {
	w := newWorld(t)
	f := mustNew(t, w.policy(fence.WorkspaceWrite))
	for _, p := range []string{w.ws, w.ws + "/x", w.out + "/x", w.base, "/", w.base + "/none/a/b", filepath.Dir(w.ws)} {
		if got := f.Unalias(p); got != p {
			t.Errorf("%s became %s", p, got)
		}
	}
}
