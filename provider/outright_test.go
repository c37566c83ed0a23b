package provider_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

func TestOutright(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, d := range []string{"tmp/ws", "tmp/root", "tmp/scratch", "home", "ws/tmp", "tmp-evil"} {
		must(t, os.MkdirAll(base+"/"+d, 0o755))
	}
	at := func(p string) string { return base + "/" + p }
	policy := func(ws string, more ...string) fence.Policy {
		p := fence.Policy{Mode: fence.WorkspaceWrite, Workspace: at(ws), Scratch: at("tmp/scratch")}
		for _, m := range more {
			p.Writable = append(p.Writable, fence.Entry{Path: at(m), Source: "session"})
		}
		return p
	}
	full := policy("tmp/ws")
	full.Mode = fence.FullAccess
	tests := []struct {
		name      string
		policy    fence.Policy
		path      string
		permanent bool
		off       bool
		temp      string
		want      bool
	}{
		{name: "a file of the workspace", policy: policy("ws"), path: "ws/f"},
		{name: "asked for", policy: policy("ws"), path: "ws/f", permanent: true, want: true},
		{name: "the trash is off", policy: policy("ws"), path: "ws/f", off: true, want: true},
		{name: "temporary, outside", policy: policy("ws"), path: "tmp/f", want: true},
		{name: "temporary, full-access", policy: full, path: "tmp/f", want: true},
		{name: "prefix twin", policy: policy("ws"), path: "tmp-evil/f"},
		{name: "the temporary directory itself", policy: policy("ws"), path: "tmp"},
		{name: "compat_tmp", policy: policy("ws", "tmp"), path: "tmp/f", want: true},
		{name: "workspace below it", policy: policy("tmp/ws"), path: "tmp/ws/f"},
		{name: "workspace below it, full-access", policy: full, path: "tmp/ws/f"},
		{name: "workspace below it, compat_tmp", policy: policy("tmp/ws", "tmp"), path: "tmp/ws/f"},
		{name: "beside a workspace below it, compat_tmp", policy: policy("tmp/ws", "tmp"), path: "tmp/f", want: true},
		{name: "a root below it", policy: policy("ws", "tmp/root"), path: "tmp/root/a/f"},
		{name: "scratch below it", policy: policy("ws"), path: "tmp/scratch/f", want: true},
		{name: "the workspace is it", policy: policy("tmp"), path: "tmp/f"},
		{name: "it lies in the workspace", policy: policy("ws"), temp: "ws/tmp", path: "ws/tmp/f"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := fence.New(tt.policy)
			must(t, err)
			if tt.temp == "" {
				tt.temp = "tmp"
			}
			l, err := provider.NewLocal(provider.Config{TrashOff: tt.off, TempDirs: []string{at(tt.temp)}})
			must(t, err)
			if got := provider.Outright(l, f, at(tt.path), tt.permanent); got != tt.want {
				t.Errorf("outright %v, want %v", got, tt.want)
			}
		})
	}
}
