package provider_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

func TestCasesOfPlaces(t *testing.T) {
	cases(t, "E5 zero#941 PortOS#1893 rename over a link", func(c *caseRoom) {
		c.sh(`printf 'old\n' > real; ln -s real link; mkdir d; ln -s ../real d/l2`)
		for _, l := range []string{"link", "d/l2"} {
			if c.target(l).TargetKey != c.target("real").TargetKey {
				t.Errorf("%s is %s", l, c.target(l).TargetKey)
			}
		}
		_, err := c.write("link", "new\n")
		must(t, err)
		_, err = c.edit("link", "new", "newer")
		must(t, err)
		_, err = c.patch("d/l2", "-newer", "+newest")
		must(t, err)
		c.has("real", "newest\n")
		if got := c.sh(`readlink link d/l2`); got != "real\n../real\n" {
			t.Errorf("links: %q", got)
		}
		// A guard taken through one path is checked through the others.
		seen := c.version("link")
		_, err = c.write("real", "other\n")
		must(t, err)
		for _, n := range []string{"link", "d/l2", "real"} {
			_, err = c.l.WriteText(t.Context(), c.f, c.target(n), "mine\n", ifVersion(seen))
			code(t, err, provider.CodeStaleVersion)
		}
		c.has("real", "other\n")
	})
	cases(t, "E7 qwen-code#3839 stella#5502 a change is overwritten", func(c *caseRoom) {
		for name, change := range map[string]string{
			"other size":                `printf 'three\n' > f`,
			"same size":                 `printf 'two\n' > f`,
			"same size, time as before": `touch -r f ../time; printf 'two\n' > f; touch -r ../time f`,
			"deleted":                   `rm f`,
		} {
			for _, point := range []string{"", "judged", "staged", "checked"} {
				if c.poor && point == "checked" {
					continue // nothing is between this point and the rename
				}
				c.l.SetHook(nil)
				c.sh(`printf 'one\n' > f`)
				v := c.version("f")
				_, err := c.l.ReadText(t.Context(), c.f, c.target("f"), provider.ReadOptions{})
				must(t, err)
				target := c.target("f")
				if point == "" {
					c.sh(change)
				} else {
					c.once(point, func() { c.sh(change) })
				}
				_, err = c.l.WriteText(t.Context(), c.f, target, "mine\n", ifVersion(v))
				if provider.CodeOf(err) != provider.CodeStaleVersion {
					t.Errorf("%s, %q: %v", name, point, err)
				}
				switch got := c.get("f"); {
				case name == "deleted":
					if !strings.Contains(got, "no such file") {
						t.Errorf("%s, %q: made again: %q", name, point, got)
					}
					continue
				case got != "two\n" && got != "three\n":
					t.Errorf("%s, %q: file %q", name, point, got)
				}
				now, err := c.l.ReadText(t.Context(), c.f, c.target("f"), provider.ReadOptions{})
				must(t, err)
				_, err = c.l.WriteText(t.Context(), c.f, c.target("f"), "mine\n", ifVersion(now.Version))
				must(t, err)
				c.has("f", "mine\n")
			}
		}
	})
	cases(t, "E10 servers#1845 DesktopCommanderMCP#219 escapes", func(c *caseRoom) {
		denied := func(what string, err error) {
			t.Helper()
			if provider.CodeOf(err) != provider.CodeSandboxDenied {
				t.Errorf("%s: %v", what, err)
			}
		}
		c.sh(`ln -s $O/new l; ln -s $O d; ln -s $O d2; mkdir ../ws-evil; mkdir sub; ln -s $W/sub s; printf kept > $O/out.txt; printf kept > in.txt; printf kept > ../ws-evil/g2`)
		stale := c.target("s/f")
		c.sh(`rmdir sub; ln -s $O sub`)
		evil := filepath.Dir(c.W) + "/ws-evil"
		o, e, w := listing(t, c.O), listing(t, evil), listing(t, c.W)
		targets := map[string]provider.Target{"s/f, the chain changed": stale}
		for _, n := range []string{"l", "d/new", "d2/a/b/new", "../ws-evil/f", c.W + "/../out/f", c.O + "/f"} {
			targets[n] = c.target(n)
		}
		for _, mode := range []fence.Mode{fence.WorkspaceWrite, fence.ReadOnly} {
			f, err := fence.New(fence.Policy{Mode: mode, Workspace: c.W})
			must(t, err)
			for n, target := range targets {
				_, err := c.l.WriteText(t.Context(), f, target, "x", provider.WriteOptions{})
				denied(n, err)
			}
			_, err = c.l.MoveFile(t.Context(), f, c.target("in.txt"), c.target("d/in.txt"), provider.MoveOptions{})
			denied("move out", err)
			_, err = c.l.MoveFile(t.Context(), f, c.target("d/out.txt"), c.target("in2.txt"), provider.MoveOptions{})
			denied("move in", err)
			_, err = c.l.DeleteFile(t.Context(), f, c.target("d/out.txt"), provider.DeleteOptions{Permanent: true})
			denied("delete", err)
			_, err = c.l.ApplyPatch(t.Context(), f, patchOf(moveOp("in.txt", "../ws-evil/g", "kept", "kept")), provider.ApplyOptions{})
			denied("patch", err)
			r, err := c.l.ReadText(t.Context(), f, c.target("d/out.txt"), provider.ReadOptions{})
			if err != nil || r.Text != "kept" {
				t.Errorf("a read through the link: %q, %v", r.Text, err)
			}
		}
		ro, err := fence.New(fence.Policy{Mode: fence.ReadOnly, Workspace: c.W})
		must(t, err)
		_, err = c.l.WriteText(t.Context(), ro, c.target("harmless"), "x", provider.WriteOptions{})
		denied("a harmless write", err)
		if listing(t, c.O) != o || listing(t, evil) != e || listing(t, c.W) != w {
			t.Errorf("something changed:\n%s%s%s", listing(t, c.O), listing(t, evil), listing(t, c.W))
		}
	})
	cases(t, "E14 a read-only file", func(c *caseRoom) {
		c.sh(`printf 'x\n' > f; chmod 444 f`)
		hunks := chunks(t, "-y", "+z")
		for n, do := range map[string]func() error{
			"edit":  func() error { _, err := c.edit("f", "x", "y"); return err },
			"write": func() error { _, err := c.write("f", "z\n"); return err },
			"patch": func() error { _, err := c.patch("f", "-x", "+z"); return err },
			"apply": func() error { _, err := c.apply(patchOf(updateOp("f", "x", "z")), provider.ApplyOptions{}); return err },
		} {
			c.unchanged("f", func() {
				if err := do(); provider.CodeOf(err) != provider.CodePermissionDenied {
					t.Errorf("%s: %v", n, err)
				}
			})
		}
		over := provider.EditOptions{OverrideReadOnly: true}
		_, err := c.l.EditText(t.Context(), c.f, c.target("f"), provider.EditRequest{OldString: "x", NewString: "y"}, over)
		must(t, err)
		_, err = c.l.PatchText(t.Context(), c.f, c.target("f"), hunks, provider.PatchOptions{EditOptions: over})
		must(t, err)
		_, err = c.apply(patchOf(updateOp("f", "z", "zz")), provider.ApplyOptions{OverrideReadOnly: true})
		must(t, err)
		c.has("f", "zz\n")
		_, err = c.l.WriteText(t.Context(), c.f, c.target("f"), "w\n", provider.WriteOptions{OverrideReadOnly: true})
		must(t, err)
		c.has("f", "w\n")
		if got := c.sh(`stat -c %a f`); got != "444\n" {
			t.Errorf("mode %s", got)
		}
	})
}

// E11 antelopejs#69 mdserve#39: what another program's watcher is told.
func TestCaseE11InotifyWait(t *testing.T) {
	if _, err := exec.LookPath("inotifywait"); err != nil {
		t.Skip("SKIP-CAPABLE: no inotifywait (apt install inotify-tools)")
	}
	cases(t, "E11", func(c *caseRoom) {
		told := make(chan string, 100)
		w, err := c.l.Watch(t.Context(), c.f, c.target("."), func(ch provider.Change) {
			if ch.Name != theEnd {
				told <- string(ch.Kind) + " " + ch.Name
			}
		})
		must(t, err)
		defer w.Close()
		for _, step := range []struct {
			name string
			do   func() error
			most int // other names
		}{
			{"create", func() error { _, err := c.write("new.txt", "x"); return err }, 0},
			{"write", func() error { _, err := c.write("new.txt", "y"); return err }, 1},
			{"edit", func() error { _, err := c.edit("new.txt", "y", "z"); return err }, 1},
		} {
			names, dirs := c.inotifywait(step.do)
			delete(names, "new.txt")
			if c.poor && step.name == "create" {
				step.most = 1
			}
			if dirs || len(names) > step.most {
				t.Errorf("%s shows %v, directories %v", step.name, names, dirs)
			}
			for n := range names {
				rest, ok := strings.CutPrefix(n, provider.TempPrefix)
				if !ok || len(rest) != 16 {
					t.Errorf("%s shows %q", step.name, n)
				}
				if _, err := os.Lstat(c.W + "/" + n); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is there: %v", n, err)
				}
			}
			select {
			case got := <-told:
				if got != string(provider.Changed)+" new.txt" {
					t.Errorf("%s: the provider's own watch is told of %q", step.name, got)
				}
			case <-time.After(20 * time.Second):
				t.Errorf("the provider's own watch was not told of %s", step.name)
			}
			for len(told) > 0 {
				<-told
			}
		}
	})
}

// theEnd is a file that ends what inotifywait shows.
const theEnd = "the end"

// inotifywait gives the names that inotifywait(1) shows while do runs, and
// whether one of them was a directory.
func (c *caseRoom) inotifywait(do func() error) (names map[string]bool, dirs bool) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "inotifywait", "-m", "-e", "create,delete,moved_to,moved_from,close_write", "--format", "%e %f", c.W)
	out, err := cmd.StdoutPipe()
	must(c.t, err)
	says, err := cmd.StderrPipe()
	must(c.t, err)
	must(c.t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for lines := bufio.NewScanner(says); lines.Scan() && !strings.Contains(lines.Text(), "established"); {
	}
	must(c.t, do())
	must(c.t, os.WriteFile(c.W+"/"+theEnd, nil, 0o600))
	defer os.Remove(c.W + "/" + theEnd)
	names = map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		events, name, _ := strings.Cut(lines.Text(), " ")
		if name == theEnd {
			return names, dirs
		}
		dirs = dirs || strings.Contains(events, "ISDIR")
		// The kernel's own name for a file without one: nobody can open it.
		if rest, unnamed := strings.CutPrefix(name, "#"); !unnamed || strings.Trim(rest, "0123456789") != "" {
			names[name] = true
		}
	}
	c.t.Error("inotifywait ended")
	return names, dirs
}
