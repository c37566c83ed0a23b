package policies_test

import (
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
)

// TestSubmodulesWork: what git writes into a submodule's git directory, beside
// what is protected there, is free.
func TestSubmodulesWork(t *testing.T) {
	c := tempContext(t)
	p, err := policies.Build(c, fence.WorkspaceWrite, policies.Defaults()...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fence.New(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"x/index", "x/HEAD", "x/refs/heads/main", "x/objects/pack/p.pack", "x/info/exclude",
		"a/b/c/index", "x/modules/y/index",
		"hooks/index", "config/index", // submodules with these names
	} {
		for _, a := range []fence.Access{fence.Create, fence.Write, fence.Rename, fence.Delete} {
			if d := f.Check(c.Workspace+"/.git/modules/"+name, a); d != nil {
				t.Error(d)
			}
		}
	}
}
