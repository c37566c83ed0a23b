package sandbox

import (
	"github.com/wattle-dev/wattle/fence"
)

// Stable codes of errors (PROTOCOL section 1).
const (
	// CodeUnavailable: this machine cannot hold the fence that was asked for.
	CodeUnavailable = "SANDBOX_UNAVAILABLE"
	// CodeStartFailed: the fence stands, but the command could not be executed.
	CodeStartFailed = "PROCESS_START_FAILED"
	// CodeCommandNotFound: no such program; exit status 127 of a shell.
	CodeCommandNotFound = "PROCESS_COMMAND_NOT_FOUND"
	// CodeInvalid: the request itself makes no sense.
	CodeInvalid = "PROCESS_INVALID"
	// CodeNotRunning: the process has exited.
	CodeNotRunning = "PROCESS_NOT_RUNNING"
	// CodeStdinClosed: there is no standard input to write to.
	CodeStdinClosed = "PROCESS_STDIN_CLOSED"
)

// Error is a failure of this room with its stable code.
type Error struct {
	Code string
	Op   string
	Err  error
}

func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Stream names where output came from. With a terminal all is stdout.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Chunk is a piece of output. Seq counts chunks of one process from 1 without
// holes, over both streams; a missing number means that the piece was dropped.
type Chunk struct {
	Seq    int64  `json:"seq"`
	Stream Stream `json:"stream"`
	Data   []byte `json:"data"` // base64 on the wire
}

// TTY asks for a terminal of that size.
type TTY struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// OnExit says what happens to what a command leaves running when it exits.
type OnExit string

const (
	// ExitKill ends it: the default.
	ExitKill OnExit = "kill"
	// ExitKeep lets it live, listed, until the turn or the session ends.
	ExitKeep OnExit = "keep"
)

// Survivor is a process that was still alive when its command had exited.
type Survivor struct {
	PID     int    `json:"pid"`
	Process string `json:"process"`
}

// Usage is what a command and its reaped descendants used.
type Usage struct {
	UserMs      int64 `json:"userMs"`
	SystemMs    int64 `json:"systemMs"`
	MaxRSSBytes int64 `json:"maxRssBytes"`
	WallMs      int64 `json:"wallMs"`
}

// State is the final state of a command (PROTOCOL section 2, Commands).
// Exactly one of ExitCode and Signal is set once the command has exited.
type State struct {
	ExitCode *int   `json:"exitCode,omitzero"`
	Signal   string `json:"signal,omitzero"` // "SIGKILL", …
	TimedOut bool   `json:"timedOut"`
	// Denials are refusals by the fence, equal ones counted, in order of first
	// appearance.
	Denials          []fence.Denial `json:"denials"`
	DenialsTruncated bool           `json:"denialsTruncated"`
	Survivors        []Survivor     `json:"survivors"`
	Usage            Usage          `json:"usage"`
	// Kept is nil where nothing was to be kept, or no supervisor was there to
	// see to it.
	Kept *Kept `json:"kept,omitzero"`
}

// Output is the answer to a read of a command's output.
type Output struct {
	Chunks    []Chunk        `json:"chunks"`
	NextSeq   int64          `json:"nextSeq"`
	Exited    bool           `json:"exited"`
	ExitCode  *int           `json:"exitCode,omitzero"`
	Signal    string         `json:"signal,omitzero"`
	Closed    bool           `json:"closed"`
	Truncated bool           `json:"truncated"` // chunks before the first one were dropped
	Denials   []fence.Denial `json:"denials"`
}
