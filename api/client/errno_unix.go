//go:build unix

package client

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// errnos are the numbers of this system by name.
var errnos = sync.OnceValue(func() map[string]syscall.Errno {
	m := map[string]syscall.Errno{}
	for e := syscall.Errno(1); e < 256; e++ {
		if n := unix.ErrnoName(e); n != "" {
			m[n] = e
		}
	}
	return m
})

// errnoOf is the errno of a name, nil when this system has none.
func errnoOf(name string) error {
	if e, ok := errnos()[name]; ok {
		return e
	}
	return nil
}
