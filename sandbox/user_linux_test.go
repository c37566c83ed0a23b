package sandbox_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// otherUser is the uid and gid of the second run.
const otherUser = 65534

// TestAsUser runs every test of this package again as a normal user, and
// repeats what each of them said.
func TestAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIP: already a normal user")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("SKIP-CAPABLE: setpriv (util-linux) is not installed")
	}
	dir := filepath.Join(base, fmt.Sprintf("uid-%d", otherUser))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, otherUser, otherUser); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(base, "sandbox.test")
	copyFile(t, "/proc/self/exe", bin, 0o755)
	copyFile(t, "testdata/corpus", filepath.Join(base, "testdata", "corpus"), 0o644)
	c := exec.Command(setpriv, fmt.Sprintf("--reuid=%d", otherUser), fmt.Sprintf("--regid=%d", otherUser), "--clear-groups",
		bin, "-test.v", "-test.timeout=5m", "-test.skip=TestAsUser", "-test.run="+userTests())
	c.Dir = base
	c.Env = []string{envInside + "=1", envBase + "=" + base, envSoak + "=" + os.Getenv(envSoak), "CI=" + os.Getenv("CI"),
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + dir, "LANG=C"}
	var all bytes.Buffer
	pr, pw := io.Pipe()
	c.Stdout, c.Stderr = pw, pw
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { err := c.Wait(); pw.Close(); done <- err }()
	repeat(t, io.TeeReader(pr, &all))
	if err := <-done; err != nil && !t.Failed() {
		t.Errorf("tests as uid %d: %v\n%s", otherUser, err, tail(all.Bytes()))
	}
}

// userTests narrows the second run by hand: SANDBOX_TEST_RUN=TestCorpus.
func userTests() string {
	if r := os.Getenv("SANDBOX_TEST_RUN"); r != "" {
		return r
	}
	return "."
}

var (
	outcome = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+)`)
	// inner are outcomes of subtests, which follow that of their test.
	inner = regexp.MustCompile(`^ +--- (PASS|FAIL|SKIP): (\S+)`)
)

// repeat turns the top-level outcomes of a verbose run into subtests, and the
// skips below them.
func repeat(t *testing.T, r io.Reader) {
	var said []string
	why := ""
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	n := 0
	for s.Scan() {
		line := s.Text()
		if _, after, ok := strings.Cut(line, ": SKIP"); ok {
			why = "SKIP" + after
		}
		m := outcome.FindStringSubmatch(line)
		if m == nil {
			if sub := inner.FindStringSubmatch(line); sub != nil {
				if sub[1] == "SKIP" {
					t.Run(sub[2], func(t *testing.T) { t.Skip(why) })
				}
				continue
			}
			if !strings.HasPrefix(line, "=== ") {
				said = append(said, line)
			}
			continue
		}
		n++
		text := strings.Join(said, "\n")
		said = nil
		t.Run(m[2], func(t *testing.T) {
			switch m[1] {
			case "FAIL":
				t.Error(text)
			case "SKIP":
				t.Skip(why)
			default:
				if text != "" {
					t.Log(text)
				}
			}
		})
	}
	if err := s.Err(); err != nil {
		t.Errorf("read the output of the second run: %v", err)
		_, _ = io.Copy(io.Discard, r)
	}
	if n == 0 {
		t.Errorf("the second run ran no test:\n%s", strings.Join(said, "\n"))
	}
}

func tail(b []byte) string {
	if len(b) > 8<<10 {
		b = b[len(b)-8<<10:]
	}
	return string(b)
}

func copyFile(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, b, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
