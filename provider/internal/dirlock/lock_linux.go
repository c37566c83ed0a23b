package dirlock

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// Lock locks the directory and returns what unlocks it. held is false when the
// lock could not be had within patience, or not at all (no read permission on
// the directory, a file system without locks); the caller goes on then. The
// only error is the context's.
func Lock(ctx context.Context, d *anchor.Dir, patience time.Duration) (unlock func(), held bool, err error) {
	fd := open(d)
	if fd < 0 {
		return func() {}, false, ctx.Err()
	}
	deadline := time.Now().Add(patience)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			// Closing the only descriptor of this open file unlocks.
			return func() { unix.Close(fd) }, true, nil
		}
		busy := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR)
		if !busy || time.Now().After(deadline) {
			unix.Close(fd)
			return func() {}, false, ctx.Err()
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			unix.Close(fd)
			return func() {}, false, ctx.Err()
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
