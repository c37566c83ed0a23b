package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a fenced command removes comes back whole, where the policy says so, and
// only there.
func TestTrashCommands(t *testing.T) {
	h := newHouse(t)
	pol := h.file(h.dir, "keep.toml", "trash_commands = true\n", 0o644)
	in := func(p string) string { return filepath.Join(h.ws, p) }
	fill := func() {
		h.file(h.ws, "tree/a/f", "f", 0o640)
		h.file(h.ws, "tree/b/g", "g", 0o755)
	}
	fill()
	r := h.want(h.sh("rm -rf tree"), 0)
	if strings.Contains(r.stderr, "trash") || len(h.listed("--all")) != 0 {
		t.Errorf("without the policy: %q", r.stderr)
	}
	fill()
	r = h.want(h.sh("rm -rf tree", "--policy", pol), 0)
	h.absent(in("tree"))
	m := regexp.MustCompile(`wattle: (\d+) removals are in the trash; wattle trash restore --process (\S+) brings them back\n`).FindStringSubmatch(r.stderr)
	if m == nil || m[1] != "5" {
		t.Fatalf("%q", r.stderr)
	}
	if got := h.listed(); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if r := h.want(h.do("trash", "restore", "--process", m[2]), 0); r.stdout != "restored  2 files, 3 directories\n" {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	if h.read(in("tree/a/f")) != "f" || h.read(in("tree/b/g")) != "g" {
		t.Error("it did not come back")
	}
	if fi, err := os.Stat(in("tree/b/g")); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", fi, err)
	}
	h.want(h.do("trash", "restore", "--process", m[2]), 1)

	// Something has a name again: it stays, and the rest comes back.
	last := h.objects(h.want(h.sh("rm -rf tree", "--policy", pol, "--json"), 0).stderr)
	id := last[len(last)-1]["processId"].(string)
	h.file(h.ws, "tree/a/f", "new", 0o600)
	r = h.want(h.do("trash", "restore", "--process", id), 1)
	if !strings.Contains(r.stderr, in("tree/a/f")+" stays in the trash: FS_ALREADY_EXISTS") || h.read(in("tree/a/f")) != "new" || h.read(in("tree/b/g")) != "g" {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	h.want(h.do("trash", "restore", "--process", id, "--to", h.out+"/back"), 0)
	if h.read(h.out+"/back/tree/a/f") != "f" {
		t.Error("it did not come back elsewhere")
	}

	// With the trash off nothing is kept.
	h.file(filepath.Join(h.home, ".config", "wattle"), "config.toml", "trash.enabled = false", 0o600)
	r = h.want(h.sh("rm -rf tree", "--policy", pol), 0)
	h.absent(in("tree"))
	if got := h.listed("--all"); len(got) != 0 {
		t.Errorf("%v %q", got, r.stderr)
	}
}
