package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// line is the summary of one denial outside of the writable roots.
func deniedLine(access, path string) string {
	return "wattle: denied " + access + " " + path + " (outside writable roots; "
}

// The sentence of the README: one write inside, one outside, one denial.
func TestS51OneDenial(t *testing.T) {
	h := newHouse(t)
	report := filepath.Join(h.dir, "report.jsonl")
	r := h.sh("echo a > in.txt; echo b > ../out.txt", "--report", report)
	h.want(r, 2)
	outside := filepath.Join(h.dir, "p", "out.txt")
	h.absent(outside)
	if h.read(filepath.Join(h.ws, "in.txt")) != "a\n" {
		t.Error("the workspace was not written")
	}
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], deniedLine("create", outside)) || !strings.HasSuffix(lines[1], ")") {
		t.Errorf("stderr:\n%s", r.stderr)
	}
	recs := h.objects(h.read(report))
	if len(recs) != 2 {
		t.Fatalf("%d records: %v", len(recs), recs)
	}
	d, e := recs[0], recs[1]
	for k, want := range map[string]any{
		"type": "denied", "code": "FS_SANDBOX_DENIED", "path": outside, "requested": "../out.txt", "access": "create",
		"mode": "workspace-write", "rule": "outside-writable-roots", "ruleSource": "mode", "syscall": "openat",
		"process": "sh", "errno": "EACCES", "verdict": "fence", "evidence": "supervisor",
	} {
		if d[k] != want {
			t.Errorf("denied.%s is %v, want %v", k, d[k], want)
		}
	}
	if e["type"] != "exited" || e["exitCode"] != 2.0 || len(e["denials"].([]any)) != 1 {
		t.Errorf("exited: %v", e)
	}

	const probe = "/etc/SHOULD_FAIL_wattle"
	r = h.want(h.do("run", "--", "touch", probe), 1)
	h.absent(probe)
	if !strings.Contains(r.stderr, deniedLine("create", probe)) {
		t.Errorf("stderr:\n%s", r.stderr)
	}
}

// P29: path, operation, rule and the least grant are named, for a command and
// for a file operation alike; for /etc none is offered, and it says so.
func TestP29DenialWithReason(t *testing.T) {
	h := newHouse(t)
	const probe = "/etc/wattle-probe"
	cmd := h.want(h.sh("echo x > "+probe), 2)
	api := h.want(h.with("x", "fs", "write", probe), 77)
	h.absent(probe)
	for _, text := range []string{cmd.stderr, api.stderr} {
		for _, want := range []string{probe, "outside writable roots", h.ws, "no grant is offered for this path"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
	}
	// The same decision as JSON, from all three.
	why := h.object(h.want(h.do("explain", probe, "--access", "create", "--json"), 77).stdout)
	fs := h.object(h.want(h.with("x", "fs", "write", probe, "--json"), 77).stdout)
	run := h.object(strings.TrimPrefix(h.want(h.sh("(echo x > "+probe+") 2>/dev/null", "--json"), 2).stderr, ""))
	denials := []map[string]any{why["denial"].(map[string]any), fs["data"].(map[string]any), run["denials"].([]any)[0].(map[string]any)}
	for i, d := range denials {
		for k, want := range map[string]any{"code": "FS_SANDBOX_DENIED", "path": probe, "access": "create", "mode": "workspace-write", "rule": "outside-writable-roots", "verdict": "fence", "grant": nil} {
			if d[k] != want {
				t.Errorf("denial %d: %s is %v, want %v", i, k, d[k], want)
			}
		}
	}
}

// Equal refusals count, many are cut, and none of it is forced on anybody.
func TestDenialSummary(t *testing.T) {
	h := newHouse(t)
	twin := filepath.Join(h.dir, "p", "ws-evil")
	r := h.want(h.sh("for i in 1 2 3; do (: > ../ws-evil) 2>/dev/null; done; true"), 0)
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], deniedLine("create", twin)) || !strings.HasSuffix(lines[0], ") ×3") {
		t.Errorf("stderr:\n%s", r.stderr)
	}
	h.absent(twin)

	const many = "i=0; while [ $i -lt 25 ]; do (: > ../out/f$i) 2>/dev/null; i=$((i+1)); done; echo done"
	r = h.want(h.sh(many), 0)
	lines = strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if len(lines) != 21 || lines[20] != "wattle: 5 more denials" {
		t.Errorf("stderr:\n%s", r.stderr)
	}
	h.says(h.want(h.sh(many, "--quiet"), 0))
	r = h.want(h.sh(many, "--json"), 0)
	if o := h.objects(r.stderr); len(o) != 1 || len(o[0]["denials"].([]any)) != 25 || r.stdout != "done\n" {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	r = h.want(h.do("run", "--json", "--", "no-such-command"), 127)
	if o := h.objects(r.stderr); len(o) != 1 || o[0]["type"] != "error" || o[0]["data"].(map[string]any)["code"] != "PROCESS_COMMAND_NOT_FOUND" {
		t.Errorf("%s", r.stderr)
	}
	if list, err := os.ReadDir(h.out); err != nil || len(list) > 0 {
		t.Errorf("outside: %v, %v", list, err)
	}
}

// A file name cannot speak to the terminal, nor in our name.
func TestHostileNames(t *testing.T) {
	h := newHouse(t)
	report := filepath.Join(h.dir, "report.jsonl")
	r := h.sh(`(: > "../out/a
wattle: denied write x") 2>/dev/null; (: > "../out/$(printf '\033]0;x\007\377')") 2>/dev/null; true`, "--report", report)
	h.want(r, 0)
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `/out/a\nwattle: denied write x (`) || !strings.Contains(lines[1], `/out/\x1b]0;x\a\xff (`) {
		t.Errorf("stderr: %q", r.stderr)
	}
	if n := len(h.objects(h.read(report))); n != 3 {
		t.Errorf("%d records", n)
	}
}

// Ordinary refusals are no denials: the permissions of another user's file, of
// a directory, of a file system, and names that are not there.
func TestOrdinaryRefusals(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("SKIP: root is refused nothing; the second run of these tests is a normal user")
	}
	h := newHouse(t)
	secret := filepath.Join(filepath.Dir(base), "secret") // of root, 0600
	if _, err := os.Lstat(secret); err != nil {
		t.Skip("SKIP: no file of another user")
	}
	report := filepath.Join(h.dir, "report.jsonl")
	for _, script := range []string{
		"cat " + secret,
		"mkdir d && chmod 0555 d && touch d/x",
		"echo x > ro.txt && chmod 0444 ro.txt && echo y >> ro.txt",
		"cat nowhere",
		"echo x > nowhere/x",
		"echo permission denied >&2; exit 1",
	} {
		r := h.sh(script, "--report", report)
		if r.code == 0 || strings.Contains(r.stderr, "wattle:") {
			t.Errorf("%s: status %d\n%s", script, r.code, r.stderr)
		}
		recs := h.objects(h.read(report))
		if len(recs) != 1 || recs[0]["type"] != "exited" || len(recs[0]["denials"].([]any)) != 0 {
			t.Errorf("%s: %v", script, recs)
		}
	}
	r := h.want(h.with("x", "fs", "write", "d/x"), 1)
	if !strings.HasPrefix(r.stderr, "wattle: FS_PERMISSION_DENIED: ") {
		t.Error(r.stderr)
	}
	h.absent(filepath.Join(h.ws, "d", "x"))
}

// The report is opened outside the fence, and what an earlier command left in
// the workspace does not lead it astray.
func TestReportFile(t *testing.T) {
	h := newHouse(t)
	victim := h.file(h.out, "victim", "precious\n", 0o644)
	h.want(h.sh("ln -s ../out/victim link.jsonl; ln -s ../out linkdir; mkfifo fifo; echo old > file.jsonl; echo twin > twin.jsonl; ln twin.jsonl other"), 0)
	ran := filepath.Join(h.ws, "ran")
	for _, p := range []string{"link.jsonl", "linkdir/victim", "linkdir/new", "fifo", "twin.jsonl", "nowhere/r", ".", "/"} {
		r := h.sh("touch ran", "--report", p)
		if r.code != 125 || !strings.HasPrefix(r.stderr, "wattle: open report "+p+": ") {
			t.Errorf("%s: status %d, %s", p, r.code, r.stderr)
		}
		h.absent(ran)
	}
	if h.read(victim) != "precious\n" || h.read(filepath.Join(h.ws, "other")) != "twin\n" {
		t.Error("the report was written elsewhere")
	}
	h.absent(filepath.Join(h.out, "new"))
	// What is there is replaced; links of the user's own outside are followed.
	if err := os.Symlink(h.out, filepath.Join(h.dir, "mine")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"file.jsonl", "../out/r.jsonl", filepath.Join(h.dir, "mine", "r2.jsonl")} {
		h.want(h.sh("exit 4", "--report", p), 4)
		if !filepath.IsAbs(p) {
			p = filepath.Join(h.ws, p)
		}
		if o := h.objects(h.read(p)); len(o) != 1 || o[0]["exitCode"] != 4.0 {
			t.Errorf("%s: %v", p, o)
		}
	}
	h.want(h.do("run", "--report", "file.jsonl", "--", "no-such-command"), 127)
	if o := h.objects(h.read(filepath.Join(h.ws, "file.jsonl"))); len(o) != 1 || o[0]["type"] != "error" {
		t.Errorf("%v", o)
	}
}

// A report is whole lines at every moment, also when its writer is killed.
func TestReportOfTheKilled(t *testing.T) {
	h := newHouse(t)
	report := filepath.Join(h.dir, "report.jsonl")
	s := h.start("run", "--report", report, "--", "sh", "-c", "i=0; while [ $i -lt 40 ]; do (: > ../out/f$i) 2>/dev/null; i=$((i+1)); done; echo $$; read line")
	pid := s.line()
	s.signal(syscall.SIGKILL)
	s.cmd.Process.Wait()
	recs := h.objects(h.read(report))
	if len(recs) != 40 {
		t.Errorf("%d records", len(recs))
	}
	for i, r := range recs {
		if r["type"] != "denied" || r["path"] != filepath.Join(h.out, fmt.Sprint("f", i)) {
			t.Errorf("record %d: %v", i, r)
		}
	}
	s.stdin.Close()
	h.eventually("the end of the orphan", func() bool { n := 0; fmt.Sscan(pid, &n); return dead(n) })
}
