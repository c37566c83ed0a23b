package api

import (
	"time"

	"github.com/wattle-dev/wattle/fence"
)

// ProtocolVersion is the only version that is spoken.
const ProtocolVersion = "1"

// Empty is the parameters or the result of a method that needs none: {}.
type Empty struct{}

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Platform is the machine. Kernel is the release, as uname(2) gives it.
type Platform struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
}

// InitializeParams begin a connection.
type InitializeParams struct {
	ProtocolVersion string         `json:"protocolVersion"`
	Client          Implementation `json:"client"`
}

// Validate refuses versions that are not spoken.
func (p *InitializeParams) Validate() error {
	if p.ProtocolVersion != ProtocolVersion {
		return InvalidParams("/protocolVersion", "this server speaks version %q", ProtocolVersion)
	}
	return nil
}

// InitializeResult is what a client learns first. Enforcement is what a command
// in workspace-write would get now.
type InitializeResult struct {
	ProtocolVersion string            `json:"protocolVersion"`
	Server          Implementation    `json:"server"`
	Platform        Platform          `json:"platform"`
	Enforcement     fence.Enforcement `json:"enforcement"`
	// Epoch is this life of the daemon; see [Event].
	Epoch  string `json:"epoch"`
	Limits Limits `json:"limits"`
}

// ServerStatusResult is the state of the daemon.
type ServerStatusResult struct {
	Server      Implementation `json:"server"`
	Epoch       string         `json:"epoch"`
	PID         int            `json:"pid"`
	StartedAt   time.Time      `json:"startedAt"`
	UptimeMs    int64          `json:"uptimeMs"`
	Sessions    int            `json:"sessions"`
	Connections int            `json:"connections"`
	Processes   int            `json:"processes"` // that run
	// Counters only grow; Sizes are bytes or numbers of things at present.
	Counters map[string]int64 `json:"counters"`
	Sizes    map[string]int64 `json:"sizes"`
}
