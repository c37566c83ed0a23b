package api

import "github.com/wattle-dev/wattle/provider"

// FSWatchResult names the watch. It belongs to the session and ends with it; its
// events go to whoever subscribes to the session's, and may come before this.
type FSWatchResult struct {
	WatchID string `json:"watchId"`
	// Blind says why the watch cannot see what others change, if it cannot.
	Blind string `json:"blind,omitzero"`
}

// FSUnwatchParams end a watch.
type FSUnwatchParams struct {
	SessionID string `json:"sessionId"`
	WatchID   string `json:"watchId"`
}

// FSObservedResult is what the session knows of a file. In a session without
// observation it is always unseen.
type FSObservedResult struct {
	State provider.ObservationState `json:"state"`
	// Version is set with present.
	Version provider.Version `json:"version,omitzero"`
}
