package provider

// IntentKind tells the two guards of a write apart.
type IntentKind string

const (
	// CreateIfAbsent makes a new file and loses against any existing one.
	CreateIfAbsent IntentKind = "createIfAbsent"
	// ReplaceIfVersion replaces the version that was seen and no other.
	ReplaceIfVersion IntentKind = "replaceIfVersion"
)

// WriteIntent is the guard of a write. A write without guard has none at all:
// there is no third kind.
type WriteIntent struct {
	Kind IntentKind `json:"kind"`
	// Version is set exactly with ReplaceIfVersion.
	Version Version `json:"version,omitzero"`
}

// VersionGuard is the guard of an edit.
type VersionGuard struct {
	Version Version `json:"version"`
}

// EditRequest asks for literal text to be replaced. OldString must not be
// empty; an empty NewString deletes. Nothing in either is a pattern.
type EditRequest struct {
	OldString  string `json:"oldString"`
	NewString  string `json:"newString"`
	ReplaceAll bool   `json:"replaceAll,omitzero"`
}
