package provider_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// The limits of the system, in a user namespace that has some of its own.
func TestWatchLimitsOfTheSystem(t *testing.T) {
	const inside = "WATTLE_TEST_WATCH_LIMITS"
	if os.Getenv(inside) != "" {
		watchLimits(t)
		return
	}
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestWatchLimitsOfTheSystem$", "-test.v")
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	switch {
	case len(out) == 0 && err != nil:
		t.Skipf("SKIP: no user namespace: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skip("SKIP: the namespace's limits cannot be set")
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

func watchLimits(t *testing.T) {
	limit := func(name string, n int) {
		if err := os.WriteFile("/proc/sys/user/"+name, []byte(fmt.Sprint(n)), 0o644); err != nil {
			t.Skip("SKIP: ", err)
		}
	}
	p := newPlace(t, "", provider.Config{})
	refused := func(name, names string) {
		t.Helper()
		_, err := p.l.Watch(t.Context(), p.f, p.target(name), func(provider.Change) {})
		code(t, err, provider.CodeIOError)
		if err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%v does not name %s", err, names)
		}
	}
	must(t, os.Mkdir(p.W+"/d", 0o755))
	limit("max_inotify_instances", 0)
	refused(".", "fs.inotify.max_user_instances")
	nothingLeft(t, p.l)
	limit("max_inotify_instances", 1)
	limit("max_inotify_watches", 1)
	one := p.watch(".", func(provider.Change) {})
	refused("d", "fs.inotify.max_user_watches")
	// The same directory again needs nothing.
	p.watch("f", func(provider.Change) {})
	// And the failure has taken nothing away.
	r := newTold(t)
	p.watch(".", r.receive)
	p.mark("x")
	r.until("changed x")
	must(t, one.Close())
	if w, d := p.l.WatchState(); w != 2 || d != 1 {
		t.Errorf("%d watches of %d directories", w, d)
	}
}

func TestWatchBlindOnFUSE(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	must(t, os.Mkdir(p.W+"/fuse", 0o755))
	mountEmptyFUSE(t, p.W+"/fuse")
	for _, name := range []string{"fuse", "fuse/missing"} {
		if b := p.watch(name, func(provider.Change) {}).Blind(); !strings.HasPrefix(b, "FUSE:") {
			t.Errorf("%s: %q", name, b)
		}
	}
	if b := p.watch(".", func(provider.Change) {}).Blind(); b != "" {
		t.Errorf("its parent: %q", b)
	}
}

// mountEmptyFUSE serves an empty directory: just enough of the protocol in
// include/uapi/linux/fuse.h.
func mountEmptyFUSE(t *testing.T, at string) {
	t.Helper()
	// Not an os.File: before it is mounted it cannot be waited for.
	dev, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("SKIP: no FUSE: ", err)
	}
	err = unix.Mount("empty", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", dev, os.Getuid(), os.Getgid()))
	if err != nil {
		unix.Close(dev)
		t.Skip("SKIP: may not mount FUSE: ", err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		must(t, unix.Unmount(at, unix.MNT_DETACH))
		<-ended
	})
	go func() {
		defer close(ended)
		defer unix.Close(dev) // so that nobody waits for an answer any more
		buf := make([]byte, 1<<17)
		for {
			n, err := unix.Read(dev, buf)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n < 40 {
				return // unmounted
			}
			ne := binary.NativeEndian
			const lookup, forget, getattr, statfs, initialise, batchForget = 1, 2, 3, 17, 26, 42
			var body []byte
			var errno int32
			switch ne.Uint32(buf[4:]) {
			case forget, batchForget:
				continue
			case initialise:
				body = make([]byte, 64)
				ne.PutUint32(body, 7)
				ne.PutUint32(body[4:], 31)
				ne.PutUint32(body[20:], 1<<16) // max_write
			case getattr:
				body = make([]byte, 104)
				attr := body[16:]
				ne.PutUint64(attr, 1)                        // inode
				ne.PutUint32(attr[60:], 0o040755)            // mode
				ne.PutUint32(attr[64:], 2)                   // links
				ne.PutUint32(attr[68:], ne.Uint32(buf[24:])) // owner
			case statfs:
				body = make([]byte, 80)
			case lookup:
				errno = -int32(unix.ENOENT)
			default:
				errno = -int32(unix.ENOSYS)
			}
			out := make([]byte, 16, 16+len(body))
			ne.PutUint32(out, uint32(16+len(body)))
			ne.PutUint32(out[4:], uint32(errno))
			copy(out[8:16], buf[8:16]) // unique
			if _, err := unix.Write(dev, append(out, body...)); err != nil {
				return
			}
		}
	}()
}
