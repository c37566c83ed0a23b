package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The table of PROTOCOL section 3.
func TestExitStatus(t *testing.T) {
	h := newHouse(t)
	h.file(h.ws, "noexec", "#!/bin/sh\n", 0o644)
	h.file(h.ws, "nointerp", "#!/no/such/shell\n", 0o755)
	h.file(h.out, "file", "x", 0o644)
	for _, c := range []struct {
		args string
		code int
	}{
		{"run -- true", 0},
		{"run -- false", 1},
		{"run -- sh -c exit\t2", 2},
		{"run -- sh -c exit\t3", 3},
		{"run -- sh -c exit\t69", 69},
		{"run -- sh -c exit\t77", 77},
		{"run -- sh -c exit\t255", 255},
		{"run true", 0},
		{"run -- sh -c kill\t-TERM\t$$", 128 + 15},
		{"run -- sh -c kill\t-KILL\t$$", 128 + 9},
		{"run -- sh -c kill\t-SEGV\t$$", 128 + 11},
		{"run --timeout 50ms -- sleep 20", 124},
		{"run --timeout 0.05 -- sleep 20", 124},
		{"run --timeout 60s -- true", 0},
		{"run -- no-such-command", 127},
		{"run -- ./no-such-file", 127},
		{"run -- ./nointerp", 127},
		{"run -- ./noexec", 126},
		{"run -- ../out", 126},
		{"run", 125},
		{"run --", 125},
		{"run --no-such-flag -- true", 125},
		{"run --mode open -- true", 125},
		{"run --network some -- true", 125},
		{"run --timeout soon -- true", 125},
		{"run --timeout -1s -- true", 125},
		{"run --env NOVALUE -- true", 125},
		{"run --env WATTLE_SANDBOX=full-access -- true", 125},
		{"run --policy no-such-policy -- true", 125},
		{"run --policy ./no-such-file.toml -- true", 125},
		{"run --workspace ../nowhere -- true", 125},
		{"run --workspace ../out/file -- true", 125},
		{"run --workspace / -- true", 125},
		{"run --workspace ../../home -- true", 125},
		{"run --report ../no/such/dir/r -- true", 125},
		{"run --report .. -- true", 125},
		{"run --help", 0},
		{"", 2},
		{"no-such-command", 2},
		{"--no-such-flag", 2},
		{"fs", 2},
		{"fs no-such-command", 2},
		{"fs read", 2},
		{"fs read a b", 2},
		{"fs read a --limit 0", 2},
		{"fs read a --offset 0", 2},
		{"fs write a --if-absent --if-version v", 2},
		{"fs write a --if-version ", 2},
		{"fs edit a --old x", 2},
		{"fs read a --mode open", 2},
		{"explain", 2},
		{"explain x --access burn", 2},
		{"events --after 17", 2},
		{"scratch list --session s", 2},
		{"serve --log-level loud", 2},
		{"session close", 2},
		{"policy show", 2},
		{"version x", 2},
		{"status", 69},
		{"ps", 69},
		{"events", 69},
		{"events --follow", 69},
		{"session list", 69},
		{"session close s", 69},
		{"scratch list --session s --token t", 69},
		{"fs ls --socket ../out/none.sock", 69},
		{"explain /etc/hosts", 77},
		{"explain in.txt", 0},
		{"explain /etc/hosts --access read", 0},
		{"explain in.txt --mode read-only", 77},
		{"explain /etc/hosts --mode full-access", 0},
		{"explain ../out/file --write ../out", 0},
		{"explain x --workspace ../nowhere", 1},
		{"fs write /etc/wattle-probe", 77},
		{"fs write ../out/new", 77},
		{"fs edit ../out/file --old x --new y", 77},
		{"fs read no-such-file", 1},
		{"fs ls noexec", 1},
		{"fs stat no-such-file", 1},
		{"fs read .", 1},
		{"fs write noexec --if-absent", 1},
		{"fs write noexec --if-version 1AAAA", 1},
		{"fs edit noexec --old nowhere --new y", 1},
		{"policy show no-such-policy", 1},
		{"policy check no-such-file.toml", 1},
		{"policy list", 0},
		{"policy show git", 0},
		{"version", 0},
		{"--version", 0},
		{"completion bash", 0},
		{"scratch sweep", 0},
		{"help run", 0},
	} {
		var args []string
		for _, a := range strings.Split(c.args, " ") {
			if args == nil && a == "" {
				break
			}
			args = append(args, strings.ReplaceAll(a, "\t", " "))
		}
		if r := h.do(args...); r.code != c.code {
			t.Errorf("%q: status %d, want %d\n%s%s", c.args, r.code, c.code, r.stdout, r.stderr)
		}
	}
	h.absent("/etc/wattle-probe", filepath.Join(h.out, "new"))
	if h.read(filepath.Join(h.out, "file")) != "x" {
		t.Error("a file outside was edited")
	}
	h.noScratch()
}

// What is said when something is wrong: one line, then one hint.
func TestFailuresAreTold(t *testing.T) {
	h := newHouse(t)
	bad := h.file(h.out, "bad.toml", "mode = \"read-only\"\nwritabel = [\"/srv\"]\n", 0o644)
	h.file(h.ws, "in.toml", "", 0o644)
	for _, c := range []struct {
		args []string
		want []string // each line begins so
	}{
		{[]string{"status"}, []string{"wattle: connect to daemon at " + h.socket() + ": no daemon is listening", "wattle: hint: start it with wattle serve"}},
		{[]string{"run"}, []string{"wattle: no command given", "wattle: hint: see wattle run --help"}},
		{[]string{"runn"}, []string{`wattle: unknown command "runn" for "wattle", did you mean run`, "wattle: hint: see wattle --help"}},
		{[]string{"run", "--workspace", "nowhere", "--", "true"}, []string{"wattle: SESSION_WORKSPACE_INVALID: ", "wattle: hint: name a directory with --workspace"}},
		{[]string{"run", "--policy", "nosuch", "--", "true"}, []string{"wattle: POLICY_NOT_FOUND: ", "wattle: hint: list the policies with wattle policy list"}},
		{[]string{"run", "--policy", "./in.toml", "--", "true"}, []string{"wattle: POLICY_REFUSED: ", "wattle: hint: "}},
		{[]string{"run", "--workspace", h.home, "--", "true"}, []string{"wattle: POLICY_ROOT_REFUSED: ", "wattle: hint: name a project directory"}},
		{[]string{"run", "--", "nosuchcmd"}, []string{"wattle: PROCESS_COMMAND_NOT_FOUND: start command: nosuchcmd: not found in PATH"}},
		{[]string{"policy", "check", bad}, []string{"wattle: POLICY_INVALID: read policy " + bad + ":2:1: ", "1| mode", "2| writabel", " | ~~~~~~~~ ", "wattle: hint: wattle policy show"}},
		{[]string{"fs", "write", "/etc/wattle-probe"}, []string{"wattle: FS_SANDBOX_DENIED: writeText /etc/wattle-probe: denied in workspace-write (outside writable roots); "}},
		{[]string{"fs", "read", "nosuch\nwattle: denied"}, []string{`wattle: FS_NOT_FOUND: streamText ` + h.ws + `/nosuch\nwattle: denied`}},
		{[]string{"fs", "stat", "nosuch"}, []string{"wattle: stat nosuch: nothing is there"}},
	} {
		r := h.do(c.args...)
		lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
		ok := len(lines) == len(c.want) && r.stdout == ""
		for i := range lines {
			ok = ok && strings.HasPrefix(lines[i], c.want[i])
		}
		if !ok {
			t.Errorf("%q (status %d):\n%s%s\nwant lines that begin with\n%s", c.args, r.code, r.stdout, r.stderr, strings.Join(c.want, "\n"))
		}
	}
}

// W01, and the sentence of the README: inside is written, outside is not.
func TestW01Modes(t *testing.T) {
	h := newHouse(t)
	h.want(h.sh("echo a > in.txt; echo b > ../out/x"), 2)
	if h.read(filepath.Join(h.ws, "in.txt")) != "a\n" {
		t.Error("the workspace was not written")
	}
	h.absent(filepath.Join(h.out, "x"))

	r := h.sh("echo a > ro.txt; echo b > ../out/x; echo $WATTLE_SANDBOX; echo tmp > $TMPDIR/f && cat $TMPDIR/f", "--mode", "read-only")
	h.want(r, 0)
	if r.stdout != "read-only\ntmp\n" {
		t.Errorf("stdout %q", r.stdout)
	}
	h.absent(filepath.Join(h.ws, "ro.txt"), filepath.Join(h.out, "x"))

	r = h.want(h.sh("echo b > ../out/x; echo $WATTLE_SANDBOX", "--mode", "full-access"), 0)
	if r.stdout != "full-access\n" || h.read(filepath.Join(h.out, "x")) != "b\n" {
		t.Errorf("full-access: %q", r.stdout)
	}
	h.says(r)

	h.want(h.sh("echo c > ../out/y", "--write", "../out"), 0)
	if h.read(filepath.Join(h.out, "y")) != "c\n" {
		t.Error("another root was not written")
	}
	h.noScratch()
}

// A policy that narrows must not be widened again by the default mode.
func TestPolicyNamesTheMode(t *testing.T) {
	h := newHouse(t)
	p := h.file(h.out, "ro.toml", "mode = \"read-only\"\n", 0o644)
	h.want(h.sh("echo a > in.txt", "--policy", p), 2)
	h.absent(filepath.Join(h.ws, "in.txt"))
	h.want(h.with("a", "fs", "write", "in.txt", "--policy", p), 77)
	h.absent(filepath.Join(h.ws, "in.txt"))
	h.want(h.sh("echo a > in.txt", "--policy", p, "--mode", "workspace-write"), 0)
	// A file in the workspace is never read, however it is spelled.
	h.file(h.ws, "wide.toml", "writable = [\""+h.out+"\"]\n", 0o644)
	h.want(h.sh("true", "--policy", "wide.toml"), 125)
	h.want(h.sh("true", "--policy", "../ws/wide.toml"), 125)
}

// The environment is built, not inherited; the working directory is the
// caller's as far as it is in the workspace.
func TestEnvironmentAndDirectory(t *testing.T) {
	h := newHouse(t)
	h.env = append(h.env, "SECRET_TOKEN=s", "AWS_SECRET_ACCESS_KEY=s", "WATTLE_SOCKET="+h.socket(), "ODD=o", "LC_ALL=C")
	r := h.want(h.do("run", "--env", "A=1=2", "--env", "B=", "--", "env"), 0)
	for _, want := range []string{"A=1=2\n", "B=\n", "LC_ALL=C\n", "HOME=" + h.home + "\n", "WATTLE_SANDBOX=workspace-write\n"} {
		if !strings.Contains("\n"+r.stdout, "\n"+want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	for _, not := range []string{"SECRET_TOKEN", "AWS_SECRET", "WATTLE_SOCKET", "ODD="} {
		if strings.Contains(r.stdout, not) {
			t.Errorf("%s was passed on", not)
		}
	}
	sub := filepath.Join(h.ws, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, workspace, want string }{
		{h.ws, "", h.ws},
		{sub, h.ws, sub},
		{sub, "..", sub},
		{h.out, h.ws, h.ws},
		{h.out, "../ws/sub", sub},
	} {
		args := []string{"run", "--", "/bin/pwd"}
		if c.workspace != "" {
			args = []string{"run", "--workspace", c.workspace, "--", "/bin/pwd"}
		}
		cmd := h.command(args...)
		cmd.Dir = c.dir
		if r := h.want(h.finish(cmd), 0); r.stdout != c.want+"\n" {
			t.Errorf("in %s with %q: %q, want %q", c.dir, c.workspace, r.stdout, c.want)
		}
	}
}

// S43: without standard streams the command runs, and nothing of ours takes
// their place. What the caller left open is not passed on.
func TestS43ClosedStreams(t *testing.T) {
	h := newHouse(t)
	secret := h.file(h.out, "secret", "s", 0o600)
	c := h.command()
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", `exec 8<"$1" 9>>"$1"; exec "$2" run -- sh -c 'ls -l /proc/self/fd > fds.txt; echo x > in.txt' <&- >&- 2>&-`, "sh", secret, wattle}
	h.want(h.finish(c), 0)
	if h.read(filepath.Join(h.ws, "in.txt")) != "x\n" {
		t.Error("the command did not run")
	}
	fds := h.read(filepath.Join(h.ws, "fds.txt"))
	if strings.Contains(fds, "secret") || strings.Contains(fds, " 8 ->") || strings.Contains(fds, " 9 ->") {
		t.Errorf("descriptors were passed on:\n%s", fds)
	}
	for _, want := range []string{" 0 -> /dev/null", " 2 -> /dev/null"} {
		if !strings.Contains(fds, want) {
			t.Errorf("no %q in\n%s", want, fds)
		}
	}
	h.noScratch()
}

// S09: a limit ends the whole tree and is no denial.
func TestS09Timeout(t *testing.T) {
	h := newHouse(t)
	r := h.sh(`setsid sh -c 'trap "" TERM; echo $$ >> pids; exec sleep 300' & sh -c 'echo $$ >> pids; exec sleep 300' & echo $$ >> pids; wait`, "--timeout", "1s", "--json")
	h.want(r, 124)
	for _, pid := range h.pids(filepath.Join(h.ws, "pids"), 3) {
		if !dead(pid) {
			t.Errorf("%d lives on", pid)
		}
	}
	o := h.object(r.stderr)
	if o["type"] != "exited" || o["timedOut"] != true || o["signal"] != "SIGKILL" || len(o["denials"].([]any)) != 0 {
		t.Errorf("%s", r.stderr)
	}
	h.says(h.want(h.sh("sleep 20", "--timeout", "50ms"), 124), "wattle: ended after 50ms")
	h.noScratch()
}

// What a command leaves running is ended with it.
func TestLeftoversEnd(t *testing.T) {
	h := newHouse(t)
	r := h.sh(`setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do :; done; exit 5`, "--json")
	h.want(r, 5)
	if pid := h.pids(filepath.Join(h.ws, "pids"), 1)[0]; !dead(pid) {
		t.Errorf("%d lives on", pid)
	}
	if s := h.object(r.stderr)["survivors"].([]any); len(s) != 1 || s[0].(map[string]any)["process"] != "sleep" {
		t.Errorf("survivors %v", s)
	}
}

// A kernel without Landlock: commands are refused, path checks go on.
func TestWithoutLandlock(t *testing.T) {
	h := newHouse(t)
	without := func(args ...string) result {
		c := h.command(args...)
		c.Path, c.Args = "/proc/self/exe", append([]string{"cli.test", "no-landlock", wattle}, args...)
		return h.finish(c)
	}
	if r := without("version", "--json"); h.object(r.stdout)["landlockAbi"] != 0.0 {
		t.Fatal(r.stdout)
	}
	r := h.want(without("run", "--", "sh", "-c", "echo a > in.txt"), 125)
	if !strings.HasPrefix(r.stderr, "wattle: SANDBOX_UNAVAILABLE: ") || !strings.Contains(r.stderr, "full-access") {
		t.Error(r.stderr)
	}
	h.absent(filepath.Join(h.ws, "in.txt"))
	h.want(without("run", "--mode", "full-access", "--", "sh", "-c", "echo a > in.txt"), 0)
	h.want(without("fs", "write", "/etc/wattle-probe"), 77)
	h.want(without("fs", "write", "in2.txt"), 0)
	h.noScratch()
}

// A caller who does not read our stderr does not keep us from cleaning.
func TestBrokenStderr(t *testing.T) {
	h := newHouse(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	c := h.command("run", "--", "sh", "-c", "echo $TMPDIR > where; (echo b > ../out/x) 2> /dev/null; exit 7")
	c.Stderr = w
	h.want(h.finish(c), 7)
	h.absent(strings.TrimSpace(h.read(filepath.Join(h.ws, "where"))))
	h.noScratch()
	// The command itself is told of a broken pipe as always.
	c = h.command("run", "--", "sh", "-c", "while :; do echo y; done")
	c.Stdout = w
	h.want(h.finish(c), 128+int(syscall.SIGPIPE))
}

// What the kernel holds is told to those who ask.
func TestVerbose(t *testing.T) {
	h := newHouse(t)
	r := h.want(h.do("run", "-v", "--", "true"), 0)
	if !strings.HasPrefix(r.stderr, "wattle: fence: level ") || !strings.Contains(r.stderr, "supervisor yes") {
		t.Error(r.stderr)
	}
	o := h.objects(h.want(h.do("run", "-v", "--json", "--", "true"), 0).stderr)
	if len(o) != 2 || o[0]["type"] != "enforced" || o[0]["supervisor"] != true || o[1]["type"] != "exited" {
		t.Errorf("%v", o)
	}
	h.says(h.want(h.do("run", "--", "true"), 0))
}
