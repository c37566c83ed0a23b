package provider_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// patchPlace is a place with a bin.
func patchPlace(t *testing.T, base string, c provider.Config) (*place, *bin) {
	t.Helper()
	if base == "" {
		base = t.TempDir()
	}
	b := newBin(t, base)
	if c.Trash == nil {
		c.Trash = b
	}
	return newPlace(t, base, c), b
}

func (p *place) apply(patch string, o provider.ApplyOptions) (provider.PatchReport, error) {
	p.t.Helper()
	return p.l.ApplyPatch(p.t.Context(), p.f, patch, o)
}

// patchOf puts begin and end around operations.
func patchOf(ops ...string) string {
	return "*** Begin Patch\n" + strings.Join(ops, "") + "*** End Patch\n"
}

func addOp(path, line string) string { return "*** Add File: " + path + "\n+" + line + "\n" }
func deleteOp(path string) string    { return "*** Delete File: " + path + "\n" }
func updateOp(path, from, to string) string {
	return "*** Update File: " + path + "\n@@\n-" + from + "\n+" + to + "\n"
}
func moveOp(path, dest, from, to string) string {
	return "*** Update File: " + path + "\n*** Move to: " + dest + "\n@@\n-" + from + "\n+" + to + "\n"
}

// reported gives the report of a patch that was refused.
func reported(t *testing.T, err error) provider.PatchReport {
	t.Helper()
	var pe *provider.PatchError
	if !errors.As(err, &pe) {
		t.Fatalf("no report in %v", err)
	}
	return pe.Report
}

// states are the states of a report in short.
func states(r provider.PatchReport) string {
	var out []string
	for _, o := range r.Operations {
		out = append(out, string(o.State))
	}
	return strings.Join(out, " ")
}

// tree describes everything below a directory: type, mode, owner, links, inode
// and content. With identity false the inode is left out.
func tree(t *testing.T, root string, identity bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := os.Lstat(path)
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		what := fmt.Sprintf("%v %d:%d", fi.Mode(), st.Uid, st.Gid)
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %q", b)
			if identity {
				what += fmt.Sprintf(" links %d mtime %d", st.Nlink, st.Mtim.Nano())
			}
		}
		if identity {
			what += fmt.Sprintf(" inode %d", st.Ino)
		}
		rel, err := filepath.Rel(root, path)
		out[rel] = what
		return err
	})
	must(t, err)
	return out
}

// sameTree compares two trees and names what differs.
func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for n, what := range want {
		if got[n] != what {
			t.Errorf("%s:\n\t%s\nwant\n\t%s", n, got[n], what)
		}
	}
	for n := range maps.Keys(got) {
		if _, ok := want[n]; !ok {
			t.Errorf("%s is too much: %s", n, got[n])
		}
	}
}
