package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

var wattle string // the binary under test

func TestMain(m *testing.M) {
	if e := os.Getenv("TEST_FILTER_ERRNO"); e != "" {
		fmt.Fprintln(os.Stderr, withoutLandlock(e, os.Args[1:]))
		os.Exit(99)
	}
	dir, err := os.MkdirTemp("/var/tmp", "wi")
	if err != nil {
		panic(err)
	}
	_ = os.Chmod(dir, 0o755)
	wattle = filepath.Join(dir, "wattle")
	build := exec.Command("go", "build", "-o", wattle, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build wattle: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// withoutLandlock executes a program under a seccomp profile that answers the
// Landlock system calls with an errno, as some container engines do.
func withoutLandlock(errno string, argv []string) error {
	n, err := strconv.Atoi(errno)
	if err != nil {
		return err
	}
	ret := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
	}
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jt: 0, Jf: 2},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: unix.SYS_LANDLOCK_RESTRICT_SELF, Jt: 1, Jf: 0},
		ret(0x00050000 | uint32(n)),
		ret(0x7fff0000),
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fp := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const tsync = 1
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, 1, tsync, uintptr(unsafe.Pointer(&fp))); e != 0 {
		return e
	}
	env := []string{}
	for _, kv := range os.Environ() {
		if len(kv) < 18 || kv[:18] != "TEST_FILTER_ERRNO=" {
			env = append(env, kv)
		}
	}
	return unix.Exec(argv[0], argv, env)
}

// place is a home and a workspace in a directory of their own, outside of /tmp.
type place struct {
	t       *testing.T
	dir, ws string
	env     []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "wp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &place{t: t, dir: dir, ws: filepath.Join(dir, "ws")}
	for _, d := range []string{p.ws, filepath.Join(dir, "home")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	return p
}

type result struct {
	code        int
	out, stderr string
}

// run runs a program in the workspace.
func (p *place) run(stdin string, argv ...string) result {
	p.t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = p.ws, p.env
	cmd.Stdin = bytes.NewBufferString(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%v: %v", argv, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (p *place) path(rel string) string { return filepath.Join(p.ws, rel) }

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there (%v)", path, err)
	}
}

func present(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}
