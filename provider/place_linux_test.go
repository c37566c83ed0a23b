package provider_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// place is a workspace W and a directory O beside it.
type place struct {
	t    *testing.T
	l    *provider.Local
	f    *fence.Fence
	W, O string
}

func newPlace(t *testing.T, base string, c provider.Config) *place {
	t.Helper()
	if base == "" {
		base = t.TempDir()
	}
	p := &place{t: t, W: base + "/ws", O: base + "/out"}
	must(t, os.Mkdir(p.W, 0o755))
	must(t, os.Mkdir(p.O, 0o755))
	var err error
	p.f, err = fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: p.W})
	must(t, err)
	c.Cwd = p.W
	p.l, err = provider.NewLocal(c)
	must(t, err)
	return p
}

func (p *place) target(name string) provider.Target {
	p.t.Helper()
	t, err := p.l.Resolve(p.t.Context(), p.f, name, provider.ResolveOptions{})
	must(p.t, err)
	return t
}

func (p *place) put(name, content string) string {
	p.t.Helper()
	path := filepath.Join(p.W, name)
	must(p.t, os.WriteFile(path, []byte(content), 0o644))
	must(p.t, os.Chmod(path, 0o644))
	return path
}

func (p *place) get(name string) string {
	b, err := os.ReadFile(filepath.Join(p.W, name))
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

// version is that of a file now, by stat.
func (p *place) version(name string) provider.Version {
	p.t.Helper()
	i, err := p.l.Stat(p.t.Context(), p.f, p.target(name))
	must(p.t, err)
	return i.Version
}

// only fails when the workspace holds other names than these.
func (p *place) only(names ...string) {
	p.t.Helper()
	es, err := os.ReadDir(p.W)
	must(p.t, err)
	var got []string
	for _, e := range es {
		got = append(got, e.Name())
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		p.t.Errorf("names %q, want %q", got, names)
	}
}

func ifVersion(v provider.Version) provider.WriteOptions {
	return provider.WriteOptions{Expected: &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: v}}
}
