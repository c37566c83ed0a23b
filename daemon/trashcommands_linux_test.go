package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/trash"
)

// TestCommandKeeper: what a command removed comes back by its id.
func TestCommandKeeper(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "wattle-keeper-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ws, file := filepath.Join(dir, "ws"), filepath.Join(dir, "ws", "f")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err := trash.New(trash.Config{DataHome: filepath.Join(dir, "share"), UID: os.Getuid()})
	if err != nil {
		t.Fatal(err)
	}
	defer bin.Close(context.Background())
	f, err := fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: ws, Devices: fence.DefaultDevices(), TrashCommands: true})
	if err != nil {
		t.Fatal(err)
	}
	r := sandbox.NewRunner(sandbox.Options{Keeper: daemon.CommandKeeper(bin)})
	defer r.Close()
	p, err := r.Start(t.Context(), sandbox.Spec{ID: "p1", Argv: []string{"/bin/rm", "f"}, Dir: ws, Fence: f})
	if err != nil {
		t.Fatal(err)
	}
	st, err := p.Wait(t.Context())
	if err != nil || st.Kept == nil || st.Kept.Count != 1 {
		t.Fatalf("%v %+v", err, st)
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("it was not removed")
	}
	if back, err := bin.RestoreGroup(t.Context(), "p1", trash.RestoreOptions{}); err != nil || back.Files != 1 {
		t.Errorf("%v %+v", err, back)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "kept" {
		t.Errorf("%q %v", b, err)
	}
}
