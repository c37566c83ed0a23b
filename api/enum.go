package api

import (
	"fmt"
	"slices"
)

// parseEnum sets *to when text is one of the values, and lists them otherwise.
func parseEnum[T ~string](to *T, text []byte, values ...T) error {
	v := T(text)
	if !slices.Contains(values, v) {
		return fmt.Errorf("%q is none of %v", clip(string(text)), values)
	}
	*to = v
	return nil
}

// OnDisconnect is what happens to a session whose client is gone.
type OnDisconnect string

const (
	// DisconnectKeep lets it work on, detached, for its time to live.
	DisconnectKeep OnDisconnect = "keep"
	// DisconnectTerminate closes it.
	DisconnectTerminate OnDisconnect = "terminate"
)

// UnmarshalText refuses everything else.
func (o *OnDisconnect) UnmarshalText(b []byte) error {
	return parseEnum(o, b, DisconnectKeep, DisconnectTerminate)
}

// MarshalText is the inverse.
func (o OnDisconnect) MarshalText() ([]byte, error) { return []byte(o), nil }

// GrantScope is how long a grant holds.
type GrantScope string

const (
	ScopeOnce    GrantScope = "once"    // for the next call that needs it
	ScopeSession GrantScope = "session" // until the session is closed
)

// UnmarshalText refuses everything else.
func (g *GrantScope) UnmarshalText(b []byte) error {
	return parseEnum(g, b, ScopeOnce, ScopeSession)
}

// MarshalText is the inverse.
func (g GrantScope) MarshalText() ([]byte, error) { return []byte(g), nil }

// TurnOutcome is how a turn ended.
type TurnOutcome string

const (
	TurnCompleted TurnOutcome = "completed"
	TurnFailed    TurnOutcome = "failed"
	TurnAborted   TurnOutcome = "aborted"
)

// UnmarshalText refuses everything else.
func (t *TurnOutcome) UnmarshalText(b []byte) error {
	return parseEnum(t, b, TurnCompleted, TurnFailed, TurnAborted)
}

// MarshalText is the inverse.
func (t TurnOutcome) MarshalText() ([]byte, error) { return []byte(t), nil }

// SessionState tells whether a client holds a session.
type SessionState string

const (
	SessionAttached SessionState = "attached"
	SessionDetached SessionState = "detached"
)
