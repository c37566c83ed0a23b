package cli_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// File operations answer alike through the daemon and in process, in text and
// as JSON, with the names of the protocol.
func TestFileOperations(t *testing.T) {
	for _, way := range []string{"in process", "daemon"} {
		t.Run(way, func(t *testing.T) {
			h := newHouse(t)
			if way == "daemon" {
				h.serve()
			}
			in := filepath.Join(h.ws, "a", "b.txt")
			if r := h.want(h.with("one\ntwo\nthree\n", "fs", "write", "a/b.txt", "--if-absent"), 0); r.stdout != "created a/b.txt\n" || h.read(in) != "one\ntwo\nthree\n" {
				t.Errorf("%q", r.stdout)
			}
			r := h.want(h.with("x", "fs", "write", "a/b.txt", "--if-absent"), 1)
			if !strings.HasPrefix(r.stderr, "wattle: FS_NOT_OBSERVED: ") {
				t.Error(r.stderr)
			}
			if r := h.want(h.do("fs", "read", in), 0); r.stdout != "one\ntwo\nthree\n" {
				t.Errorf("%q", r.stdout)
			}
			if r := h.want(h.do("fs", "read", "a/b.txt", "--offset", "2", "--limit", "1"), 0); r.stdout != "two\n" {
				t.Errorf("%q", r.stdout)
			}
			got := h.object(h.want(h.do("fs", "read", "a/b.txt", "--offset", "3", "--json"), 0).stdout)
			keys(t, got, "offset", "lines", "totalLines", "version", "footer")
			if l := got["lines"].([]any); got["totalLines"] != 3.0 || len(l) != 1 || l[0].(map[string]any)["text"] != "three" {
				t.Errorf("%v", got)
			}
			got = h.object(h.want(h.do("fs", "read", "a/b.txt", "--json"), 0).stdout)
			keys(t, got, "text", "version", "bom")
			if got["text"] != "one\ntwo\nthree\n" || got["bom"] != false {
				t.Errorf("%v", got)
			}
			version := got["version"].(string)
			stat := h.object(h.want(h.do("fs", "stat", "a/b.txt", "--json"), 0).stdout)
			keys(t, stat, "version", "type", "size")
			if stat["type"] != "file" || stat["size"] != 14.0 {
				t.Errorf("%v", stat)
			}
			e := h.object(h.want(h.do("fs", "edit", "a/b.txt", "--old", "two", "--new", "2", "--if-version", version, "--json"), 0).stdout)
			keys(t, e, "version", "before", "after")
			if e["after"] != "one\n2\nthree\n" || h.read(in) != "one\n2\nthree\n" {
				t.Errorf("%v", e)
			}
			r = h.want(h.do("fs", "edit", "a/b.txt", "--old", "2", "--new", "3", "--if-version", version), 1)
			if !strings.HasPrefix(r.stderr, "wattle: FS_STALE_VERSION: ") || h.read(in) != "one\n2\nthree\n" {
				t.Error(r.stderr)
			}
			r = h.want(h.do("fs", "edit", "a/b.txt", "--old", "e", "--new", "E"), 1)
			if !strings.HasPrefix(r.stderr, "wattle: FS_AMBIGUOUS_EDIT: ") {
				t.Error(r.stderr)
			}
			h.want(h.do("fs", "edit", "a/b.txt", "--old", "e", "--new", "", "--all"), 0)
			if h.read(in) != "on\n2\nthr\n" {
				t.Errorf("%q", h.read(in))
			}
			w := h.object(h.want(h.with("new", "fs", "write", "a/b.txt", "--json"), 0).stdout)
			keys(t, w, "operation", "version", "before", "after")
			if w["operation"] != "update" || w["before"] != "on\n2\nthr\n" || w["after"] != "new" {
				t.Errorf("%v", w)
			}
			h.want(h.with("newer", "fs", "write", "a/b.txt", "--if-version", w["version"].(string)), 0)
			h.want(h.with("newest", "fs", "write", "a/b.txt", "--if-version", w["version"].(string)), 1)
			if h.read(in) != "newer" {
				t.Errorf("%q", h.read(in))
			}

			h.file(h.ws, "z\x1b[2J", "", 0o644)
			if r := h.want(h.do("fs", "ls"), 0); r.stdout != "a/\nz\\x1b[2J\n" {
				t.Errorf("%q", r.stdout)
			}
			l := h.objects(h.want(h.do("fs", "ls", "a", "--json"), 0).stdout)
			if len(l) != 1 {
				t.Fatalf("%v", l)
			}
			keys(t, l[0], "name", "type", "target", "version", "size")
			if r := h.want(h.do("fs", "stat", "nosuch", "--json"), 1); r.stdout != "null\n" {
				t.Errorf("%q", r.stdout)
			}
			if r := h.want(h.do("fs", "stat", "a"), 0); !strings.HasPrefix(r.stdout, "directory ") {
				t.Errorf("%q", r.stdout)
			}

			// Relative to where the caller is, denied where the fence says so.
			c := h.command("fs", "write", "here.txt", "--workspace", h.ws)
			c.Dir, c.Stdin = filepath.Join(h.ws, "a"), strings.NewReader("h")
			h.want(h.finish(c), 0)
			h.read(filepath.Join(h.ws, "a", "here.txt"))
			c = h.command("fs", "write", "here.txt", "--workspace", h.ws, "--json")
			c.Dir, c.Stdin = h.out, strings.NewReader("h")
			denied := h.object(h.want(h.finish(c), 77).stdout)
			keys(t, denied, "code", "message", "data")
			if denied["code"] != -32010.0 || denied["data"].(map[string]any)["path"] != filepath.Join(h.out, "here.txt") {
				t.Errorf("%v", denied)
			}
			h.want(h.with("x", "fs", "write", ".git/hooks/pre-commit"), 77)
			h.want(h.with("x", "fs", "write", "x", "--mode", "read-only"), 77)
			h.want(h.with("x", "fs", "write", "../out/x", "--mode", "full-access"), 0)
			r = h.want(h.with("\xff\xfe", "fs", "write", "bytes", "--json"), 1)
			if h.object(r.stdout)["data"].(map[string]any)["code"] != "FS_NOT_TEXT" {
				t.Error(r.stdout)
			}
			h.absent(filepath.Join(h.out, "here.txt"), filepath.Join(h.ws, ".git"), filepath.Join(h.ws, "x"), filepath.Join(h.ws, "bytes"))
			h.noScratch()
			if way == "daemon" {
				if n := h.object(h.do("status", "--json").stdout)["sessions"]; n != 0.0 {
					t.Errorf("%v sessions are left", n)
				}
			}
		})
	}
}

// What fits into no message is refused with a code, and the daemon serves on.
func TestTooLargeForTheWire(t *testing.T) {
	h := newHouse(t)
	big := strings.Repeat("x", 17<<20)
	h.want(h.with(big, "fs", "write", "local.txt"), 0)
	h.serve()
	r := h.want(h.with(big, "fs", "write", "remote.txt"), 1)
	if !strings.HasPrefix(r.stderr, "wattle: FS_TOO_LARGE: ") {
		t.Error(r.stderr)
	}
	h.absent(filepath.Join(h.ws, "remote.txt"))
	h.want(h.do("status"), 0)
}

// Policies of the command line reach the daemon whole: files are read here.
func TestPoliciesThroughTheDaemon(t *testing.T) {
	h := newHouse(t)
	named := filepath.Join(h.home, ".config", "wattle", "policies")
	h.file(named, "wide.toml", "writable = [\""+h.out+"\"]\n", 0o644)
	narrow := h.file(h.dir, "narrow.toml", "mode = \"read-only\"\n", 0o644)
	own := filepath.Join(h.dir, "daemons")
	h.file(own, "theirs.toml", "mode = \"read-only\"\n", 0o644)
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.serve("--policy-dir", own)
		}
		h.want(h.with("x", "fs", "write", "../out/x", "--policy", "wide"), 0)
		h.want(h.with("x", "fs", "write", "../out/y"), 77)
		h.want(h.with("x", "fs", "write", "../out/y", "--policy", narrow), 77)
		h.want(h.with("x", "fs", "write", "in.txt", "--policy", narrow), 77)
		h.want(h.with("x", "fs", "write", "in.txt", "--policy", "theirs"), 1)
		h.absent(filepath.Join(h.out, "y"), filepath.Join(h.ws, "in.txt"))
	}
	h.want(h.with("x", "fs", "write", "in.txt", "--policy", "theirs", "--mode", "workspace-write"), 0)
}

// Decisions, and where they come from.
func TestExplain(t *testing.T) {
	h := newHouse(t)
	why := h.object(h.want(h.do("explain", "../out/new", "--access", "create", "--json"), 77).stdout)
	keys(t, why, "allowed", "path", "rule", "ruleSource", "denial")
	keys(t, why["denial"].(map[string]any), "code", "path", "requested", "access", "mode", "rule", "ruleSource", "writableRoots", "hint", "grant", "verdict", "evidence")
	if why["allowed"] != false || why["path"] != filepath.Join(h.out, "new") || why["rule"] != "outside-writable-roots" || why["ruleSource"] != "mode" {
		t.Errorf("%v", why)
	}
	r := h.want(h.do("explain", ".git/hooks/pre-commit"), 77)
	for _, want := range []string{"denied: write " + filepath.Join(h.ws, ".git/hooks/pre-commit") + " in workspace-write\n", "rule   protected\n", "from   preset:git\n", "grant  none"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	ok := h.object(h.want(h.do("explain", "new", "--json"), 0).stdout)
	keys(t, ok, "allowed", "path")
	if r := h.want(h.do("explain", "new"), 0); r.stdout != "allowed: write "+filepath.Join(h.ws, "new")+" in workspace-write\n" {
		t.Errorf("%q", r.stdout)
	}
	h.want(h.do("explain", "~/.ssh/id_ed25519"), 0) // a name in the workspace: shells expand it
	h.want(h.do("explain", filepath.Join(h.home, ".ssh/id_ed25519"), "--access", "read"), 77)
	h.absent(filepath.Join(h.ws, "new"))
	h.noScratch()
}

// The other results, by their names.
func TestJSONNames(t *testing.T) {
	h := newHouse(t)
	keys(t, h.object(h.want(h.do("version", "--json"), 0).stdout), "version", "commit", "go", "os", "arch", "landlockAbi")
	o := h.object(h.sh("exit 3", "--json").stderr)
	keys(t, o, "type", "exitCode", "timedOut", "denials", "denialsTruncated", "survivors", "usage")
	keys(t, o["usage"].(map[string]any), "userMs", "systemMs", "maxRssBytes", "wallMs")
	o = h.object(h.sh("kill -9 $$", "--json").stderr)
	keys(t, o, "type", "signal", "timedOut", "denials", "denialsTruncated", "survivors", "usage")
	l := h.object(h.want(h.do("policy", "list", "--json"), 0).stdout)
	keys(t, l, "policies")
	keys(t, l["policies"].([]any)[0].(map[string]any), "name", "description", "source", "default")
	keys(t, h.object(h.want(h.do("policy", "show", "git", "--json"), 0).stdout), "name", "toml", "policy")
	bad := h.file(h.out, "bad.toml", "colour = 1\n", 0o644)
	e := h.object(h.want(h.do("policy", "check", bad, "--json"), 1).stdout)
	keys(t, e, "code", "message", "data")
	keys(t, e["data"].(map[string]any), "code", "name", "line", "column")
	e = h.object(h.want(h.do("fs", "read", "--json"), 2).stdout)
	if e["data"].(map[string]any)["code"] != "USAGE" {
		t.Errorf("%v", e)
	}
	r := h.want(h.do("__complete", "run", "--mode", ""), 0)
	if !strings.HasPrefix(r.stdout, "read-only\nworkspace-write\nfull-access\n") {
		t.Errorf("%q", r.stdout)
	}
}

// keys checks that an object has these members and no others.
func keys(t *testing.T, o map[string]any, want ...string) {
	t.Helper()
	var got []string
	for k := range o {
		got = append(got, k)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
}
