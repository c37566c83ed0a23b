package fence_test

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// signature is where a call has its arguments, by its manual page: directory,
// path, second directory, second path, flags, mode; -1 for none.
type signature [6]int

const none = -1

// signatures of the calls that must be in the list on every architecture, and
// of those that only older architectures have.
var signatures = map[string]signature{
	"openat":       {0, 1, none, none, 2, 3},
	"openat2":      {0, 1, none, none, none, none}, // flags and mode are behind a pointer
	"unlinkat":     {0, 1, none, none, 2, none},
	"renameat":     {0, 1, 2, 3, none, none},
	"renameat2":    {0, 1, 2, 3, 4, none},
	"linkat":       {0, 1, 2, 3, 4, none},
	"symlinkat":    {none, 0, 1, 2, none, none},
	"mkdirat":      {0, 1, none, none, none, none},
	"mknodat":      {0, 1, none, none, none, 2},
	"truncate":     {none, 0, none, none, none, none},
	"fchmodat":     {0, 1, none, none, none, none},
	"fchmodat2":    {0, 1, none, none, 3, none},
	"fchmod":       {0, none, none, none, none, none},
	"fchownat":     {0, 1, none, none, 4, none},
	"fchown":       {0, none, none, none, none, none},
	"utimensat":    {0, 1, none, none, 3, none},
	"setxattr":     {none, 0, none, none, none, none},
	"lsetxattr":    {none, 0, none, none, none, none},
	"fsetxattr":    {0, none, none, none, none, none},
	"removexattr":  {none, 0, none, none, none, none},
	"lremovexattr": {none, 0, none, none, none, none},
	"fremovexattr": {0, none, none, none, none, none},
	"connect":      {0, none, none, none, none, none},
	"bind":         {0, none, none, none, none, none},
	"ioctl":        {0, none, none, none, 1, none},
}

var signaturesAMD64 = map[string]signature{
	"open":      {none, 0, none, none, 1, 2},
	"creat":     {none, 0, none, none, none, none},
	"unlink":    {none, 0, none, none, none, none},
	"rmdir":     {none, 0, none, none, none, none},
	"rename":    {none, 0, none, 1, none, none},
	"link":      {none, 0, none, 1, none, none},
	"symlink":   {none, 0, none, 1, none, none},
	"mkdir":     {none, 0, none, none, none, none},
	"mknod":     {none, 0, none, none, none, 1},
	"chmod":     {none, 0, none, none, none, none},
	"chown":     {none, 0, none, none, none, none},
	"lchown":    {none, 0, none, none, none, none},
	"utime":     {none, 0, none, none, none, none},
	"utimes":    {none, 0, none, none, none, none},
	"futimesat": {0, 1, none, none, none, none},
}

func allSignatures() map[string]signature {
	all := map[string]signature{}
	for n, s := range signatures {
		all[n] = s
	}
	if runtime.GOARCH == "amd64" {
		for n, s := range signaturesAMD64 {
			all[n] = s
		}
	}
	return all
}

// neverFollows are the calls whose last component is never followed.
var neverFollows = map[string]bool{"lchown": true, "lsetxattr": true, "lremovexattr": true}

// TestCalls: the list is complete, each call is in it once, and its arguments
// are where the manual has them.
func TestCalls(t *testing.T) {
	want := allSignatures()
	numbers := map[uint32]string{}
	for _, c := range fence.Calls() {
		s, ok := want[c.Name]
		if !ok {
			t.Errorf("%s: not expected, or twice", c.Name)
			continue
		}
		delete(want, c.Name)
		if got := (signature{c.Dir, c.Path, c.Dir2, c.Path2, c.Flags, c.Mode}); got != s {
			t.Errorf("%s: arguments at %v, want %v", c.Name, got, s)
		}
		if c.NoFollow != neverFollows[c.Name] {
			t.Errorf("%s: follows %v", c.Name, !c.NoFollow)
		}
		if other := numbers[c.NR]; other != "" {
			t.Errorf("%s and %s have one number", c.Name, other)
		}
		numbers[c.NR] = c.Name
		two := c.Kind == fence.CallRename || c.Kind == fence.CallLink || c.Kind == fence.CallSymlink
		if (c.Path2 >= 0) != two {
			t.Errorf("%s: kind %d with second path at %d", c.Name, c.Kind, c.Path2)
		}
		byFD := c.Kind == fence.CallMetaFD || c.Kind == fence.CallIoctl || c.Kind == fence.CallConnect || c.Kind == fence.CallBind
		if (c.Path < 0) != byFD {
			t.Errorf("%s: kind %d with path at %d", c.Name, c.Kind, c.Path)
		}
	}
	for n := range want {
		t.Errorf("%s is missing", n)
	}
}

// TestCallNumbers: the kernel knows each number as that call: called with
// arguments that name nothing it fails as that call does, and not with ENOSYS.
func TestCallNumbers(t *testing.T) {
	bad := ^uintptr(0)
	for _, c := range fence.Calls() {
		args := [6]uintptr{bad, bad, bad, bad, bad, bad}
		if c.Path >= 0 {
			args[c.Path] = 1 // unmapped
		}
		_, _, e := unix.RawSyscall6(uintptr(c.NR), args[0], args[1], args[2], args[3], args[4], args[5])
		ok := e == unix.EFAULT || e == unix.EBADF || e == unix.EINVAL || e == unix.ENOENT || e == unix.E2BIG || e == unix.ENOTSOCK
		if e == unix.ENOSYS && strings.HasPrefix(c.Name, "fchmodat2") {
			continue // Linux 6.6
		}
		if !ok {
			t.Errorf("%s (%d): %v", c.Name, c.NR, e)
		}
	}
}

// TestOpenWriteFlags: every flag that makes an open a change, and no other.
func TestOpenWriteFlags(t *testing.T) {
	for flag, change := range map[int]bool{
		unix.O_RDONLY: false, unix.O_WRONLY: true, unix.O_RDWR: true, unix.O_CREAT: true, unix.O_TRUNC: true, unix.O_TMPFILE: true, unix.O_ACCMODE: true,
		unix.O_APPEND: false, unix.O_NONBLOCK: false, unix.O_CLOEXEC: false, unix.O_DIRECTORY: false, unix.O_NOFOLLOW: false, unix.O_PATH: false,
		unix.O_EXCL: false, unix.O_NOCTTY: false, unix.O_SYNC: false, unix.O_NOATIME: false,
	} {
		if got := flag&fence.OpenWriteFlags != 0; got != change {
			t.Errorf("%o: %v", flag, got)
		}
	}
}
