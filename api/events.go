package api

import (
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
	"github.com/wattle-dev/wattle/trash/record"
)

// Place is a place in the stream of events: behind the event Seq of Epoch.
type Place struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
}

// EventsSubscribeParams ask for events on this connection. A connection has one
// subscription; the next one replaces it.
type EventsSubscribeParams struct {
	// SessionID restricts to one session.
	SessionID string `json:"sessionId,omitzero"`
	// Types restricts to these types; a gap always comes.
	Types []string `json:"types,omitzero"`
	// After is where to go on: what is newer is replayed, then it goes on
	// live. nil starts with the next event.
	After *Place `json:"after,omitzero"`
}

// Validate refuses a negative number and types that do not exist.
func (p *EventsSubscribeParams) Validate() error {
	if p.After != nil && p.After.Seq < 0 {
		return InvalidParams("/after/seq", "a negative number")
	}
	for _, t := range p.Types {
		if !knownEvent(t) {
			return InvalidParams("/types", "there are no events of type %q", clip(t))
		}
	}
	return nil
}

// EventsSubscribeResult is the place of the newest event at that moment.
type EventsSubscribeResult struct {
	Place
}

// GapReason says why events are missing.
type GapReason string

const (
	GapSlow    GapReason = "slow"    // the reader was too far behind
	GapEvicted GapReason = "evicted" // the log holds them no more
	GapEpoch   GapReason = "epoch"   // another life of the daemon
)

// The types of events (PROTOCOL section 2, Events).
var (
	EventSessionOpened      = newEvent[SessionOpenedData]("session.opened", "A session was opened.")
	EventSessionModeChanged = newEvent[SessionModeChangedData]("session.modeChanged", "The mode of a session changed.")
	EventSessionGranted     = newEvent[SessionGrantedData]("session.granted", "A path was granted to a session.")
	EventSessionDetached    = newEvent[SessionDetachedData]("session.detached", "The client of a session is gone.")
	EventSessionResumed     = newEvent[Empty]("session.resumed", "A client took a session over.")
	EventSessionClosed      = newEvent[SessionClosedData]("session.closed", "A session ended.")

	EventTurnBegan = newEvent[Empty]("turn.began", "A turn began.")
	EventTurnEnded = newEvent[TurnEndedData]("turn.ended", "A turn ended.")

	EventFSChanged = newEvent[FSChangedData]("fs.changed", "A call changed a file.")
	EventFSDenied  = newEvent[fence.Denial]("fs.denied", "The fence refused a call.")
	// The next two belong to one call and have no number; see [EncodeUnnumbered].
	EventFSChunk     = newEvent[FSChunkData]("fs.chunk", "A piece of a stream, for the connection that asked.")
	EventFSStreamEnd = newEvent[FSStreamEndData]("fs.streamEnd", "A stream is over, whole or with an error.")

	EventWatchChanged  = newEvent[WatchChangedData]("watch.changed", "What is watched may have changed.")
	EventWatchOverflow = newEvent[WatchOverflowData]("watch.overflow", "A watch lost changes: look at everything again.")
	EventWatchError    = newEvent[WatchErrorData]("watch.error", "A watch may miss changes from now on.")

	EventProcessStarted = newEvent[ProcessStartedData]("process.started", "A command started.")
	EventProcessOutput  = newEvent[ProcessOutputData]("process.output", "A command wrote something.")
	EventProcessExited  = newEvent[ProcessExitedData]("process.exited", "A command exited; its output may go on.")
	EventProcessClosed  = newEvent[ProcessClosedData]("process.closed", "A command is over, with its final state.")
	EventProcessDenied  = newEvent[ProcessDeniedData]("process.denied", "The fence refused something to a command.")

	EventScratchCreated     = newEvent[scratch.Created]("scratch.created", "A scratch directory, or one in it, was made.")
	EventScratchWritten     = newEvent[scratch.Written]("scratch.written", "A file in scratch was written.")
	EventScratchCleaned     = newEvent[scratch.Cleaned]("scratch.cleaned", "Scratch was cleaned.")
	EventScratchCleanFailed = newEvent[ScratchCleanFailedData]("scratch.cleanFailed", "Scratch could not be cleaned.")
	EventScratchSwept       = newEvent[scratch.SweepReport]("scratch.swept", "Scratch that a killed daemon left was looked through.")

	EventTrashPut      = newEvent[record.Entry]("trash.put", "Something went to the trash.")
	EventTrashRestored = newEvent[TrashRestoredData]("trash.restored", "Something came back from the trash.")
	EventTrashEmptied  = newEvent[TrashEmptiedData]("trash.emptied", "Things in the trash were removed for good.")

	EventGap            = newEvent[GapData]("gap", "Events are missing here.")
	EventServerStopping = newEvent[ServerStoppingData]("server.stopping", "The daemon stops.")
)

var eventTable = []*EventSpec{
	EventSessionOpened.EventSpec, EventSessionModeChanged.EventSpec, EventSessionGranted.EventSpec,
	EventSessionDetached.EventSpec, EventSessionResumed.EventSpec, EventSessionClosed.EventSpec,
	EventTurnBegan.EventSpec, EventTurnEnded.EventSpec,
	EventFSChanged.EventSpec, EventFSDenied.EventSpec, EventFSChunk.EventSpec, EventFSStreamEnd.EventSpec,
	EventWatchChanged.EventSpec, EventWatchOverflow.EventSpec, EventWatchError.EventSpec,
	EventProcessStarted.EventSpec, EventProcessOutput.EventSpec, EventProcessExited.EventSpec,
	EventProcessClosed.EventSpec, EventProcessDenied.EventSpec,
	EventScratchCreated.EventSpec, EventScratchWritten.EventSpec, EventScratchCleaned.EventSpec,
	EventScratchCleanFailed.EventSpec, EventScratchSwept.EventSpec,
	EventTrashPut.EventSpec, EventTrashRestored.EventSpec, EventTrashEmptied.EventSpec,
	EventGap.EventSpec, EventServerStopping.EventSpec,
}

// EventTypes are all types of events, in the order of PROTOCOL section 2.
func EventTypes() []EventSpec {
	out := make([]EventSpec, len(eventTable))
	for i, s := range eventTable {
		out[i] = *s
	}
	return out
}

func knownEvent(name string) bool {
	for _, s := range eventTable {
		if s.Name == name {
			return true
		}
	}
	return false
}

// SessionOpenedData describes the new session.
type SessionOpenedData struct {
	Workspace string     `json:"workspace"`
	Mode      fence.Mode `json:"mode"`
}

// SessionModeChangedData is the new and the former mode.
type SessionModeChangedData struct {
	Mode     fence.Mode `json:"mode"`
	Previous fence.Mode `json:"previous"`
}

// SessionGrantedData is what was granted.
type SessionGrantedData struct {
	Path   string       `json:"path"`
	Access fence.Access `json:"access"`
	Scope  GrantScope   `json:"scope"`
}

// SessionDetachedData says how long the session waits for a client; nil for
// ever.
type SessionDetachedData struct {
	TTLMs *int64 `json:"ttlMs"`
}

// CloseReason says why a session ended.
type CloseReason string

const (
	ClosedByClient   CloseReason = "client"       // session/close
	ClosedExpired    CloseReason = "expired"      // nobody resumed it in time
	ClosedDisconnect CloseReason = "disconnected" // onDisconnect was terminate
	ClosedByServer   CloseReason = "stopping"     // the daemon stops
)

// SessionClosedData says why a session ended.
type SessionClosedData struct {
	Reason CloseReason `json:"reason"`
}

// TurnEndedData is how a turn ended; see [TurnEndResult].
type TurnEndedData struct {
	Outcome TurnOutcome      `json:"outcome"`
	Cleaned *scratch.Cleaned `json:"cleaned"`
	Warning string           `json:"warning,omitzero"`
}

// ProcessStartedData describes the command.
type ProcessStartedData struct {
	ProcessID string   `json:"processId"`
	PID       int      `json:"pid"`
	Argv      []string `json:"argv"`
	Cwd       string   `json:"cwd"`
}

// ProcessOutputData is one chunk.
type ProcessOutputData struct {
	ProcessID string `json:"processId"`
	sandbox.Chunk
}

// ProcessExitedData is how the command itself ended. Exactly one of ExitCode
// and Signal is set.
type ProcessExitedData struct {
	ProcessID string `json:"processId"`
	ExitCode  *int   `json:"exitCode,omitzero"`
	Signal    string `json:"signal,omitzero"`
	TimedOut  bool   `json:"timedOut,omitzero"`
}

// ProcessClosedData is the final state: all output is out.
type ProcessClosedData struct {
	ProcessID string `json:"processId"`
	sandbox.State
}

// ProcessDeniedData is one refusal.
type ProcessDeniedData struct {
	ProcessID string `json:"processId"`
	fence.Denial
}

// ScratchCleanFailedData says what is left and why.
type ScratchCleanFailedData struct {
	Path   string `json:"path"`
	Code   string `json:"code,omitzero"` // a stable SCRATCH_ code
	Reason string `json:"reason"`
}

// GapData are the numbers of the first and last event that are missing. With
// GapEpoch nobody knows the numbers of the other life: From is 1.
type GapData struct {
	From   int64     `json:"from"`
	To     int64     `json:"to"`
	Reason GapReason `json:"reason"`
}

// ServerStoppingData says how long the daemon waits for what runs.
type ServerStoppingData struct {
	GraceMs int64 `json:"graceMs,omitzero"`
}
