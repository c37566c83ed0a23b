package daemon

import (
	"path/filepath"
	"sort"
	"strings"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// Explain tells which rule decides about a path, without touching it. A
// relative path is taken from dir.
func Explain(f *fence.Fence, dir, path string, access fence.Access) (api.FenceExplainResult, error) {
	if strings.TrimSpace(path) == "" {
		return api.FenceExplainResult{}, &provider.Error{Code: provider.CodeNotFound, Op: "explain", Detail: "the path must not be empty"}
	}
	p := path
	if !filepath.IsAbs(p) {
		p = dir + string(filepath.Separator) + p // not joined: `..` follows links as the kernel does
	}
	r, err := f.Resolve(p)
	if err != nil {
		return api.FenceExplainResult{}, &provider.Error{Code: provider.CodeNotFound, Op: "explain", Path: path, Detail: rootCause(err)}
	}
	at := r.Path
	if r.Dangling != "" && access.Mutates() && access != fence.Delete && access != fence.Rename {
		at = f.Unalias(r.Dangling) // a write would land where the link leads
	}
	out := api.FenceExplainResult{Path: at}
	if d := f.CheckAs(at, path, access); d != nil {
		out.Denial, out.Rule, out.RuleSource = d, d.Rule, d.RuleSource
		return out, nil
	}
	out.Allowed = true
	return out, nil
}

func sortOldestFirst(l []api.SessionInfo) {
	sort.Slice(l, func(i, j int) bool { return l[i].OpenedAt.Before(l[j].OpenedAt) })
}
