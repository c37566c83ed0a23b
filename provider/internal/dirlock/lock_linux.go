//go:build !portable

package dirlock

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// Held is a locked directory, or one that could not be locked.
type Held struct {
	d  *anchor.Dir
	fd int // -1: not opened
}

// Lock locks the directory. When the lock cannot be had within patience, or not
// at all (no read permission on the directory, a file system without locks),
// the caller goes on without. The only error is the context's.
func Lock(ctx context.Context, d *anchor.Dir, patience time.Duration) (*Held, error) {
	h := &Held{d: d, fd: open(d)}
	if h.fd < 0 {
		return h, ctx.Err()
	}
	deadline := time.Now().Add(patience)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		err := unix.Flock(h.fd, unix.LOCK_EX|unix.LOCK_NB)
		busy := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR)
		if !busy || time.Now().After(deadline) {
			return h, nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			h.Close()
			return nil, ctx.Err()
		}
	}
}

// Unlock ends the lock, if it is held.
func (h *Held) Unlock() {
	if h.fd >= 0 {
		_ = unix.Flock(h.fd, unix.LOCK_UN)
	}
}

// Close ends the lock and gives the descriptor back.
func (h *Held) Close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
		h.fd = -1
	}
}

// Sync makes the directory's entries durable, on the descriptor that is open
// already.
func (h *Held) Sync() error {
	if h.fd < 0 {
		return h.d.Sync()
	}
	for {
		if err := unix.Fsync(h.fd); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// open gives a descriptor that can be locked, or -1: the directory's handle is
// O_PATH, which cannot.
func open(d *anchor.Dir) int {
	f, err := d.File()
	if err != nil {
		return -1
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return -1
	}
	fd := -1
	_ = conn.Control(func(p uintptr) {
		n, err := unix.Openat(int(p), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			fd = n
		}
	})
	return fd
}
