package fence

import (
	"fmt"
	"strings"
)

// Network is what a command may reach.
type Network string

const (
	NetworkOn       Network = "on"
	NetworkOff      Network = "off"
	NetworkLoopback Network = "loopback"
)

// ParseNetwork refuses everything but on, off and loopback.
func ParseNetwork(s string) (Network, error) {
	switch n := Network(s); n {
	case NetworkOn, NetworkOff, NetworkLoopback:
		return n, nil
	}
	return "", fmt.Errorf("parse network: %q is none of on, off, loopback", s)
}

// UnmarshalText applies [ParseNetwork].
func (n *Network) UnmarshalText(b []byte) error {
	p, err := ParseNetwork(string(b))
	if err != nil {
		return err
	}
	*n = p
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (n Network) MarshalText() ([]byte, error) { return []byte(n), nil }

// Require is what a start does when the kernel cannot hold the fence.
type Require string

const (
	// RequireEnforced refuses the start (SANDBOX_UNAVAILABLE). The default.
	RequireEnforced Require = "enforced"
	// RequireBestEffort starts anyway and reports what is not held.
	RequireBestEffort Require = "best-effort"
)

// Entry is a path of the policy and where it was said. Path is absolute; in
// Hidden and Visible a component may be a glob (`*`, `?`, `[…]`).
type Entry struct {
	Path string
	// Source is `mode`, `preset:NAME`, `file:NAME:LINE` or `session`.
	Source string
}

// Protection names paths inside writable roots that stay readable and cannot
// be written, at any depth, whether they exist or not.
//
// Match is a slash-separated sequence of components, relative to a writable
// root: literal, glob, or `**` for any number of components. It is compared
// case-folded. NotUnder lists directory names below which it does not apply:
// packages below node_modules carry editor settings that no editor reads.
type Protection struct {
	Match    string
	NotUnder []string
	Source   string
}

// Device is a device node that every fence opens.
type Device struct {
	Path  string
	Write bool
	// Ioctl grants IOCTL_DEV: only terminals need it.
	Ioctl bool
}

// Environment is how a command's environment is built: from nothing, by names
// that pass from the caller and by values that are set (DESIGN section 6).
type Environment struct {
	// Pass lists names, `*` allowed at the end. Names that look like secrets
	// and all WATTLE_* never pass (facts/presets section 3).
	Pass []string
	Set  map[string]string
}

// Policy is the whole policy of one session, as data. The zero Policy has no
// mode and is refused by [New].
type Policy struct {
	Mode Mode
	// Workspace is the session's working directory. It is a writable root in
	// workspace-write.
	Workspace string
	// Writable are further writable roots.
	Writable []Entry
	// Scratch is the session's own scratch directory, empty if it has none.
	// Protections do not apply in it.
	Scratch string
	// ScratchInReadOnly opens Scratch in read-only too.
	ScratchInReadOnly bool
	// Caches are private caches: writable in workspace-write, no protections.
	Caches []Entry

	Protected []Protection
	// Hidden can neither be read nor written. Visible are exceptions below it.
	Hidden, Visible []Entry
	// ReadableRoots, if not nil, are all that can be read (with the writable
	// roots, devices and Visible); nil means everything but Hidden.
	ReadableRoots []Entry
	Devices       []Device
	// UnixSockets may be connected to although they lie outside.
	UnixSockets []Entry

	Network Network
	Protect Protect
	Require Require
	// KeepOverwritten: what is overwritten by a write, a move or a copy goes into
	// the trash. Edits overwrite nothing.
	KeepOverwritten bool
	// TrashCommands: what a fenced command removes, or replaces by a rename, is
	// linked into the trash first, as far as a supervisor sees it.
	TrashCommands bool
	// AttributeReads makes refused reads of commands attributable, at a cost.
	AttributeReads bool

	// Own are Wattle's own runtime, state and configuration directories:
	// hidden from every fence, and no ancestor of them may be a writable root.
	Own []string
	// Home is the user's home directory: it and its ancestors are refused as
	// writable roots.
	Home string

	Env Environment
	// Overrides says which defaults a policy changed, for the report.
	Overrides []string
}

// DefaultDevices is the device allow-list of facts/landlock section 8. /dev/shm
// is not in it: it is shared by all processes of the user.
func DefaultDevices() []Device {
	return []Device{
		{Path: "/dev/null", Write: true}, {Path: "/dev/zero", Write: true}, {Path: "/dev/full", Write: true},
		{Path: "/dev/random", Write: true}, {Path: "/dev/urandom", Write: true},
		{Path: "/dev/tty", Write: true, Ioctl: true}, {Path: "/dev/ptmx", Write: true, Ioctl: true},
		{Path: "/dev/pts", Write: true, Ioctl: true},
	}
}

// PolicyError says that a policy cannot be used. Code is stable and travels.
type PolicyError struct {
	Code string // POLICY_INVALID or POLICY_ROOT_REFUSED
	Path string
	Msg  string
}

const (
	CodePolicyInvalid     = "POLICY_INVALID"
	CodePolicyRootRefused = "POLICY_ROOT_REFUSED"
)

func (e *PolicyError) Error() string {
	if e.Path == "" {
		return "compile policy: " + e.Msg
	}
	return "compile policy: " + strings.TrimSpace(e.Path+": "+e.Msg)
}
