package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// The cases of cases/fence.md that concern commands and need no daemon. Others
// of them are in protect (attacks, git), rows (P17, P21, S53), spawn (S21, S43),
// threads (P25), terminal (P19) and tree (S09).

const gitAs = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=a@b; "

func TestP01CommitInTheWorkspace(t *testing.T) {
	need(t, "git")
	l := newLab(t)
	r := l.ws(`git init -q r && cd r && echo a > a && git add a && git -c user.name=n -c user.email=a@b commit -qm one && git log --oneline | wc -l`).ok(t)
	if strings.TrimSpace(r.stdout) != "1" {
		t.Errorf("%v", r)
	}
	l.ro(`git -C r -c user.name=n -c user.email=a@b commit -q --allow-empty -m two`).denied(t, "create "+l.W+"/r/.git/index.lock")
	if got := l.host("git -C r log --oneline | wc -l"); strings.TrimSpace(got) != "1" {
		t.Errorf("commits: %s", got)
	}
}

func TestP03HookOfANestedRepository(t *testing.T) {
	need(t, "git")
	l := newLab(t)
	l.host("git init -q $W/vendor/sub")
	config, _ := os.ReadFile(l.W + "/vendor/sub/.git/config")
	l.ws(`printf '#!/bin/sh\nid > $O/pwned\n' > vendor/sub/.git/hooks/pre-commit && chmod +x vendor/sub/.git/hooks/pre-commit`).
		denied(t, "create "+l.W+"/vendor/sub/.git/hooks/pre-commit")
	l.ws(`echo x > vendor/sub/.git/config`).denied(t, "write "+l.W+"/vendor/sub/.git/config")
	l.ws(`mkdir -p .git/modules/x && mkdir .git/modules/x/hooks && echo x > .git/modules/x/hooks/post-checkout`).
		denied(t, "create "+l.W+"/.git/modules/x/hooks/post-checkout")
	content(t, l.W+"/vendor/sub/.git/config", string(config))
	l.ws(`git init -q fresh`).ok(t)
	l.ws(`echo x > fresh/.git/hooks/pre-commit`).denied(t, "create "+l.W+"/fresh/.git/hooks/pre-commit")
	l.host(gitAs + "cd vendor/sub && git commit -q --allow-empty -m x; cd $W/fresh && git commit -q --allow-empty -m x")
	absent(t, l.O+"/pwned", l.W+"/vendor/sub/.git/hooks/pre-commit", l.W+"/fresh/.git/hooks/pre-commit")
}

func TestP05GhostFiles(t *testing.T) {
	l := newLab(t)
	find := func() string { return l.host(`find "$W" "$H" "$O" -xdev | sort`) }
	tmp := func() string { return l.host(`find /tmp -maxdepth 1 -user $(id -u) -name '.*' | sort`) }
	before, beforeTmp := find(), tmp()
	for i := range 20 {
		m := []fence.Mode{fence.WorkspaceWrite, fence.ReadOnly}[i%2]
		p := l.start(l.spec(l.fence(m), "echo ready; sleep 5"))
		eventually(t, "it runs", func() bool { out, _ := outputOf(p); return out != "" })
		if i%4 < 2 {
			_ = unix.Kill(p.PID(), unix.SIGKILL)
		} else {
			p.Kill()
		}
		<-p.Over()
	}
	if after := find(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if after := tmp(); after != beforeTmp {
		t.Errorf("in /tmp before:\n%s\nafter:\n%s", beforeTmp, after)
	}
	if left, _ := filepath.Glob(own("temp") + "/*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestP07ProtectedNameIsALink(t *testing.T) {
	l := newLab(t)
	_ = os.MkdirAll(l.H+"/dot/agents", 0o755)
	for link, to := range map[string]string{".agents": l.H + "/dot/agents", ".codex": l.H + "/dot/none"} {
		if err := os.Symlink(to, filepath.Join(l.W, link)); err != nil {
			t.Fatal(err)
		}
	}
	l.ws("true").ok(t)
	l.ws("echo x > plain.txt").ok(t)
	l.ws("echo x > .agents/a").denied(t, "create "+l.H+"/dot/agents/a")
	l.ws("echo x > .codex").denied(t, "create "+l.H+"/dot/none")
	l.ws("echo x > .codex/a").refusedQuietly(t) // ENOENT: what the kernel says of the name
	l.ws("rm .agents").denied(t, "delete "+l.W+"/.agents")
	content(t, l.W+"/plain.txt", "x\n")
	absent(t, l.H+"/dot/agents/a", l.H+"/dot/none")
}

func TestP11HereDocuments(t *testing.T) {
	need(t, "zsh")
	l := newLab(t)
	if r := l.ws("zsh -c $'echo keep > t; cat > t <<X\\nnew\\nX\\ncat t'").ok(t); r.stdout != "new\n" {
		t.Errorf("%v", r)
	}
	if r := l.ro("zsh -c $'cat <<X\\nhi\\nX'").ok(t); r.stdout != "hi\n" {
		t.Errorf("%v", r)
	}
}

func TestP13SharedTemporaryDirectory(t *testing.T) {
	l := newLab(t)
	theirs := filepath.Join(l.O, "scratch-of-A")
	_ = os.Mkdir(theirs, 0o700)
	a := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Scratch = theirs })
	l.run(a, `echo secret > "$TMPDIR/s"`, func(s *sandbox.Spec) { s.TempDir = theirs }).ok(t)
	b := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Hidden = []fence.Entry{{Path: theirs, Source: "mode"}} })
	l.run(b, "cat "+theirs+"/s").refusedQuietly(t) // a read: EACCES and nobody's denial
	l.run(b, "mv "+theirs+" x").denied(t, "rename "+theirs)
	l.run(b, "echo x > "+theirs+"/s").denied(t, "write "+theirs+"/s")
	probe := "/tmp/wattle-probe-" + newMark()
	l.run(b, "echo x > "+probe).denied(t, "create "+probe)
	content(t, theirs+"/s", "secret\n")
	absent(t, probe)
}

func TestP27WritesThatVanish(t *testing.T) {
	l := newLab(t)
	r := l.ws(`echo x > $O/new; echo rc=$?; mkdir -p /opt/wattle-x; echo rc=$?; exit 1`)
	if strings.Contains(r.stdout, "rc=0") {
		t.Errorf("%v", r)
	}
	r.denied(t, "create "+l.O+"/new", "mkdir /opt/wattle-x")
	absent(t, l.O+"/new", "/opt/wattle-x")
}

func TestP29DenialWithItsReason(t *testing.T) {
	l := newLab(t)
	rec := &recorder{}
	r := l.ws("echo x > /etc/wattle-probe; echo x > $O/probe; exit 1", observed(rec)).denied(t, "create /etc/wattle-probe", "create "+l.O+"/probe")
	absent(t, "/etc/wattle-probe", l.O+"/probe")
	etc, out := r.Denials[0], r.Denials[1]
	if etc.Grant != nil || !strings.Contains(etc.Hint, "no grant is offered") || etc.Rule != fence.RuleOutside || etc.Mode != fence.WorkspaceWrite ||
		etc.Process != "bash" || etc.Syscall != "openat" || etc.Errno != "EACCES" || etc.Requested != "/etc/wattle-probe" || !slices.Contains(etc.WritableRoots, l.W) {
		t.Errorf("%+v", etc)
	}
	if out.Grant == nil || out.Grant.Path != l.O || out.Grant.Access != fence.Write {
		t.Errorf("%+v", out.Grant)
	}
	eventually(t, "the observer is told", func() bool { return rec.count("closed") == 1 })
	if len(rec.denials) != 2 || rec.denials[0].Path != "/etc/wattle-probe" || len(rec.closed.Denials) != 2 {
		t.Errorf("events: %+v", rec.denials)
	}
}

// TestDenialsAreCounted: a loop of equal refusals is one record with a count;
// very many different ones are cut, and that is said.
func TestDenialsAreCounted(t *testing.T) {
	l := newLab(t)
	rec := &recorder{}
	r := l.ws(`python3 -B -c '
import os
for i in range(5000):
    try: os.mkdir(os.environ["O"] + "/same")
    except PermissionError: pass
'; exit 1`, observed(rec)).denied(t, "mkdir "+l.O+"/same")
	if n := r.Denials[0].Count; n != 5000 {
		t.Errorf("counted %d", n)
	}
	eventually(t, "the observer is told", func() bool { return rec.count("closed") == 1 })
	if n := rec.count("denied"); n != 1 {
		t.Errorf("%d events for equal denials", n)
	}
	r = l.ws(`for i in $(seq 400); do : > $O/$i; done 2> /dev/null; exit 1`)
	if !r.DenialsTruncated || len(r.Denials) < 100 || len(r.Denials) > 1000 {
		t.Errorf("%d different denials, truncated %v", len(r.Denials), r.DenialsTruncated)
	}
}

func TestS01ReadEverywhere(t *testing.T) {
	l := newLab(t)
	for _, m := range modes {
		l.run(l.fence(m), "ls -l /bin /etc /usr > /dev/null && cat /etc/passwd > /dev/null").ok(t)
	}
}

func TestS03Devices(t *testing.T) {
	l := newLab(t)
	for _, m := range modes {
		l.run(l.fence(m), `echo x > /dev/null && echo x >> /dev/null && head -c 10 /dev/zero > /dev/null && head -c 10 /dev/urandom > /dev/null && exec 3<>/dev/null`).ok(t)
		r := l.run(l.fence(m), "echo x > /dev/full")
		r.refusedQuietly(t)
		if !strings.Contains(r.stderr, "No space") {
			t.Errorf("%v", r)
		}
	}
}

func TestS05SharedMemory(t *testing.T) {
	l := newLab(t)
	f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Writable = []fence.Entry{{Path: "/dev/shm", Source: "preset:python"}} })
	name := "/dev/shm/wattle-p-" + newMark()
	defer os.Remove(name)
	l.run(f, "echo x > "+name+" && python3 -B -c 'import multiprocessing; multiprocessing.Lock()'").ok(t)
	content(t, name, "x\n")
	// S41: what the host puts there is seen.
	write(t, name, "host\n", 0o644)
	if r := l.run(f, "cat "+name).ok(t); r.stdout != "host\n" {
		t.Errorf("%v", r)
	}
	l.ws("echo y > "+name).denied(t, "write "+name)
	content(t, name, "host\n")
}

func TestS07RootThatDoesNotExist(t *testing.T) {
	l := newLab(t)
	f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Writable = []fence.Entry{{Path: l.O + "/none", Source: "session"}} })
	r := l.run(f, "true").ok(t)
	if !slices.Contains(r.report.Skipped, fence.Skipped{Path: l.O + "/none", Errno: "ENOENT"}) {
		t.Errorf("%+v", r.report.Skipped)
	}
	absent(t, l.O+"/none")
}

func TestS11ProtectedByCommand(t *testing.T) {
	l := newLab(t)
	l.repository(l.W)
	before, _ := os.ReadFile(l.W + "/.git/config")
	l.ws("echo x > .git/config").denied(t, "write "+l.W+"/.git/config")
	l.ws("mkdir -p .codex && echo x > .codex/config.toml").denied(t, "mkdir "+l.W+"/.codex")
	content(t, l.W+"/.git/config", string(before))
	absent(t, l.W+"/.codex")
}

func TestS13ProtectedNameIsOdd(t *testing.T) {
	l := newLab(t)
	for name, to := range map[string]string{".codex": ".codex", ".agents": l.W + "/file", ".wattle": "/dev/null"} {
		if err := os.Symlink(to, filepath.Join(l.W, name)); err != nil {
			t.Fatal(err)
		}
	}
	l.ws("echo x > plain; cat .wattle; echo x > .wattle").ok(t)
	l.ws("echo x > .codex").refusedQuietly(t) // ELOOP
	l.ws("rm .codex").denied(t, "delete "+l.W+"/.codex")
	l.ws("mv .agents other").denied(t, "rename "+l.W+"/.agents")
	l.ws("ln -sfn /tmp .codex").denied(t, "rename "+l.W+"/.codex")
}

func TestS15WorkspaceInARepository(t *testing.T) {
	need(t, "git")
	l := newLab(t)
	l.host("git init -q $(dirname $W)")
	l.ws("mkdir .codex").denied(t, "mkdir "+l.W+"/.codex")
	absent(t, l.W+"/.codex")
	l.ws("git init -q").ok(t)
	if _, err := os.Stat(l.W + "/.git/config"); err != nil {
		t.Error(err)
	}
}

func TestS17DenyBelowAGrant(t *testing.T) {
	l := newLab(t)
	write(t, l.W+"/secrets/f", "f\n", 0o644)
	write(t, l.W+"/keep/f", "f\n", 0o644)
	f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) {
		p.Hidden = []fence.Entry{{Path: l.W + "/secrets", Source: "file:own:3"}}
		p.Protected = append(p.Protected, fence.Protection{Match: "keep", Source: "file:own:4"})
	})
	for path, rule := range map[string]fence.Rule{"secrets": fence.RuleHidden, "keep": fence.RuleProtected} {
		r := l.run(f, "echo x > "+path+"/f").denied(t, "write "+l.W+"/"+path+"/f")
		if d := r.Denials[0]; d.Rule != rule || !strings.Contains(d.RuleSource, "file:own:") {
			t.Errorf("%+v", d)
		}
		content(t, l.W+"/"+path+"/f", "f\n")
		// What the kernel cannot hold of it is reported with that path.
		if rule == fence.RuleHidden && !slices.ContainsFunc(r.report.NotGoverned, func(g fence.Gap) bool {
			return g.What == "hidden-reads" && strings.Contains(g.Why, l.W+"/secrets")
		}) {
			t.Errorf("%+v", r.report.NotGoverned)
		}
	}
}

func TestS19HiddenDirectory(t *testing.T) {
	l := newLab(t)
	write(t, l.O+"/secret/f", "secret\n", 0o644)
	write(t, l.O+"/beside", "open\n", 0o644)
	for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		f := l.fence(m, func(p *fence.Policy) { p.Hidden = []fence.Entry{{Path: l.O + "/secret", Source: "session"}} })
		r := l.run(f, "cat $O/secret/f").refusedQuietly(t)
		if !strings.Contains(r.stderr, "Permission denied") || strings.Contains(r.stdout, "secret") {
			t.Errorf("%v", r)
		}
		l.run(f, "cat $O/beside > /dev/null && ls $O/secret > /dev/null").ok(t)
		if !slices.ContainsFunc(r.report.NotGoverned, func(g fence.Gap) bool {
			return g.What == "hidden-names" && strings.Contains(g.Why, "until the next command")
		}) {
			t.Errorf("the price is not reported: %+v", r.report.NotGoverned)
		}
		// A name made beside it is not readable by a command that runs, and is by
		// the next.
		_ = unix.Mkfifo(l.T+"/go", 0o600)
		p := l.start(l.spec(f, `echo ready; read x < $T/go; cat $O/later`))
		eventually(t, "it is ready", func() bool { out, _ := outputOf(p); return out != "" })
		write(t, l.O+"/later", "later\n", 0o644)
		g, err := os.OpenFile(l.T+"/go", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(g, "go")
		_ = g.Close()
		l.finish(p, time.Now()).refusedQuietly(t)
		if r := l.run(f, "cat $O/later").ok(t); r.stdout != "later\n" {
			t.Errorf("%v", r)
		}
		_ = os.Remove(l.O + "/later")
	}
}

func TestS25TemporaryDirectoryOfTheSystem(t *testing.T) {
	l := newLab(t)
	secret := "/tmp/wattle-secret-" + newMark()
	write(t, secret, "secret\n", 0o644)
	defer os.Remove(secret)
	f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Hidden = []fence.Entry{{Path: "/tmp", Source: "session"}} })
	r := l.run(f, "mktemp && cat "+secret).refusedQuietly(t)
	if !strings.HasPrefix(r.stdout, l.T+"/") || strings.Contains(r.stdout, "secret") {
		t.Errorf("%v", r)
	}
}

func TestS31NameOfTheUser(t *testing.T) {
	l := newLab(t)
	want := l.host(`python3 -c 'import os,pwd; print(pwd.getpwuid(os.getuid()).pw_name)'`)
	for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		f := l.fence(m, func(p *fence.Policy) { p.Network = fence.NetworkOff })
		if r := l.run(f, `python3 -B -c 'import os,pwd; print(pwd.getpwuid(os.getuid()).pw_name)'`).ok(t); r.stdout != want {
			t.Errorf("%v, want %s", r, want)
		}
	}
}

func TestS51SystemFile(t *testing.T) {
	l := newLab(t)
	for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		r := l.run(l.fence(m), "touch /etc/SHOULD_FAIL").denied(t, "create /etc/SHOULD_FAIL")
		if d := r.Denials[0]; d.Grant != nil || d.Process != "touch" {
			t.Errorf("%+v", d)
		}
		absent(t, "/etc/SHOULD_FAIL")
	}
}

// TestP21SocketsOfTheHost: also the ones that a policy opens by name.
func TestP21SocketsOfTheHost(t *testing.T) {
	need(t, "python3")
	l := newLab(t)
	s, err := net.Listen("unix", l.O+"/agent.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	connect := `python3 -B -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(os.environ["O"]+"/agent.sock")'`
	for _, m := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
		begin := time.Now()
		r := l.run(l.fence(m), connect).denied(t, "connect "+l.O+"/agent.sock")
		if time.Since(begin) > 10*time.Second || r.Denials[0].Rule != fence.RuleUnixSocket {
			t.Errorf("%+v", r.Denials)
		}
		if !slices.Contains(gaps(r.report), "pathname-sockets") && !slices.Contains(r.report.Governed, "pathname-sockets") {
			t.Errorf("not reported: %+v", r.report)
		}
		l.run(l.fence(m, func(p *fence.Policy) { p.UnixSockets = []fence.Entry{{Path: l.O + "/agent.sock", Source: "session"}} }), connect).ok(t)
	}
	l.ws(`python3 -B -c 'import socket; socket.socketpair(); print("ok")'; getent passwd "$(id -u)" > /dev/null; git --version`).ok(t)
	if _, err := exec.LookPath("systemd-run"); err == nil {
		if r := l.ws("systemd-run --user true"); r.code() == 0 {
			t.Errorf("a command ran outside its fence: %v", r)
		}
	}
}
