package fence

import "fmt"

// Mode is how much a session may do. The zero value is no mode and is refused
// everywhere, so that a forgotten field cannot open a fence.
type Mode string

const (
	// ReadOnly lets nothing be written but devices (and scratch, if the policy
	// says so).
	ReadOnly Mode = "read-only"
	// WorkspaceWrite lets the workspace, scratch, caches and extra roots be
	// written.
	WorkspaceWrite Mode = "workspace-write"
	// FullAccess is no fence at all.
	FullAccess Mode = "full-access"
)

// ParseMode accepts the three modes and `danger-full-access`, the name that
// the DSH contract has for FullAccess. The error lists what is accepted.
func ParseMode(s string) (Mode, error) {
	switch s {
	case string(ReadOnly), string(WorkspaceWrite), string(FullAccess):
		return Mode(s), nil
	case "danger-full-access":
		return FullAccess, nil
	}
	return "", fmt.Errorf("parse mode: %q is none of read-only, workspace-write, full-access", s)
}

// UnmarshalText lets a mode be read from JSON, TOML and flags with the same
// spelling rules as [ParseMode].
func (m *Mode) UnmarshalText(b []byte) error {
	p, err := ParseMode(string(b))
	if err != nil {
		return err
	}
	*m = p
	return nil
}

// MarshalText is the inverse of UnmarshalText, with the canonical name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m), nil }

// Fenced tells whether commands in this mode need a kernel fence.
func (m Mode) Fenced() bool { return m != FullAccess }

// Wider tells whether m allows more than o.
// ReadOnly ⊂ WorkspaceWrite ⊂ FullAccess; an unknown mode is the narrowest.
func (m Mode) Wider(o Mode) bool { return m.rank() > o.rank() }

func (m Mode) rank() int {
	switch m {
	case ReadOnly:
		return 1
	case WorkspaceWrite:
		return 2
	case FullAccess:
		return 3
	}
	return 0
}

// Access is the way in which a path is to be reached.
type Access string

const (
	Read     Access = "read"     // contents of a file, names in a directory
	Write    Access = "write"    // contents of an existing file, truncation included
	Create   Access = "create"   // a new file, symbolic link, FIFO or node
	Delete   Access = "delete"   // removal of a name
	Rename   Access = "rename"   // a name that goes away, or is replaced, by rename(2)
	Link     Access = "link"     // either end of a hard link
	Mkdir    Access = "mkdir"    // a new directory
	Metadata Access = "metadata" // mode, owner, times, extended attributes, flags
	Execute  Access = "execute"
	Connect  Access = "connect" // to a unix socket by its path
	Bind     Access = "bind"    // a new unix socket at a path
)

// Accesses are all values of [Access], in the order of PROTOCOL section 1.
var Accesses = []Access{Read, Write, Create, Delete, Rename, Link, Mkdir, Metadata, Execute, Connect, Bind}

// ParseAccess refuses what is not in [Accesses].
func ParseAccess(s string) (Access, error) {
	for _, a := range Accesses {
		if string(a) == s {
			return a, nil
		}
	}
	return "", fmt.Errorf("parse access: %q is none of %v", s, Accesses)
}

// UnmarshalText applies [ParseAccess].
func (a *Access) UnmarshalText(b []byte) error {
	p, err := ParseAccess(string(b))
	if err != nil {
		return err
	}
	*a = p
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (a Access) MarshalText() ([]byte, error) { return []byte(a), nil }

// Mutates tells whether the access changes something on disk.
func (a Access) Mutates() bool { return a != Read && a != Execute && a != Connect }
