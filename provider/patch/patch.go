// Package patch is the patch language of facts/patch.md: parsing, matching and
// applying, all pure. Nothing here does I/O or resolves a path.
package patch

// Line kinds inside a hunk, in the order in which they were written.
const (
	Context = ' '
	Removed = '-'
	Added   = '+'
)

// Hunk is one chunk of an update (facts/patch.md section 1).
type Hunk struct {
	// LineNumber is where the hunk stands in the patch, from 1; 0 when it came
	// without a patch.
	LineNumber int `json:"lineNumber,omitzero"`
	// Context is the text after "@@ ", nil for none.
	Context  *string  `json:"context,omitzero"`
	OldLines []string `json:"oldLines"`
	NewLines []string `json:"newLines"`
	// IsEndOfFile: the old lines are the last ones of the file.
	IsEndOfFile bool `json:"isEndOfFile,omitzero"`
	// Kinds has one character a line as written: ' ', '-' or '+'. Empty when
	// not known: lines are then paired by their longest common subsequence.
	Kinds string `json:"kinds,omitzero"`
}

// Kind of an operation.
type Kind string

const (
	Add    Kind = "add"
	Delete Kind = "delete"
	Update Kind = "update"
)

// Operation is one file of a patch. Paths are as written.
type Operation struct {
	Kind       Kind
	Path       string
	LineNumber int
	Content    string // of add
	MoveTo     string // of update, empty for none
	Hunks      []Hunk // of update
}

// Options of parsing and applying.
type Options struct {
	// Codex reproduces the results of OpenAI Codex (facts/patch.md section 7).
	Codex bool
	// MaxBytes bounds the new text; 0 for no bound.
	MaxBytes int64
}

// Stage is where a hunk did not fit.
type Stage string

const (
	StageContext  Stage = "context"
	StageOldLines Stage = "oldLines"
)

// Failure is a hunk that does not fit (HunkApplyFailure).
type Failure struct {
	HunkLineNumber int      `json:"hunkLineNumber"`
	Stage          Stage    `json:"stage"`
	SearchStart    int      `json:"searchStart"`
	Pattern        []string `json:"pattern"`
}
