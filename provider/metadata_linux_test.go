package provider_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// acl builds the attribute of an access list (include/uapi/linux/posix_acl_xattr.h):
// version 2, then tag, permissions, id.
func acl(entries ...[3]uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

const (
	aclUserObj, aclUser, aclGroupObj, aclMask, aclOther = 1, 2, 4, 16, 32

	noID = 0xffffffff
)

func attr(t *testing.T, path, name string) []byte {
	t.Helper()
	b := make([]byte, 4096)
	n, err := unix.Lgetxattr(path, name, b)
	if errors.Is(err, unix.ENODATA) {
		return nil
	}
	must(t, err)
	return b[:n]
}

func setAttr(t *testing.T, path, name string, val []byte) {
	t.Helper()
	if err := unix.Lsetxattr(path, name, val, 0); err != nil {
		if errors.Is(err, unix.ENOTSUP) {
			t.Skipf("SKIP: the file system has no %s", name)
		}
		t.Fatal(err)
	}
}

// E13: attributes, access list, owner and mode survive a replacement.
func TestMetadataSurvivesReplacement(t *testing.T) {
	root := os.Geteuid() == 0
	for _, how := range []string{"edit", "write"} {
		t.Run(how, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			f := p.put("f", "x\n")
			list := acl([3]uint32{aclUserObj, 6, noID}, [3]uint32{aclUser, 4, 12345}, [3]uint32{aclGroupObj, 4, noID}, [3]uint32{aclMask, 5, noID}, [3]uint32{aclOther, 0, noID})
			setAttr(t, f, "user.k", []byte("v"))
			setAttr(t, f, "user.empty", nil)
			setAttr(t, f, "system.posix_acl_access", list)
			caps := []byte{0x01, 0x00, 0x00, 0x02, 0x00, 0x04, 0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
			mode := os.FileMode(0o650)
			if root {
				must(t, os.Chown(f, 1, 2))
				mode |= os.ModeSetuid | os.ModeSticky
				setAttr(t, f, "security.capability", caps)
			}
			must(t, os.Chmod(f, mode))
			want, err := os.Stat(f)
			must(t, err)
			var lost []string
			if how == "edit" {
				o, err := p.l.EditText(t.Context(), p.f, p.target("f"), provider.EditRequest{OldString: "x", NewString: "y"}, provider.EditOptions{})
				must(t, err)
				lost = o.MetadataLost
			} else {
				o, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "y\n", provider.WriteOptions{})
				must(t, err)
				lost = o.MetadataLost
			}
			if lost != nil {
				t.Errorf("lost %v", lost)
			}
			got, err := os.Stat(f)
			must(t, err)
			gs, ws := got.Sys().(*syscall.Stat_t), want.Sys().(*syscall.Stat_t)
			if got.Mode() != want.Mode() || gs.Uid != ws.Uid || gs.Gid != ws.Gid {
				t.Errorf("%v %d:%d, was %v %d:%d", got.Mode(), gs.Uid, gs.Gid, want.Mode(), ws.Uid, ws.Gid)
			}
			if gs.Ino == ws.Ino || p.get("f") != "y\n" {
				t.Errorf("not replaced: %q", p.get("f"))
			}
			for name, val := range map[string][]byte{"user.k": []byte("v"), "user.empty": {}, "system.posix_acl_access": list} {
				if a := attr(t, f, name); a == nil || !bytes.Equal(a, val) {
					t.Errorf("%s is %x, was %x", name, a, val)
				}
			}
			if root && attr(t, f, "security.capability") == nil {
				t.Error("the capabilities are gone")
			}
			p.only("f")
		})
	}
}

// A default access list of the directory must not open a file that had none.
func TestDefaultListOfDirectory(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	f := p.put("f", "old")
	setAttr(t, p.W, "system.posix_acl_default",
		acl([3]uint32{aclUserObj, 7, noID}, [3]uint32{aclUser, 7, 12345}, [3]uint32{aclGroupObj, 5, noID}, [3]uint32{aclMask, 7, noID}, [3]uint32{aclOther, 0, noID}))
	o, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "new", provider.WriteOptions{})
	must(t, err)
	if a := attr(t, f, "system.posix_acl_access"); a != nil {
		t.Errorf("an access list came in: %x", a)
	}
	fi, err := os.Stat(f)
	must(t, err)
	if fi.Mode() != 0o644 || o.MetadataLost != nil {
		t.Errorf("mode %v, lost %v", fi.Mode(), o.MetadataLost)
	}
	// A new file takes the default, as the kernel gives it (D4).
	_, err = p.l.WriteText(t.Context(), p.f, p.target("new"), "x", provider.WriteOptions{})
	must(t, err)
	if a := attr(t, p.W+"/new", "system.posix_acl_access"); a == nil {
		t.Error("a new file has no access list")
	}
}

// asOther runs do on a thread whose file-system identity is uid 65534, as the
// daemon does for its owner. The thread ends with it.
func asOther(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root")
	}
	done := make(chan error)
	go func() {
		// Not unlocked: the thread dies with its identity.
		runtime.LockOSThread()
		defer close(done)
		for _, id := range []struct{ call, id uintptr }{{unix.SYS_SETFSGID, 65534}, {unix.SYS_SETFSUID, 65534}} {
			unix.RawSyscall(id.call, id.id, 0, 0)
			if now, _, _ := unix.RawSyscall(id.call, ^uintptr(0), 0, 0); now != id.id {
				done <- fmt.Errorf("identity is %d", now)
				return
			}
		}
		do()
	}()
	for err := range done {
		t.Fatal(err)
	}
}

// Without the right to chown the edit lands, and what was lost is named (E13);
// set-id bits do not pass to another owner.
func TestLostOwnerIsNamed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to make the file of somebody else")
	}
	base := openDir(t)
	p := newPlace(t, base, provider.Config{})
	f := p.put("f", "x\n")
	setAttr(t, f, "user.k", []byte("v"))
	must(t, os.Chown(p.W, 65534, 65534))
	must(t, os.Chown(f, 1, 2))
	must(t, os.Chmod(f, 0o666|os.ModeSetuid|os.ModeSetgid))
	target := p.target("f")
	var o provider.EditOutcome
	var err error
	asOther(t, func() {
		o, err = p.l.EditText(t.Context(), p.f, target, provider.EditRequest{OldString: "x", NewString: "y"}, provider.EditOptions{})
	})
	must(t, err)
	if !slices.Equal(o.MetadataLost, []string{"owner", "group", "setid"}) {
		t.Errorf("lost %v", o.MetadataLost)
	}
	fi, err := os.Stat(f)
	must(t, err)
	if st := fi.Sys().(*syscall.Stat_t); fi.Mode() != 0o666 || st.Uid != 65534 || p.get("f") != "y\n" {
		t.Errorf("%v, uid %d, %q", fi.Mode(), st.Uid, p.get("f"))
	}
	if a := attr(t, f, "user.k"); string(a) != "v" {
		t.Errorf("user.k is %q", a)
	}
}

// A file of somebody else that this user may not write is refused, although
// the directory would let it be replaced.
func TestUnwritableFileOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to make the file of somebody else")
	}
	p := newPlace(t, openDir(t), provider.Config{})
	p.put("f", "x\n")
	must(t, os.Chown(p.W, 65534, 65534))
	target := p.target("f")
	var err error
	asOther(t, func() { _, err = p.l.WriteText(t.Context(), p.f, target, "y", provider.WriteOptions{}) })
	code(t, err, provider.CodePermissionDenied)
	var e *provider.Error
	if !errors.As(err, &e) || e.Errno != "EACCES" || e.Syscall != "faccessat2" {
		t.Errorf("%+v", e)
	}
	if p.get("f") != "x\n" {
		t.Errorf("file %q", p.get("f"))
	}
	p.only("f")
}

// A write inside into a 0555 directory is the kernel's refusal, with its errno
// and call; a write outside is the fence's, and says nothing of the kernel's.
func TestRefusalsAreToldApart(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIP: root passes; runs as uid 65534")
	}
	p := newPlace(t, "", provider.Config{})
	must(t, os.Mkdir(p.W+"/d", 0o755))
	must(t, os.WriteFile(p.W+"/d/old", nil, 0o644))
	must(t, os.Chmod(p.W+"/d", 0o555))
	t.Cleanup(func() { os.Chmod(p.W+"/d", 0o755) })
	for name, call := range map[string]string{"d/new": "openat", "d/old": "openat", "d/a/b": "mkdirat"} {
		_, err := p.l.WriteText(t.Context(), p.f, p.target(name), "x", provider.WriteOptions{})
		code(t, err, provider.CodePermissionDenied)
		var e *provider.Error
		if !errors.As(err, &e) || e.Errno != "EACCES" || e.Syscall != call || !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	es, err := os.ReadDir(p.W + "/d")
	must(t, err)
	if len(es) != 1 {
		t.Errorf("left: %v", es)
	}
}

// openDir is a fresh directory that everybody may reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "provider-open-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// The immutable flag is the kernel's refusal, for root too.
func TestImmutableFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to set the flag")
	}
	p := newPlace(t, "", provider.Config{})
	f, err := os.Open(p.put("f", "old"))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	const immutable = 0x10 // FS_IMMUTABLE_FL, linux/fs.h
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		t.Skipf("SKIP: the file system has no flags: %v", err)
	}
	must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|immutable))
	t.Cleanup(func() { unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags) })
	for _, override := range []bool{false, true} {
		_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "new", provider.WriteOptions{OverrideReadOnly: override})
		code(t, err, provider.CodePermissionDenied)
		var e *provider.Error
		if !errors.As(err, &e) || e.Errno != "EPERM" {
			t.Errorf("%+v", e)
		}
	}
	if p.get("f") != "old" {
		t.Errorf("%q", p.get("f"))
	}
	p.only("f")
}
