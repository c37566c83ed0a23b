//go:build unix

package providertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// World is one provider and fresh directories for it: W is the workspace, O
// lies outside, beside it. E is a twin of W by name: W's path and "-evil".
type World struct {
	T        *testing.T
	P        provider.Provider
	W, O, E  string
	WS       *fence.Fence // workspace-write
	RO       *fence.Fence // read-only
	Full     *fence.Fence // full-access
	Keep     *fence.Fence // workspace-write, and what is overwritten is kept
	Deadline context.Context
}

// NewWorld makes one. W/.git/hooks and W/.codex are protected, the names
// *.secret hidden.
func NewWorld(t *testing.T, p provider.Provider) *World {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{T: t, P: p, W: base + "/ws", O: base + "/out", E: base + "/ws-evil"}
	for _, d := range []string{w.W, w.O, w.E} {
		w.must(os.Mkdir(d, 0o700))
		w.must(os.Chmod(d, 0o755))
	}
	w.WS, w.RO, w.Full = w.fence(fence.WorkspaceWrite), w.fence(fence.ReadOnly), w.fence(fence.FullAccess)
	keep := w.WS.Policy()
	keep.KeepOverwritten = true
	w.Keep, err = fence.New(keep)
	w.must(err)
	return w
}

func (w *World) roots() map[string]string { return map[string]string{"W": w.W, "O": w.O, "E": w.E} }

func (w *World) fence(m fence.Mode) *fence.Fence {
	f, err := fence.New(fence.Policy{
		Mode: m, Workspace: w.W,
		Protected: []fence.Protection{
			{Match: "**/.git/hooks", Source: "preset:git"}, {Match: "**/.codex", Source: "preset:agents"},
		},
		Hidden: []fence.Entry{{Path: "/**/*.secret", Source: "preset:secrets"}},
	})
	w.must(err)
	return f
}

// Resolve gives the target of a name (W/a) as the mode's fence sees it.
func (w *World) Resolve(name string) provider.Target {
	w.T.Helper()
	t, err := w.P.Resolve(w.T.Context(), w.Full, w.Path(name), provider.ResolveOptions{})
	w.must(err)
	return t
}

// Version is the version of a file now, as stat gives it.
func (w *World) Version(name string) provider.Version {
	w.T.Helper()
	i, err := w.P.Stat(w.T.Context(), w.Full, w.Resolve(name))
	w.must(err)
	if i == nil {
		w.T.Fatalf("%s is not there", name)
	}
	return i.Version
}

// op is one operation of a row. It gives the error of the provider.
type op func(w *World) error

// row is one line of a table.
type row struct {
	name string
	disk func(w *World)
	do   op
	code provider.Code // empty: success
	// after is all that differs afterwards; nil: nothing may.
	after disk
	// as is "root", "user" or empty for both.
	as string
}

func run(t *testing.T, mk Make, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			asRoot := os.Geteuid() == 0
			if r.as == "root" && !asRoot || r.as == "user" && asRoot {
				t.Skipf("SKIP: this row is for %s", r.as)
			}
			w := NewWorld(t, mk(t))
			if r.disk != nil {
				r.disk(w)
			}
			before := w.snapshot()
			err := r.do(w)
			if got := provider.CodeOf(err); got != r.code || (err == nil) != (r.code == "") {
				t.Errorf("code %q, want %q; error: %v", got, r.code, err)
			}
			w.checkError(err)
			got := changes(before, w.snapshot())
			want := r.after
			if want == nil {
				want = disk{}
			}
			if got.String() != want.String() {
				t.Errorf("changes on disk:%v\nwant:%v", got, want)
			}
		})
	}
}

// checkError holds every error to the rules of all errors.
func (w *World) checkError(err error) {
	if err == nil {
		return
	}
	w.T.Helper()
	var e *provider.Error
	if !errors.As(err, &e) {
		w.T.Errorf("not a *provider.Error: %v", err)
		return
	}
	if e.Op == "" {
		w.T.Errorf("no operation in %#v", e)
	}
	var d *fence.Denial
	if errors.As(err, &d) != (e.Code == provider.CodeSandboxDenied) {
		w.T.Errorf("a denial and the code must go together: %v", err)
	}
	if d != nil && (d.Path == "" || d.Rule == "" || d.Mode == "" || d.Hint == "") {
		w.T.Errorf("the denial is not whole: %+v", d)
	}
	if e.Code == provider.CodePermissionDenied && e.Errno != "EACCES" && e.Errno != "EPERM" {
		w.T.Errorf("FS_PERMISSION_DENIED without its errno: %+v", e)
	}
}

// The operations, short enough for tables. mode is ws, ro, full or keep.

func (w *World) mode(m string) *fence.Fence {
	switch m {
	case "ws":
		return w.WS
	case "ro":
		return w.RO
	case "full":
		return w.Full
	case "keep":
		return w.Keep
	}
	w.T.Fatalf("no such mode: %s", m)
	return nil
}

// write resolves and writes.
func write(mode, name, content string, o provider.WriteOptions) op {
	return func(w *World) error {
		t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(name), provider.ResolveOptions{})
		if err != nil {
			return err
		}
		_, err = w.P.WriteText(w.T.Context(), w.mode(mode), t, content, o)
		return err
	}
}

func edit(mode, name, from, to string, o provider.EditOptions) op {
	return func(w *World) error {
		t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(name), provider.ResolveOptions{})
		if err != nil {
			return err
		}
		_, err = w.P.EditText(w.T.Context(), w.mode(mode), t, provider.EditRequest{OldString: from, NewString: to}, o)
		return err
	}
}

func read(mode, name string) op {
	return func(w *World) error {
		t, err := w.P.Resolve(w.T.Context(), w.mode(mode), w.Path(name), provider.ResolveOptions{})
		if err != nil {
			return err
		}
		_, err = w.P.ReadText(w.T.Context(), w.mode(mode), t, provider.ReadOptions{})
		return err
	}
}

var (
	noGuard  = provider.WriteOptions{}
	ifAbsent = provider.WriteOptions{Expected: &provider.WriteIntent{Kind: provider.CreateIfAbsent}}
)

func ifVersion(v provider.Version) provider.WriteOptions {
	return provider.WriteOptions{Expected: &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: v}}
}
