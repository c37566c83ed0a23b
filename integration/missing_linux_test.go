package integration_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Where the kernel has no Landlock, or a container's profile takes it away, a
// fenced command is refused by default and nothing runs; path checks of files
// go on; what a policy lets run all the same says what does not hold it.
func TestWithoutLandlockCalls(t *testing.T) {
	for name, errno := range map[string]unix.Errno{"not built in, or filtered": unix.ENOSYS, "not enabled": unix.EOPNOTSUPP} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.env = append(p.env, "TEST_FILTER_ERRNO="+strconv.Itoa(int(errno)))
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			w := func(stdin string, args ...string) result {
				return p.run(stdin, append([]string{self, wattle}, args...)...)
			}
			for _, mode := range []string{"workspace-write", "read-only"} {
				r := w("", "run", "--mode", mode, "--", "touch", "made")
				if r.code != 125 || !strings.Contains(r.stderr, unix.ErrnoName(errno)) && !strings.Contains(r.stderr, "EOPNOTSUPP") || !strings.Contains(r.stderr, "best-effort") {
					t.Errorf("%s: %+v", mode, r)
				}
				absent(t, p.path("made"))
			}
			if r := w("", "run", "--mode", "full-access", "--", "touch", "full"); r.code != 0 {
				t.Errorf("full-access: %+v", r)
			}
			present(t, p.path("full"))
			if r := w("x", "fs", "write", "in"); r.code != 0 {
				t.Errorf("write inside: %+v", r)
			}
			if r := w("x", "fs", "write", "../out"); r.code != 77 || !strings.Contains(r.stderr, "FS_SANDBOX_DENIED") {
				t.Errorf("write outside: %+v", r)
			}
			absent(t, p.path("../out"))
			if r := w("", "explain", "../out", "--access", "write"); r.code != 77 {
				t.Errorf("explain: %+v", r)
			}
			pol := p.path("../best.toml")
			if err := os.WriteFile(pol, []byte("require = \"best-effort\"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			r := w("", "run", "-v", "--policy", pol, "--", "sh", "-c", "echo a > best; echo b > ../out")
			if r.code != 2 || !strings.Contains(r.stderr, "level none") || !strings.Contains(r.stderr, "denied create") {
				t.Errorf("best effort: %+v", r)
			}
			present(t, p.path("best"))
			absent(t, p.path("../out")) // the supervisor alone has said no
		})
	}
}
