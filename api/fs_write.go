package api

import (
	"fmt"
	"strings"

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

// Validate checks the name, the guard and the form of the hunks.
func (p *FSPatchTextParams) Validate() error {
	return first(checkHunks(p.Hunks, "/hunks"), checkGuard(p.Expected, "/expected"),
		p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// checkHunks wants lines that are lines, and as many kinds as there are lines.
func checkHunks(hunks []patch.Hunk, at string) error {
	for i := range hunks {
		h, at := &hunks[i], fmt.Sprintf("%s/%d", at, i)
		if h.LineNumber < 0 {
			return InvalidParams(at+"/lineNumber", "a negative number")
		}
		if h.Context != nil && strings.Contains(*h.Context, "\n") {
			return InvalidParams(at+"/context", "a line has no line break")
		}
		if err := first(checkLines(h.OldLines, at+"/oldLines"), checkLines(h.NewLines, at+"/newLines")); err != nil {
			return err
		}
		if h.Kinds == "" {
			continue
		}
		context, removed, added := strings.Count(h.Kinds, string(patch.Context)), strings.Count(h.Kinds, string(patch.Removed)), strings.Count(h.Kinds, string(patch.Added))
		switch {
		case context+removed+added != len(h.Kinds):
			return InvalidParams(at+"/kinds", "a kind is a blank, - or +")
		case context+removed != len(h.OldLines), context+added != len(h.NewLines):
			return InvalidParams(at+"/kinds", "the kinds do not go with the lines")
		}
	}
	return nil
}

func checkLines(lines []string, at string) error {
	if lines == nil {
		return InvalidParams(at, "the member is missing")
	}
	for i, l := range lines {
		if strings.Contains(l, "\n") {
			return InvalidParams(fmt.Sprintf("%s/%d", at, i), "a line has no line break")
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
