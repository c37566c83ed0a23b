package fence_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/fence"
)

const freshConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

func TestGuardGitConfig(t *testing.T) {
	const evil = "[core]\n\thooksPath = /x\n"
	for _, c := range []struct {
		name, prev, next string
		want             string // refused keys, separated by blanks
	}{
		{"nothing", "", "", ""},
		{"a fresh repository", "", freshConfig, ""},
		{"no change", freshConfig, freshConfig, ""},
		{"another spelling", freshConfig, "[CORE] RepositoryFormatVersion=0 ; x\nfilemode=true\r\n  bare\t=\tfalse # y\nlogAllRefUpdates = \"true\"", ""},
		{"remote and branch", freshConfig, freshConfig + "[remote \"origin\"]\n\turl = https://x/y.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a/b.c\"]\n\tremote = origin\n\tmerge = refs/heads/x\n", ""},
		{"whole remote goes", "[remote \"o\"]\nurl = x\nuploadpack = y\n", "", ""},
		{"whole submodule goes", "[submodule \"s\"]\nupdate = !x\n", "", ""},
		{"old spelling of a section", "", "[remote.origin]\nurl = x\n", ""},
		{"user", "[user]\nname = a\n", "[user]\n\tname = \"b # c\"\n\temail = d\n", ""},
		{"comments only", freshConfig, freshConfig + "# [core]\n; hooksPath = /x\n", ""},
		{"what was there stays", freshConfig + evil, freshConfig + evil + "[user]\nname=x\n", ""},
		{"advice", "", "[advice]\n detachedHead = false\n", ""},
		{"byte order mark", "", "\ufeff" + freshConfig, ""},
		{"long continued value", "", "[user]\nname = a\\\n  b\\\n c\n", ""},

		{"hooksPath", freshConfig, freshConfig + evil, "core.hookspath"},
		{"hooksPath changes", evil, "[core]\nhooksPath = /y\n", "core.hookspath"},
		{"hooksPath a second time", evil, evil + evil, "core.hookspath"},
		{"hooksPath goes", evil, "", "core.hookspath"},
		{"other programs", "", "[core]\nfsmonitor=x\nsshCommand=x\neditor=x\npager=x\naskPass=x\ngitProxy=x\n", "core.askpass core.editor core.fsmonitor core.gitproxy core.pager core.sshcommand"},
		{"worktree", "", "[core]\nworktree = /\n", "core.worktree"},
		{"alias", "", "[alias]\nst = !x\n", "alias.st"},
		{"filters, drivers", "", "[filter \"f\"]\nclean=x\nsmudge=x\nprocess=x\n[merge \"m\"]\ndriver=x\n[diff \"d\"]\ncommand=x\ntextconv=x\n", "diff.d.command diff.d.textconv filter.f.clean filter.f.process filter.f.smudge merge.m.driver"},
		{"includes", "", "[include]\npath=x\n[includeIf \"gitdir:/\"]\npath=x\n", "include.path includeif.gitdir:/.path"},
		{"remote programs", "", "[remote \"o\"]\nuploadpack=x\nreceivepack=x\nproxy=x\nvcs=x\n", "remote.o.proxy remote.o.receivepack remote.o.uploadpack remote.o.vcs"},
		{"submodule update", "", "[submodule \"s\"]\nupdate = !x\n", "submodule.s.update"},
		{"url rewriting", "", "[url \"ext::sh -c x\"]\ninsteadOf = https://\n", "url.ext::sh -c x.insteadof"},
		{"url that runs", "", "[remote \"o\"]\nurl = ext::sh -c x\n", "remote.o.url"},
		{"second url that runs", "[remote \"o\"]\nurl = a\n", "[remote \"o\"]\nurl = a\nurl = ext::x\n", "remote.o.url"},
		{"url that is an option", "", "[submodule \"s\"]\nurl = --upload-pack=x\n", "submodule.s.url"},
		{"branch whose remote runs", "", "[branch \"b\"]\nremote = ext::sh -c x\npushRemote = fd::1\n", "branch.b.pushremote branch.b.remote"},
		{"credentials, gpg", "", "[credential]\nhelper=x\n[gpg]\nprogram=x\n[gpg \"ssh\"]\nprogram=x\n", "credential.helper gpg.program gpg.ssh.program"},
		{"deeper advice", "", "[advice \"x\"]\ny=z\n", "advice.x.y"},
		{"on the line of the section", "", "[core] hooksPath = /x", "core.hookspath"},
		{"without a value", "", "[core]\nfsmonitor\n", "core.fsmonitor"},
		{"upper case", "", "[CORE]\nHOOKSPATH=/x\n", "core.hookspath"},
		{"after carriage returns", "", "[user]\r\nname=x\r\n[core]\r\nhooksPath=/x\r\n", "core.hookspath"},

		// A backslash at the end of a comment does not continue it.
		{"hidden behind a comment", "", "[advice]\n x = 1 # \\\n[core]\n hooksPath = /x\n", "core.hookspath"},
		{"hidden behind another comment", "", "[advice]\n x = 1 ; \\\n[core]\n hooksPath = /x\n", "core.hookspath"},
		{"hidden behind a whole comment", "", "[advice]\n# \\\n[core]\n hooksPath = /x\n", "core.hookspath"},
		{"three backslashes do continue", "", "[advice]\n x = a\\\\\\\n[core]\n y = 1\n hooksPath = /x\n", ""},
		{"two do not", "", "[advice]\n x = a\\\\\n[core]\n hooksPath = /x\n", "core.hookspath"},
		{"hidden behind quotes", "", "[advice]\n x = \"a # \\\n\"\n[core]\n hooksPath = /x\n", "core.hookspath"},
		{"hidden behind a lone carriage return", "", "[advice]\r[core]\rhooksPath = /x\n", "core.hookspath"},

		{"NUL", "", "[advice]\nx = a\x00b\n", "?"},
		{"no section", "", "name = x\n", "?"},
		{"unknown escape", "", "[user]\nname = \\x\n", "?"},
		{"open quote", "", "[user]\nname = \"x\n", "?"},
		{"open section", "", "[user", "?"},
		{"open subsection", "", "[remote \"x]\nurl = y\n", "?"},
		{"empty section", "", "[]\nx = y\n", "?"},
		{"bad key", "", "[user]\n_name = x\n", "?"},
		{"vertical tab is no blank", "", "[user]\n\vname = x\n", "?"},
		{"no-break space is no blank", "", "[user]\n\u00a0name = x\n", "?"},
		{"text behind the key", "", "[user]\nname x = y\n", "?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(fence.GuardGitConfig([]byte(c.prev), []byte(c.next)), " ")
			if got != c.want {
				t.Errorf("refused %q, want %q", got, c.want)
			}
			agreesWithGit(t, []byte(c.prev), []byte(c.next))
		})
	}
}

func TestIsGitConfig(t *testing.T) {
	for p, want := range map[string]bool{
		"/w/.git/config": true, "/w/.git/CONFIG": true, "/w/.git/config.worktree": true, "/w/.git/modules/a/config": true,
		"/w/.git/config.lock": false, "/w/.git/hooks": false, "/w/.git/configs": false, "/": false,
	} {
		if got := fence.IsGitConfig(p); got != want {
			t.Errorf("%s: %v", p, got)
		}
	}
}

// gitList is what git reads in a configuration: values in order, by key; nil
// when git refuses it.
func gitList(t testing.TB, config []byte) map[string][]string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP-CAPABLE: git is not installed")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("git", "config", "-z", "--list", "-f", file)
	c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	m := map[string][]string{}
	for _, kv := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if kv == "" {
			continue
		}
		k, v, ok := strings.Cut(kv, "\n")
		if !ok {
			v = "true"
		}
		m[k] = append(m[k], v)
	}
	return m
}

// alone writes one variable in the plainest way, for a second opinion.
func alone(key string, values []string) []byte {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return []byte("?")
	}
	b := "[" + key[:first]
	if first != last {
		b += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key[first+1:last]) + `"`
	}
	b += "]\n"
	for _, v := range values {
		b += key[last+1:] + ` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(v) + "\"\n"
	}
	return []byte(b)
}

// agreesWithGit: whatever git finds changed in what the guard let pass is
// harmless by itself. What git refuses to read does no harm.
func agreesWithGit(t testing.TB, prev, next []byte) {
	t.Helper()
	if len(fence.GuardGitConfig(prev, next)) > 0 {
		return
	}
	was, is := gitList(t, prev), gitList(t, next)
	for key, vals := range is {
		if slices.Equal(was[key], vals) {
			continue
		}
		if bad := fence.GuardGitConfig(nil, alone(key, vals)); len(bad) > 0 {
			t.Errorf("let pass, and git reads %s = %q\nbefore %q\nnow    %q", key, vals, prev, next)
		}
	}
	for key, vals := range was {
		if _, kept := is[key]; is != nil && !kept && len(fence.GuardGitConfig(alone(key, vals), nil)) > 0 {
			t.Errorf("let pass, and git no longer reads %s\nbefore %q\nnow    %q", key, prev, next)
		}
	}
}

// pieces are what makes configurations hard to read.
var pieces = []string{
	"[core]", "[advice]", "[user]", `[remote "o"]`, `[alias "x"]`, "[core", "]", `"o"]`, "[remote.o]", `[a "b\"c"]`, `["x"]`, "[]", `[core ""]`, `[core "x" ]`,
	"hooksPath", "name", "url", "x", "fsmonitor", "bare", "=", " = ", "/x", "ext::x", "true", "1", "-x", "a-b", "_",
	"\n", "\n", "\n", "\r\n", "\r", " ", "\t", "\v", "\f", "\\\n", "\\\r\n", "\\", "\\\\", `\n`, `\t`, `\"`, `"`, "#", ";", "# \\\n", "; \\", "\ufeff", "\u00a0", "\xff", "\x00",
}

// TestGuardAgreesWithGit tries random configurations made of such pieces.
func TestGuardAgreesWithGit(t *testing.T) {
	n := 1500
	if os.Getenv("WATTLE_SOAK") == "1" {
		n = 100000
	}
	r := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	write := func(n int) string {
		var b strings.Builder
		for range 1 + r.IntN(n) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	passed := 0
	for i := 0; i < 40*n && passed < n; i++ {
		prev, next := "", "[advice]\n"+write(14)
		if r.IntN(3) == 0 {
			prev = "[advice]\nx=1\n" + write(6)
			next = prev + write(8)
		}
		if len(fence.GuardGitConfig([]byte(prev), []byte(next))) == 0 {
			passed++
			agreesWithGit(t, []byte(prev), []byte(next))
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d configurations let pass and read by git", passed)
}

func FuzzGuardGitConfig(f *testing.F) {
	f.Add([]byte(freshConfig), []byte(freshConfig+"[core]\nhooksPath=/x\n"))
	f.Add([]byte(""), []byte("[advice]\n x = 1 # \\\n[core]\n hooksPath = /x\n"))
	f.Add([]byte("[remote \"a\"]\nurl=b\n"), []byte("[remote \"a\\\"\"]\nurl=\"b\\n\"\n"))
	f.Fuzz(func(t *testing.T, prev, next []byte) {
		agreesWithGit(t, prev, next)
	})
}
