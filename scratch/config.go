package scratch

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// AutoClean says when a session's directory is removed without being asked.
type AutoClean string

const (
	// CleanTurn: at the end of every turn, however it ended. The default.
	CleanTurn AutoClean = "turn"
	// CleanSession: when the session is closed.
	CleanSession AutoClean = "session"
	// CleanOff: never; by the clean action or by the user.
	CleanOff AutoClean = "off"
)

// ParseAutoClean accepts turn, session, off, and true (turn), false (off). The
// error has the code SCRATCH_CONFIG_INVALID.
func ParseAutoClean(s string) (AutoClean, error) {
	switch s {
	case "turn", "true":
		return CleanTurn, nil
	case "session":
		return CleanSession, nil
	case "off", "false":
		return CleanOff, nil
	}
	return "", failf(CodeConfigInvalid, "configure", "", "autoClean is %q; it must be turn, session, off, true or false", s)
}

// UnmarshalText applies [ParseAutoClean], for TOML and flags.
func (a *AutoClean) UnmarshalText(b []byte) error {
	p, err := ParseAutoClean(string(b))
	if err != nil {
		return err
	}
	*a = p
	return nil
}

// UnmarshalJSON accepts the strings of [ParseAutoClean] and the booleans.
func (a *AutoClean) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if s := string(b); s == "true" || s == "false" {
		return a.UnmarshalText(b)
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return failf(CodeConfigInvalid, "configure", "", "autoClean must be a string or a boolean")
	}
	// No accepted value needs an escape.
	return a.UnmarshalText(b[1 : len(b)-1])
}

// Config is the configuration of a session's scratch. The zero value is not
// valid: begin with [DefaultConfig] and decode over it, so that a value given
// as empty is told apart from one that is not given.
type Config struct {
	// SiblingDir is the name of the directory beside the workspace that holds
	// the scratch directories: one path segment.
	SiblingDir string    `json:"siblingDir" toml:"siblingDir"`
	AutoClean  AutoClean `json:"autoClean" toml:"autoClean"`
	// Root, absolute or "", is used when there is no usable place beside the
	// workspace. It must exist and lie outside the workspace.
	Root string `json:"root,omitzero" toml:"root"`
}

// DefaultConfig is siblingDir "tmp", autoClean "turn", no root.
func DefaultConfig() Config { return Config{SiblingDir: "tmp", AutoClean: CleanTurn} }

// Overrides are what a session may change of the configuration.
type Overrides struct {
	AutoClean  *AutoClean `json:"autoClean,omitzero"`
	SiblingDir *string    `json:"siblingDir,omitzero"`
}

// With returns the configuration with what is set in o, validated.
func (c Config) With(o Overrides) (Config, error) {
	if o.AutoClean != nil {
		c.AutoClean = *o.AutoClean
	}
	if o.SiblingDir != nil {
		c.SiblingDir = *o.SiblingDir
	}
	return c, c.Validate()
}

// Validate refuses what scratch cannot work with, SCRATCH_CONFIG_INVALID.
// There is no silent other layout.
func (c Config) Validate() error {
	if err := validSegment(c.SiblingDir); err != nil {
		return failf(CodeConfigInvalid, "configure", "", "siblingDir is %q; %w", c.SiblingDir, err)
	}
	switch c.AutoClean {
	case CleanTurn, CleanSession, CleanOff:
	default:
		return failf(CodeConfigInvalid, "configure", "", "autoClean is %q; it must be turn, session or off", string(c.AutoClean))
	}
	if c.Root == "" {
		return nil
	}
	if !filepath.IsAbs(c.Root) || strings.IndexByte(c.Root, 0) >= 0 || !utf8.ValidString(c.Root) {
		return failf(CodeConfigInvalid, "configure", "", "root is %q; it must be an absolute path", c.Root)
	}
	return nil
}

// maxName is NAME_MAX (limits.h), in bytes.
const maxName = 255

func validSegment(s string) error {
	switch {
	case anchor.CheckName(s) != nil:
		return fmt.Errorf("it must be one path segment and neither . nor .. alone")
	case !utf8.ValidString(s):
		return fmt.Errorf("it must be valid UTF-8")
	case len(s) > maxName:
		return fmt.Errorf("it must have at most %d bytes", maxName)
	}
	return nil
}
