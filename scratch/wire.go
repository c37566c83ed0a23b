package scratch

// The results of the actions, with their names on the wire (PROTOCOL).

// Created is the result of the create action.
type Created struct {
	// Path is absolute: the scratch directory, or the place for the name.
	Path string `json:"path"`
}

// Written is the result of the write action.
type Written struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Entry is one file in a listing.
type Entry struct {
	// Path is relative to the scratch directory, with slashes. Bytes of it
	// that are not UTF-8 are replaced by U+FFFD.
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// ListResult is the result of the list action.
type ListResult struct {
	Path string `json:"path"`
	// Entries are at most 200, sorted by path within a directory, without
	// directories and without the marker.
	Entries   []Entry `json:"entries"`
	Truncated bool    `json:"truncated"`
}

// Cleaned is what a clean removed. Nothing there is zero files, zero bytes.
type Cleaned struct {
	Path string `json:"path"`
	// Files counts everything but directories, without the marker.
	Files int64 `json:"files"`
	// Bytes is the size of the regular files whose last name went.
	Bytes int64 `json:"bytes"`
}

// SweepReport says what a sweep did. The lists are cut at 200 entries each;
// the counts are not.
type SweepReport struct {
	// SweptCount directories were removed, Files and Bytes as in Cleaned.
	SweptCount int   `json:"sweptCount"`
	Files      int64 `json:"files"`
	Bytes      int64 `json:"bytes"`
	// KeptCount directories or records were left.
	KeptCount int       `json:"keptCount"`
	Swept     []Cleaned `json:"swept"`
	Kept      []Kept    `json:"kept"`
	Truncated bool      `json:"truncated"`
}

// Kept is one directory that a sweep left, and why.
type Kept struct {
	Path   string     `json:"path"`
	Reason KeptReason `json:"reason"`
	// Detail is for people.
	Detail string `json:"detail,omitzero"`
}

// KeptReason is why a directory was left.
type KeptReason string

const (
	KeptInUse       KeptReason = "in-use"         // its marker is locked
	KeptOwnerAlive  KeptReason = "owner-alive"    // the process that made it lives
	KeptUncertain   KeptReason = "owner-unknown"  // no locks here, and no way to tell
	KeptOff         KeptReason = "auto-clean-off" // as configured
	KeptNoMarker    KeptReason = "no-marker"      // never marked, or the marker was taken away
	KeptBadMarker   KeptReason = "marker-invalid" // link, hard link, foreign owner, not readable as ours
	KeptMismatch    KeptReason = "marker-mismatch"
	KeptReplaced    KeptReason = "replaced" // a link or another directory lies there
	KeptMount       KeptReason = "mount-point"
	KeptPlace       KeptReason = "protected-place" // workspace, its ancestors or inside it, home
	KeptUnreachable KeptReason = "unreachable"     // the place cannot be looked at now
	KeptBadRecord   KeptReason = "record-invalid"  // a journal record that cannot be read
	KeptFailed      KeptReason = "failed"          // removal began and did not end
)

const maxReported = 200

func (r *SweepReport) swept(c Cleaned) {
	r.SweptCount++
	r.Files += c.Files
	r.Bytes += c.Bytes
	if len(r.Swept) < maxReported {
		r.Swept = append(r.Swept, c)
	} else {
		r.Truncated = true
	}
}

func (r *SweepReport) kept(path string, reason KeptReason, detail string) {
	r.KeptCount++
	if len(r.Kept) < maxReported {
		r.Kept = append(r.Kept, Kept{Path: path, Reason: reason, Detail: detail})
	} else {
		r.Truncated = true
	}
}
