package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/fence"
)

// python wraps a program that ends with a system call by number or name: status
// 0 when the call succeeded.
func python(program string) string {
	return "python3 -B - <<'P'\nimport ctypes, os, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n" +
		"def done(r): sys.exit(0 if r >= 0 else 'errno %d' % ctypes.get_errno())\n" + program + "\nP\n"
}

// attacks are ways to change what is protected. The first sixteen are those of
// the list that the design was measured with; the others were found here.
// Under protect "checked" all of these are held. What it does not hold is a
// race between the supervisor's look and the kernel's own: a second thread that
// rewrites the path, the lock file or the link in between (the report of each
// start says so).
var attacks = []struct {
	name, command string
	denied        []string // "access path", below W; nil: refused without a denial
}{
	{"1 write hook", `echo evil > .git/hooks/pre-commit`, []string{"create .git/hooks/pre-commit"}},
	{"2 append config", `echo "[core]hooksPath=/x" >> .git/config`, []string{"write .git/config"}},
	{"3 remove hook", `rm -f .git/hooks/existing`, []string{"delete .git/hooks/existing"}},
	{"4 rename hooks", `mv .git/hooks .git/hooks2`, []string{"rename .git/hooks"}},
	{"5 rename over config", `echo evil > c2; mv -f c2 .git/config`, []string{"rename .git/config"}},
	{"6 hard link of config", `ln .git/config hl && echo evil >> hl`, []string{"link .git/config"}},
	{"7 linked directory", `ln -sfn .git/hooks sl && echo evil > sl/post-commit`, []string{"create .git/hooks/post-commit"}},
	{"8 reopen", `exec 9<.git/config; echo evil >> /proc/self/fd/9`, []string{"write .git/config"}},
	{"9 chmod config", `chmod 777 .git/config`, []string{"metadata .git/config"}},
	{"10 absent name", `mkdir .wattle && echo evil > .wattle/policy`, []string{"mkdir .wattle"}},
	{"11 exchange hooks", `mkdir evilhooks; ` + python(`done(libc.renameat2(-100, b".git/hooks", -100, b"evilhooks", 2))`), []string{"rename .git/hooks"}},
	{"12 unmount", python(`done(libc.umount2(b".git/hooks", 0))`), nil},
	{"13 remount", python(`done(libc.mount(None, b".git/hooks", None, 0x1020, None))`), nil},
	{"14 unmount in a user namespace", `unshare -Urm umount .git/hooks`, []string{"write /proc/*/uid_map"}},
	{"15 bind mount in a user namespace", `mkdir m; unshare -Urm sh -c "mount --bind . m && echo evil > m/.git/hooks/z"`, []string{"write /proc/*/uid_map"}},
	{"16 move .git away", `mv .git .git2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit`, []string{"rename .git"}},

	{"17 below a descriptor", `exec 9<.git; echo evil > /proc/self/fd/9/hooks/pre-commit`, []string{"create .git/hooks/pre-commit"}},
	{"18 below another thread's directory", `cd .git; echo evil > /proc/thread-self/cwd/hooks/pre-commit`, []string{"create .git/hooks/pre-commit"}},
	{"19 openat2 in a root of its own", python(`
d = os.open(".", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_APPEND, 0, 0x10)
done(libc.syscall(437, d, b"/.git/config", how, 24))`), []string{"write .git/config"}},
	{"20 openat2 in a root, new name", python(`
d = os.open(".git", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o755, 0x10)
done(libc.syscall(437, d, b"/hooks/pre-commit", how, 24))`), []string{"create .git/hooks/pre-commit"}},
	{"21 openat2 beneath, through a link", `ln -s .git/hooks l; ` + python(`
d = os.open(".", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o755, 0x08)
done(libc.syscall(437, d, b"l/pre-commit", how, 24))`), []string{"create .git/hooks/pre-commit"}},
	{"22 openat2 in a root, dangling link", `ln -s /.git/hooks/pre-commit l; ` + python(`
d = os.open(".", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o755, 0x10)
done(libc.syscall(437, d, b"l", how, 24))`), nil},
	{"23 dangling link", `ln -s .git/hooks/pre-commit l; echo evil > l`, []string{"create .git/hooks/pre-commit"}},
	{"24 dangling link called sample", `ln -s pre-commit .git/hooks/x.sample; echo evil > .git/hooks/x.sample`, []string{"create .git/hooks/pre-commit"}},
	{"25 sample made a hook", `mv .git/hooks/pre-commit.sample .git/hooks/pre-commit`, []string{"rename .git/hooks/pre-commit.sample"}},
	{"26 sample linked as a hook", `ln .git/hooks/pre-commit.sample .git/hooks/pre-commit`, []string{"link .git/hooks/pre-commit"}},
	{"27 unnamed file linked as a hook", python(`
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o755)
done(libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, b".git/hooks/pre-commit", 0x400))`), []string{"create .git/hooks/pre-commit"}},
	{"28 repository made in scratch", `mkdir -p "$T/sub/.git/hooks"; echo evil > "$T/sub/.git/hooks/pre-commit"; ` +
		python(`done(libc.rename(os.environ["T"].encode() + b"/sub", b"sub"))`), nil},
	{"29 repository exchanged in from scratch", `mkdir -p "$T/sub/.git/hooks" e; echo evil > "$T/sub/.git/hooks/pre-commit"; ` +
		python(`done(libc.renameat2(-100, b"e", -100, os.environ["T"].encode() + b"/sub", 2))`), nil},
	{"30 the same the other way", `mkdir -p "$T/sub/.git/hooks" e; echo evil > "$T/sub/.git/hooks/pre-commit"; ` +
		python(`done(libc.renameat2(-100, os.environ["T"].encode() + b"/sub", -100, b"e", 2))`), nil},
	{"31 moved in piece by piece", `mkdir -p "$T/sub/.git/hooks"; echo evil > "$T/sub/.git/hooks/pre-commit"; mv "$T/sub" sub`, []string{"create sub/.git/hooks/pre-commit", "metadata sub/.git/hooks"}},
	{"32 copied in", `mkdir -p "$T/sub/.git/hooks"; echo evil > "$T/sub/.git/hooks/pre-commit"; cp -r "$T/sub" sub`, []string{"create sub/.git/hooks/pre-commit"}},
	{"33 directory becomes .git", `mkdir -p x/hooks; echo evil > x/hooks/pre-commit; mv x sub; mkdir n; mv sub n/.git`, []string{"rename n/.git"}},
	{"34 link called .git", `mkdir -p x/hooks n; echo evil > x/hooks/pre-commit; ln -s ../x n/.git`, []string{"create n/.git"}},
	{"35 file called .git", `mkdir -p x/hooks n; echo "gitdir: ../x" > n/.git`, []string{"create n/.git"}},
	{"36 submodule", `mkdir -p m/hooks; echo evil > m/hooks/pre-commit; mkdir -p .git/modules; mv m .git/modules/m`, []string{"rename .git/modules/m"}},
	{"37 lock file kept open", `cp .git/config .git/config.lock; exec 9>> .git/config.lock; mv .git/config.lock .git/config && echo evil >&9`, []string{"rename .git/config"}},
	{"38 lock file mapped", `cp .git/config .git/config.lock; ` + python(`
import mmap
f = open(".git/config.lock", "r+b"); m = mmap.mmap(f.fileno(), 0); f.close()
r = libc.rename(b".git/config.lock", b".git/config")
if r == 0: m[0:4] = b"evil"
done(r)`), []string{"rename .git/config"}},
	{"39 lock file with a second name", `cp .git/config .git/config.lock; ln .git/config.lock keep; mv .git/config.lock .git/config && echo evil >> keep`, []string{"rename .git/config"}},
	{"40 lock file that is a link", `echo evil > e; ln -s ../e .git/config.lock; mv .git/config.lock .git/config`, []string{"rename .git/config"}},
	{"41 lock file exchanged", `echo evil > .git/config.lock; ` + python(`done(libc.renameat2(-100, b".git/config.lock", -100, b".git/config", 2))`), []string{"rename .git/config"}},
	{"42 truncate", `: > .git/config`, []string{"write .git/config"}},
	{"43 truncate by path", python(`done(libc.truncate(b".git/config", 0))`), []string{"write .git/config"}},
	{"44 truncate for reading", python(`os.open(".git/config", os.O_RDONLY | os.O_TRUNC)`), []string{"write .git/config"}},
	{"45 attribute of config", python(`os.setxattr(".git/config", "user.k", b"v")`), []string{"metadata .git/config"}},
	{"46 times by descriptor", python(`os.utime(os.open(".git/config", os.O_RDONLY), (1, 1))`), []string{"metadata .git/config"}},
	{"47 other thread's root", `echo evil > /proc/$$/root$W/.git/hooks/pre-commit`, []string{"create .git/hooks/pre-commit"}},
	{"48 attributes", `mkdir -p .git/info; echo "* filter=x" > .git/info/attributes`, []string{"create .git/info/attributes"}},
	{"49 settings under a package", `mkdir -p node_modules/p/.vscode; echo evil > node_modules/p/.vscode/tasks.json; ` +
		python(`done(libc.rename(b"node_modules/p", b"p"))`), nil},
}

func TestAttacksOnProtectedPaths(t *testing.T) {
	need(t, "git", "python3", "unshare")
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			l := newLab(t)
			l.repository(l.W)
			write(t, l.W+"/.git/hooks/existing", "mine\n", 0o755)
			before := protectedState(t, l.W)
			f := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) {
				p.Protected = append(p.Protected, fence.Protection{Match: "**/.vscode", NotUnder: []string{"node_modules"}, Source: "preset:agents"})
			})
			r := l.run(f, a.command)
			if len(a.denied) == 0 {
				r.refusedQuietly(t)
			} else {
				want := make([]string, len(a.denied))
				for i, d := range a.denied {
					access, rel, _ := strings.Cut(d, " ")
					if !filepath.IsAbs(rel) {
						rel = filepath.Join(l.W, rel)
					}
					want[i] = access + " " + rel
				}
				r.denied(t, want...)
			}
			if after := protectedState(t, l.W); after != before {
				t.Errorf("changed:\n%s\nnow:\n%s\n%v", before, after, r)
			}
		})
	}
}

// protectedState describes everything below a workspace that is protected:
// contents, names and modes of each; samples excepted.
func protectedState(t *testing.T, dir string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(snapshot(t, dir), "\n") {
		p, _, _ := strings.Cut(line, " ")
		rel, _ := filepath.Rel(dir, p)
		parts := strings.Split(rel, "/")
		for i, c := range parts {
			git := i > 0 && parts[i-1] == ".git" && (c == "config" || c == "hooks")
			own := c == ".wattle" || c == ".vscode" && parts[0] != "node_modules" || c == "attributes"
			if (git || own) && !strings.HasSuffix(rel, ".sample") && !(c == "hooks" && i == len(parts)-1) {
				b.WriteString(line)
				break
			}
		}
	}
	return b.String()
}

// TestGitWorksUnderProtection: what people do with git every day.
func TestGitWorksUnderProtection(t *testing.T) {
	need(t, "git")
	for _, c := range []struct{ name, command string }{
		{"init, add, commit", `git init -q && echo hi > file && git add file && git commit -qm x && git log --oneline | grep -q x`},
		{"keeps the file mode", `git init -q && test "$(git config core.fileMode)" = true`},
		{"files and directories", `echo a > newtop && mkdir -p nd/x && mv newtop nd/x/ && rm -rf nd`},
		{"branch, checkout, switch", `git init -q && git commit -q --allow-empty -m x && git branch -f b1 && git checkout -q b1 && git checkout -q - && git switch -qc b2 && git switch -q b1`},
		{"branch -m", `git init -q && git commit -q --allow-empty -m x && git branch -m main && git branch -m deep/er && git branch --list | grep -q deep/er`},
		{"remote add, rename, remove", `git init -q && git remote add origin https://example.org/x.git && git remote rename origin up && git remote set-url up https://example.org/y.git && git remote remove up`},
		{"config user", `git init -q && git config user.name n && git config user.email e@x && git config --unset user.name`},
		{"stash, tag, gc", `git init -q && echo 1 > f && git add f && git commit -qm x && echo 2 > f && git stash -q && git stash pop -q && git tag v1 && git tag -d v1 && git gc -q`},
		{"clone, push -u, fetch, pull", `git init -q --bare o && git clone -q o r 2>/dev/null && cd r && git commit -q --allow-empty -m x && git push -q -u origin HEAD:m && git fetch -q && git branch -q --set-upstream-to=origin/m && git pull -q`},
		{"merge, rebase, cherry-pick", `git init -q && git commit -q --allow-empty -m x && git switch -qc b && echo b > b && git add b && git commit -qm b && git switch -q - && echo a > a && git add a && git commit -qm a && git merge -q -m m b && git switch -qc c HEAD~1 && git cherry-pick b >/dev/null && git rebase -q b`},
		{"tracking switch", `git init -q o && git -C o commit -q --allow-empty -m x && git -C o branch feature && git clone -q o r && cd r && git switch -q feature && git config branch.feature.remote`},
		{"sparse checkout", `git init -q && mkdir a && echo 1 > a/f && git add . && git commit -qm x && git sparse-checkout list || true`},
		{"template samples", `git init -q && ls .git/hooks | grep -q sample`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.ws(gitAs + "set -e; " + c.command).ok(t)
		})
	}
}

// TestGitThatIsRefused: what writes a pointer to another git directory, or
// removes a repository, is refused whole under protect "checked", with the
// path; nothing is half done silently.
func TestGitThatIsRefused(t *testing.T) {
	need(t, "git")
	for _, c := range []struct {
		name, command string
		denied        []string
	}{
		{"worktree add", `git init -q m && cd m && git commit -q --allow-empty -m x && git worktree add -q ../wt -b b`, []string{"create wt/.git"}},
		{"submodule add", `git init -q s && git -C s commit -q --allow-empty -m x && git init -q p && cd p && git -c protocol.file.allow=always submodule add -q ../s sub`, []string{"create p/sub/.git"}},
		{"separate git directory", `mkdir q && cd q && git init -q --separate-git-dir ../sep`, []string{"create q/.git"}},
		{"removal of a repository", `git init -q m && rm -rf m/.git`, []string{"delete m/.git/config", "delete m/.git/hooks"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			want := make([]string, len(c.denied))
			for i, d := range c.denied {
				access, rel, _ := strings.Cut(d, " ")
				want[i] = access + " " + filepath.Join(l.W, rel)
			}
			l.ws(gitAs+c.command).denied(t, want...)
		})
	}
}

// TestGitConfigIsGuarded: the configuration may change, but no key that runs
// something, and the denial names the key.
func TestGitConfigIsGuarded(t *testing.T) {
	need(t, "git")
	for _, c := range []struct{ key, command string }{
		{"core.hookspath", `git config core.hooksPath /x`},
		{"core.fsmonitor", `git config core.fsmonitor /x`},
		{"core.sshcommand", `git config core.sshCommand /x`},
		{"core.editor", `git config core.editor /x`},
		{"core.pager", `git config core.pager /x`},
		{"core.worktree", `git config core.worktree /`},
		{"alias.st", `git config alias.st '!id'`},
		{"filter.x.clean", `git config filter.x.clean id`},
		{"include.path", `git config include.path /x`},
		{"includeif.gitdir:/.path", `git config includeIf.gitdir:/.path /x`},
		{"remote.o.uploadpack", `git config remote.o.uploadpack id`},
		{"remote.o.url", `git config remote.o.url 'ext::sh -c id'`},
		{"credential.helper", `git config credential.helper '!id'`},
		{"diff.x.command", `git config diff.x.command id`},
		{"url.ext::sh .insteadof", `git config 'url.ext::sh .insteadOf' https://`},
	} {
		t.Run(c.key, func(t *testing.T) {
			l := newLab(t)
			l.repository(l.W)
			before, _ := os.ReadFile(l.W + "/.git/config")
			r := l.ws(c.command)
			r.denied(t, "rename "+l.W+"/.git/config")
			content(t, l.W+"/.git/config", string(before))
			if len(r.Denials) == 1 && !strings.Contains(r.Denials[0].Hint, c.key) {
				t.Errorf("the hint does not name %s: %s", c.key, r.Denials[0].Hint)
			}
		})
	}
}
