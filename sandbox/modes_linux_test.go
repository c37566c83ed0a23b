package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// writes are ways to change something at $P, which is a directory of the same
// user that holds f, d/ and l → f.
var writes = []string{
	`echo x > $P/new`, `echo x > $P/f`, `: > $P/f`, `touch $P/f`, `truncate -s 0 $P/f`, `rm -f $P/f`, `mv $P/f $P/g`, `mkdir $P/nd`, `rmdir $P/d`,
	`ln $P/f $P/h`, `ln -s f $P/s`, `mkfifo $P/p`, `chmod 700 $P/f`, `chmod 700 $P`, `chown $(id -u) $P/f`, `cp /etc/hostname $P/c`, `mv $P/d $P/e`,
	`python3 -c 'import os; os.setxattr(os.environ["P"]+"/f","user.k",b"v")'`,
	`python3 -c 'import os; os.utime(os.environ["P"]+"/f",(1,1))'`,
	`python3 -c 'import os; os.open(os.environ["P"]+"/f",os.O_RDONLY|os.O_TRUNC)'`,
	`python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).bind(os.environ["P"]+"/s")'`,
	`python3 -c 'import os; os.open(os.environ["P"],os.O_TMPFILE|os.O_WRONLY)'`,
	`exec 9<$P/f; echo x > /proc/self/fd/9`, `cd $P && echo x > f`, `echo x > $P/l`, `chattr +d $P/f`, `sed -i s/f/g/ $P/f`,
}

func (l *lab) target(dir string) {
	write(l.t, dir+"/f", "f\n", 0o644)
	_ = os.Mkdir(dir+"/d", 0o755)
	_ = os.Symlink("f", dir+"/l")
}

// TestReadOnly: no write succeeds anywhere, and everything is as before.
func TestReadOnly(t *testing.T) {
	need(t, "python3", "chattr")
	l := newLab(t)
	for _, dir := range []string{l.W, l.O, l.T} {
		l.target(dir)
	}
	f := l.fence(fence.ReadOnly)
	before := snapshot(t, filepath.Dir(l.W))
	for _, dir := range []string{l.W, l.O, l.T} {
		for _, c := range writes {
			r := l.run(f, c, withVars(map[string]string{"P": dir}))
			if r.code() == 0 || len(r.Denials) == 0 {
				t.Errorf("%s in %s: %v", c, dir, r)
			}
			for _, d := range r.Denials {
				if d.Mode != fence.ReadOnly || d.Rule != fence.RuleReadOnly || len(d.WritableRoots) != 1 {
					t.Errorf("%s in %s: %+v", c, dir, d)
				}
			}
		}
	}
	if after := snapshot(t, filepath.Dir(l.W)); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestWorkspaceWrite: the workspace and scratch can be written, nothing else.
func TestWorkspaceWrite(t *testing.T) {
	need(t, "python3", "chattr")
	l := newLab(t)
	l.target(l.O)
	f := l.fence(fence.WorkspaceWrite)
	before := snapshot(t, l.O)
	for _, c := range writes {
		for i, dir := range []string{l.W, l.T, l.O} {
			if i < 2 {
				l.host("rm -rf " + dir + "/* ")
				l.target(dir)
				l.run(f, c, withVars(map[string]string{"P": dir})).ok(t)
				continue
			}
			r := l.run(f, c, withVars(map[string]string{"P": dir}))
			if r.code() == 0 || len(r.Denials) == 0 {
				t.Errorf("%s outside: %v", c, r)
			}
			for _, d := range r.Denials {
				if d.Rule != fence.RuleOutside || d.Grant == nil || !strings.Contains(d.Hint, l.W) {
					t.Errorf("%s: %+v", c, d)
				}
			}
		}
	}
	if after := snapshot(t, l.O); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestFullAccess: as without a fence, and the report says so.
func TestFullAccess(t *testing.T) {
	need(t, "python3", "chattr")
	l := newLab(t)
	for _, c := range writes {
		l.host(`rm -rf "$O"/*`)
		l.target(l.O)
		l.full(c, withVars(map[string]string{"P": l.O})).ok(t)
	}
	r := l.full(`grep -E '^(NoNewPrivs|Seccomp:|CapEff)' /proc/self/status; echo "$WATTLE_SANDBOX"`).ok(t)
	if want := l.host(`grep -E '^(NoNewPrivs|Seccomp:|CapEff)' /proc/self/status`) + "full-access\n"; r.stdout != want {
		t.Errorf("%s\nwant %s", r.stdout, want)
	}
	if e := r.report; e.Level != fence.LevelNone || e.Supervisor || e.Seccomp || e.LandlockABI != 0 || e.Protect != fence.ProtectOff || len(e.NotGoverned) == 0 {
		t.Errorf("%+v", e)
	}
}

// TestPrivateTemporaryDirectory: a command in read-only has one of its own,
// which dies with it; shells lose here-documents without one.
func TestPrivateTemporaryDirectory(t *testing.T) {
	l := newLab(t)
	r := l.ro(`stat -c '%a %u' "$TMPDIR"; echo "$TMPDIR"; echo x > "$TMPDIR/f"; mkdir "$TMPDIR/d"; mkfifo "$TMPDIR/p"; mv "$TMPDIR/f" "$TMPDIR/d/"; chmod 000 "$TMPDIR/d"; ln -s / "$TMPDIR/l"`).ok(t)
	lines := strings.Split(r.stdout, "\n")
	if lines[0] != fmt.Sprintf("700 %d", os.Getuid()) || !fence.PathCovers(own("temp"), lines[1]) {
		t.Errorf("%v", r)
	}
	eventually(t, "the directory is gone", func() bool { _, err := os.Lstat(lines[1]); return err != nil })
	// A here-document of more than a pipe's size (65,536 bytes).
	write(t, l.W+"/script", "cat > /dev/null <<X; cat <<X | wc -c\n"+strings.Repeat("a", 70000)+"\nX\n"+strings.Repeat("b", 100000)+"\nX\n", 0o644)
	r = l.ro("exec bash ./script").ok(t)
	if r.stdout != "100001\n" {
		t.Errorf("%v", r)
	}
	// Two commands have two, and neither can use the other's.
	p := l.start(l.spec(l.fence(fence.ReadOnly), `echo "$TMPDIR"; echo secret > "$TMPDIR/s"; echo; read x`, func(s *sandbox.Spec) { s.Stdin = true }))
	eventually(t, "the first command has written", func() bool { out, _ := outputOf(p); return strings.Count(out, "\n") == 2 })
	out, _ := outputOf(p)
	first := strings.TrimSpace(out)
	f := l.fence(fence.ReadOnly, func(p *fence.Policy) { p.Hidden = []fence.Entry{{Path: own("temp"), Source: "mode"}} })
	r = l.run(f, `echo x > "$TMPDIR/mine" && cat "$TMPDIR/mine" && { cat `+first+`/s; echo x > `+first+`/n; mv `+first+`/s x; }`)
	if r.stdout != "x\n" || r.code() == 0 {
		t.Errorf("%v", r)
	}
	content(t, first+"/s", "secret\n")
	absent(t, first+"/n")
}

func outputOf(p *sandbox.Process) (stdout, stderr string) {
	return collect(p.Read(context.Background(), 0, 0, 0).Chunks)
}

// TestTemporaryDirectoryOfAKilledCommand: it goes with the tree, however that
// ends.
func TestTemporaryDirectoryOfAKilledCommand(t *testing.T) {
	l := newLab(t)
	for _, kill := range []func(*sandbox.Process){
		(*sandbox.Process).Kill,
		func(p *sandbox.Process) { p.Terminate(time.Millisecond) },
		func(p *sandbox.Process) { _ = p.Signal("KILL") },
	} {
		p := l.start(l.spec(l.fence(fence.ReadOnly), `echo "$TMPDIR"; while :; do echo x > "$TMPDIR/$((n++))"; done`))
		eventually(t, "it has started", func() bool { out, _ := outputOf(p); return strings.Contains(out, "\n") })
		out, _ := outputOf(p)
		kill(p)
		<-p.Over()
		absent(t, strings.TrimSpace(out))
	}
}

// TestSweepOfTemporaryDirectories: the next Runner removes what a killed
// process left behind, and only that.
func TestSweepOfTemporaryDirectories(t *testing.T) {
	l := newLab(t)
	root := filepath.Join(l.O, "temp")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	crash := func() (string, *exec.Cmd) {
		c := exec.Command(toolPath(), "tool", "roforever", l.W, root)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		s := bufio.NewScanner(out)
		if !s.Scan() {
			t.Fatal("no output")
		}
		var dir string
		var pid int
		if _, err := fmt.Sscan(s.Text(), &pid, &dir); err != nil {
			t.Fatal(s.Text(), err)
		}
		// What a dead daemon leaves running is its journal's business, not ours.
		t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
		return dir, c
	}
	dead, c := crash()
	_ = c.Process.Kill()
	_ = c.Wait()
	alive, c2 := crash()
	defer func() { _ = c2.Process.Kill(); _ = c2.Wait() }()
	if _, err := os.Lstat(dead); err == nil {
		t.Error("the second process did not sweep what the first left")
	}
	for _, keep := range []string{"other", "cmd", "xcmd-1"} {
		write(t, filepath.Join(root, keep, "f"), "keep\n", 0o644)
	}
	write(t, filepath.Join(root, "cmd-file"), "keep\n", 0o644)
	write(t, filepath.Join(l.O, "victim", "f"), "keep\n", 0o644)
	if err := os.Symlink(filepath.Join(l.O, "victim"), filepath.Join(root, "cmd-link")); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(root, "cmd-orphan")
	write(t, orphan+"/deep/f", "gone\n", 0o444)
	_ = os.Chmod(orphan+"/deep", 0)
	_ = os.Symlink(filepath.Join(l.O, "victim"), orphan+"/l")
	sandbox.NewRunner(sandbox.Options{TempRoot: root}).Close()
	absent(t, orphan)
	for _, keep := range []string{root + "/other/f", root + "/cmd/f", root + "/xcmd-1/f", root + "/cmd-file", l.O + "/victim/f"} {
		content(t, keep, "keep\n")
	}
	if _, err := os.Lstat(alive); err != nil {
		t.Errorf("the directory of a running command: %v", err)
	}
}

// TestS23RootOfTemporaryDirectoriesIsALink: it is refused with the path, never
// followed, also when it was a directory before.
func TestS23RootOfTemporaryDirectoriesIsALink(t *testing.T) {
	l := newLab(t)
	root, elsewhere := filepath.Join(l.O, "temp"), filepath.Join(l.O, "elsewhere")
	_, _ = os.Mkdir(root, 0o700), os.Mkdir(elsewhere, 0o700)
	r := sandbox.NewRunner(sandbox.Options{TempRoot: root})
	defer r.Close()
	l.r = r
	l.ro(`echo x > "$TMPDIR/x"`).ok(t)
	if err := errors.Join(os.Rename(root, root+".old"), os.Symlink(elsewhere, root)); err != nil {
		t.Fatal(err)
	}
	_, err := r.Start(context.Background(), l.spec(l.fence(fence.ReadOnly), "true"))
	wantCode(t, err, sandbox.CodeUnavailable)
	if err != nil && !strings.Contains(err.Error(), root) {
		t.Errorf("%v does not name %s", err, root)
	}
	write(t, elsewhere+"/cmd-victim/f", "keep\n", 0o644)
	sandbox.NewRunner(sandbox.Options{TempRoot: root}).Close()
	content(t, elsewhere+"/cmd-victim/f", "keep\n")
}

func init() {
	// roforever W ROOT: runs a command in read-only that does not end, and
	// prints its pid and temporary directory.
	tools["roforever"] = func(a []string) error {
		r := sandbox.NewRunner(sandbox.Options{TempRoot: a[1]})
		f, err := fence.New(fence.Policy{Mode: fence.ReadOnly, Workspace: a[0], Devices: fence.DefaultDevices()})
		if err != nil {
			return err
		}
		p, err := r.Start(context.Background(), sandbox.Spec{Argv: []string{"/bin/sh", "-c", `echo $$ "$TMPDIR"; echo x > "$TMPDIR/f"; exec sleep 1000`}, Dir: a[0], Fence: f})
		if err != nil {
			return err
		}
		o := p.Read(context.Background(), 0, 0, time.Minute)
		s, _ := collect(o.Chunks)
		fmt.Print(s)
		<-p.Over()
		return nil
	}
}
