package daemon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// told collects what the events say of changes, up to the mark that a call at
// the end leaves.
func told(h *house, c *client.Client, sub *client.Subscription, session string) []string {
	h.t.Helper()
	do(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: session, Path: "mark"}, Content: "x"})
	var out []string
	for {
		e, err := sub.Next(h.ctx())
		if err != nil {
			h.t.Fatal(err)
		}
		switch e.Type {
		case api.EventFSChanged.Name:
			d, err := api.EventFSChanged.Decode(e)
			if err != nil {
				h.t.Fatal(err)
			}
			rel := func(p string) string { return strings.TrimPrefix(p, h.ws+"/") }
			if rel(d.Path) == "mark" {
				return out
			}
			s := string(d.Op) + " " + rel(d.Path)
			if d.From != "" {
				s += " from " + rel(d.From)
			}
			if d.Version != "" {
				s += " v"
			}
			out = append(out, s)
		case api.EventFSDenied.Name:
			out = append(out, "denied")
		}
	}
}

// Every change of a file is told, where it really happened, and nothing else.
func TestChangesAreTold(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{Types: []string{"fs.changed", "fs.denied", "trash.put"}})
	if err != nil {
		t.Fatal(err)
	}
	s := h.open(c, fence.WorkspaceWrite)
	f := client.NewFiles(c, s.SessionID)
	at := func(name string) provider.Target { return h.target(c, s.SessionID, name) }
	hunks := []patch.Hunk{{OldLines: []string{"two"}, NewLines: []string{"three"}}}
	permanent := provider.DeletePathOptions{Permanent: true}
	must := func(_ any, err error) error { return err }
	for _, step := range []struct {
		name string
		do   func() error
		want []string
		code provider.Code
	}{
		{"create", func() error { return must(f.WriteText(h.ctx(), at("a"), "one\n", provider.WriteOptions{})) }, []string{"create a v"}, ""},
		{"update", func() error { return must(f.WriteText(h.ctx(), at("a"), "two\n", provider.WriteOptions{})) }, []string{"update a v"}, ""},
		{"patch", func() error { return must(f.PatchText(h.ctx(), at("a"), hunks, provider.PatchOptions{})) }, []string{"patch a v"}, ""},
		{"patch, no match", func() error { return must(f.PatchText(h.ctx(), at("a"), hunks, provider.PatchOptions{})) }, nil, provider.CodePatchMismatch},
		{"edit", func() error {
			return must(f.EditText(h.ctx(), at("a"), provider.EditRequest{OldString: "three", NewString: "four"}, provider.EditOptions{}))
		}, []string{"edit a v"}, ""},
		{"move", func() error { return must(f.MoveFile(h.ctx(), at("a"), at("b"), provider.MoveOptions{})) }, []string{"move b from a v"}, ""},
		{"directories", func() error { return must(f.MakeDir(h.ctx(), "d/e", provider.MakeDirOptions{Parents: true})) }, []string{"mkdir d", "mkdir d/e"}, ""},
		{"directories again", func() error { return must(f.MakeDir(h.ctx(), "d/e", provider.MakeDirOptions{Parents: true})) }, nil, ""},
		{"copy", func() error { return must(f.CopyPath(h.ctx(), "b", "d/c", provider.CopyPathOptions{})) }, []string{"copy d/c from b"}, ""},
		{"move a path", func() error { return must(f.MovePath(h.ctx(), "d/e", "g", provider.MovePathOptions{})) }, []string{"move g from d/e"}, ""},
		{"move a path onto another", func() error { return must(f.MovePath(h.ctx(), "b", "d/c", provider.MovePathOptions{})) }, nil, provider.CodeAlreadyExists},
		{"delete", func() error { return must(f.DeleteFile(h.ctx(), at("b"), provider.DeleteOptions{Permanent: true})) }, []string{"delete b"}, ""},
		{"delete a path", func() error { return must(f.DeletePath(h.ctx(), "g", permanent)) }, []string{"delete g"}, ""},
		{"delete nothing", func() error { return must(f.DeletePath(h.ctx(), "g", permanent)) }, nil, ""},
		{"delete a link, not what it leads to", func() error {
			if err := os.Symlink("d/c", filepath.Join(h.ws, "l")); err != nil {
				return err
			}
			return must(f.DeletePath(h.ctx(), "./l", permanent))
		}, []string{"delete l"}, ""},
		{"denied", func() error { return must(f.DeletePath(h.ctx(), filepath.Join(h.outside, "x"), permanent)) }, []string{"denied"}, provider.CodeSandboxDenied},
	} {
		if err := step.do(); provider.CodeOf(err) != step.code {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := told(h, c, sub, s.SessionID); !slices.Equal(got, step.want) {
			t.Errorf("%s: told %q, want %q", step.name, got, step.want)
		}
	}
}

// A patch tells one change for each file that is really another one now.
func TestPatchesAreTold(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{Types: []string{"fs.changed"}})
	if err != nil {
		t.Fatal(err)
	}
	s := h.open(c, fence.WorkspaceWrite)
	f := client.NewFiles(c, s.SessionID)
	for _, name := range []string{"old", "gone", "here"} {
		if err := os.WriteFile(filepath.Join(h.ws, name), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(ops string, o provider.ApplyOptions) error {
		o.Permanent = true
		_, err := f.ApplyPatch(h.ctx(), "*** Begin Patch\n"+ops+"*** End Patch\n", o)
		return err
	}
	want := func(name string, changes ...string) {
		t.Helper()
		if got := told(h, c, sub, s.SessionID); !slices.Equal(got, changes) {
			t.Errorf("%s: told %q, want %q", name, got, changes)
		}
	}
	all := "*** Add File: sub/new\n+x\n*** Update File: old\n@@\n-old\n+young\n*** Delete File: gone\n*** Update File: here\n*** Move to: there\n@@\n-here\n+there\n"
	if err := apply(all, provider.ApplyOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	want("dry run")
	if err := apply(strings.Replace(all, "-here", "-nowhere", 1), provider.ApplyOptions{}); provider.CodeOf(err) != provider.CodePatchMismatch {
		t.Errorf("%v", err)
	}
	want("atomic and failed")
	// The error over the wire is the one that a provider in this process gives.
	l, err := provider.NewLocal(provider.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	full, err := fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: h.ws})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{strings.Replace(all, "-here", "-nowhere", 1), "*** Delete File: none\n", "*** Add File: old\n+x\n", "nonsense\n"} {
		text := "*** Begin Patch\n" + bad + "*** End Patch\n"
		_, near := l.ApplyPatch(h.ctx(), full, text, provider.ApplyOptions{Cwd: h.ws, Permanent: true})
		_, far := f.ApplyPatch(h.ctx(), text, provider.ApplyOptions{Permanent: true})
		var nearPatch, farPatch *provider.PatchError
		if near == nil || far == nil || near.Error() != far.Error() || errors.As(near, &nearPatch) != errors.As(far, &farPatch) ||
			nearPatch != nil && !reflect.DeepEqual(nearPatch.Report, farPatch.Report) {
			t.Errorf("%q\nhere  %v\nthere %v\nreports %+v\n%+v", bad, near, far, nearPatch, farPatch)
		}
	}
	want("failed again")
	if err := apply(all, provider.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	want("done", "create sub/new v", "patch old v", "delete gone", "move there from here v")
	no := false
	err = apply("*** Add File: first\n+x\n*** Delete File: none\n*** Add File: last\n+x\n", provider.ApplyOptions{Atomic: &no})
	want(fmt.Sprint("in part: ", err), "create first v")
}

// A page goes on behind its last name, and a listing tells how.
func TestPagesOnTheWire(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.ReadOnly)
	names := []string{"a", "a\xff1", "a\xff2", "a\xff3", "b", "c"}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(h.ws, n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 2, 3, 6, 7} {
		p := api.FSListDirParams{FileRef: api.FileRef{SessionID: s.SessionID, Path: "."}, ListOptions: provider.ListOptions{Limit: limit}}
		var got []string
		for range 20 {
			r := do(h, c, api.FSListDir, p)
			for _, e := range r.Entries {
				got = append(got, e.Name)
			}
			if r.Next == "" {
				break
			}
			p.After = r.Next
		}
		if len(got) != len(names) || got[0] != "a" || got[5] != "c" {
			t.Errorf("pages of %d: %q", limit, got)
		}
	}
}
