package sandbox

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mountTable knows the mounts of our own mount namespace. A path that is read
// from a handle means something only there: a process in another namespace, and
// a tree that is mounted nowhere, have paths that look like ours.
type mountTable struct {
	file *os.File // /proc/self/mountinfo: it tells when the table has changed
	ids  map[int64]struct{}
}

// have tells whether a mount, by its number, is one of ours now.
func (t *mountTable) have(id int64) bool {
	if t.file == nil {
		f, err := os.Open("/proc/thread-self/mountinfo")
		if err != nil {
			return false
		}
		t.file = f
		return t.read() && t.knows(id)
	}
	if t.changed() && !t.read() {
		return false
	}
	return t.knows(id)
}

func (t *mountTable) knows(id int64) bool {
	_, ok := t.ids[id]
	return ok
}

// changed asks the kernel, which tells each change once (proc_pid_mountinfo(5)).
func (t *mountTable) changed() bool {
	fds := []unix.PollFd{{Fd: int32(t.file.Fd()), Events: unix.POLLPRI}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err != nil || n > 0
	}
}

func (t *mountTable) read() bool {
	t.ids = map[int64]struct{}{}
	if _, err := t.file.Seek(0, 0); err != nil {
		return false
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(t.file); err != nil {
		return false
	}
	for line := range bytes.Lines(b.Bytes()) {
		id, _, _ := bytes.Cut(line, []byte{' '})
		if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
			t.ids[n] = struct{}{}
		}
	}
	return true
}

func (t *mountTable) close() {
	if t.file != nil {
		_ = t.file.Close()
	}
}
