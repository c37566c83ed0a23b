package api

import (
	"fmt"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// FSWriteTextParams write a file.
type FSWriteTextParams struct {
	FileRef
	Content string `json:"content"`
	provider.WriteOptions
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name, the guard and the mode of a new file.
func (p *FSWriteTextParams) Validate() error {
	if err := checkIntent(p.Expected, "/expected"); err != nil {
		return err
	}
	if p.Mode != nil && *p.Mode > 0o777 {
		return InvalidParams("/mode", "permission bits lie between 0 and 511")
	}
	return first(p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
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
	return first(checkGuard(p.Expected, "/expected"), p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// FSPatchTextParams apply hunks to one file.
type FSPatchTextParams struct {
	FileRef
	Hunks []patch.Hunk `json:"hunks"`
	provider.EditOptions
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name, the guard and that the hunks are whole.
func (p *FSPatchTextParams) Validate() error {
	return first(checkHunks(p.Hunks, "/hunks"), checkGuard(p.Expected, "/expected"),
		p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// checkHunks wants both lists. What contradicts itself within them is for the
// provider to refuse: it has a code for that (FS_PATCH_MISMATCH).
func checkHunks(hunks []patch.Hunk, at string) error {
	for i := range hunks {
		h, at := &hunks[i], fmt.Sprintf("%s/%d", at, i)
		switch {
		case h.LineNumber < 0:
			return InvalidParams(at+"/lineNumber", "a negative number")
		case h.OldLines == nil:
			return InvalidParams(at+"/oldLines", "the member is missing")
		case h.NewLines == nil:
			return InvalidParams(at+"/newLines", "the member is missing")
		}
	}
	return nil
}

// FSApplyPatchParams apply a patch of any number of files.
type FSApplyPatchParams struct {
	SessionID string `json:"sessionId"`
	Patch     string `json:"patch"`
	provider.ApplyOptions
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name of the dialect.
func (p *FSApplyPatchParams) Validate() error {
	if p.Compat != "" && p.Compat != provider.CompatCodex {
		return InvalidParams("/compat", "%q is not %s", clip(p.Compat), provider.CompatCodex)
	}
	return p.SandboxPolicy.validate("/sandboxPolicy")
}
