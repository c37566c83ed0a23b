package notify_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/sandbox/internal/notify"
)

// watched hands one call to the listener and allows every other.
func watched(nr uint32) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fc00000},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
}

// onThread runs f on a thread that dies afterwards, with its filter.
func onThread(t *testing.T, f func()) <-chan struct{} {
	t.Helper()
	done := make(chan struct{})
	first := make(chan struct{})
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // never the first thread: it would stay filtered
			go run()
			<-first
			runtime.UnlockOSThread()
			return
		}
		defer close(done)
		close(first)
		f()
	}
	go run()
	return done
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	type answer struct {
		resp notify.Resp
		want error
	}
	answers := []answer{
		{notify.Resp{Error: -int32(unix.EACCES)}, unix.EACCES},
		{notify.Resp{Error: -int32(unix.EROFS)}, unix.EROFS},
		{notify.Resp{Flags: notify.FlagContinue}, nil},
		{notify.Resp{Flags: notify.FlagContinue}, unix.EEXIST}, // the kernel's own answer
		{notify.Resp{Val: 0}, nil},                             // said to be done, and not done
	}
	listener := make(chan int, 1)
	got := make(chan error, len(answers))
	tid := make(chan int, 1)
	done := onThread(t, func() {
		defer close(listener)
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
			return
		}
		fd, err := notify.Install(watched(unix.SYS_MKDIRAT))
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := notify.Install(watched(unix.SYS_MKDIRAT)); !errors.Is(err, notify.ErrBusy) {
			t.Errorf("a second listener: %v", err)
		}
		tid <- unix.Gettid()
		listener <- fd
		for i := range answers {
			name := filepath.Join(dir, "d")
			if i == len(answers)-1 {
				name = filepath.Join(dir, "pretended")
			}
			got <- unix.Mkdirat(unix.AT_FDCWD, name, 0o700)
		}
	})
	fd, ok := <-listener
	if !ok {
		return
	}
	defer unix.Close(fd)
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the listener is inherited: %v", err)
	}
	caller := <-tid
	n := notify.Notif{ID: 1, PID: 2, NR: 3} // whatever was in it before
	for i, a := range answers {
		if err := notify.Receive(fd, &n); err != nil {
			t.Fatal(err)
		}
		if int(n.PID) != caller || n.NR != unix.SYS_MKDIRAT || n.Args[2] != 0o700 || !notify.Valid(fd, n.ID) {
			t.Errorf("%d: %+v", i, n)
		}
		a.resp.ID = n.ID
		if err := notify.Send(fd, &a.resp); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, a.want) {
			t.Errorf("%d: the call returned %v, want %v", i, err, a.want)
		}
		if notify.Valid(fd, n.ID) {
			t.Errorf("%d: answered and still waiting", i)
		}
		if err := notify.Send(fd, &a.resp); !errors.Is(err, unix.ENOENT) {
			t.Errorf("%d: a second answer: %v", i, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pretended")); err == nil {
		t.Error("an answered call was performed as well")
	}
	<-done
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(p, 60000); err != unix.EINTR {
			break
		}
	}
	if p[0].Revents&unix.POLLHUP == 0 {
		t.Errorf("no hang-up when the last thread is gone: %x", p[0].Revents)
	}
}

// TestClosedListener: without its supervisor a notified call fails and never
// passes.
func TestClosedListener(t *testing.T) {
	dir := t.TempDir()
	<-onThread(t, func() {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
			return
		}
		fd, err := notify.Install(watched(unix.SYS_MKDIRAT))
		if err != nil {
			t.Error(err)
			return
		}
		_ = unix.Close(fd)
		if err := unix.Mkdirat(unix.AT_FDCWD, filepath.Join(dir, "d"), 0o700); !errors.Is(err, unix.ENOSYS) {
			t.Errorf("got %v", err)
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "d")); err == nil {
		t.Error("the call passed")
	}
}

// TestInstallPlain: a program without notifications, and one that is no program.
func TestInstallPlain(t *testing.T) {
	<-onThread(t, func() {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
			return
		}
		deny := watched(unix.SYS_MKDIRAT)
		deny[2].K = 0x00050000 | uint32(unix.EDOM)
		if err := notify.InstallPlain(deny); err != nil {
			t.Error(err)
		}
		if err := unix.Mkdirat(unix.AT_FDCWD, "/never", 0o700); !errors.Is(err, unix.EDOM) {
			t.Errorf("got %v", err)
		}
		if err := notify.InstallPlain(deny[:1]); !errors.Is(err, unix.EINVAL) {
			t.Errorf("a program without an end: %v", err)
		}
		if _, err := notify.Install(deny[:1]); err == nil || errors.Is(err, notify.ErrBusy) {
			t.Errorf("a program without an end: %v", err)
		}
	})
}
