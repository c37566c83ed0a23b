package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// keeper gives commands a real trash, as the daemon does.
type keeper struct{ bin *trash.Bin }

func (k keeper) Begin(r sandbox.Removing) sandbox.Keeping {
	return k.bin.Group(trash.GroupOptions{ID: r.ID, Base: r.Workspace, Writable: r.Writable})
}

// keepLab is a lab whose commands have a trash.
type keepLab struct {
	*lab
	bin  *trash.Bin
	data string // the data directory of the trash
}

func openBin(t testing.TB, data string) *trash.Bin {
	t.Helper()
	b, err := trash.New(trash.Config{DataHome: data, UID: os.Getuid(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newKeepLab(t testing.TB) *keepLab {
	t.Helper()
	l := newLab(t)
	k := &keepLab{lab: l, data: filepath.Join(l.H, "share")}
	k.bin = openBin(t, k.data)
	l.r = sandbox.NewRunner(sandbox.Options{TempRoot: own("temp"), Keeper: keeper{k.bin}})
	t.Cleanup(func() {
		l.r.Close()
		k.bin.Close(context.Background())
	})
	return k
}

func trashing(p *fence.Policy) { p.TrashCommands = true }

// unprotected: nothing is protected, so that a whole checkout can go.
func unprotected(p *fence.Policy) { p.Protected = nil }

func named(id string) func(*sandbox.Spec) { return func(s *sandbox.Spec) { s.ID = id } }

// keep runs a command under trash_commands.
func (k *keepLab) keep(id, command string) result {
	k.t.Helper()
	return k.run(k.fence(fence.WorkspaceWrite, trashing, unprotected), command, named(id))
}

func (k *keepLab) restore(id string) trash.RestoredGroup {
	k.t.Helper()
	r, err := k.bin.RestoreGroup(context.Background(), id, trash.RestoreOptions{})
	if err != nil {
		k.t.Fatalf("restore %s: %v", id, err)
	}
	return r
}

// entries are the names in the home trash, with a slash where there is data.
func (k *keepLab) entries() string {
	k.t.Helper()
	var all []string
	for _, half := range []string{"files", "info"} {
		ds, err := os.ReadDir(k.data + "/Trash/" + half)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.t.Fatal(err)
		}
		for _, d := range ds {
			all = append(all, half+"/"+d.Name())
		}
	}
	return strings.Join(all, " ")
}

// identities is snapshot with inode numbers of files and links, their names
// and their attribute: what comes back is the same file.
func identities(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		val := make([]byte, 64)
		n, _ := unix.Lgetxattr(p, "user.wattle", val)
		to, _ := os.Readlink(p)
		fmt.Fprintf(&b, "%q %d %d %q %q\n", p, st.Ino, st.Nlink, to, val[:max(n, 0)])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkout makes a repository with a few hundred files of every kind, and
// returns its directory.
func (k *keepLab) checkout() string {
	k.t.Helper()
	need(k.t, "git")
	dir := k.W + "/repo"
	k.host(`mkdir repo && cd repo && git init -q . && git config user.email a@b && git config user.name n
for d in a a/b a/b/c 'with blank' d%e; do mkdir -p "$d"
	for i in $(seq 60); do echo "$d $i" > "$d/f$i"; done
	chmod 755 "$d/f1"; ln -s f2 "$d/link"; ln -s nowhere/at/all "$d/dangling"; ln -s . "$d/self"
done
printf 'x' > a/$'new\nline'; printf 'y' > a/$'\xff\xfe'; : > empty
git add -A && git commit -qm one && echo two >> a/f3 && git commit -qam two && git gc -q && git tag t && echo 'ignored*' > .gitignore && git add . && git commit -qm three
mkdir -p ignored/deep/er && ln a/f5 ignored/hard5 && ln a/f5 ignored/deep/hard5 && echo z > ignored/deep/er/z && chmod 400 ignored/deep/er/z
mkdir ignored/none && chmod 750 ignored/none && chmod 700 ignored/deep
git status --porcelain`)
	_ = unix.Setxattr(dir+"/a/f7", "user.wattle", []byte("an attribute"), 0)
	// Old times, so that what is made again shows.
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink == 0 && !strings.Contains(p, "/.git") {
			old := time.Date(2014, 3, 4, 5, 6, 7, 8090, time.UTC)
			_ = os.Chtimes(p, old, old)
		}
		return err
	})
	k.host(`cd repo && git status --porcelain`) // the index knows the new times
	return dir
}

// TestRemovedCheckoutComesBack is the promise of issue 4, point 5.
func TestRemovedCheckoutComesBack(t *testing.T) {
	k := newKeepLab(t)
	dir := k.checkout()
	before, ids := snapshot(t, dir), identities(t, dir)
	all := int64(0)
	_ = filepath.WalkDir(dir, func(string, os.DirEntry, error) error { all++; return nil })
	r := k.keep("gone", "rm -rf repo").ok(t)
	absent(t, dir)
	if r.Kept == nil || r.Kept.NotKept != 0 || r.Kept.Count != all {
		t.Errorf("%d things were removed, kept: %+v", all, r.Kept)
	}
	if got := k.entries(); got != "files/rm-gone info/rm-gone.trashinfo" {
		t.Errorf("in the trash: %s", got)
	}
	eventually(t, "the group has ended", func() bool {
		b, _ := os.ReadFile(k.data + "/Trash/files/rm-gone/" + record.RemovedName)
		return strings.Contains(string(b), "\ne ")
	})
	back := k.restore("gone")
	if !back.Complete() || back.Files+back.Directories != int(r.Kept.Count) {
		t.Errorf("restored: %+v, kept: %+v", back, r.Kept)
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("before and after differ:\n%s", differing(before, after))
	}
	if after := identities(t, dir); after != ids {
		t.Errorf("identities differ:\n%s", differing(ids, after))
	}
	if got := k.host("cd repo && git status --porcelain && git fsck --strict 2>&1"); got != "" {
		t.Errorf("git: %s", got)
	}
	if got := k.entries(); got != "" {
		t.Errorf("left in the trash: %s", got)
	}
}

// differing are lines that only one of two texts has.
func differing(a, b string) string {
	var out []string
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for _, x := range as {
		if !slices.Contains(bs, x) {
			out = append(out, "- "+x)
		}
	}
	for _, x := range bs {
		if !slices.Contains(as, x) {
			out = append(out, "+ "+x)
		}
	}
	return strings.Join(out[:min(len(out), 20)], "\n")
}

// TestKept: what is kept of what real programs do, what a restore then gives
// back, and what it leaves because something is there.
func TestKept(t *testing.T) {
	for _, c := range []struct {
		name, prepare, run string
		kept, lost         int64
		fails              bool
		// before a restore, and how the workspace is afterwards: a shell command
		// that succeeds.
		between, check string
		left           int // what the restore could not put back
	}{
		{name: "one file", prepare: "echo a > f", run: "rm f", kept: 1, check: "test $(cat f) = a"},
		{name: "unlink by another spelling", prepare: "mkdir d; echo a > d/f; ln -s d e", run: "rm ./e/../e//f", kept: 1, check: "test $(cat d/f) = a"},
		{name: "a link", prepare: "echo a > f; ln -s f l", run: "rm l", kept: 1, check: "test $(readlink l) = f && test $(cat f) = a"},
		{name: "replaced by mv", prepare: "echo old > f; echo new > g", run: "mv -f g f", kept: 1, left: 1, check: "test $(cat f) = new"},
		{name: "replaced, and the way made free", prepare: "echo old > f; echo new > g", run: "mv -f g f", kept: 1, between: "mv f h", check: "test $(cat f) = old && test $(cat h) = new"},
		{name: "sed -i", prepare: "echo old > f", run: "sed -i s/old/new/ f", kept: 1, between: "mv f h", check: "test $(cat f) = old && test $(cat h) = new"},
		{name: "twice by one name", prepare: "echo a > f; echo b > g", run: "rm f; mv g f; rm f", kept: 2, left: 1, check: "test $(cat f) = a"},
		{name: "a file, then a directory", prepare: "echo a > f; mkdir g; echo b > g/x", run: "rm f; mv g f; rm -r f", kept: 3, left: 2, check: "test $(cat f) = a"},
		{name: "emptied in place is not kept", prepare: "echo a > f", run: ": > f", check: "test ! -s f"},
		{name: "own temporary files", run: "for i in 1 2 3; do echo x > t$i; mv t$i u$i; rm u$i; done; mkdir d; rmdir d; mktemp -d -p . | xargs rmdir", check: "test -z \"$(ls)\""},
		{name: "own file replaces again and again", prepare: "echo old > f", run: "for i in 1 2 3; do echo $i > t; mv t f; done", kept: 1, between: "rm f", check: "test $(cat f) = old"},
		{name: "an old file under an own name", prepare: "echo a > f", run: ": > x; mv f x; rm x", kept: 1, check: "test $(cat x) = a"},
		{name: "temporary directory", prepare: "echo a > $T/f", run: "rm $T/f", check: "test ! -e $T/f"},
		{name: "empty directories", prepare: "mkdir -p a/b; chmod 700 a; chmod 751 a/b", run: "rmdir a/b a", kept: 2, check: "test $(stat -c %a a a/b | tr '\\n' ,) = 700,751,"},
		{name: "directory replaced by one", prepare: "mkdir a b; echo x > a/x; chmod 711 b", run: "mv -T a b", kept: 1, between: "mv b c", check: "test $(stat -c %a b) = 711 && test $(cat c/x) = x"},
		{name: "exchange replaces nothing", prepare: "echo a > f; echo b > g", run: "$TOOL tool exchange f g", check: "test $(cat f) = b"},
		{name: "a second name", prepare: "echo a > f; ln f g", run: "rm f", kept: 1, check: "test f -ef g && test $(stat -c %h f) = 2"},
		{name: "a rename between two names of one file", prepare: "echo a > f; ln f g", run: "$TOOL tool rename f g", check: "test f -ef g && test $(stat -c %h f) = 2"},
		{name: "not empty", prepare: "mkdir d; echo a > d/f", run: "rmdir d", kept: 1, fails: true, check: "test $(cat d/f) = a"},
		{name: "wrong call", prepare: "mkdir d; echo a > f", run: "$TOOL tool wrongly d f", fails: true, check: "test -d d && test -f f"},
		{name: "refused by mode, again and again", prepare: "mkdir d; echo a > d/f; chmod 555 d", run: "for i in 1 2 3; do rm -f d/f; done; test ! -e d/f", kept: 3, fails: true, check: "test $(cat d/f) = a && test $(stat -c %h d/f) = 1"},
		{name: "outside", run: "rm -f $O/f; test ! -e $O/f", fails: true, check: "test -f $O/f"},
		{name: "what is no file", prepare: "mkfifo p", run: "rm p", lost: 1, check: "test ! -e p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeepLab(t)
			write(t, k.O+"/f", "o", 0o644)
			k.host(c.prepare)
			// A file that is made within a tick of the clock counts as old.
			r := k.keep("x", "sleep 0.02\n"+c.run)
			if (r.code() != 0) != c.fails || r.Kept == nil || r.Kept.Count != c.kept || r.Kept.NotKept != c.lost || int64(len(r.Kept.Examples)) != c.lost {
				t.Fatalf("%v\nkept %+v, want %d and %d", r, r.Kept, c.kept, c.lost)
			}
			k.host(c.between)
			if c.kept == 0 {
				if _, err := k.bin.RestoreGroup(context.Background(), "x", trash.RestoreOptions{}); c.lost == 0 && err == nil {
					t.Error("there is a group")
				}
			} else if back := k.restore("x"); back.NotRestored != c.left || len(back.Left) != c.left {
				t.Errorf("restored: %+v", back)
			} else if got := k.entries(); (got == "") != (c.left == 0) {
				t.Errorf("in the trash: %s", got)
			}
			k.host(c.check)
		})
	}
}

func init() {
	tools["exchange"] = func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	}
	tools["rename"] = func(a []string) error { return unix.Rename(a[0], a[1]) }
	// wrongly DIR FILE: the call for the other kind.
	tools["wrongly"] = func(a []string) error {
		return errors.Join(unix.Unlinkat(unix.AT_FDCWD, a[0], 0), unix.Unlinkat(unix.AT_FDCWD, a[1], unix.AT_REMOVEDIR))
	}
	tools["keep-and-die"] = keepAndDie
}

// TestKeptOffByDefault: without the policy nothing is kept, and where the
// policy cannot be kept the report says so.
func TestKeptOffByDefault(t *testing.T) {
	k := newKeepLab(t)
	gap := func(r result) string {
		for _, g := range r.report.NotGoverned {
			if g.What == "trash-commands" {
				return g.Why
			}
		}
		return ""
	}
	for _, c := range []struct {
		name string
		l    *lab
		f    *fence.Fence
		gap  string
		kept bool
	}{
		{"off", k.lab, k.fence(fence.WorkspaceWrite), "", false},
		{"on", k.lab, k.fence(fence.WorkspaceWrite, trashing), "in place", true},
		{"full-access", k.lab, k.fence(fence.FullAccess, trashing), "no supervisor", false},
		{"no trash", newLab(t), k.fence(fence.WorkspaceWrite, trashing), "no trash", false},
	} {
		write(t, k.W+"/f", "x", 0o644)
		r := c.l.run(c.f, "rm "+k.W+"/f", named(c.name)).ok(t)
		if (r.Kept != nil) != c.kept || !strings.Contains(gap(r), c.gap) || (gap(r) == "") != (c.gap == "") {
			t.Errorf("%s: kept %+v, gap %q", c.name, r.Kept, gap(r))
		}
		if v := c.f.View(); v.TrashCommands != (c.name != "off") {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// TestKeptElsewhere: things of another mount go to that mount's own trash; where
// there can be none they go all the same, and are counted.
func TestKeptElsewhere(t *testing.T) {
	if !mounted {
		t.Skip("SKIP: no mounts: not root")
	}
	k := newKeepLab(t)
	dir, err := os.MkdirTemp(filepath.Join(base, "mounts", "small"), "k")
	if err != nil {
		t.Fatal(err)
	}
	side := fmt.Sprintf("%s/.Trash-%d", filepath.Dir(dir), os.Getuid())
	t.Cleanup(func() { _ = os.RemoveAll(dir); _ = os.RemoveAll(side) })
	f := k.fence(fence.WorkspaceWrite, trashing, func(p *fence.Policy) { p.Writable = []fence.Entry{{Path: dir, Source: "session"}} })
	// Sizes are written there in the background.
	clear := func() { eventually(t, "the trash is gone", func() bool { return os.RemoveAll(side) == nil }) }
	make := func() {
		write(t, dir+"/d/e/f", "there", 0o640)
		write(t, k.W+"/g", "here", 0o600)
	}
	make()
	command := "rm -r " + dir + "/d " + k.W + "/g"
	before := snapshot(t, dir+"/d")
	if r := k.run(f, command, named("both")).ok(t); r.Kept.Count != 4 || r.Kept.NotKept != 0 {
		t.Fatalf("%+v", r.Kept)
	}
	if _, err := os.Stat(side + "/files/rm-both"); err != nil {
		t.Error(err)
	}
	back := k.restore("both")
	if back.NotRestored != 0 || len(back.Entries) != 2 {
		t.Errorf("%+v", back)
	}
	content(t, k.W+"/g", "here")
	if after := snapshot(t, dir+"/d"); after != before {
		t.Errorf("differ:\n%s", differing(before, after))
	}
	// The top directory of the mount is writable itself, and so would be the
	// trash in it: unless it is protected.
	top := filepath.Dir(dir)
	for _, c := range []struct {
		protected []fence.Protection
		kept      int64
	}{{nil, 0}, {[]fence.Protection{{Match: "**/.Trash-*", Source: "mode"}}, 3}} {
		clear()
		f := k.fence(fence.WorkspaceWrite, trashing, func(p *fence.Policy) {
			p.Writable, p.Protected = []fence.Entry{{Path: top, Source: "session"}}, c.protected
		})
		write(t, dir+"/d/e/f", "there", 0o640)
		r := k.run(f, "rm -r "+dir+"/d", named("top")).ok(t)
		if r.Kept.Count != c.kept || r.Kept.NotKept != 3-c.kept {
			t.Errorf("%v: %+v", c.protected, r.Kept)
		}
		if _, err := os.Stat(side); (err == nil) != (c.kept > 0) {
			t.Errorf("%v: %v", c.protected, err)
		}
	}
	// A file where the trash would be.
	clear()
	write(t, side, "in the way", 0o644)
	make()
	r := k.run(f, command, named("half")).ok(t)
	absent(t, dir+"/d", k.W+"/g")
	if r.Kept.Count != 1 || r.Kept.NotKept != 3 || !strings.Contains(r.Kept.Examples[0].Why, "no trash can take it") {
		t.Errorf("%+v", r.Kept)
	}
	back = k.restore("half")
	if back.Files != 1 || back.NotRestored != 0 {
		t.Errorf("%+v", back)
	}
	content(t, k.W+"/g", "here")
}

// dying kills this process before the n-th removal goes on, or, after it was
// kept.
type dying struct {
	sandbox.Keeping
	n     *int
	after bool
}

func (d dying) do(f func() error) error {
	*d.n--
	if *d.n == 0 {
		if d.after {
			_ = f()
		}
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
	return f()
}

func (d dying) File(f *os.File, p string, i anchor.Info) error {
	return d.do(func() error { return d.Keeping.File(f, p, i) })
}

func (d dying) Directory(f *os.File, p string, i anchor.Info) error {
	return d.do(func() error { return d.Keeping.Directory(f, p, i) })
}

type dyingKeeper struct {
	bin   *trash.Bin
	n     *int
	after bool
}

func (k dyingKeeper) Begin(r sandbox.Removing) sandbox.Keeping {
	return dying{keeper{k.bin}.Begin(r), k.n, k.after}
}

type dieOrder struct {
	W, Data, Temp string
	N             int
	After         bool
}

// keepAndDie is a daemon that is killed in the middle of a command.
func keepAndDie(a []string) error {
	var o dieOrder
	if err := json.Unmarshal([]byte(a[0]), &o); err != nil {
		return err
	}
	bin, err := trash.New(trash.Config{DataHome: o.Data, UID: os.Getuid(), NoSync: true})
	if err != nil {
		return err
	}
	f, err := fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: o.W, Devices: fence.DefaultDevices(), TrashCommands: true})
	if err != nil {
		return err
	}
	r := sandbox.NewRunner(sandbox.Options{Keeper: dyingKeeper{bin, &o.N, o.After}})
	p, err := r.Start(context.Background(), sandbox.Spec{ID: "died", Argv: []string{"/bin/rm", "-rf", o.W + "/repo"}, Dir: o.W, Fence: f, TempDir: o.Temp})
	if err != nil {
		return err
	}
	<-p.Over()
	return errors.New("nobody died")
}

// TestKeptAfterKill: kill -9 of the daemon in the middle of a removal, then a
// restore in another process: nothing is missing.
func TestKeptAfterKill(t *testing.T) {
	k := newKeepLab(t)
	dir := k.checkout()
	before, ids := snapshot(t, dir), identities(t, dir)
	all := strings.Count(before, "\n")
	points := []int{2, all / 3}
	if soak() {
		points = []int{1, 2, 3, all / 4, all / 3, all / 2, all - 2, all - 1}
	}
	for _, n := range points {
		for _, after := range []bool{false, true} {
			text, err := json.Marshal(dieOrder{k.W, k.data, k.T, n, after})
			if err != nil {
				t.Fatal(err)
			}
			c := exec.Command(toolPath(), "tool", "keep-and-die", string(text))
			c.Stderr = os.Stderr
			err = c.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v", err)
			}
			// Its command dies with it.
			eventually(t, "rm has ended", func() bool { return len(running(k.W+"/repo")) == 0 })
			mid := snapshot(t, k.W)
			if n > 2 && strings.Count(mid, "\n") > all-n+10 {
				t.Errorf("%d: hardly anything was removed", n)
			}
			if n > 1 || after {
				if back := k.restore("died"); back.NotRestored != 0 || back.Ended {
					t.Errorf("%d after %v: %+v", n, after, back)
				}
			}
			got, gotIDs := snapshot(t, dir), identities(t, dir)
			if lines := differing(withoutTimesOfDirs(before), withoutTimesOfDirs(got)); lines != "" {
				t.Fatalf("%d after %v: differ:\n%s", n, after, lines)
			}
			if gotIDs != ids {
				t.Fatalf("%d after %v: differ:\n%s", n, after, differing(ids, gotIDs))
			}
			if got := k.entries(); got != "" && (n > 1 || after) {
				t.Errorf("%d after %v: left in the trash: %s", n, after, got)
			}
		}
	}
	if got := k.host("cd repo && git status --porcelain"); got != "" {
		t.Errorf("git: %s", got)
	}
}

// withoutTimesOfDirs: a directory that was not removed has the time of what was
// done in it.
func withoutTimesOfDirs(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if f := strings.Fields(l); len(f) > 2 && strings.HasPrefix(f[len(f)-3], "4") {
			lines[i] = strings.Join(f[:len(f)-1], " ")
		}
	}
	return strings.Join(lines, "\n")
}
