package policies_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/policies"
)

// TestFIFOIsNotOpened: opening one would wait for its writer for ever.
func TestFIFOIsNotOpened(t *testing.T) {
	h, l := newHouse(t)
	if err := unix.Mkfifo(h.user+"/pipe.toml", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load("pipe"); code(err) != policies.CodeRefused {
		t.Error(err)
	}
}

// TestNoPolicyFromAMountOfTheWorkspace: the same directory has another name.
func TestNoPolicyFromAMountOfTheWorkspace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	h, l := newHouse(t)
	write(t, h.ws+"/p.toml", "hide = []")
	mkdir(t, h.other+"/alias")
	if err := unix.Mount(h.ws, h.other+"/alias", "", unix.MS_BIND, ""); err != nil {
		t.Skipf("SKIP: no bind mounts here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(h.other+"/alias", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if _, err := l.LoadFile(h.other + "/alias/p.toml"); code(err) != policies.CodeRefused {
		t.Error(err)
	}
}
