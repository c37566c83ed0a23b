package cli_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Variables by which the first run of the tests tells the second where it is.
const (
	envBase = "CLI_TEST_BASE" // directory of all fixtures, outside every temporary directory
	envBin  = "CLI_TEST_BIN"  // the program under test
)

// otherUser is the uid and gid of the second run.
const otherUser = 65534

var base, wattle string

// TestMain builds the real program once. The same test binary is also
// `cli.test no-landlock CMD…`: CMD on a kernel that has no Landlock.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "no-landlock" {
		fmt.Fprintln(os.Stderr, "without landlock:", withoutLandlock(os.Args[2:]))
		os.Exit(99)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	unix.Umask(0o022)
	base, wattle = os.Getenv(envBase), os.Getenv(envBin)
	if base != "" {
		return m.Run()
	}
	var err error
	if base, err = makeBase(); err != nil {
		fmt.Fprintln(os.Stderr, "make test directory:", err)
		return 1
	}
	defer os.RemoveAll(base)
	wattle = filepath.Join(base, "wattle")
	build := exec.Command("go", "build", "-o", wattle, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build wattle: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// makeBase picks a place that is no temporary directory of the system.
func makeBase() (string, error) {
	parent := "/srv"
	if os.Getuid() != 0 {
		parent, _ = os.UserCacheDir()
	}
	if fi, err := os.Stat(parent); err != nil || !fi.IsDir() {
		parent = "/var/tmp"
	}
	// Short: the path of a socket has to fit below it.
	dir, err := os.MkdirTemp(parent, "wattle-cli-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// withoutLandlock makes landlock_create_ruleset(2) fail with ENOSYS in this
// thread and what it executes, as on a kernel without it.
func withoutLandlock(argv []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.SYS_LANDLOCK_CREATE_RULESET},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return e
	}
	return unix.Exec(argv[0], argv, os.Environ())
}

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
	dir := filepath.Join(base, "user")
	secret := filepath.Join(base, "secret")
	bin := filepath.Join(base, "cli.test")
	self, err := os.ReadFile("/proc/self/exe")
	if err := errors.Join(err, os.MkdirAll(dir, 0o755), os.Chown(dir, otherUser, otherUser),
		os.WriteFile(secret, []byte("another user's\n"), 0o600), os.WriteFile(bin, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(setpriv, fmt.Sprintf("--reuid=%d", otherUser), fmt.Sprintf("--regid=%d", otherUser), "--clear-groups",
		bin, "-test.v", "-test.timeout=5m", "-test.skip=TestAsUser", "-test.run="+runFlag())
	c.Dir = dir
	c.Env = []string{envBase + "=" + dir, envBin + "=" + wattle, "CI=" + os.Getenv("CI"), "PATH=" + path, "HOME=" + dir, "LANG=C"}
	pr, pw := io.Pipe()
	c.Stdout, c.Stderr = pw, pw
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { err := c.Wait(); pw.Close(); done <- err }()
	var all bytes.Buffer
	repeat(t, io.TeeReader(pr, &all))
	if err := <-done; err != nil && !t.Failed() {
		t.Errorf("tests as uid %d: %v\n%s", otherUser, err, all.Bytes()[max(0, all.Len()-8<<10):])
	}
}

// runFlag narrows the second run by hand: CLI_TEST_RUN=TestSignals.
func runFlag() string {
	if r := os.Getenv("CLI_TEST_RUN"); r != "" {
		return r
	}
	return "."
}

var outcome = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+)`)

// repeat turns the top-level outcomes of a verbose run into subtests. What a
// test and its subtests say comes before its outcome.
func repeat(t *testing.T, r io.Reader) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	var said []string
	n := 0
	for s.Scan() {
		line := s.Text()
		m := outcome.FindStringSubmatch(line)
		if m == nil {
			if !strings.HasPrefix(line, "=== RUN") && !strings.HasPrefix(strings.TrimSpace(line), "--- ") {
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
				_, why, _ := strings.Cut(text, "SKIP")
				t.Skip("SKIP" + why)
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
