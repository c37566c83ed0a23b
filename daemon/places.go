package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// maxSocketPath is what sockaddr_un holds, without the terminating NUL
// (unix(7)).
const maxSocketPath = 107

// Places are the directories of one user (facts/conventions section 1).
type Places struct {
	Home   string
	Config string // $XDG_CONFIG_HOME/wattle
	State  string // $XDG_STATE_HOME/wattle
	Cache  string // $XDG_CACHE_HOME/wattle
	// Data is $XDG_DATA_HOME itself: the user's trash is in it.
	Data string
	// Runtime is $XDG_RUNTIME_DIR/wattle, "" when there is no runtime directory.
	Runtime string
	// PolicyDirs hold policy files, the user's first.
	PolicyDirs []string
}

// FindPlaces computes the places from an environment. They are computed, not
// read from what systemd passes: before version 254 its user units name other
// directories (facts/conventions section 1). getenv is os.Getenv in programs.
func FindPlaces(getenv func(string) string) (Places, error) {
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		h, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(h) {
			return Places{}, errors.New("find home directory: HOME is not set to an absolute path")
		}
		home = h
	}
	base := func(name string, def ...string) string {
		if d := getenv(name); filepath.IsAbs(d) { // relative ones are to be ignored (XDG base directory specification)
			return d
		}
		return filepath.Join(append([]string{home}, def...)...)
	}
	xdg := func(name string, def ...string) string { return filepath.Join(base(name, def...), "wattle") }
	p := Places{
		Home:   home,
		Config: xdg("XDG_CONFIG_HOME", ".config"),
		State:  xdg("XDG_STATE_HOME", ".local", "state"),
		Cache:  xdg("XDG_CACHE_HOME", ".cache"),
		Data:   base("XDG_DATA_HOME", ".local", "share"),
	}
	p.PolicyDirs = []string{filepath.Join(p.Config, "policies"), "/etc/wattle/policies"}
	if d := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(d) {
		p.Runtime = filepath.Join(d, "wattle")
	} else if d := "/run/user/" + strconv.Itoa(os.Getuid()); ownedByUs(d) {
		p.Runtime = filepath.Join(d, "wattle")
	}
	return p, nil
}

// Socket is the control socket: the flag, else WATTLE_SOCKET, else the runtime
// directory's. It is never in /tmp, where others could put one first.
func (p Places) Socket(flag string, getenv func(string) string) (string, error) {
	s := flag
	if s == "" {
		s = getenv("WATTLE_SOCKET")
	}
	if s == "" {
		if p.Runtime == "" {
			return "", errors.New("find control socket: XDG_RUNTIME_DIR is not set and /run/user/" + strconv.Itoa(os.Getuid()) + " is not there; name a socket with --socket or WATTLE_SOCKET")
		}
		s = filepath.Join(p.Runtime, "control.sock")
	}
	if !filepath.IsAbs(s) {
		abs, err := filepath.Abs(s)
		if err != nil {
			return "", fmt.Errorf("find control socket: %w", err)
		}
		s = abs
	}
	if len(s) > maxSocketPath {
		return "", fmt.Errorf("find control socket: the path has %d bytes, a socket's may have %d: %s", len(s), maxSocketPath, s)
	}
	return s, nil
}

// Own are the directories and sockets that no fence may see: Wattle's own
// configuration, state and runtime, and the socket wherever it is.
func (p Places) Own(socket string) []string {
	own := []string{p.Config, p.State}
	if p.Runtime != "" {
		own = append(own, p.Runtime)
	}
	if socket != "" {
		own = append(own, socket)
	}
	return own
}

// WorkspaceCache is the private cache of a workspace: a directory of its own
// for each, so that no workspace can poison another's.
func (p Places) WorkspaceCache(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(p.Cache, hex.EncodeToString(sum[:8]))
}

// TempRoot is where commands of read-only sessions get their own temporary
// directories. It is in the cache: nothing else of ours may be writable.
func (p Places) TempRoot() string { return filepath.Join(p.Cache, "tmp") }
