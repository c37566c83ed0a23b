package provider_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// E6: the disk is full. The old content stays, nothing is left, and the next
// write that fits succeeds.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to mount a small file system")
	}
	p := newPlace(t, "", provider.Config{})
	d := p.W + "/t"
	must(t, os.Mkdir(d, 0o755))
	if err := unix.Mount("none", d, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIP: cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(d, unix.MNT_DETACH) })
	old := strings.Repeat("a", 20000)
	p.put("t/f", old)
	free := func() uint64 {
		var s unix.Statfs_t
		must(t, unix.Statfs(d, &s))
		return s.Bfree
	}
	before := free()
	full := func(err error) {
		t.Helper()
		code(t, err, provider.CodeIOError)
		var e *provider.Error
		if !errors.As(err, &e) || e.Errno != "ENOSPC" || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%+v", e)
		}
		if p.get("t/f") != old {
			t.Errorf("the old content is gone: %d bytes", len(p.get("t/f")))
		}
		es, rerr := os.ReadDir(d)
		must(t, rerr)
		if len(es) != 1 {
			t.Errorf("left: %v", es)
		}
		if now := free(); now != before {
			t.Errorf("%d blocks free, before %d", now, before)
		}
	}
	big := strings.Repeat("b", 100_000)
	_, err := p.l.WriteText(t.Context(), p.f, p.target("t/f"), big, provider.WriteOptions{})
	full(err)
	_, err = p.l.EditText(t.Context(), p.f, p.target("t/f"), provider.EditRequest{OldString: old, NewString: big}, provider.EditOptions{})
	full(err)
	_, err = p.l.WriteText(t.Context(), p.f, p.target("t/new"), big, provider.WriteOptions{})
	full(err)
	_, err = p.l.WriteText(t.Context(), p.f, p.target("t/a/b/new"), big, provider.WriteOptions{})
	full(err)
	_, err = p.l.WriteText(t.Context(), p.f, p.target("t/f"), "small", provider.WriteOptions{})
	must(t, err)
	if p.get("t/f") != "small" {
		t.Errorf("%q", p.get("t/f"))
	}
}

// Files of the kernel claim size 0 and have content; some of them block.
func TestKernelFiles(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	c, err := p.l.ReadText(t.Context(), p.f, p.target("/proc/self/status"), provider.ReadOptions{})
	must(t, err)
	if !strings.Contains(c.Text, "\nPid:") {
		t.Errorf("%.80q", c.Text)
	}
	_, err = p.l.ReadText(t.Context(), p.f, p.target("/proc/self/status"), provider.ReadOptions{MaxBytes: 100})
	code(t, err, provider.CodeTooLarge)
	i, err := p.l.Stat(t.Context(), p.f, p.target("/proc/self/status"))
	must(t, err)
	if i.Type != provider.TypeFile || *i.Size != 0 {
		t.Errorf("%+v", i)
	}
}

// A directory that lies there twice (bind mount) is inside by identity.
func TestAliasByBindMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to mount")
	}
	p := newPlace(t, "", provider.Config{})
	alias := p.O + "/alias"
	must(t, os.Mkdir(alias, 0o755))
	if err := unix.Mount(p.W, alias, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("SKIP: cannot bind: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(alias, unix.MNT_DETACH) })
	target := p.target(filepath.Join(alias, "f"))
	if string(target.TargetKey) != p.W+"/f" {
		t.Errorf("key %s", target.TargetKey)
	}
	_, err := p.l.WriteText(t.Context(), p.f, target, "x", provider.WriteOptions{})
	must(t, err)
	if p.get("f") != "x" {
		t.Errorf("%q", p.get("f"))
	}
}

// Another holder of the directory's lock delays a replacement and does not stop
// it.
func TestHeldDirectoryLock(t *testing.T) {
	t.Parallel() // it waits for as long as the patience lasts
	p := newPlace(t, "", provider.Config{})
	p.put("f", "old")
	d, err := os.Open(p.W)
	must(t, err)
	defer d.Close()
	must(t, unix.Flock(int(d.Fd()), unix.LOCK_EX))
	_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "new", provider.WriteOptions{})
	must(t, err)
	if p.get("f") != "new" {
		t.Errorf("%q", p.get("f"))
	}
	p.only("f")
}

// A basis that changes while it is read is none, and never fails the write.
func TestBasisOfChangingFile(t *testing.T) {
	for name, change := range map[string]func(f string) error{
		"grows":    func(f string) error { return os.WriteFile(f, []byte("old and more"), 0o644) },
		"shrinks":  func(f string) error { return os.Truncate(f, 1) },
		"vanishes": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			f := p.put("f", "old")
			acted := false
			p.l.SetHook(func(at string) {
				if at == "opened" && !acted {
					acted = true
					must(t, change(f))
				}
			})
			o, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "new", provider.WriteOptions{})
			must(t, err)
			switch {
			case name == "vanishes" && (o.Operation != provider.OperationCreate || o.Before != nil):
				t.Errorf("%+v", o)
			case name == "grows" && (o.Before == nil || *o.Before != "old and more"):
				// The file that came out was looked at again: this is what was
				// replaced.
				t.Errorf("%+v", o)
			case name == "shrinks" && (o.Before == nil || *o.Before != "o"):
				t.Errorf("%+v", o)
			}
			if p.get("f") != "new" {
				t.Errorf("%q", p.get("f"))
			}
			p.only("f")
		})
	}
}

func TestConfigOfLocal(t *testing.T) {
	p := newPlace(t, "", provider.Config{NewFileMode: 0o600, ListMaxEntries: 3, EditMaxBytes: 10, DiffBasisMaxBytes: 5})
	_, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "1234", provider.WriteOptions{})
	must(t, err)
	if fi, err := os.Stat(p.W + "/f"); err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	o, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "12345", provider.WriteOptions{})
	if err != nil || o.Before != nil {
		t.Errorf("%+v, %v", o, err)
	}
	_, err = p.l.EditText(t.Context(), p.f, p.target("f"), provider.EditRequest{OldString: "5", NewString: "567890"}, provider.EditOptions{})
	code(t, err, "")
	_, err = p.l.EditText(t.Context(), p.f, p.target("f"), provider.EditRequest{OldString: "0", NewString: "01"}, provider.EditOptions{})
	code(t, err, provider.CodeTooLarge)
	p.put("g", "")
	p.put("h", "")
	_, err = p.l.ListDir(t.Context(), p.f, p.target("."), provider.ListOptions{})
	code(t, err, "")
	p.put("i", "")
	_, err = p.l.ListDir(t.Context(), p.f, p.target("."), provider.ListOptions{})
	code(t, err, provider.CodeTooLarge)
}
