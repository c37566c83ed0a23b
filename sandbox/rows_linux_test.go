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

// The tables of facts/landlock sections 4 and 5, under the supervisor: what it
// adds is that a refusal is on record, and that metadata outside is refused.

// rowLab has, beside W (`rw/` of the tables) and O (`ro/`), a hidden directory
// with a file, a link and a socket.
type rowLab struct {
	*lab
	hid string
	f   *fence.Fence
}

func newRowLab(t *testing.T) *rowLab {
	l := &rowLab{lab: newLab(t)}
	l.hid = filepath.Join(filepath.Dir(l.O), "hid")
	write(t, l.hid+"/f", "secret\n", 0o644)
	write(t, l.O+"/f", "outside\n", 0o644)
	_ = os.Symlink("f", l.hid+"/l")
	write(t, l.W+"/f", "f\n", 0o644)
	_ = os.MkdirAll(l.W+"/d1", 0o755)
	_ = os.MkdirAll(l.W+"/d2", 0o755)
	for _, d := range []string{l.O, l.hid} {
		s, err := net.Listen("unix", d+"/s")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
	}
	l.f = l.fence(fence.WorkspaceWrite, func(p *fence.Policy) {
		p.Hidden = []fence.Entry{{Path: l.hid, Source: "session"}}
	})
	return l
}

func (l *rowLab) hidVar() func(*sandbox.Spec) { return withVars(map[string]string{"HID": l.hid}) }

// row is an operation and what must come of it: "ok", an errno as the program
// says it (no denial), or denials as "access path" with variables.
type row struct {
	name, command string
	text          string   // in stderr of a failure
	denials       []string // nil: none
	fails         bool
}

func good(name, command string) row                { return row{name: name, command: command} }
func errno(name, command, text string) row         { return row{name, command, text, nil, true} }
func denial(name, command string, d ...string) row { return row{name, command, "", d, true} }

func (l *rowLab) try(t *testing.T, r row) {
	t.Run(r.name, func(t *testing.T) {
		res := l.run(l.f, r.command, l.hidVar())
		switch {
		case !r.fails:
			res.ok(t)
		case r.denials == nil:
			res.refusedQuietly(t)
			if !strings.Contains(res.stderr, r.text) {
				t.Errorf("stderr does not hold %q: %v", r.text, res)
			}
		default:
			want := make([]string, len(r.denials))
			for i, d := range r.denials {
				want[i] = os.Expand(d, func(k string) string {
					if k == "HID" {
						return l.hid
					}
					return l.vars()[k]
				})
			}
			res.denied(t, want...)
		}
	})
}

// TestRenameAndLink is section 4.
func TestRenameAndLink(t *testing.T) {
	need(t, "python3", "git")
	l := newRowLab(t)
	const (
		exdev = "Invalid cross-device link"
		git   = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=a@b; "
	)
	rename := func(a, b string) string {
		return python(`o, n = [os.path.expandvars(p).encode() for p in ("` + a + `", "` + b + `")]` + "\nr = libc.rename(o, n)\nif r: sys.exit(os.strerror(ctypes.get_errno()))")
	}
	for _, r := range []row{
		good("inside one directory", rename("f", "g")+"mv g f"),
		good("across directories of one tree", rename("f", "d1/f")+"mv d1/f f"),
		good("link across directories of one tree", "ln f d1/hard && rm d1/hard"),
		good("directory across directories", "mkdir d1/s && "+rename("d1/s", "d2/s")+"rmdir d2/s"),
		good("into another tree with equal rights", rename("f", "$T/f")+"mv $T/f f"),
		good("link into another tree with equal rights", "ln f $T/hard && rm $T/hard"),
		errno("link from outside", "ln $O/f hard", exdev),
		errno("link from a hidden place", "ln $O/f d1/hard", exdev),
		denial("rename into an outside directory", rename("f", "$O/g"), "rename $O/g"),
		denial("rename out of an outside directory", rename("$O/f", "g"), "rename $O/f"),
		denial("link into an outside directory", "ln f $O/hard", "link $O/hard"),
		good("git branch -m to a deeper name", git+"git init -q b && cd b && git commit -q --allow-empty -m x && git branch -m x/y"),
		good("git push into a local repository", git+"git init -q --bare o && git init -q r && cd r && git commit -q --allow-empty -m x && git push -q ../o HEAD:m"),
		good("git clone of a local repository", "git clone -q r c"),
	} {
		l.try(t, r)
	}
	content(t, l.O+"/f", "outside\n")
	if mounted {
		l.f = l.fence(fence.WorkspaceWrite, func(p *fence.Policy) {
			p.Writable = []fence.Entry{{Path: filepath.Join(base, "mounts", "bind"), Source: "session"}}
		})
		l.try(t, errno("rename across mounts of one file system", rename("f", "$M/bind/f"), exdev))
		l.try(t, errno("link across mounts of one file system", "ln f $M/bind/f", exdev))
		l.try(t, good("mv across mounts copies", "mv f $M/bind/moved && mv $M/bind/moved f"))
	}
}

// TestOperations is section 5.
func TestOperations(t *testing.T) {
	need(t, "python3", "strace", "gcc")
	needABI(t, 6)
	l := newRowLab(t)
	outsider := exec.Command("sleep", "1000")
	outsider.Env = []string{"SECRET=environment"}
	if err := outsider.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outsider.Process.Kill(); _ = outsider.Wait() }()
	pid := outsider.Process.Pid
	abstract, err := net.Listen("unix", fmt.Sprintf("@wattle-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	if err := os.Link(l.O+"/f", l.W+"/older"); err != nil {
		t.Fatal(err)
	}
	py := func(s string) string { return "python3 -B -c '" + s + "'" }
	for _, r := range []row{
		// O: readable, not writable
		denial("create outside", "echo x > $O/n", "create $O/n"),
		denial("write outside", "echo x > $O/f", "write $O/f"),
		denial("truncate outside", "truncate -s0 $O/f", "write $O/f"),
		denial("unlink outside", "rm -f $O/f", "delete $O/f"),
		denial("mkdir outside", "mkdir $O/d", "mkdir $O/d"),
		denial("unnamed file outside", py(`import os; os.open(os.environ["O"],os.O_TMPFILE|os.O_RDWR)`), "create $O/#unnamed"),
		// hidden
		errno("read hidden", "cat $HID/f", "Permission denied"),
		good("list hidden", "ls $HID > /dev/null"),
		errno("missing name in hidden", "cat $HID/none", "No such file"),
		denial("create in hidden", "echo x > $HID/n", "create $HID/n"),
		denial("write hidden", "echo x > $HID/f", "write $HID/f"),
		good("stat, readlink, access, chdir", "stat $HID/f > /dev/null && readlink $HID/l > /dev/null && test -e $HID/f && cd $HID"),
		good("watch hidden", py(`import ctypes,os,sys; l=ctypes.CDLL(None); sys.exit(l.inotify_add_watch(l.inotify_init(),os.environ["HID"].encode(),2)<0)`)),
		denial("chmod hidden", "chmod 600 $HID/f", "metadata $HID/f"),
		denial("times of hidden", "touch -c -d yesterday $HID/f", "metadata $HID/f"),
		denial("attribute of outside", py(`import os; os.setxattr(os.environ["O"]+"/f","user.k",b"v")`), "metadata $O/f"),
		good("link to hidden", "ln -s $HID/f tohidden"),
		errno("through the link", "cat tohidden", "Permission denied"),
		errno("through the own root", "cat /proc/self/root$HID/f", "Permission denied"),
		good("lock what can be read", "flock -s $O/f true"),
		// what Landlock does not see
		good("write through a hard link that was there before", "echo changed > older"),
		good("execute what was dropped", "printf '#!/bin/sh\\nexit 0\\n' > dropped && chmod +x dropped && ./dropped"),
		good("bind, connect inside", py(`import socket; s=socket.socket(socket.AF_UNIX); s.bind("in.sock"); s.listen(); socket.socket(socket.AF_UNIX).connect("in.sock")`)),
		good("memory file", py(`import os; os.write(os.memfd_create("m"),b"x")`)),
		good("trace the own child", "strace -o /dev/null true"),
		denial("connect to a socket outside", py(`import os,socket; socket.socket(socket.AF_UNIX).connect(os.environ["O"]+"/s")`), "connect $O/s"),
		denial("connect to a hidden socket", py(`import os,socket; socket.socket(socket.AF_UNIX).connect(os.environ["HID"]+"/s")`), "connect $HID/s"),
		errno("connect to an abstract socket", py(fmt.Sprintf(`import socket; socket.socket(socket.AF_UNIX).connect(chr(0)+"wattle-test-%d")`, os.Getpid())), "Operation not permitted"),
		errno("signal an outsider", fmt.Sprintf("kill -0 %d", pid), "Operation not permitted"),
		good("command line of an outsider", fmt.Sprintf("cat /proc/%d/cmdline > /dev/null", pid)),
		errno("environment of an outsider", fmt.Sprintf("cat /proc/%d/environ", pid), "ermi"),
		errno("memory of an outsider", fmt.Sprintf("head -c1 /proc/%d/mem", pid), "ermission"),
		errno("trace an outsider", fmt.Sprintf("strace -p %d", pid), "ermi"),
		good("own /proc", "cat /proc/self/maps /proc/self/cmdline /proc/self/environ > /dev/null"),
		denial("own oom score", "echo 0 > /proc/self/oom_score_adj", "write /proc/*/oom_score_adj"),
		denial("own name", "echo x > /proc/self/comm", "write /proc/*/comm"),
		errno("mount", py(`import ctypes,os,sys; l=ctypes.CDLL(None,use_errno=True); r=l.mount(b"t",b".",b"tmpfs",0,None); sys.exit(os.strerror(ctypes.get_errno()) if r else 0)`), "Operation not permitted"),
		denial("user namespace", "unshare -Ur true", "write /proc/*/uid_map"),
		errno("chroot in a user namespace", py(`import ctypes,os,sys; l=ctypes.CDLL(None); l.unshare(0x10000000) and sys.exit("no user namespace: Operation not permitted"); os.chroot(".")`), "Operation not permitted"),
		errno("io_uring", py(`import ctypes,os,sys; l=ctypes.CDLL(None,use_errno=True); r=l.syscall(425,8,ctypes.create_string_buffer(256)); sys.exit(os.strerror(ctypes.get_errno()) if r<0 else 0)`), "Operation not permitted"),
		denial("shared memory without a grant", py(`import multiprocessing; multiprocessing.Lock()`), "create /dev/shm/*"),
		denial("rename of the root", "mv $W $W.x", "rename $W"),
		good("rm -rf of the root's contents", "cd / && find $W -mindepth 1 -delete && echo x > $W/later"),
	} {
		l.try(t, r)
	}
	content(t, l.O+"/f", "changed\n") // through the older link: reported, see below
	content(t, l.hid+"/f", "secret\n")
	if r := l.run(l.f, "true"); !slices.Contains(gaps(r.report), "hard-links") {
		t.Errorf("hard links are not reported: %q", gaps(r.report))
	}
}

// TestOpenBefore: a descriptor that the caller gives keeps its rights, but
// cannot be opened again for more.
func TestOpenBefore(t *testing.T) {
	l := newRowLab(t)
	f, err := os.OpenFile(l.O+"/f", os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	p := l.start(l.spec(l.f, `echo given; echo more > /proc/self/fd/1`, func(s *sandbox.Spec) { s.Inherit = &[3]*os.File{null, f, null} }))
	r := l.finish(p, time.Now())
	r.denied(t, "write "+l.O+"/f")
	content(t, l.O+"/f", "outside\ngiven\n")
}

// TestRootIsSwapped: the host puts a new directory in the place of the root
// while a command runs. That command keeps the old one; the next start has the
// new one.
func TestRootIsSwapped(t *testing.T) {
	l := newRowLab(t)
	_ = unix.Mkfifo(l.T+"/go", 0o600)
	p := l.start(l.spec(l.f, `echo ready; read x < $T/go; echo x > here; echo old:$?; echo x > $W/there; echo new:$?`))
	eventually(t, "it is ready", func() bool { out, _ := outputOf(p); return out != "" })
	l.host("cd / && mv $W $W.old && mkdir $W")
	g, err := os.OpenFile(l.T+"/go", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(g, "go")
	_ = g.Close()
	r := l.finish(p, time.Now())
	if !strings.Contains(r.stdout, "new:1\n") {
		t.Errorf("the new directory was written: %v", r)
	}
	absent(t, l.W+"/there")
	l.run(l.f, "echo x > fresh").ok(t)
	content(t, l.W+"/fresh", "x\n")
	l.host("rm -rf $W.old")
}

// TestOneWritableFile: a root may be a single file. It can be written in place;
// it cannot be replaced, for the rule is bound to the file.
func TestOneWritableFile(t *testing.T) {
	l := newRowLab(t)
	l.f = l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Writable = []fence.Entry{{Path: l.O + "/f", Source: "session"}} })
	l.run(l.f, "echo y > $O/f && touch $O/f && chmod 600 $O/f").ok(t)
	l.run(l.f, "echo z > n && mv n $O/f").denied(t, "rename "+l.O+"/f")
	l.run(l.f, "rm -f $O/f").denied(t, "delete "+l.O+"/f")
	content(t, l.O+"/f", "y\n")
}

// TestNetworkOff is S53: refused at once, for every family and protocol but
// those that stay on the machine, and not as a time-out.
func TestNetworkOff(t *testing.T) {
	need(t, "python3")
	l := newRowLab(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	off := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { p.Network = fence.NetworkOff })
	for _, c := range []string{
		`socket.create_connection(("1.1.1.1",443),5)`, fmt.Sprintf(`socket.create_connection(("127.0.0.1",%d),5)`, port),
		`socket.socket(socket.AF_INET,socket.SOCK_DGRAM).sendto(b"x",("127.0.0.1",9))`, `socket.socket(socket.AF_INET6,socket.SOCK_STREAM)`,
		`socket.socket(socket.AF_INET,socket.SOCK_STREAM,262)`, `socket.socket(socket.AF_VSOCK,socket.SOCK_STREAM)`, `socket.socket(socket.AF_PACKET,socket.SOCK_RAW)`,
		`socket.socket(socket.AF_INET).bind(("127.0.0.1",0))`,
	} {
		begin := time.Now()
		r := l.run(off, "python3 -B -c 'import socket; "+c+"'").refusedQuietly(t)
		if d := time.Since(begin); d > 4*time.Second {
			t.Errorf("%s: refused after %v", c, d)
		}
		if !strings.Contains(r.stderr, "Permission denied") && !strings.Contains(r.stderr, "not permitted") {
			t.Errorf("%s: %v", c, r)
		}
	}
	l.run(off, `test "$WATTLE_SANDBOX_NETWORK" = 0 && python3 -B -c 'import socket; socket.socketpair(); socket.socket(socket.AF_UNIX)' && getent passwd 0 > /dev/null`).ok(t)
	r := l.run(l.f, fmt.Sprintf(`python3 -B -c 'import socket; socket.create_connection(("127.0.0.1",%d),5)'`, port)).ok(t)
	if !slices.Contains(gaps(r.report), "network") {
		t.Errorf("an open network is not reported: %q", gaps(r.report))
	}
	if r := l.run(off, "true"); slices.Contains(gaps(r.report), "network") || !slices.Contains(r.report.Governed, "network") {
		t.Errorf("%+v", r.report)
	}
}
