package api

import (
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// ProcessRef names a command.
type ProcessRef struct {
	ProcessID string `json:"processId"`
}

// ProcessStartParams start a command. Exactly one of Argv and Command is set.
type ProcessStartParams struct {
	SessionID string `json:"sessionId"`
	// ProcessID is the client's own name for the command, if it wants one.
	ProcessID string   `json:"processId,omitzero"`
	Argv      []string `json:"argv,omitzero"`
	// Command is a string for /bin/sh -c.
	Command string `json:"command,omitzero"`
	// Cwd is relative to the workspace, or absolute; default the workspace.
	Cwd string `json:"cwd,omitzero"`
	// Env is added to the environment that the policy builds.
	Env map[string]string `json:"env,omitzero"`
	TTY *sandbox.TTY      `json:"tty,omitzero"`
	// Stdin: the command gets a standard input that process/write feeds;
	// otherwise it reads end of file at once.
	Stdin          bool           `json:"stdin,omitzero"`
	TimeoutMs      int64          `json:"timeoutMs,omitzero"`
	MaxOutputBytes int64          `json:"maxOutputBytes,omitzero"` // what is kept for process/read
	Network        fence.Network  `json:"network,omitzero"`
	OnExit         sandbox.OnExit `json:"onExit,omitzero"` // default kill
	SandboxPolicy  *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// Validate checks what the types cannot say.
func (p *ProcessStartParams) Validate() error {
	switch {
	case (len(p.Argv) == 0) == (p.Command == ""):
		return InvalidParams("/argv", "exactly one of argv and command is needed")
	case len(p.Argv) > 0 && p.Argv[0] == "":
		return InvalidParams("/argv/0", "the program has no name")
	case p.TimeoutMs < 0:
		return InvalidParams("/timeoutMs", "a negative time")
	case p.MaxOutputBytes < 0:
		return InvalidParams("/maxOutputBytes", "a negative size")
	case p.OnExit != "" && p.OnExit != sandbox.ExitKill && p.OnExit != sandbox.ExitKeep:
		return InvalidParams("/onExit", "%q is none of kill, keep", clip(string(p.OnExit)))
	}
	return p.SandboxPolicy.validate("/sandboxPolicy")
}

// ProcessStartResult says what holds the command.
type ProcessStartResult struct {
	ProcessID   string            `json:"processId"`
	PID         int               `json:"pid"`
	Enforcement fence.Enforcement `json:"enforcement"`
}

// ProcessReadParams read output behind the chunk AfterSeq; 0 is from the start
// of what is kept. With WaitMs an empty answer is held back that long at most.
type ProcessReadParams struct {
	ProcessRef
	AfterSeq int64 `json:"afterSeq,omitzero"`
	MaxBytes int64 `json:"maxBytes,omitzero"`
	WaitMs   int64 `json:"waitMs,omitzero"`
}

// Validate refuses negative numbers.
func (p *ProcessReadParams) Validate() error {
	switch {
	case p.AfterSeq < 0:
		return InvalidParams("/afterSeq", "a negative number")
	case p.MaxBytes < 0:
		return InvalidParams("/maxBytes", "a negative size")
	case p.WaitMs < 0:
		return InvalidParams("/waitMs", "a negative time")
	}
	return nil
}

// ProcessWriteParams write to the standard input. A WriteID that was used
// before for this command is accepted and not written again.
type ProcessWriteParams struct {
	ProcessRef
	Data    []byte `json:"data"` // base64 on the wire
	WriteID string `json:"writeId,omitzero"`
}

// ProcessWriteResult says whether the data was written before.
type ProcessWriteResult struct {
	Duplicate bool `json:"duplicate,omitzero"`
}

// ProcessResizeParams give the new size of the terminal.
type ProcessResizeParams struct {
	ProcessRef
	sandbox.TTY
}

// Validate refuses a terminal without area.
func (p *ProcessResizeParams) Validate() error {
	switch {
	case p.Cols == 0:
		return InvalidParams("/cols", "a terminal has at least one column")
	case p.Rows == 0:
		return InvalidParams("/rows", "a terminal has at least one row")
	}
	return nil
}

// ProcessSignalParams name a signal as signal(7) does: "SIGTERM".
type ProcessSignalParams struct {
	ProcessRef
	Signal string `json:"signal"`
}

// ProcessTerminateParams end a command: politely, and after GraceMs by force.
type ProcessTerminateParams struct {
	ProcessRef
	GraceMs *int64 `json:"graceMs,omitzero"`
}

// Validate refuses a negative time.
func (p *ProcessTerminateParams) Validate() error {
	if p.GraceMs != nil && *p.GraceMs < 0 {
		return InvalidParams("/graceMs", "a negative time")
	}
	return nil
}

// ProcessWaitParams wait for the final state; nil waits as long as it takes.
// When the time is over first: PROCESS_WAIT_TIMEOUT.
type ProcessWaitParams struct {
	ProcessRef
	TimeoutMs *int64 `json:"timeoutMs,omitzero"`
}

// Validate refuses a negative time.
func (p *ProcessWaitParams) Validate() error {
	if p.TimeoutMs != nil && *p.TimeoutMs < 0 {
		return InvalidParams("/timeoutMs", "a negative time")
	}
	return nil
}

// ProcessInfo is one command of a session.
type ProcessInfo struct {
	ProcessID string         `json:"processId"`
	SessionID string         `json:"sessionId"`
	TurnID    string         `json:"turnId,omitzero"` // in which it was started
	PID       int            `json:"pid"`
	Argv      []string       `json:"argv"`
	Cwd       string         `json:"cwd"`
	OnExit    sandbox.OnExit `json:"onExit"`
	StartedAt time.Time      `json:"startedAt"`
	Exited    bool           `json:"exited"`
	ExitCode  *int           `json:"exitCode,omitzero"`
	Signal    string         `json:"signal,omitzero"`
	Closed    bool           `json:"closed"`
}

// ProcessListResult lists commands, oldest first.
type ProcessListResult struct {
	Processes []ProcessInfo `json:"processes"`
}
