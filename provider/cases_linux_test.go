package provider_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// caseRoom is where a case of cases/edit is replayed: a place outside of every
// temporary directory, and the commands of the report.
type caseRoom struct {
	*place
	t *testing.T
	// poor: the file system has neither unnamed files nor renames with flags.
	poor bool
}

// cases runs a case on a file system with all features and on one with none,
// and looks for files that were left.
func cases(t *testing.T, name string, do func(c *caseRoom)) {
	t.Run(name, func(t *testing.T) {
		for _, poor := range []bool{false, true} {
			t.Run(map[bool]string{false: "all features", true: "few features"}[poor], func(t *testing.T) {
				p, _ := patchPlace(t, openDir(t), provider.Config{})
				p.l.Lack(poor, poor, poor)
				do(&caseRoom{place: p, t: t, poor: poor})
				p.nothingStaged(t)
			})
		}
	})
}

func (p *place) nothingStaged(t *testing.T) {
	t.Helper()
	must(t, filepath.WalkDir(filepath.Dir(p.W), func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(filepath.Base(path), provider.TempPrefix) {
			t.Errorf("left: %s", path)
		}
		return err
	}))
}

// sh runs the commands of a report in W. O is the directory outside.
func (p *place) sh(t *testing.T, script string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "bash", "-euc", script)
	c.Dir, c.Env = p.W, append(os.Environ(), "W="+p.W, "O="+p.O, "LC_ALL=C")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v %s", script, err, out)
	}
	return string(out)
}

func (c *caseRoom) sh(script string) string { c.t.Helper(); return c.place.sh(c.t, script) }

func (c *caseRoom) edit(name, from, to string) (provider.EditOutcome, error) {
	c.t.Helper()
	return c.l.EditText(c.t.Context(), c.f, c.target(name), provider.EditRequest{OldString: from, NewString: to}, provider.EditOptions{})
}

func (c *caseRoom) write(name, text string) (provider.WriteOutcome, error) {
	c.t.Helper()
	return c.l.WriteText(c.t.Context(), c.f, c.target(name), text, provider.WriteOptions{})
}

func (c *caseRoom) patch(name string, lines ...string) (provider.PatchOutcome, error) {
	c.t.Helper()
	return c.l.PatchText(c.t.Context(), c.f, c.target(name), chunks(c.t, lines...), provider.PatchOptions{})
}

// has compares a file byte for byte.
func (c *caseRoom) has(name, want string) {
	c.t.Helper()
	if got := c.get(name); got != want {
		c.t.Errorf("%s has %.200q, want %.200q", name, got, want)
	}
}

// unchanged fails when a file is not what it was, to the inode and its times,
// or when its directory has other names.
func (c *caseRoom) unchanged(name string, do func()) {
	c.t.Helper()
	look := func() string {
		fi, err := os.Lstat(c.W + "/" + name)
		if err != nil {
			return err.Error()
		}
		es, err := os.ReadDir(filepath.Dir(c.W + "/" + name))
		must(c.t, err)
		names := ""
		for _, e := range es {
			names += e.Name() + " "
		}
		return fmt.Sprintf("%v inode %d %v %q %s", fi.Mode(), fi.Sys().(*syscall.Stat_t).Ino, fi.ModTime(), c.get(name), names)
	}
	before := look()
	do()
	if after := look(); after != before {
		c.t.Errorf("%s is %.300s, was %.300s", name, after, before)
	}
}

// The cases of cases/edit, each as its report has it. More rows of the same
// cases are in providertest, by their numbers.
func TestCasesOfContent(t *testing.T) {
	cases(t, "E1 claude-code#164 crush#684 LF never matches CRLF", func(c *caseRoom) {
		for _, old := range []string{"a\nb", "a\r\nb"} {
			c.sh(`printf 'a\r\nb\r\n' > f`)
			o, err := c.edit("f", old, "a\nc")
			must(t, err)
			c.has("f", "a\r\nc\r\n")
			if o.Before != "a\nb\n" || o.After != "a\nc\n" {
				t.Errorf("%+v", o)
			}
		}
	})
	cases(t, "E2 codex#4003 mixed endings", func(c *caseRoom) {
		c.sh(`printf 'one\r\ntwo\r\nthree\r\n' > f; printf 'p\r\nq\nr\r\n' > g`)
		_, err := c.patch("f", " one", "-two", "+TWO", "+two and a half", " three")
		must(t, err)
		c.has("f", "one\r\nTWO\r\ntwo and a half\r\nthree\r\n")
		_, err = c.patch("g", "-q", "+Q")
		must(t, err)
		c.has("g", "p\r\nQ\nr\r\n")
	})
	cases(t, "E3 codex#30946 additions below a context", func(c *caseRoom) {
		c.sh(`printf 'x\nctx\ny\n' > f; printf 'a\nb\nc\n' > g; printf 'a\nb\n' > h`)
		c.unchanged("f", func() {
			_, err := c.patch("f", "@@ nothing", "+new")
			code(t, err, provider.CodePatchMismatch)
			if !strings.Contains(err.Error(), "stage context") {
				t.Error(err)
			}
		})
		for _, tt := range []struct {
			name, want string
			at         int
			lines      []string
		}{
			{"f", "x\nctx\nnew\ny\n", 3, []string{"@@ ctx", "+new"}},
			{"g", "a\n1\nb\n2\nc\n", 2, []string{"@@ a", "+1", "@@ b", "+2"}},
			{"h", "a\nb\nz\n", 3, []string{"@@", "+z"}},
		} {
			o, err := c.patch(tt.name, tt.lines...)
			must(t, err)
			c.has(tt.name, tt.want)
			if len(o.InsertedAt) == 0 || o.InsertedAt[0] != tt.at {
				t.Errorf("%s: inserted at %v", tt.name, o.InsertedAt)
			}
		}
		c.sh(`printf 'x\nctx\ny\n' > f`)
		_, err := c.apply("*** Begin Patch\n*** Update File: f\n@@ ctx\n+new\n*** End Patch", provider.ApplyOptions{Compat: provider.CompatCodex})
		must(t, err)
		c.has("f", "x\nctx\ny\nnew\n")
	})
	cases(t, "E4 opencode#45924 legacy encodings", func(c *caseRoom) {
		c.sh(`printf 'name=\xd6\xd0\xce\xc4\nport=1\n' > f; printf 'name=\x93\xfa\x96\x7b\nport=1\n' > g; printf 'p\0o\0r\0t\0' > h`)
		for name, do := range map[string]func() error{
			"f": func() error { _, err := c.edit("f", "port=1", "port=2"); return err },
			"g": func() error {
				_, err := c.l.ReadText(t.Context(), c.f, c.target("g"), provider.ReadOptions{})
				return err
			},
			"h": func() error { _, err := c.edit("h", "p", "q"); return err },
		} {
			c.unchanged(name, func() { code(t, do(), provider.CodeNotText) })
			b, err := c.l.ReadBytes(t.Context(), c.f, c.target(name), 100)
			if err != nil || string(b.Data) != c.get(name) {
				t.Errorf("%s: %q, %v", name, b.Data, err)
			}
		}
		o, err := c.write("f", "new\n")
		if err != nil || o.Before != nil {
			t.Errorf("%+v, %v", o, err)
		}
		c.has("f", "new\n")
	})
	cases(t, "E9 gemini-cli#7550 dollar sequences", func(c *caseRoom) {
		c.sh(`printf 're = "AAA"\n' > f`)
		_, err := c.edit("f", "AAA", "^x$'")
		must(t, err)
		c.has("f", "re = \"^x$'\"\n")
		_, err = c.edit("f", "^x$'", "$$ $& $` $1 \\1 ${0} %s")
		must(t, err)
		c.has("f", "re = \"$$ $& $` $1 \\1 ${0} %s\"\n")
		_, err = c.edit("f", "${0} %s", ".*(\\")
		must(t, err)
		_, err = c.edit("f", ".*(\\", "$0")
		must(t, err)
		_, err = c.patch("f", "-re = \"$$ $& $` $1 \\1 $0\"", "+$& \\0 $1")
		must(t, err)
		c.has("f", "$& \\0 $1\n")
	})
	cases(t, "E12 oh-my-pi#11792 the footer in the file", func(c *caseRoom) {
		c.sh(`seq 1 3000 > f`)
		r, err := c.l.ReadLines(t.Context(), c.f, c.target("f"), provider.LineWindow{Limit: 100})
		must(t, err)
		if len(r.Lines) != 100 || r.TotalLines != 3000 || !strings.Contains(r.Footer, "101") {
			t.Errorf("%d lines of %d, %q", len(r.Lines), r.TotalLines, r.Footer)
		}
		for i, l := range r.Lines {
			if l.Number != i+1 || l.Text != fmt.Sprint(i+1) || strings.Contains(l.Text, r.Footer) {
				t.Errorf("%+v", l)
			}
		}
	})
	cases(t, "E15 overlapping matches", func(c *caseRoom) {
		c.sh(`printf 'aaa\n' > f; printf 'aaaa\n' > g`)
		_, err := c.edit("f", "aa", "b")
		must(t, err)
		c.has("f", "ba\n")
		c.unchanged("g", func() {
			_, err := c.edit("g", "aa", "b")
			code(t, err, provider.CodeAmbiguousEdit)
			if !strings.Contains(err.Error(), "2 times") {
				t.Error(err)
			}
		})
		_, err = c.l.EditText(t.Context(), c.f, c.target("g"), provider.EditRequest{OldString: "aa", NewString: "b", ReplaceAll: true}, provider.EditOptions{})
		must(t, err)
		c.has("g", "bb\n")
	})
	cases(t, "E16 a NUL after the first 8192 bytes", func(c *caseRoom) {
		c.sh(`{ head -c 9000 /dev/zero | tr '\0' a; printf '\0tail\n'; } > f
			{ head -c 8191 /dev/zero | tr '\0' a; printf '\0'; } > g
			{ head -c 8192 /dev/zero | tr '\0' a; printf '\0'; } > h`)
		for name, want := range map[string]provider.Code{"f": "", "g": provider.CodeNotText, "h": ""} {
			for _, how := range []string{"readText", "streamText"} {
				_, err := readers[how](t.Context(), c.place, c.target(name))
				code(t, err, want)
			}
		}
		c.unchanged("f", func() {
			_, err := c.edit("f", "tail", "TAIL")
			code(t, err, provider.CodeNotText)
		})
	})
}
