package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func (h *house) bin() string { return filepath.Join(h.home, ".local/share/Trash") }

// listed are the entries of the house's own trash: the machine may have others.
func (h *house) listed(args ...string) []map[string]any {
	h.t.Helper()
	var own []map[string]any
	for _, e := range h.objects(h.want(h.do(append([]string{"trash", "list", "--json"}, args...)...), 0).stdout) {
		if strings.HasPrefix(e["trashDir"].(string), h.dir+"/") {
			own = append(own, e)
		}
	}
	return own
}

// What is deleted is listed, comes back and can be removed for good, through the
// daemon and in process alike.
func TestTrash(t *testing.T) {
	for _, way := range []string{"in process", "daemon"} {
		t.Run(way, func(t *testing.T) {
			h := newHouse(t)
			if way == "daemon" {
				h.serve()
			}
			in := func(p string) string { return filepath.Join(h.ws, p) }
			h.file(h.ws, "a.txt", "text", 0o640)
			h.file(h.ws, "d/b\n.txt", "b", 0o600)
			h.file(h.out, "c", "c", 0o600)
			old := time.Date(2011, 12, 13, 14, 15, 16, 0, time.UTC)
			if err := os.Chtimes(in("a.txt"), old, old); err != nil {
				t.Fatal(err)
			}
			h.want(h.do("fs", "rm", "a.txt", "d"), 0)
			h.want(h.do("fs", "rm", h.out+"/c", "--mode", "full-access"), 0)
			h.absent(in("a.txt"), in("d"), h.out+"/c")

			if got := h.listed(); len(got) != 2 {
				t.Errorf("%v", got)
			}
			if got := h.listed("--workspace", h.out); len(got) != 1 || got[0]["originalPath"] != h.out+"/c" {
				t.Errorf("%v", got)
			}
			ids := map[string]string{}
			for _, e := range h.listed("--all") {
				ids[strings.TrimPrefix(e["originalPath"].(string), h.dir+"/p/")] = e["id"].(string)
				if e["state"] != "ok" {
					t.Errorf("%v", e)
				}
			}
			if len(ids) != 3 {
				t.Fatalf("%v", ids)
			}
			r := h.want(h.do("trash", "list"), 0)
			if !strings.Contains(r.stdout, ids["ws/a.txt"]+"  ") || !strings.Contains(r.stdout, "  file                  4  "+in("a.txt")+"\n") {
				t.Errorf("%q", r.stdout)
			}

			// Never over something; somewhere else from where the caller is.
			h.file(h.ws, "a.txt", "new", 0o600)
			r = h.want(h.do("trash", "restore", ids["ws/a.txt"]), 1)
			if !strings.HasPrefix(r.stderr, "wattle: FS_ALREADY_EXISTS: ") || !strings.Contains(r.stderr, "hint: put it somewhere else with --to\n") {
				t.Error(r.stderr)
			}
			r = h.want(h.do("trash", "restore", ids["ws/a.txt"], "--to", "x/y"), 1)
			if !strings.HasPrefix(r.stderr, "wattle: FS_NOT_FOUND: ") || !strings.Contains(r.stderr, "--parents") {
				t.Error(r.stderr)
			}
			r = h.want(h.do("trash", "restore", ids["ws/a.txt"], "--to", "x/y", "--parents"), 0)
			if r.stdout != "restored  "+in("x/y")+"\n" || h.read(in("x/y")) != "text" || h.read(in("a.txt")) != "new" {
				t.Errorf("%q", r.stdout)
			}
			if fi, err := os.Stat(in("x/y")); err != nil || fi.Mode().Perm() != 0o640 || !fi.ModTime().Equal(old) {
				t.Errorf("%v, %v", fi, err)
			}
			back := h.object(h.want(h.do("trash", "restore", ids["ws/d"], "--json"), 0).stdout)
			keys(t, back, "restored")
			if one := back["restored"].([]any)[0].(map[string]any); one["path"] != in("d") || h.read(in("d/b\n.txt")) != "b" {
				t.Errorf("%v", back)
			}
			r = h.want(h.do("trash", "restore", ids["ws/d"]), 1)
			if !strings.HasPrefix(r.stderr, "wattle: TRASH_NOT_FOUND: ") || !strings.Contains(r.stderr, "hint: list the trash with wattle trash list --all\n") {
				t.Error(r.stderr)
			}
			failed := h.object(h.want(h.do("trash", "restore", "--process", "none", "--json"), 1).stdout)
			if failed["data"].(map[string]any)["code"] != "TRASH_NOT_FOUND" {
				t.Errorf("%v", failed)
			}

			// Data without a record has no place of its own.
			h.file(h.bin()+"/files", "orphan", "o", 0o600)
			var orphan string
			for _, e := range h.listed("--all") {
				if e["state"] == "orphan" {
					orphan = e["id"].(string)
				}
			}
			if r := h.want(h.do("trash", "list", "--all"), 0); !strings.Contains(r.stdout, h.bin()+"/files/orphan  (orphan)\n") {
				t.Errorf("%q", r.stdout)
			}
			h.want(h.do("trash", "restore", orphan), 1)
			h.want(h.do("trash", "restore", orphan, "--to", "o"), 0)

			// For good, only what is named; without a name not unasked.
			h.want(h.do("trash", "empty"), 2)
			h.want(h.do("trash", "empty", "--older-than", "3"), 2)
			h.want(h.do("trash", "empty", "--older-than", "-1", "--yes"), 2)
			h.want(h.do("trash", "empty", ids["out/c"], "--orphans"), 2)
			if r := h.want(h.do("trash", "empty", "--older-than", "36500", "--yes", "--json"), 0); len(h.object(r.stdout)["entries"].([]any)) != 0 {
				t.Error(r.stdout)
			}
			if got := h.listed("--all"); len(got) != 1 {
				t.Errorf("%v", got)
			}
			r = h.want(h.do("trash", "empty", ids["out/c"], ids["ws/d"]), 1)
			if r.stdout != "removed 1 entries, 1 files, 1 bytes\n" || !strings.Contains(r.stderr, ids["ws/d"]+" stays: ") {
				t.Errorf("%q %q", r.stdout, r.stderr)
			}
			h.absent(h.bin()+"/files/c", h.bin()+"/info/c.trashinfo")
			if way == "daemon" {
				h.want(h.do("trash", "list", "--socket", h.dir+"/none"), 69)
			}
			h.noScratch()
		})
	}
}

// Wrong usage is told before anything is done.
func TestTrashUsage(t *testing.T) {
	h := newHouse(t)
	for _, args := range [][]string{
		{"trash"}, {"trash", "purge"}, {"trash", "list", "x"}, {"trash", "list", "--all", "--workspace", "."},
		{"trash", "restore"}, {"trash", "restore", "a", "b"}, {"trash", "restore", "a", "--process", "p"},
	} {
		h.want(h.do(args...), 2)
	}
	h.absent(h.bin())
}

// On a terminal a person is asked once.
func TestTrashEmptyAsks(t *testing.T) {
	h := newHouse(t)
	h.file(h.ws, "f", "x", 0o600)
	h.want(h.do("fs", "rm", "f"), 0)
	// So old that nothing else in the trash of this machine goes with it.
	h.file(h.bin()+"/info", "f.trashinfo", "[Trash Info]\nPath="+h.ws+"/f\nDeletionDate=1990-01-01T00:00:00\n", 0o600)
	for _, tt := range []struct {
		answer string
		code   int
		left   int
	}{{"\n", 1, 1}, {"no\n", 1, 1}, {"\x04", 1, 1}, {"y\n", 0, 0}} {
		s, master := h.terminal("trash", "empty", "--older-than", "9000")
		if _, err := master.WriteString(tt.answer); err != nil {
			t.Fatal(err)
		}
		if code := s.ended(); code != tt.code {
			t.Errorf("%q: status %d", tt.answer, code)
		}
		if got := h.listed("--all"); len(got) != tt.left {
			t.Errorf("%q: %v", tt.answer, got)
		}
	}
}

// The configuration is read by everything that deletes, strictly.
func TestConfiguration(t *testing.T) {
	h := newHouse(t)
	dir := filepath.Join(h.home, ".config", "wattle")
	if r := h.want(h.do("config", "show"), 0); !strings.HasPrefix(r.stdout, "trash.enabled = true\n") {
		t.Errorf("%q", r.stdout)
	}
	h.want(h.do("config", "check"), 0)
	file := h.file(dir, "config.toml", "[trash]\nenabled = false\n", 0o600)
	if r := h.want(h.do("config", "show", "--origin"), 0); !strings.Contains(r.stdout, "trash.enabled = false             # "+file+":2\n") || !strings.Contains(r.stdout, "# default\n") {
		t.Errorf("%q", r.stdout)
	}
	shown := h.object(h.want(h.do("config", "show", "--json"), 0).stdout)
	if s := shown["settings"].([]any)[0].(map[string]any); s["key"] != "trash.enabled" || s["value"] != false || s["origin"] != file+":2" {
		t.Errorf("%v", shown)
	}
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.serve()
		}
		h.file(h.ws, "f", "x", 0o600)
		if r := h.want(h.do("fs", "rm", "f"), 0); !strings.HasPrefix(r.stdout, "deleted  f") {
			t.Errorf("%s: %q", way, r.stdout)
		}
		h.absent(filepath.Join(h.ws, "f"), h.bin()+"/files")
	}

	wrong := h.file(h.dir, "wrong.toml", "[trash]\nEnabled = false\n", 0o600)
	r := h.want(h.do("config", "check", wrong), 1)
	h.says(r, "wattle: read configuration "+wrong+`:2:1: there is no key "trash.Enabled", did you mean trash.enabled`,
		"1| [trash]", "2| Enabled = false", ` | ~~~~~~~ there is no key "trash.Enabled", did you mean trash.enabled`,
		"wattle: hint: wattle config show prints what there is to set")
	e := h.object(h.want(h.do("config", "check", wrong, "--json"), 1).stdout)
	if e["data"].(map[string]any)["code"] != "CONFIG_INVALID" {
		t.Errorf("%v", e)
	}
	h.want(h.do("serve", "--config", wrong, "--socket", h.dir+"/other.sock"), 1)
	h.want(h.do("serve", "--config", h.dir+"/none.toml", "--socket", h.dir+"/other.sock"), 1)
	h.file(h.ws, "f", "x", 0o600)
	h.file(dir, "config.toml", "trash = 5", 0o600)
	h2 := &house{t: t, dir: h.dir, ws: h.ws, out: h.out, home: h.home, env: append(h.env, "XDG_RUNTIME_DIR="+h.dir+"/none")}
	h2.want(h2.do("fs", "rm", "f"), 1)
	h.read(filepath.Join(h.ws, "f"))
}
