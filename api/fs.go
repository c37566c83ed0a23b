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

// FSResolveParams ask for the identity of a path.
type FSResolveParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Cwd       string `json:"cwd,omitzero"`
}

// FSListDirResult lists a directory.
type FSListDirResult struct {
	Entries []provider.DirEntry `json:"entries"`
}

// FSReadTextParams read a text file.
type FSReadTextParams struct {
	FileRef
	provider.ReadOptions
}

// Validate checks the name and the cap.
func (p *FSReadTextParams) Validate() error {
	if p.MaxBytes < 0 {
		return InvalidParams("/maxBytes", "a negative size")
	}
	return p.FileRef.Validate()
}

// FSWriteTextParams write a file.
type FSWriteTextParams struct {
	FileRef
	Content string `json:"content"`
	provider.WriteOptions
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name, the guard and the mode of a new file.
func (p *FSWriteTextParams) Validate() error {
	if g := p.Expected; g != nil {
		switch {
		case g.Kind != provider.CreateIfAbsent && g.Kind != provider.ReplaceIfVersion:
			return InvalidParams("/expected/kind", "%q is none of createIfAbsent, replaceIfVersion", clip(string(g.Kind)))
		case g.Kind == provider.ReplaceIfVersion && g.Version == "":
			return InvalidParams("/expected/version", "replaceIfVersion needs a version")
		case g.Kind == provider.CreateIfAbsent && g.Version != "":
			return InvalidParams("/expected/version", "createIfAbsent takes no version")
		}
	}
	if p.Mode != nil && *p.Mode > 0o777 {
		return InvalidParams("/mode", "permission bits lie between 0 and 511")
	}
	if err := p.SandboxPolicy.validate("/sandboxPolicy"); err != nil {
		return err
	}
	return p.FileRef.Validate()
}

// FSEditTextParams edit a file.
type FSEditTextParams struct {
	FileRef
	Edit provider.EditRequest `json:"edit"`
	provider.EditOptions
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name and the guard.
func (p *FSEditTextParams) Validate() error {
	if p.Expected != nil && p.Expected.Version == "" {
		return InvalidParams("/expected/version", "an empty version")
	}
	if err := p.SandboxPolicy.validate("/sandboxPolicy"); err != nil {
		return err
	}
	return p.FileRef.Validate()
}
