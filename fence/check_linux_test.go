package fence_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// TestProtectedNameIsALink (P07, S13): dotfile managers link .agents away. The
// fence stands, the target follows its own rule, and everything else works.
func TestProtectedNameIsALink(t *testing.T) {
	w := newWorld(t)
	mustDir(t, w.home+"/dot/agents")
	mustLink(t, w.home+"/dot/agents", w.ws+"/.agents")
	mustLink(t, w.home+"/dot/none", w.ws+"/.codex")
	mustLink(t, ".cursor", w.ws+"/.cursor")
	mustLink(t, "f", w.ws+"/.envrc")
	mustLink(t, "/dev/null", w.ws+"/.vscode")
	p := w.policy(fence.WorkspaceWrite)
	for _, m := range []string{"**/.agents", "**/.codex", "**/.cursor", "**/.envrc"} {
		p.Protected = append(p.Protected, fence.Protection{Match: m, Source: "preset:agents"})
	}
	f := mustNew(t, p)
	for _, tc := range []struct {
		path   string
		access fence.Access
		want   string
	}{
		{"/plain.txt", fence.Create, "ok"},
		{"/.agents/a", fence.Create, "outside-writable-roots"},
		{"/.agents/a", fence.Read, "ok"},
		{"/.codex/a", fence.Create, "outside-writable-roots"},
		{"/.codex", fence.Create, "protected"},
		{"/.cursor/a", fence.Create, "too many levels of symbolic links"},
		{"/.envrc", fence.Write, "ok"}, // the link's target, which is no protected name
		{"/.vscode", fence.Write, "ok"},
		{"/.vscode/a", fence.Create, "not a directory"},
	} {
		if got := decide(f, w.ws+tc.path, tc.access); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.access, tc.path, got, tc.want)
		}
	}
	// The links themselves are protected names: they can neither be replaced
	// nor removed.
	for _, name := range []string{"/.agents", "/.codex", "/.cursor", "/.envrc", "/.vscode"} {
		for _, a := range []fence.Access{fence.Delete, fence.Rename, fence.Link} {
			if d := f.Check(w.ws+name, a); d == nil || d.Rule != fence.RuleProtected {
				t.Errorf("%s %s: %v", a, name, d)
			}
		}
	}
	if _, err := os.Lstat(w.home + "/dot/none"); err == nil {
		t.Error("deciding made the target of a dangling link")
	}
}

// TestFoldingFileSystem (P09): where names fold, another case is the same
// directory. What the comparison does is tested everywhere (check_test.go);
// this asks a file system that really folds.
func TestFoldingFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	w := newWorld(t)
	img, mnt := w.base+"/img", w.base+"/mnt"
	mustFile(t, img)
	if err := os.Truncate(img, 32<<20); err != nil {
		t.Fatal(err)
	}
	mustDir(t, mnt)
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "casefold", img).CombinedOutput(); err != nil {
		t.Skipf("SKIP-CAPABLE: no mkfs.ext4 with casefold (package e2fsprogs): %v %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", img, mnt).CombinedOutput(); err != nil {
		t.Skipf("SKIP: this kernel mounts no file system that folds names: %v %s", err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mnt, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ws := mnt + "/w"
	mustDir(t, ws)
	if out, err := exec.Command("chattr", "+F", ws).CombinedOutput(); err != nil {
		t.Skipf("SKIP: this kernel does not fold names: %v %s", err, out)
	}
	mustDir(t, ws+"/.git/hooks")
	mustFile(t, ws+"/.git/config")
	mustDir(t, ws+"/secret")
	p := w.policy(fence.WorkspaceWrite)
	p.Workspace = ws
	p.Hidden = append(p.Hidden, fence.Entry{Path: ws + "/secret", Source: "session"})
	f := mustNew(t, p)
	for path, want := range map[string]string{
		"/.GIT/hooks/x": "protected", "/.Git/CONFIG": "protected", "/.gIt/config": "protected", "/a/.GIT/Hooks/x": "protected", "/SECRET/x": "hidden", "/file": "ok",
	} {
		if got := decide(f, ws+path, fence.Write); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
