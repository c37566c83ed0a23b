package provider

// TargetKey is the identity of a file: equal for every alias of one file.
// Callers compare it and never parse it. The local form is the canonical
// absolute path.
type TargetKey string

// Version is a freshness token, made by a provider only. Callers keep it and
// give it back; they never interpret it.
type Version string

// Target is what resolve gives and nearly every other call takes.
type Target struct {
	TargetKey TargetKey `json:"targetKey"`
	// DisplayPath is for people and models. The local provider makes it
	// absolute and resolves no link in it; a mutation inside workspace-write
	// resolves it anew.
	DisplayPath string `json:"displayPath"`
}

// FileType is the kind of a file.
type FileType string

const (
	TypeFile      FileType = "file"
	TypeDirectory FileType = "directory"
	// TypeSymlink comes from lstat only.
	TypeSymlink FileType = "symlink"
	TypeOther   FileType = "other"
)

// Info is what stat says of a target; links are followed.
type Info struct {
	Version Version  `json:"version"`
	Type    FileType `json:"type"`
	// Size in bytes. The local provider always gives it.
	Size *int64 `json:"size,omitzero"`
}

// PathInfo is what lstat says of a path; a link in the last place is not
// followed.
type PathInfo struct {
	Version Version  `json:"version"`
	Type    FileType `json:"type"`
	Size    *int64   `json:"size,omitzero"`
}

// DirEntry is one name of a directory. A link has the type of what it points
// to. A child that is gone, leads nowhere or is hidden by the fence is
// TypeOther without version and size.
type DirEntry struct {
	Name    string   `json:"name"`
	Type    FileType `json:"type"`
	Target  Target   `json:"target"`
	Version Version  `json:"version,omitzero"`
	// Size in bytes, of regular files only.
	Size *int64 `json:"size,omitzero"`
}
