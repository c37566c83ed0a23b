package api

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// FSDeleteFileParams delete a regular file.
type FSDeleteFileParams struct {
	FileRef
	provider.DeleteOptions
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name and the guard.
func (p *FSDeleteFileParams) Validate() error {
	return first(checkGuard(p.Expected, "/expected"), p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// FSDeletePathParams delete a file, a directory or a link itself. The members
// are those of [provider.DeletePathOptions].
type FSDeletePathParams struct {
	FileRef
	Expected      *provider.VersionGuard `json:"expected,omitzero"`
	Permanent     bool                   `json:"permanent,omitzero"`
	Recursive     bool                   `json:"recursive,omitzero"`
	CopyAcross    bool                   `json:"copyAcross,omitzero"`
	Links         string                 `json:"links,omitzero"`
	SandboxPolicy *SandboxPolicy         `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name, the guard and the word for links.
func (p *FSDeletePathParams) Validate() error {
	if p.Links != "" && p.Links != provider.LinksReject {
		return InvalidParams("/links", "%q is not %s", clip(p.Links), provider.LinksReject)
	}
	return first(checkGuard(p.Expected, "/expected"), p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// Destination is where a file goes: a path, relative to the cwd of the call, or
// a target that fs/resolve gave.
type Destination struct {
	Path   string
	Target *provider.Target
}

// UnmarshalJSON takes a string or an object.
func (d *Destination) UnmarshalJSON(b []byte) error {
	v := jsontext.Value(b)
	*d = Destination{}
	switch v.Kind() {
	case '"':
		d.Path = unquote(v)
		return nil
	case '{':
		d.Target = new(provider.Target)
		return json.Unmarshal(v, d.Target, incoming)
	}
	return InvalidParams("/destination", "a destination is a path or a target")
}

// MarshalJSON is the inverse.
func (d Destination) MarshalJSON() ([]byte, error) {
	if d.Target != nil {
		return json.Marshal(d.Target, outgoing)
	}
	return encodeText(d.Path), nil
}

// FSMoveFileParams publish a file at another place and remove it at the first.
type FSMoveFileParams struct {
	FileRef
	Destination         Destination            `json:"destination"`
	Hunks               []patch.Hunk           `json:"hunks,omitzero"`
	ExpectedSource      *provider.VersionGuard `json:"expectedSource,omitzero"`
	ExpectedDestination *provider.WriteIntent  `json:"expectedDestination,omitzero"`
	OverrideReadOnly    bool                   `json:"overrideReadOnly,omitzero"`
	SandboxPolicy       *SandboxPolicy         `json:"sandboxPolicy,omitzero"`
}

// Validate checks the names, the guards and the hunks.
func (p *FSMoveFileParams) Validate() error {
	if t := p.Destination.Target; t != nil && t.TargetKey == "" {
		return InvalidParams("/destination/targetKey", "an empty key")
	}
	return first(checkHunks(p.Hunks, "/hunks"), checkGuard(p.ExpectedSource, "/expectedSource"),
		checkIntent(p.ExpectedDestination, "/expectedDestination"), p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// FSMovePathParams move a file, a directory or a link itself.
type FSMovePathParams struct {
	FileRef
	Destination   string         `json:"destination"`
	Overwrite     bool           `json:"overwrite,omitzero"`
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name.
func (p *FSMovePathParams) Validate() error {
	return first(p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// FSCopyPathParams copy a file, a link itself, or with Recursive a directory.
type FSCopyPathParams struct {
	FileRef
	Destination   string         `json:"destination"`
	Overwrite     bool           `json:"overwrite,omitzero"`
	Recursive     bool           `json:"recursive,omitzero"`
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name.
func (p *FSCopyPathParams) Validate() error {
	return first(p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}

// FSMakeDirParams make a directory.
type FSMakeDirParams struct {
	FileRef
	Parents       bool           `json:"parents,omitzero"`
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks the name.
func (p *FSMakeDirParams) Validate() error {
	return first(p.SandboxPolicy.validate("/sandboxPolicy"), p.FileRef.Validate())
}
