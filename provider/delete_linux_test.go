package provider_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/providertest"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// TestContractWithTrash takes the trash that users get. TRASH rows need one, and
// no other row may come out otherwise because there is one.
func TestContractWithTrash(t *testing.T) {
	inMemory(t)
	providertest.Run(t, func(t *testing.T) provider.Provider {
		b, err := trash.New(trash.Config{DataHome: t.TempDir(), UID: os.Getuid()})
		must(t, err)
		l, err := provider.NewLocal(provider.Config{Cwd: "/", Trash: b})
		must(t, err)
		return l
	})
}

// Somebody else acts at a named point inside a delete. What they wrote is never
// lost: it stays, or it lies in the trash.
func TestForeignChangeDuringDelete(t *testing.T) {
	const text = "one\n"
	type swap struct {
		name string
		do   func(p *place)
		// is the content that lies there afterwards; none: no regular file.
		is             string
		guarded, plain provider.Code // of deleteFile
	}
	f := func(p *place) string { return p.W + "/f" }
	const stale, notReg, denied = provider.CodeStaleVersion, provider.CodeNotRegularFile, provider.CodeSandboxDenied
	swaps := []swap{
		{"other content", func(p *place) { must(t, os.WriteFile(f(p), []byte("theirs, longer\n"), 0o644)) }, "theirs, longer\n", stale, ""},
		{"same size, restored mtime", func(p *place) {
			fi, err := os.Stat(f(p))
			must(t, err)
			must(t, os.WriteFile(f(p), []byte("ONE\n"), 0o644))
			must(t, os.Chtimes(f(p), fi.ModTime(), fi.ModTime()))
		}, "ONE\n", stale, ""},
		{"renamed over", func(p *place) {
			must(t, os.WriteFile(p.O+"/n", []byte("renamed\n"), 0o644))
			must(t, os.Rename(p.O+"/n", f(p)))
		}, "renamed\n", stale, ""},
		{"renamed over, equal bytes", func(p *place) {
			must(t, os.WriteFile(p.O+"/n", []byte(text), 0o644))
			must(t, os.Rename(p.O+"/n", f(p)))
		}, "", "", ""},
		{"chmod", func(p *place) { must(t, os.Chmod(f(p), 0o600)) }, "", "", ""},
		{"removed", func(p *place) { must(t, os.Remove(f(p))) }, "", stale, stale},
		{"directory", func(p *place) { must(t, os.Remove(f(p))); must(t, os.Mkdir(f(p), 0o755)) }, "", notReg, notReg},
		{"FIFO", func(p *place) { must(t, os.Remove(f(p))); must(t, syscall.Mkfifo(f(p), 0o644)) }, "", notReg, notReg},
		{"link out", func(p *place) { must(t, os.Remove(f(p))); must(t, os.Symlink(p.O+"/victim", f(p))) }, "", denied, denied},
	}
	inMemory(t)
	for _, point := range []string{"locked", "judged", "opened", "checked"} {
		for _, k := range swaps {
			for _, guarded := range []bool{true, false} {
				for _, how := range []string{"outright", "trash", "no flags"} {
					name := point + "/" + k.name + "/" + how
					want := k.plain
					if guarded {
						name, want = name+"/guarded", k.guarded
					}
					t.Run(name, func(t *testing.T) {
						h := newBin(t, "")
						p := newPlace(t, "", provider.Config{Trash: h})
						p.put("f", text)
						must(t, os.WriteFile(p.O+"/victim", []byte("victim"), 0o644))
						p.l.Lack(false, how == "no flags", how == "no flags")
						read, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
						must(t, err)
						o := provider.DeleteOptions{Permanent: how != "trash"}
						if guarded {
							o.Expected = &provider.VersionGuard{Version: read.Version}
						}
						target, acted := p.target("f"), false
						act := func(at string) {
							if at == point && !acted {
								acted = true
								k.do(p)
							}
						}
						p.l.SetHook(act)
						out, err := p.l.DeleteFile(t.Context(), p.f, target, o)
						if !acted {
							t.Fatal("the point was never reached")
						}
						inTrash := strings.Join(h.has(t), "|")
						// Written to in place in the last moment: it is in the
						// trash, with what was written.
						if how == "trash" && point == "checked" && guarded && inTrash != "" && inTrash == k.is {
							code(t, err, "")
							return
						}
						code(t, err, want)
						left := ""
						if fi, err := os.Lstat(f(p)); err == nil && fi.Mode().IsRegular() {
							left = p.get("f")
						}
						if want != "" && k.is != "" && left != k.is {
							t.Errorf("file %q, want %q", left, k.is)
						}
						if want == "" {
							if _, err := os.Lstat(f(p)); !os.IsNotExist(err) {
								t.Errorf("still there: %q", left)
							}
							p.only()
						} else if k.name != "removed" {
							p.only("f")
						}
						if want == "" && how == "trash" && (out.Outcome != record.Trashed || inTrash == "") {
							t.Errorf("%+v, %q", out, inTrash)
						}
						if want == "" && how != "trash" && k.is != "" && (out.Before == nil || *out.Before != k.is) {
							t.Errorf("before is not what was deleted: %v", out.Before)
						}
						if b, _ := os.ReadFile(p.O + "/victim"); string(b) != "victim" {
							t.Errorf("outside: %q", b)
						}
					})
				}
			}
		}
	}
}

// While the file lies aside its name may be taken.
func TestNameTakenWhileDeleting(t *testing.T) {
	t.Run("a good delete leaves the new file", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		p.put("f", "old")
		p.l.SetHook(func(at string) {
			if at == "aside" {
				p.put("f", "new")
			}
		})
		_, err := p.l.DeleteFile(t.Context(), p.f, p.target("f"), provider.DeleteOptions{Permanent: true})
		must(t, err)
		if p.get("f") != "new" {
			t.Errorf("%q", p.get("f"))
		}
		p.only("f")
	})
	t.Run("what cannot come back is kept", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		p.put("f", "old")
		v := p.version("f")
		p.l.SetHook(func(at string) {
			switch at {
			case "checked":
				p.put("f", "theirs!")
			case "restoring":
				p.put("f", "newest")
			}
		})
		_, err := p.l.DeleteFile(t.Context(), p.f, p.target("f"), provider.DeleteOptions{Permanent: true, Expected: &provider.VersionGuard{Version: v}})
		code(t, err, provider.CodeIOError)
		es, rerr := os.ReadDir(p.W)
		must(t, rerr)
		kept := false
		for _, e := range es {
			kept = kept || strings.Contains(err.Error(), e.Name()) && p.get(e.Name()) == "theirs!"
		}
		if !kept || p.get("f") != "newest" {
			t.Errorf("%v: %v, f is %q", err, es, p.get("f"))
		}
	})
}

func TestDeletePathIdentity(t *testing.T) {
	for _, permanent := range []bool{true, false} {
		t.Run("another directory took the name", func(t *testing.T) {
			h := newBin(t, "")
			p := newPlace(t, "", provider.Config{Trash: h})
			must(t, os.Mkdir(p.W+"/d", 0o755))
			p.put("d/f", "x")
			acted := false
			p.l.SetHook(func(at string) {
				if at == "checked" && !acted {
					acted = true
					must(t, os.Rename(p.W+"/d", p.O+"/moved"))
					must(t, os.Symlink(p.O+"/moved", p.W+"/d"))
				}
			})
			// The link is what is deleted then: nothing behind it.
			_, err := p.l.DeletePath(t.Context(), p.f, "d", provider.DeletePathOptions{Permanent: permanent, Recursive: true})
			if err != nil {
				code(t, err, provider.CodeStaleVersion)
			}
			if b, err := os.ReadFile(p.O + "/moved/f"); string(b) != "x" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	t.Run("a closed directory that cannot be looked into", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("SKIP: root may look into it")
		}
		p := newPlace(t, "", provider.Config{})
		must(t, os.MkdirAll(p.W+"/d/closed", 0o755))
		must(t, os.Chmod(p.W+"/d/closed", 0))
		t.Cleanup(func() { os.Chmod(p.W+"/d/closed", 0o755) })
		o := provider.DeletePathOptions{Permanent: true, Recursive: true}
		_, err := p.l.DeletePath(t.Context(), p.f, "d", o)
		code(t, err, provider.CodePermissionDenied)
		full, ferr := fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: p.W})
		must(t, ferr)
		out, err := p.l.DeletePath(t.Context(), full, "d", o)
		must(t, err)
		if out.Entries != 2 {
			t.Errorf("%+v", out)
		}
		p.only()
	})
}

// Nothing is deleted across a mount, and a mount point not at all.
func TestDeleteAcrossMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to mount")
	}
	h := newBin(t, "")
	p := newPlace(t, "", provider.Config{Trash: h})
	must(t, os.MkdirAll(p.W+"/d/e/mnt", 0o755))
	p.put("d/f", "x")
	p.put("file", "x")
	must(t, os.WriteFile(p.O+"/kept", []byte("kept"), 0o644))
	for from, to := range map[string]string{p.O: p.W + "/d/e/mnt", p.O + "/kept": p.W + "/file"} {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("SKIP: cannot mount: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(to, unix.MNT_DETACH) })
	}
	full, err := fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: p.W})
	must(t, err)
	for _, f := range []*fence.Fence{p.f, full} {
		for _, path := range []string{"d/e/mnt", "d/e", "d", "file"} {
			for _, permanent := range []bool{true, false} {
				_, err := p.l.DeletePath(t.Context(), f, path, provider.DeletePathOptions{Permanent: permanent, Recursive: true})
				code(t, err, provider.Code(record.CodeRejected))
				var e *provider.Error
				if !errors.As(err, &e) || e.Reason != record.ReasonProtected {
					t.Errorf("%s: %+v", path, e)
				}
			}
		}
	}
	if b, _ := os.ReadFile(p.W + "/d/e/mnt/kept"); string(b) != "kept" || p.get("d/f") != "x" {
		t.Errorf("%q, %q", b, p.get("d/f"))
	}
}

func TestNeverDeleted(t *testing.T) {
	h := newBin(t, "")
	p := newPlace(t, "", provider.Config{Trash: h, Home: t.TempDir()})
	full, err := fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: p.W, Own: []string{p.O + "/own"}})
	must(t, err)
	home := filepath.Dir(h.dir)
	l, err := provider.NewLocal(provider.Config{Trash: h, Home: p.O + "/home/me"})
	must(t, err)
	for _, d := range []string{"home/me/sub", "own/state"} {
		must(t, os.MkdirAll(p.O+"/"+d, 0o755))
	}
	must(t, os.WriteFile(h.dir+"/files/x", nil, 0o600))
	for path, why := range map[string]record.Reason{
		"/": record.ReasonRoot, p.W: record.ReasonRoot, filepath.Dir(p.W): record.ReasonRoot,
		p.O + "/home/me": record.ReasonProtected, p.O + "/home": record.ReasonProtected,
		h.dir: record.ReasonProtected, home: record.ReasonProtected, h.dir + "/files/x": record.ReasonProtected,
		p.O + "/own": record.ReasonProtected, p.O: record.ReasonProtected, "/proc": record.ReasonProtected,
	} {
		for _, permanent := range []bool{true, false} {
			_, err := l.DeletePath(t.Context(), full, path, provider.DeletePathOptions{Permanent: permanent, Recursive: true})
			code(t, err, provider.Code(record.CodeRejected))
			var e *provider.Error
			if !errors.As(err, &e) || e.Outcome != record.Rejected || e.Reason != why {
				t.Errorf("%s: %+v", path, e)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Error(err)
			}
		}
	}
	_, err = l.DeleteFile(t.Context(), full, provider.Target{TargetKey: provider.TargetKey(h.dir + "/files/x"), DisplayPath: "x"}, provider.DeleteOptions{Permanent: true})
	code(t, err, provider.Code(record.CodeRejected))
	_, err = l.DeletePath(t.Context(), full, p.O+"/home/me/sub", provider.DeletePathOptions{Permanent: true})
	must(t, err)
}

// What the trash says reaches the caller whole.
func TestTrashRefuses(t *testing.T) {
	h := newBin(t, "")
	p := newPlace(t, "", provider.Config{Trash: h})
	p.put("f", "x")
	for _, want := range []*record.Error{
		{Code: record.CodeUnavailable, Outcome: record.Failed, Reason: record.ReasonBackend, Op: "trash"},
		{Code: record.CodeUnknown, Outcome: record.Unknown, Reason: record.ReasonTimeout, Op: "trash"},
		{Code: "FS_PERMISSION_DENIED", Outcome: record.Failed, Reason: record.ReasonOperationFailed, Op: "trash", Errno: "EPERM", Syscall: "renameat2", Cause: syscall.EPERM},
		{Code: "FS_STALE_VERSION", Outcome: record.Unknown, Reason: record.ReasonOperationUnknown, Op: "trash"},
	} {
		h.refuse = func(string) error { return want }
		_, err := p.l.DeletePath(t.Context(), p.f, "f", provider.DeletePathOptions{})
		var e *provider.Error
		var r *record.Error
		if !errors.As(err, &e) || !errors.As(err, &r) || r != want {
			t.Fatalf("%v", err)
		}
		if string(e.Code) != want.Code || e.Outcome != want.Outcome || e.Reason != want.Reason || e.Errno != want.Errno || e.Syscall != want.Syscall {
			t.Errorf("%+v", e)
		}
		if want.Code == record.CodeUnavailable && !strings.Contains(err.Error(), "permanent") {
			t.Errorf("%v does not name permanent", err)
		}
		if p.get("f") != "x" {
			t.Error("the file is gone")
		}
	}
}

func TestCancelDuringDelete(t *testing.T) {
	for point, want := range map[string]provider.Code{"judged": provider.CodeAborted, "checked": provider.CodeAborted, "aside": ""} {
		t.Run(point, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			p.put("f", "x")
			ctx, cancel := context.WithCancel(t.Context())
			target := p.target("f")
			p.l.SetHook(func(at string) {
				if at == point {
					cancel()
				}
			})
			_, err := p.l.DeleteFile(ctx, p.f, target, provider.DeleteOptions{Permanent: true})
			code(t, err, want)
			if want != "" {
				p.only("f")
			} else {
				p.only()
			}
		})
	}
}
