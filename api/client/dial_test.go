package client_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/api/client"
)

func TestDial(t *testing.T) {
	w := newWorld(t)
	ctx := deadline(t)
	if _, err := client.Dial(ctx, w.path, client.Options{}); !errors.Is(err, client.ErrNoDaemon) || !strings.Contains(err.Error(), w.path) {
		t.Fatal(err)
	}
	if _, err := client.Dial(ctx, w.path, client.Options{StartWait: 50 * time.Millisecond}); !errors.Is(err, client.ErrNoDaemon) {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := client.Dial(gone, w.path, client.Options{StartWait: time.Hour}); err == nil {
		t.Fatal("connected")
	}

	// A daemon that starts while somebody tries.
	type result struct {
		c   *client.Client
		err error
	}
	dialled := make(chan result, 1)
	go func() {
		c, err := client.Dial(ctx, w.path, client.Options{StartWait: patience})
		dialled <- result{c, err}
	}()
	w.listen(t)
	r := <-dialled
	if r.err != nil {
		t.Fatal(r.err)
	}
	r.c.Close()

	w.refuse.Store(403)
	var re *client.RefusedError
	if _, err := client.Dial(ctx, w.path, client.Options{StartWait: time.Hour}); !errors.As(err, &re) || re.Status != 403 || strings.Contains(re.Error(), "second") || !strings.Contains(re.Error(), "fenced") {
		t.Fatal(err)
	}
	w.refuse.Store(0)

	// The socket of a daemon that has died is as good as none.
	w.stop()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := client.Dial(ctx, w.path, client.Options{}); !errors.Is(err, client.ErrNoDaemon) {
		t.Fatal(err)
	}
}

func TestSocketPathLength(t *testing.T) {
	dir, err := os.MkdirTemp("", "wattle")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fits := filepath.Join(dir, strings.Repeat("x", 107-len(dir)-1))
	if err := client.CheckSocketPath(fits); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", fits) // the kernel agrees
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = client.Dial(deadline(t), fits+"x", client.Options{StartWait: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "108 bytes, at most 107") || !strings.Contains(err.Error(), "WATTLE_SOCKET") {
		t.Fatal(err)
	}
	if l, err := net.Listen("unix", fits+"x"); err == nil {
		l.Close()
		t.Fatal("the kernel takes more than we allow")
	}
	if err := client.CheckSocketPath(""); err == nil {
		t.Fatal("an empty path")
	}
}
