package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
)

// BenchmarkOneCommand is what `wattle run` does: a host, a session, a command,
// everything closed again.
func BenchmarkOneCommand(b *testing.B) {
	base, err := os.MkdirTemp("/var/tmp", "wd")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(base)
	ws := filepath.Join(base, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		b.Fatal(err)
	}
	places, err := daemon.FindPlaces(func(name string) string {
		if name == "HOME" {
			return base
		}
		return ""
	})
	if err != nil {
		b.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	ctx := context.Background()
	for b.Loop() {
		h, err := daemon.NewHost(places, daemon.HostOptions{Ephemeral: true})
		if err != nil {
			b.Fatal(err)
		}
		s, err := h.Open(ctx, daemon.OpenRequest{Workspace: ws, Mode: fence.WorkspaceWrite})
		if err != nil {
			b.Fatal(err)
		}
		c, err := s.Start(ctx, daemon.StartRequest{Argv: []string{"/bin/true"}, Inherit: &[3]*os.File{null, null, null}})
		if err != nil {
			b.Fatal(err)
		}
		<-c.Process().Over()
		s.Close(ctx, api.ClosedByClient)
		h.Close()
	}
}
