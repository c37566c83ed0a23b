package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
)

// fenceFlags are the flags that say what fence is meant.
type fenceFlags struct {
	mode      fence.Mode
	workspace string
	policies  []string // names and files, in order
	write     []string
	network   fence.Network
}

// add registers the flags that every command with a fence has.
func (f *fenceFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.TextVar(&f.mode, "mode", f.mode, "`MODE` is read-only, workspace-write (the default) or full-access")
	fl.StringVar(&f.workspace, "workspace", "", "the workspace, default the current `DIR`")
	fl.StringArrayVar(&f.policies, "policy", nil, "a policy on top of the defaults, by `NAME|FILE`; may be repeated")
	complete(cmd, "mode", string(fence.ReadOnly), string(fence.WorkspaceWrite), string(fence.FullAccess))
	completeBy(cmd, "policy", policyNames)
}

// addRoots registers the flags of commands whose fence may be wider.
func (f *fenceFlags) addRoots(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.write, "write", nil, "another writable `DIR`; may be repeated")
	fl.TextVar(&f.network, "network", f.network, "`on|off|loopback`, instead of what the policies say")
	complete(cmd, "network", string(fence.NetworkOn), string(fence.NetworkOff), string(fence.NetworkLoopback))
}

// complete tells shells the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	completeBy(cmd, flag, func() []string { return values })
}

// completeBy is complete for values that take time to find.
func completeBy(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveDefault
	})
	if err != nil {
		panic(err) // the flag was registered one line above
	}
}

func policyNames() []string {
	var out []string
	for _, p := range policies.Presets() {
		out = append(out, p.Name)
	}
	return out
}

// isFile tells a file from a name: names of policies hold no separator.
func isFile(policy string) bool {
	return strings.ContainsRune(policy, filepath.Separator) || strings.Contains(policy, "/") || strings.HasSuffix(policy, ".toml")
}

// absolute makes a path absolute without resolving a link or a "..": what the
// kernel makes of them is for the fence to find out.
func absolute(p string) (string, error) {
	if p == "" || filepath.IsAbs(p) {
		return p, nil
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find current directory: %w", err)
	}
	if p == "." {
		return wd, nil
	}
	return wd + string(filepath.Separator) + p, nil
}

// request makes the request for a session in this process. The mode is the
// flag's; else that of the last policy which names one, for a policy that
// narrows must not be widened by a default; else workspace-write.
func (f *fenceFlags) request(h *daemon.Host) (daemon.OpenRequest, error) {
	req := daemon.OpenRequest{Mode: f.mode, Network: f.network}
	ws := f.workspace
	if ws == "" {
		ws = "."
	}
	var err error
	if req.Workspace, err = absolute(ws); err != nil {
		return req, err
	}
	for _, w := range f.write {
		if w, err = absolute(w); err != nil {
			return req, err
		}
		req.WritableRoots = append(req.WritableRoots, w)
	}
	var docs []policies.Document
	lib := h.Library(req.Workspace)
	for _, p := range f.policies {
		d, err := load(lib, p)
		if err != nil {
			return req, err
		}
		docs = append(docs, d)
		if isFile(p) {
			req.Documents = append(req.Documents, d)
		} else {
			req.Policies = append(req.Policies, p)
		}
	}
	if req.Mode == "" && !slices.ContainsFunc(docs, func(d policies.Document) bool { return d.Mode != "" }) {
		req.Mode = fence.WorkspaceWrite
	}
	return req, nil
}

// load reads a policy that a person named.
func load(lib policies.Library, p string) (policies.Document, error) {
	if !isFile(p) {
		return lib.Load(p)
	}
	path, err := absolute(p)
	if err != nil {
		return policies.Document{}, err
	}
	return lib.LoadFile(path)
}

// params makes the same request for the daemon. Files are read here: the daemon
// reads none that a client names.
func (f *fenceFlags) params(lib policies.Library) (api.SessionOpenParams, error) {
	p := api.SessionOpenParams{Mode: f.mode, Network: f.network, OnDisconnect: api.DisconnectTerminate}
	ws := f.workspace
	if ws == "" {
		ws = "."
	}
	var err error
	if p.Workspace, err = absolute(ws); err != nil {
		return p, err
	}
	lib.Workspace = p.Workspace
	named := false
	for _, name := range f.policies {
		if !isFile(name) && f.mode != "" {
			p.Policies = append(p.Policies, api.PolicyRef{Name: name})
			continue
		}
		d, err := load(lib, name)
		if err != nil && !isFile(name) {
			return p, hinted(err, "if only the daemon has this policy, name a mode with --mode")
		}
		if err != nil {
			return p, err
		}
		named = named || d.Mode != ""
		if !isFile(name) {
			p.Policies = append(p.Policies, api.PolicyRef{Name: name})
			continue
		}
		inline, err := json.Marshal(&d, outgoing)
		if err != nil {
			return p, fmt.Errorf("encode policy %s: %w", name, err)
		}
		p.Policies = append(p.Policies, api.PolicyRef{Inline: inline})
	}
	if p.Mode == "" && !named {
		p.Mode = fence.WorkspaceWrite
	}
	return p, nil
}
