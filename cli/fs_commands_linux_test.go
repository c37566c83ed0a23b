package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startsWith compares lines: each begins as wanted, and there are no others.
func startsWith(got, want string) bool {
	g, w := strings.SplitAfter(got, "\n"), strings.Split(strings.TrimSuffix(want, "\n"), "\n")
	if want == "" {
		return got == ""
	}
	if len(g) != len(w)+1 {
		return false
	}
	for i := range w {
		if !strings.HasPrefix(g[i], w[i]) {
			return false
		}
	}
	return true
}

// Every command, in process and through a daemon: what it prints, how it ends,
// and what the disk is afterwards. The whole output of both ways is the same,
// in text and as JSON.
func TestFileCommands(t *testing.T) {
	h := newHouse(t)
	h.file(h.home, ".ssh/id_ed25519", "secret\n", 0o600)
	h.file(h.home, ".config/wattle/policies/keep.toml", "keep_overwritten = true\n", 0o644)
	text, asJSON := make([]result, len(fsRows)), make([]result, len(fsRows))
	run := func(t *testing.T, row *fsRow, more ...string) (r result, disk string) {
		h.t = t
		h.seed()
		before := h.disk()
		args := append([]string{"fs"}, strings.Fields(row.args)...)
		r = h.with(row.stdin, append(args, more...)...)
		r.stdout, r.stderr = h.plain(r.stdout), h.plain(r.stderr)
		return r, changed(before, h.disk())
	}
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.t = t
			h.serve()
		}
		for i := range fsRows {
			row := &fsRows[i]
			t.Run(way+"/"+row.args, func(t *testing.T) {
				r, disk := run(t, row)
				if r.code != row.code || r.stdout != row.stdout || !startsWith(r.stderr, row.stderr) {
					t.Errorf("status %d, want %d\nstdout: %q\nwant:   %q\nstderr:\n%s\nwant:\n%s", r.code, row.code, r.stdout, row.stdout, r.stderr, row.stderr)
				}
				if disk != row.disk {
					t.Errorf("disk:\n%s\nwant:\n%s", disk, row.disk)
				}
				j, disk := run(t, row, "--json")
				if j.code != row.code || j.stderr != "" || disk != row.disk {
					t.Errorf("as JSON: status %d, stderr %q, disk:\n%s", j.code, j.stderr, disk)
				}
				if row.code != 2 && strings.TrimSpace(j.stdout) != "null" {
					h.objects(j.stdout)
				}
				switch way {
				case "in process":
					text[i], asJSON[i] = r, j
				case "daemon":
					if r != text[i] {
						t.Errorf("in process: %+v\nby the daemon: %+v", text[i], r)
					}
					if j != asJSON[i] {
						t.Errorf("in process: %+v\nby the daemon: %+v", asJSON[i], j)
					}
				}
			})
		}
	}
	h.t = t
	if got := h.read(filepath.Join(h.home, ".ssh/id_ed25519")); got != "secret\n" {
		t.Errorf("%q", got)
	}
	if n := h.object(h.do("status", "--json").stdout)["sessions"]; n != 0.0 {
		t.Errorf("%v sessions are left", n)
	}
	h.noScratch()
}

// What changes nothing gives the same JSON for the same disk, versions too.
func TestSameDiskSameJSON(t *testing.T) {
	h := newHouse(t)
	h.seed()
	h.file(h.ws, "long.txt", strings.Repeat("a line of this file\n", 5000), 0o644)
	commands := []string{
		"stat a.txt", "stat link", "stat link --no-follow", "stat d", "ls", "ls d", "resolve away", "resolve new/x",
		"read a.txt", "read crlf.txt", "read long.txt", "read long.txt --offset 7 --limit 30", "read long.txt --offset 1",
		"read data.bin --bytes", "read data.bin", "read nosuch", "ls a.txt", "patch --dry-run", "rm nosuch", "mkdir d --parents",
		"edit a.txt --old one --new 1", "mv a.txt ../out/x", "rm .",
	}
	var before []result
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.serve()
		}
		for i, c := range commands {
			r := h.with(patchOf(updateA, addN, moveIn), append(append([]string{"fs"}, strings.Fields(c)...), "--json")...)
			r.stdout = scratchDir.ReplaceAllString(r.stdout, "/tmp/ws") // another session's
			if way == "in process" {
				before = append(before, r)
				if r.stdout == "" {
					t.Errorf("%s: nothing on stdout", c)
				}
			} else if r != before[i] {
				t.Errorf("%s\nin process: %+v\nby the daemon: %+v", c, before[i], r)
			}
		}
	}
}

// Names that are no UTF-8 do not travel; what is done without a daemon is done.
func TestNamesThatAreNoText(t *testing.T) {
	h := newHouse(t)
	bad := h.file(h.ws, "bad\xff", "x", 0o644)
	if r := h.want(h.do("fs", "ls"), 0); r.stdout != "bad\\xff\n" {
		t.Errorf("%q", r.stdout)
	}
	h.serve()
	r := h.want(h.do("fs", "rm", "--permanent", "bad\xff"), 1)
	if !startsWith(r.stderr, "wattle: FS_NOT_TEXT: \nwattle: hint: it can be used while no daemon runs\n") || h.read(bad) != "x" {
		t.Error(r.stderr)
	}
}

// When the result cannot be written, nothing more is deleted.
func TestRemoveStopsWhenItCannotTell(t *testing.T) {
	h := newHouse(t)
	h.seed()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("SKIP: no /dev/full")
	}
	defer full.Close()
	c := h.command("fs", "rm", "--permanent", "a.txt", "data.bin")
	c.Stdout = full
	if r := h.want(h.finish(c), 1); !startsWith(r.stderr, "wattle: write result: \n") {
		t.Error(r.stderr)
	}
	h.absent(filepath.Join(h.ws, "a.txt"))
	h.read(filepath.Join(h.ws, "data.bin"))
}

// The results have the names of the protocol, one object a path.
func TestJSONNamesOfFiles(t *testing.T) {
	h := newHouse(t)
	h.seed()
	for _, c := range []struct{ args, names string }{
		{"resolve a.txt", "targetKey displayPath"},
		{"read data.bin --bytes", "data version"},
		{"cp a.txt b.txt", "path type files bytes"},
		{"mv b.txt c.txt", "path type"},
		{"mkdir n/m --parents", "path made"},
		{"patch", "operations summary"},
		{"patch --dry-run --compat codex", "operations dryRun summary"},
		{"rm c.txt", "outcome before trashed type"},
		{"rm c.txt", "outcome before"},
		{"rm n --permanent --recursive", "outcome before type entries"},
	} {
		r := h.want(h.with(patchOf(addN), append(append([]string{"fs"}, strings.Fields(c.args)...), "--json")...), 0)
		if l := h.objects(r.stdout); len(l) != 1 {
			t.Errorf("%s: %d objects", c.args, len(l))
		} else {
			keys(t, l[0], strings.Fields(c.names)...)
		}
	}
	r := h.want(h.do("fs", "rm", "nosuch", "../out/o.txt", "a.txt", "--json"), 77)
	l := h.objects(r.stdout)
	if len(l) != 3 || l[0]["outcome"] != "already_absent" || l[1]["code"] != -32010.0 || l[2]["outcome"] != "trashed" {
		t.Errorf("%v", l)
	}
	keys(t, l[2]["trashed"].(map[string]any), "id", "originalPath", "deletionDate", "trashDir", "name", "size", "type", "state")
	r = h.want(h.with(patchOf(updateA, badUpdate), "fs", "patch", "--json"), 1)
	keys(t, h.object(r.stdout)["data"].(map[string]any), "code", "op", "path", "report")
	if r := h.want(h.do("__complete", "fs", "patch", "--compat", ""), 0); !strings.HasPrefix(r.stdout, "codex\n") {
		t.Errorf("%q", r.stdout)
	}
	if r := h.want(h.do("__complete", "fs", "rm", ""), 0); !strings.HasPrefix(r.stdout, ":0\n") {
		t.Errorf("%q: file names are not completed", r.stdout)
	}
}

// Relative paths are taken from where the caller is, all of them.
func TestRelativeToTheCaller(t *testing.T) {
	h := newHouse(t)
	for _, way := range []string{"in process", "daemon"} {
		h.seed()
		if way == "daemon" {
			h.serve()
		}
		before := h.disk()
		for _, c := range []struct{ args, stdin string }{
			{"patch", patchOf("*** Update File: in.txt\n@@\n-in\n+out\n", "*** Add File: ../up.txt\n+up\n")},
			{"mv in.txt moved.txt", ""}, {"cp moved.txt copy.txt", ""}, {"mkdir new", ""}, {"rm --permanent moved.txt ../a.txt", ""},
		} {
			cmd := h.command(append([]string{"fs"}, append(strings.Fields(c.args), "--workspace", h.ws)...)...)
			cmd.Dir, cmd.Stdin = filepath.Join(h.ws, "d"), strings.NewReader(c.stdin)
			h.want(h.finish(cmd), 0)
		}
		want := "- ws/a.txt \"one\\ntwo\\none\\n\"\n- ws/d/in.txt \"in\\n\"\n+ ws/d/copy.txt \"out\\n\"\n+ ws/d/new/\n+ ws/up.txt \"up\\n\""
		if got := changed(before, h.disk()); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", way, got, want)
		}
	}
}
