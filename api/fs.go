package api

import (
	"path/filepath"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// FileRef names a file of a session: by path, or by a target that fs/resolve
// gave. Exactly one is set.
type FileRef struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path,omitzero"`
	// Cwd is what a relative path is relative to; default the workspace.
	Cwd    string           `json:"cwd,omitzero"`
	Target *provider.Target `json:"target,omitzero"`
}

// Validate wants one way of naming, not both. A blank path, or none, is the
// provider's to refuse (FS_NOT_FOUND, fs-contract section 3).
func (f *FileRef) Validate() error {
	switch {
	case f.Target != nil && f.Path != "":
		return InvalidParams("/target", "path and target exclude each other")
	case f.Target != nil && f.Cwd != "":
		return InvalidParams("/cwd", "a target needs no cwd")
	case f.Target != nil && f.Target.TargetKey == "":
		return InvalidParams("/target/targetKey", "an empty key")
	}
	return nil
}

// SandboxPolicy is a mode for one call alone. WorkspaceRoot, if given, replaces
// the session's workspace for it.
type SandboxPolicy struct {
	Mode          fence.Mode `json:"mode"`
	WorkspaceRoot string     `json:"workspaceRoot,omitzero"`
}

func (s *SandboxPolicy) validate(at string) error {
	if s != nil && s.WorkspaceRoot != "" && !filepath.IsAbs(s.WorkspaceRoot) {
		return InvalidParams(at+"/workspaceRoot", "the path must be absolute")
	}
	return nil
}

// checkIntent wants exactly what the kind needs.
func checkIntent(g *provider.WriteIntent, at string) error {
	switch {
	case g == nil:
		return nil
	case g.Kind != provider.CreateIfAbsent && g.Kind != provider.ReplaceIfVersion:
		return InvalidParams(at+"/kind", "%q is none of createIfAbsent, replaceIfVersion", clip(string(g.Kind)))
	case g.Kind == provider.ReplaceIfVersion && g.Version == "":
		return InvalidParams(at+"/version", "replaceIfVersion needs a version")
	case g.Kind == provider.CreateIfAbsent && g.Version != "":
		return InvalidParams(at+"/version", "createIfAbsent takes no version")
	}
	return nil
}

// checkGuard wants a version.
func checkGuard(g *provider.VersionGuard, at string) error {
	if g != nil && g.Version == "" {
		return InvalidParams(at+"/version", "an empty version")
	}
	return nil
}

// first gives the first error of a list.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// FSResolveParams ask for the identity of a path.
type FSResolveParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Cwd       string `json:"cwd,omitzero"`
}

// FSProcessPathResult is the canonical path that a child process can open.
type FSProcessPathResult struct {
	Path string `json:"path"`
}

// FSHostPathParams name an absolute path of the host.
type FSHostPathParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
}

// FSHostPathResult is the path in the world of the session; nil when there is
// none, as for a relative path.
type FSHostPathResult struct {
	Path *string `json:"path"`
}

// FSFileURLResult is a file: URI.
type FSFileURLResult struct {
	URL string `json:"url"`
}

// FSContainsParams are two targets that fs/resolve gave.
type FSContainsParams struct {
	SessionID string          `json:"sessionId"`
	Parent    provider.Target `json:"parent"`
	Child     provider.Target `json:"child"`
}

// Validate wants keys.
func (p *FSContainsParams) Validate() error {
	switch {
	case p.Parent.TargetKey == "":
		return InvalidParams("/parent/targetKey", "an empty key")
	case p.Child.TargetKey == "":
		return InvalidParams("/child/targetKey", "an empty key")
	}
	return nil
}

// FSContainsResult tells whether child is parent or lies below it.
type FSContainsResult struct {
	Contains bool `json:"contains"`
}
