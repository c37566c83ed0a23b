package sandbox_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// TestUnderStrict runs the tables of this package again under protect "strict".
func TestUnderStrict(t *testing.T) {
	if strictly() {
		t.Skip("SKIP: this run is under strict already")
	}
	t.Setenv(envProtect, string(fence.ProtectStrict))
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Corpus", TestCorpus}, {"Attacks", TestAttacksOnProtectedPaths},
		{"GitWorks", TestGitWorksUnderProtection}, {"GitThatIsRefused", TestGitThatIsRefused}, {"GitConfig", TestGitConfigIsGuarded},
		{"RenameAndLink", TestRenameAndLink}, {"Operations", TestOperations}, {"OpenBefore", TestOpenBefore}, {"RootIsSwapped", TestRootIsSwapped},
		{"OneWritableFile", TestOneWritableFile}, {"Sockets", TestP21SocketsOfTheHost}, {"HereDocuments", TestP11HereDocuments},
		{"Devices", TestS03Devices}, {"PseudoTerminals", TestPseudoTerminals}, {"OlderKernels", TestOlderKernels},
		{"InsideAnotherFence", TestInsideAnotherFence}, {"DeadSupervisor", TestDeadSupervisor}, {"ReadOnly", TestReadOnly},
	} {
		t.Run(c.name, c.test)
	}
}

// goProgram is where Go is usually installed; no test's PATH has it.
const goProgram = "/usr/local/go/bin/go"

// same are commands that must do under "strict" what they do without a fence:
// status, output, and what is in the workspace afterwards.
var same = []struct{ name, command string }{
	{"modes and umask", `umask 027; : > a; mkdir b; mkfifo c; umask 077; : > d; mkdir -m 751 e; umask 0; : > f; mkdir g; mknod s p; python3 -c 'import os; os.close(os.open("h", os.O_CREAT|os.O_WRONLY, 0o7751)); os.mkdir("i", 0o3777); os.mknod("j", 0o100640)'`},
	{"default access list", `mkdir d; setfacl -d -m u::rwx,g::rx,o::- d 2>/dev/null && umask 0 && : > d/f && mkdir d/g`},
	{"names that are there", python(`
import errno
def t(f, *a):
    try: f(*a); print(f.__name__, a, "ok")
    except OSError as e: print(f.__name__, a, errno.errorcode[e.errno])
open("f","w").close(); os.mkdir("d"); os.symlink("f","l"); os.symlink("none","n"); os.symlink("d","k"); os.symlink("o","o"); os.mkfifo("p")
for p in ["f","d","l","n","k","o","f/","d/","k/","n/","none/","none/x","f/x","d/.","d/..",".","","x"*300,"o/x","x"*5000]:
    for fl in [os.O_WRONLY, os.O_RDWR|os.O_CREAT|os.O_EXCL, os.O_WRONLY|os.O_NOFOLLOW, os.O_CREAT, os.O_WRONLY|os.O_DIRECTORY, os.O_TRUNC]:
        try: os.close(os.open(p, fl|os.O_NONBLOCK, 0o644)); print("open", p[:9], fl, "ok")
        except OSError as e: print("open", p[:9], fl, errno.errorcode[e.errno])
    t(os.mkdir, p); t(os.rmdir, p); t(os.unlink, p); t(os.symlink, "x", p); t(os.link, "f", p); t(os.link, p, "q"); t(os.truncate, p, 3); t(os.chmod, p, 0o755); t(os.rename, p, "r"); t(os.rename, "r", p); t(os.rename, "d", p); t(os.mknod, p)
`)},
	{"flags of openat2", python(`
import errno, struct
d = os.open(".", os.O_RDONLY); open("f","w").write("abc"); os.symlink("f","l"); os.symlink("/etc","abs")
def o2(p, flags, mode, resolve, size=24, extra=b""):
    how = ctypes.create_string_buffer(struct.pack("QQQ", flags, mode, resolve) + extra)
    r = libc.syscall(437, d, p, how, size)
    print(p, flags, mode, resolve, size, "ok" if r >= 0 else errno.errorcode[ctypes.get_errno()])
    if r >= 0: os.close(r)
W = os.O_WRONLY
for p in [b"f", b"l", b"../x", b"/f", b"new", b"abs/x"]:
    for r in [0, 1, 2, 4, 8, 16, 24, 64]:
        o2(p, W, 0, r)
o2(b"f", W, 0o644, 0); o2(b"n1", W|os.O_CREAT, 0o10644, 0); o2(b"n2", W|os.O_CREAT, 0o644, 8); o2(b"f", W, 0, 0, 16); o2(b"f", W, 0, 0, 32, b"\0"*8); o2(b"f", W, 0, 0, 32, b"\1"*8); o2(b"f", W|(1<<40), 0, 0)
`)},
	{"unnamed files", python(`
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640); os.write(fd, b"text")
os.link("/proc/self/fd/%d" % fd, "named", follow_symlinks=True); print(open("named").read(), oct(os.stat("named").st_mode))
`)},
	{"reopened", `echo a > f; exec 3<> f; echo b >> /proc/self/fd/3; echo c >> /dev/fd/3; cat f; echo d > /dev/stdout | cat; echo e > /dev/stderr; (exec 4> >(cat > g); echo f >&4; echo g > /dev/fd/4); wait; python3 -c '
import os
os.unlink("f"); fd = os.open("/proc/self/fd/3", os.O_WRONLY); print(os.write(fd, b"x"))'`},
	{"exchange and no replace", python(`
open("a","w").write("a"); open("b","w").write("b")
print(libc.renameat2(-100, b"a", -100, b"b", 2), open("a").read(), libc.renameat2(-100, b"a", -100, b"b", 1), libc.renameat2(-100, b"a", -100, b"c", 1), libc.renameat2(-100, b"a", -100, b"b", 3))
`)},
	{"times, owner, attributes", `touch -d 2001-01-01 f; touch -h -d 2002-02-02 f; ln -s f l; touch -h -d 2003-03-03 l; stat -c %y f l; chmod u+x,g+s f; chown "$(id -u):$(id -g)" f; chown -h "$(id -u)" l; python3 -c '
import os
os.setxattr("f","user.k",b"v"*5000); print(len(os.getxattr("f","user.k"))); os.removexattr("f","user.k"); print(os.listxattr("f"))
fd=os.open("f",os.O_RDONLY); os.fchmod(fd,0o640); os.utime(fd,(1,2)); os.utime("f"); os.setxattr(fd,"user.x",b""); os.fchown(fd,-1,-1); print(oct(os.stat("f").st_mode))
os.utime(fd,ns=(3,4)); print(os.stat("f").st_mtime_ns)'; stat -c %a f`},
	{"descriptors run out", python(`
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)); n = 0
try:
    while True: os.open("f", os.O_WRONLY | os.O_CREAT); n += 1
except OSError as e: print(n, e.errno)
`)},
	{"lowest number and close on exec", python(`
import fcntl
a = os.open("f", os.O_WRONLY | os.O_CREAT); os.close(0); b = os.open("f", os.O_RDWR); print(b, fcntl.fcntl(a, 1), fcntl.fcntl(b, 3) & 3)
r = libc.open(b"f", os.O_WRONLY); print(fcntl.fcntl(r, 1))
`)},
	{"size limit", `(ulimit -f 1; trap '' XFSZ; python3 -B -c '
import os
open("f","w").close()
try: os.truncate("f", 5000)
except OSError as e: print(e.errno)')`},
	{"FIFO waits for its reader", `mkfifo p; (echo through > p; echo written > w) & sleep 0.05; cat p; wait; cat w`},
	{"FIFO waits for its writer", `mkfifo p; (cat p > r; echo read >> r) & sleep 0.05; echo through > p; wait; cat r`},
	{"two writers of a FIFO", `mkfifo p; (echo a > p) & (echo a > p) & n=0; while [ $n -lt 2 ]; do n=$((n + $(cat p | wc -l))); done; echo $n; wait`},
	{"FIFO without a reader", `mkfifo p; python3 -c '
import os
try: os.open("p", os.O_WRONLY|os.O_NONBLOCK)
except OSError as e: print(e.errno)
fd = os.open("p", os.O_RDWR); os.write(fd, b"x"); print(os.read(fd, 1))'`},
	{"a writer of a FIFO is killed", `mkfifo p; timeout 0.1 sh -c 'echo x > p'; echo $?; (echo y > p) & cat p; wait`},
	{"a lease is broken", `python3 -c '
import fcntl, os, signal, time
f = os.open("f", os.O_RDWR | os.O_CREAT); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
signal.signal(signal.SIGIO, lambda *a: None)
if os.fork() == 0:
    os.write(os.open("f", os.O_WRONLY), b"after"); os._exit(0)
signal.pause(); os.write(f, b"before "); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_UNLCK); os.close(f); os.wait()
print(open("f").read())'`},
	{"a long way through descriptors", `mkdir d; exec 9< .; p=/proc/self/fd/9; for i in $(seq 1200); do p=$p/d/..; done; echo x > $p/new; cat new`},
	{"execute what was just written", `for i in 1 2 3 4 5 6 7 8; do printf '#!/bin/sh\necho ran\n' > x$i; chmod +x x$i; ./x$i; cp /bin/true t$i; ./t$i || echo busy; done`},
	{"locks", `( flock 9; echo a; flock -u 9 ) 9> l; flock l echo b; python3 -c '
import fcntl
f = open("l","w"); fcntl.lockf(f, fcntl.LOCK_EX); print("locked")'`},
	{"sockets", python(`
import socket
s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect("s"); print(oct(os.stat("s").st_mode))
t = socket.socket(socket.AF_UNIX)
try: t.bind("s")
except OSError as e: print(e.errno)
u = socket.socket(socket.AF_UNIX); u.bind("\0abstract%d" % os.getpid()); i = socket.socket(); i.bind(("127.0.0.1", 0)); i.listen(); print(i.getsockname()[0])
`)},
	{"devices", `echo x > /dev/null && head -c 3 /dev/zero | wc -c && echo x > /dev/full; script -qec 'echo terminal > /dev/tty; tty > /dev/null && echo is' /dev/null | tr -d '\r'; echo none > /dev/tty`},
	{"here-document", "wc -c <<X\n" + strings.Repeat("0123456789abcde\n", 7000) + "X\n"},
	{"git", gitAs + `export GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z; git init -q r && cd r && for i in 1 2 3; do echo $i > f$i; git add f$i; git commit -qm $i; done && git switch -qc b HEAD~1 && echo b > b && git add b && git commit -qm b && git rebase -q master && git remote add o https://example.org/x && git config user.name n && git gc -q && cd .. && git clone -q r c && git -C c log --format=%H && git -C c fsck 2>&1`},
	{"tar, cp, rsync", `mkdir s && for i in $(seq 50); do echo $i > s/f$i; chmod $((600 + i % 8)) s/f$i; touch -d @$((1000000000 + i)) s/f$i; done; ln -s f1 s/l; ln s/f1 s/h; mkdir -p s/d/e && chmod 700 s/d; touch -h -d @1000000000 s/d/e s/d s/l; tar cf a.tar --sort=name --mtime=@1 s && mkdir t && tar xf a.tar -C t && cp -p -r s u && rsync -aH s/ v/ && diff -r s u && diff -r s v && stat -c '%n %a %Y' v/* | sort && sed -i s/1/2/ s/f1 s/f2 && cat s/f1 s/f2; install -m 750 s/f3 w; mktemp -p . tXXXXXX | wc -c; rm -rf s t u v *.tar t?????? *.orig`},
	{"make and cc", `printf 'int main(void){return 0;}\n' > m.c; printf 'all: a b\na b: m.c\n\tcc -o $@ m.c\n' > Makefile; make -s -j2 && ./a && ./b && echo built; rm -f a b`},
	{"go build", `mkdir g && cd g && export HOME="$PWD" && printf 'module m\ngo 1.24\n' > go.mod && printf 'package main\nfunc main(){ println("hi") }\n' > main.go && GOCACHE="$PWD/.cache" GOFLAGS=-mod=mod GOTOOLCHAIN=local ` + goProgram + ` build -o ../m . && cd .. && ./m; chmod -R u+w g; rm -rf g m`},
	{"sqlite3", `sqlite3 db 'pragma journal_mode=wal; create table t(x); insert into t values(1),(2); select sum(x) from t;' && sqlite3 db 'delete from t; vacuum; select count(*) from t'; ls db*; rm -f db*`},
}

// TestStrictIsAsTheKernel: a call that the supervisor makes ends as the kernel
// would have ended it: every errno, mode, number and waiting.
func TestStrictIsAsTheKernel(t *testing.T) {
	need(t, "python3", "git", "tar", "rsync", "make", "cc", "sqlite3", "script", "flock", "setfacl")
	for _, c := range same {
		if c.name == "go build" && !soak() {
			continue // compiles the whole library, twice
		}
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(goProgram); c.name == "go build" && err != nil {
				t.Skip("SKIP: no " + goProgram)
			}
			sameUnder(t, c.command)
		})
	}
}

// TestStrictWithoutItsOwnUmask is the same where the thread cannot have a umask
// of its own, as in default containers.
func TestStrictWithoutItsOwnUmask(t *testing.T) {
	need(t, "python3")
	defer sandbox.RefuseUnshare()()
	for _, c := range same[:1] {
		sameUnder(t, c.command)
	}
	sameUnder(t, python(`
import socket
os.umask(0); s = socket.socket(socket.AF_UNIX); s.bind("s"); print(oct(os.stat("s").st_mode))
os.umask(0o077); s = socket.socket(socket.AF_UNIX); s.bind("s2"); print(oct(os.stat("s2").st_mode))
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o666); print(oct(os.fstat(fd).st_mode))
`))
}

func sameUnder(t *testing.T, command string) {
	t.Helper()
	run := func(p *fence.Fence, l *lab) string {
		r := l.run(p, command)
		if len(r.Denials) != 0 {
			t.Errorf("denials: %v", r)
		}
		text := fmt.Sprintf("exit %d\n%s\n%s\n%s", r.code(), r.stdout, r.stderr, listing(t, l.W))
		return strings.ReplaceAll(text, filepath.Dir(l.W), "LAB")
	}
	bare, strict := newLab(t), newLab(t)
	want := run(bare.fence(fence.FullAccess), bare)
	got := run(strict.fence(fence.WorkspaceWrite, protectedAs(fence.ProtectStrict)), strict)
	if got != want {
		t.Errorf("under strict:\n%s\nwithout a fence:\n%s", got, want)
	}
}

// listing describes what is in a workspace, without times, and of git's own
// files the names that do not change from run to run.
func listing(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if strings.Contains(rel, ".git/") && (strings.Contains(rel, "/logs") || strings.HasSuffix(rel, "/index") || strings.Contains(rel, "/objects/")) {
			return nil
		}
		fmt.Fprintf(&b, "%s %o %d:%d %d", rel, st.Mode, st.Uid, st.Gid, st.Nlink)
		if d.Type().IsRegular() {
			c, _ := os.ReadFile(p)
			fmt.Fprintf(&b, " %q", c)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStrictGivesNothingOfOurs: what has no path is the caller's only if it came
// to it by its own descriptors. This process, which the supervisor is part of,
// has some.
func TestStrictGivesNothingOfOurs(t *testing.T) {
	need(t, "python3")
	l := newLab(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	gone, err := os.CreateTemp(l.W, "gone")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	_ = os.Remove(gone.Name())
	f := l.fence(fence.WorkspaceWrite, protectedAs(fence.ProtectStrict))
	for _, fd := range []uintptr{w.Fd(), r.Fd(), gone.Fd()} {
		path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
		l.run(f, python(`
import struct
p = os.environ["P"].encode()
for flags in [os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_NONBLOCK]:
    try: os.write(os.open(p, flags), b"x"); sys.exit("opened")
    except OSError as e: pass
for flags in [0, os.O_WRONLY, os.O_PATH]:
    if libc.syscall(437, -100, p, ctypes.create_string_buffer(struct.pack("QQQ", flags, 0, 0)), 24) >= 0: sys.exit("opened by openat2")
for f in [lambda: os.chmod(p, 0o777), lambda: os.truncate(p, 9), lambda: os.link(p, "l", follow_symlinks=True)]:
    try: f(); sys.exit("changed")
    except OSError as e: pass
`), withVars(map[string]string{"P": path})).ok(t)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(gone.Fd()), &st); err != nil || st.Size != 0 || st.Mode&0o777 != 0o600 {
		t.Errorf("%+v, %v", st, err)
	}
	for _, p := range []string{"environ", "mem", "maps", "auxv"} {
		l.run(f, python(`
import struct
p = os.environ["P"].encode()
if libc.syscall(437, -100, p, ctypes.create_string_buffer(struct.pack("QQQ", 0, 0, 0)), 24) >= 0: sys.exit("opened by openat2")
try: os.open(p, os.O_CREAT); sys.exit("opened")
except OSError: pass
`), withVars(map[string]string{"P": fmt.Sprintf("/proc/%d/%s", os.Getpid(), p)})).ok(t)
	}
}

// TestStrictIsSaid: a policy that asks for strict gets it, and the report of each
// start says so.
func TestStrictIsSaid(t *testing.T) {
	l := newLab(t)
	for _, mode := range []fence.Mode{fence.WorkspaceWrite, fence.ReadOnly} {
		r := l.run(l.fence(mode, protectedAs(fence.ProtectStrict)), `true`).ok(t)
		if r.report.Protect != fence.ProtectStrict {
			t.Errorf("%s: %+v", mode, r.report)
		}
		for _, g := range r.report.NotGoverned {
			if g.What == "protected-paths" || g.What == "metadata" {
				t.Errorf("%s: %+v", mode, g)
			}
		}
	}
}

// TestStrictMountsOfOthers: a path that only another mount namespace has, or a
// tree that is mounted nowhere, looks like one of ours and is not.
func TestStrictMountsOfOthers(t *testing.T) {
	need(t, "python3", "unshare")
	l := newLab(t)
	// A tree outside in which there are directories with the workspace's path.
	mirror := l.O + l.W
	write(t, mirror+"/f", "outside\n", 0o666)
	before := snapshot(t, l.O)
	f := l.fence(fence.WorkspaceWrite, protectedAs(fence.ProtectStrict))
	r := l.run(f, `unshare -Um --propagation unchanged "$TOOL" tool mirror "$O" ".$W/f"`)
	if r.code() == 0 || !strings.Contains(r.stderr, "operation not permitted") {
		t.Errorf("%v", r)
	}
	// The directory of a process of the user's in a mount namespace of its own.
	if os.Getuid() == 0 && mounted {
		o := l.start(l.spec(l.fence(fence.FullAccess), `unshare -m sh -c 'mount --bind $O$W $W && cd $W && echo ready && exec sleep 1000'`))
		eventually(t, "it has its mounts", func() bool { out, _ := outputOf(o); return out != "" })
		pid := strings.TrimSpace(l.host(`pgrep -f '^sleep 1000$' | while read p; do [ "$(readlink /proc/$p/cwd)" = "$W" ] && echo $p; done | head -1`))
		for _, c := range []string{`echo x > /proc/$P/cwd/f`, `echo x > /proc/$P/cwd/new`, `echo x > /proc/$P/root$W/f`, `rm /proc/$P/cwd/f`, `chmod 600 /proc/$P/cwd/f`, `mv /proc/$P/cwd/f g`} {
			if r := l.run(f, c, withVars(map[string]string{"P": pid})); r.code() == 0 {
				t.Errorf("%s: %v", c, r)
			}
		}
	}
	if after := snapshot(t, l.O); after != before {
		t.Errorf("outside changed:\n%s\n%s", before, after)
	}
}

// TestNoFileByHandle: a file is opened by its path or not at all.
func TestNoFileByHandle(t *testing.T) {
	need(t, "python3")
	l := newLab(t)
	l.repository(l.W)
	l.ws(python(`
h = (ctypes.c_char * 136)(); ctypes.cast(h, ctypes.POINTER(ctypes.c_uint))[0] = 128; m = ctypes.c_int()
if libc.name_to_handle_at(-100, b".git/config", h, ctypes.byref(m), 0): sys.exit(0)
fd = libc.open_by_handle_at(os.open(".", os.O_RDONLY), h, os.O_WRONLY)
if fd >= 0 or ctypes.get_errno() != 1: sys.exit("opened")
`)).ok(t)
}

func init() {
	// mirror DIR REL: writes REL in a clone of DIR that is mounted nowhere.
	tools["mirror"] = func(a []string) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, a[0], unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return err
		}
		f, err := unix.Openat(fd, a[1], unix.O_WRONLY|unix.O_TRUNC, 0)
		if err != nil {
			return err
		}
		_, err = unix.Write(f, []byte("reached"))
		return err
	}
}
