package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/scratch"
)

// SessionRef names a session.
type SessionRef struct {
	SessionID string `json:"sessionId"`
}

// PolicyRef is a policy of a session: the name of a preset or of a policy file
// of the user, or a policy written out. Exactly one is set.
type PolicyRef struct {
	Name   string
	Inline jsontext.Value // an object
}

// UnmarshalJSON takes a string or an object.
func (p *PolicyRef) UnmarshalJSON(b []byte) error {
	v := jsontext.Value(b)
	switch v.Kind() {
	case '"':
		if p.Name = unquote(v); p.Name == "" {
			return InvalidParams("/policies", "a policy without a name")
		}
		return nil
	case '{':
		p.Inline = v.Clone()
		return nil
	}
	return InvalidParams("/policies", "a policy is a name or an object")
}

// MarshalJSON is the inverse.
func (p PolicyRef) MarshalJSON() ([]byte, error) {
	if p.Inline != nil {
		return p.Inline, nil
	}
	return encodeText(p.Name), nil
}

// SessionOpenParams open a session. The workspace must be an absolute path.
type SessionOpenParams struct {
	Workspace string `json:"workspace"`
	// Mode is read-only when it is not given.
	Mode          fence.Mode    `json:"mode,omitzero"`
	Policies      []PolicyRef   `json:"policies,omitzero"`
	WritableRoots []string      `json:"writableRoots,omitzero"`
	Network       fence.Network `json:"network,omitzero"`
	// Scratch is what differs from the daemon's configuration.
	Scratch     *scratch.Overrides `json:"scratch,omitzero"`
	Observation bool               `json:"observation,omitzero"`
	// DetachedTTLMs is how long the session outlives its connection; nil is
	// the daemon's own choice.
	DetachedTTLMs *int64       `json:"detachedTtlMs,omitzero"`
	OnDisconnect  OnDisconnect `json:"onDisconnect,omitzero"` // default keep
}

// Validate refuses a negative time.
func (p *SessionOpenParams) Validate() error {
	if p.DetachedTTLMs != nil && *p.DetachedTTLMs < 0 {
		return InvalidParams("/detachedTtlMs", "a negative time")
	}
	return nil
}

// SessionScratch is the scratch directory of a session.
type SessionScratch struct {
	Path      string            `json:"path"`
	AutoClean scratch.AutoClean `json:"autoClean"`
}

// SessionOpenResult describes a session to the one who holds it.
type SessionOpenResult struct {
	SessionID string `json:"sessionId"`
	// ResumeToken takes the session over from another connection. It is a
	// secret.
	ResumeToken string          `json:"resumeToken"`
	Workspace   string          `json:"workspace"`
	Mode        fence.Mode      `json:"mode"`
	Fence       fence.View      `json:"fence"`
	Scratch     *SessionScratch `json:"scratch"`
	// Prompt is the section about scratch for a model, the same bytes for the
	// life of the session (facts/scratch section 9); empty without a workspace.
	Prompt string `json:"prompt"`
}

// SessionResumeParams take a session over.
type SessionResumeParams struct {
	SessionRef
	ResumeToken string `json:"resumeToken"`
}

// SessionInfo is one open session.
type SessionInfo struct {
	SessionID string          `json:"sessionId"`
	Workspace string          `json:"workspace"`
	Mode      fence.Mode      `json:"mode"`
	State     SessionState    `json:"state"`
	OpenedAt  time.Time       `json:"openedAt"`
	Scratch   *SessionScratch `json:"scratch"`
	// TurnID is the turn that is under way, if there is one.
	TurnID    string `json:"turnId,omitzero"`
	Processes int    `json:"processes"` // that run
}

// SessionListResult lists sessions, oldest first.
type SessionListResult struct {
	Sessions []SessionInfo `json:"sessions"`
}

// SessionGetResult is one session with its fence.
type SessionGetResult struct {
	SessionInfo
	Fence fence.View `json:"fence"`
}

// SessionSetModeParams change the mode.
type SessionSetModeParams struct {
	SessionRef
	Mode fence.Mode `json:"mode"`
}

// SessionGrantParams widen a fence by one path.
type SessionGrantParams struct {
	SessionRef
	Path   string       `json:"path"`
	Access fence.Access `json:"access"`
	Scope  GrantScope   `json:"scope"`
}

// TurnBeginResult names the new turn.
type TurnBeginResult struct {
	TurnID string `json:"turnId"`
}

// TurnEndParams end a turn.
type TurnEndParams struct {
	SessionRef
	TurnID  string      `json:"turnId"`
	Outcome TurnOutcome `json:"outcome"`
}

// TurnEndResult says what was cleaned; nil when nothing was to be. A clean that
// failed is a warning, never a failure of the turn (facts/scratch section 4).
type TurnEndResult struct {
	Cleaned *scratch.Cleaned `json:"cleaned"`
	Warning string           `json:"warning,omitzero"`
}

// FenceStatusResult is a fence and what the kernel holds of it for commands.
type FenceStatusResult struct {
	Fence       fence.View        `json:"fence"`
	Enforcement fence.Enforcement `json:"enforcement"`
}

// FenceExplainParams ask about one path.
type FenceExplainParams struct {
	SessionRef
	Path   string       `json:"path"`
	Access fence.Access `json:"access"`
}

// FenceExplainResult is the rule that decides. Denial is set when it refuses.
type FenceExplainResult struct {
	Allowed    bool          `json:"allowed"`
	Path       string        `json:"path"` // canonical
	Rule       fence.Rule    `json:"rule,omitzero"`
	RuleSource string        `json:"ruleSource,omitzero"`
	Denial     *fence.Denial `json:"denial,omitzero"`
}
