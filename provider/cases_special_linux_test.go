package provider_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// specials put something there that is no regular file.
var specials = map[string]func(p *place, path string) error{
	"FIFO": func(_ *place, path string) error { return unix.Mkfifo(path, 0o644) },
	"socket": func(p *place, path string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		p.t.Cleanup(func() { unix.Close(fd) })
		// Paths of sockets are short.
		d, err := os.Open(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer d.Close()
		return unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), filepath.Base(path))})
	},
	"device": func(_ *place, path string) error { return os.Symlink("/dev/zero", path) },
	"node": func(_ *place, path string) error {
		return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))
	},
}

// touchers are all calls that look at f, with another end in to.
var touchers = map[string]func(p *place, t provider.Target) error{
	"writeText": func(p *place, t provider.Target) error {
		_, err := p.l.WriteText(p.t.Context(), p.f, t, "x", provider.WriteOptions{})
		return err
	},
	"editText": func(p *place, t provider.Target) error {
		_, err := p.l.EditText(p.t.Context(), p.f, t, provider.EditRequest{OldString: "old", NewString: "new"}, provider.EditOptions{})
		return err
	},
	"patchText": func(p *place, t provider.Target) error {
		_, err := p.l.PatchText(p.t.Context(), p.f, t, chunks(p.t, "-old", "+new"), provider.PatchOptions{})
		return err
	},
	"applyPatch": func(p *place, _ provider.Target) error {
		_, err := p.apply(patchOf(updateOp("f", "old", "new")), provider.ApplyOptions{})
		return err
	},
	"applyPatch, delete": func(p *place, _ provider.Target) error {
		_, err := p.apply(patchOf(deleteOp("f")), provider.ApplyOptions{})
		return err
	},
	"deleteFile": func(p *place, t provider.Target) error {
		_, err := p.l.DeleteFile(p.t.Context(), p.f, t, provider.DeleteOptions{Permanent: true})
		return err
	},
	"deletePath": func(p *place, t provider.Target) error {
		_, err := p.l.DeletePath(p.t.Context(), p.f, t.DisplayPath, provider.DeletePathOptions{Permanent: true})
		return err
	},
	"moveFile": func(p *place, t provider.Target) error {
		_, err := p.l.MoveFile(p.t.Context(), p.f, t, p.target("to"), provider.MoveOptions{})
		return err
	},
	"moveFile, hunks": func(p *place, t provider.Target) error {
		_, err := p.l.MoveFile(p.t.Context(), p.f, t, p.target("to"), provider.MoveOptions{Hunks: chunks(p.t, "-old", "+new")})
		return err
	},
	"moveFile, over": func(p *place, t provider.Target) error {
		_, err := p.l.MoveFile(p.t.Context(), p.f, p.target("from"), t, provider.MoveOptions{})
		return err
	},
	"movePath": func(p *place, t provider.Target) error {
		_, err := p.l.MovePath(p.t.Context(), p.f, t.DisplayPath, p.W+"/to", provider.MovePathOptions{})
		return err
	},
	"movePath, over": func(p *place, t provider.Target) error {
		_, err := p.l.MovePath(p.t.Context(), p.f, p.W+"/from", t.DisplayPath, provider.MovePathOptions{Overwrite: true})
		return err
	},
	"copyPath": func(p *place, t provider.Target) error {
		_, err := p.l.CopyPath(p.t.Context(), p.f, t.DisplayPath, p.W+"/to", provider.CopyPathOptions{})
		return err
	},
	"copyPath, over": func(p *place, t provider.Target) error {
		_, err := p.l.CopyPath(p.t.Context(), p.f, p.W+"/from", t.DisplayPath, provider.CopyPathOptions{Overwrite: true})
		return err
	},
	"makeDir": func(p *place, t provider.Target) error {
		_, err := p.l.MakeDir(p.t.Context(), p.f, t.DisplayPath+"/d", provider.MakeDirOptions{Parents: true})
		return err
	},
}

func init() {
	for name, read := range readers {
		touchers[name] = func(p *place, t provider.Target) error {
			_, err := read(p.t.Context(), p, t)
			return err
		}
	}
}

// E8 hermes-agent#82075 less#184: a call that meets a FIFO, a socket or a
// device does not wait for it, also when it takes the place of a file at any
// point of the call. A writer that waits for a reader goes on waiting.
func TestCaseE8NothingHangs(t *testing.T) {
	for kind, put := range specials {
		if kind == "node" && os.Geteuid() != 0 {
			continue // needs root
		}
		for name, touch := range touchers {
			// The points that this call comes to, with a file.
			var points []string
			{
				p, _ := patchPlace(t, "", provider.Config{})
				p.put("f", "old\n")
				p.put("from", "from\n")
				p.l.SetHook(func(at string) { points = append(points, at) })
				_ = touch(p, p.target("f"))
			}
			for _, point := range append([]string{""}, slices.Compact(points)...) {
				t.Run(kind+"/"+name+"/"+point, func(t *testing.T) {
					p, _ := patchPlace(t, "", provider.Config{})
					f := p.put("f", "old\n")
					p.put("from", "from\n")
					target := p.target("f")
					released := func() bool { return false }
					swap := func() {
						if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
							t.Error(err)
						}
						must(t, put(p, f))
						if kind == "FIFO" {
							released = waitingWriter(t, f)
						}
					}
					if point == "" {
						swap()
					} else {
						p.once(point, swap)
					}
					done := make(chan error, 1)
					go func() { done <- touch(p, target) }()
					select {
					case <-done:
					case <-time.After(20 * time.Second):
						t.Fatal("it hangs")
					}
					if released() {
						t.Error("a writer that waited was released")
					}
				})
			}
		}
	}
}

// waitingWriter is a program that opens a FIFO for writing, which waits for a
// reader. It tells whether it got on.
func waitingWriter(t *testing.T, path string) (released func() bool) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	must(t, err)
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	var opened atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		w, err := unix.Open(self, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		opened.Store(true)
		if err == nil {
			unix.Close(w)
		}
	}()
	t.Cleanup(func() {
		for {
			// Now it may.
			r, err := unix.Open(self, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			must(t, err)
			select {
			case <-done:
			case <-time.After(time.Millisecond):
				unix.Close(r)
				continue
			}
			unix.Close(r)
			unix.Close(fd)
			return
		}
	})
	return opened.Load
}
