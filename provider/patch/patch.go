// Package patch is the patch language of facts/patch.md: parsing, matching and
// applying, all pure. Nothing here does I/O or resolves a path, nothing panics
// whatever it is given, and all functions may be called by any number of
// goroutines at once.
//
// What a call costs: time and memory grow with the length of the text and of
// the patch. Only matching could cost more, when many hunks fit nowhere but in
// a late pass; its steps are counted and end in [ErrTooLarge] after a second or
// two.
package patch

import (
	"errors"
	"fmt"
	"strconv"
)

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

// The operations of the language; a move is an update.
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
	Hunks      []Hunk // of update; none only with MoveTo
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

// The stages of a hunk, in their order.
const (
	StageContext  Stage = "context"
	StageOldLines Stage = "oldLines"
)

// ErrTooLarge is the error of [Apply] for a new text above Options.MaxBytes, for
// a text of 4 GiB or more, and for hunks that take too many steps to match.
var ErrTooLarge = errors.New("the patched text is larger than the limit")

// tooHard is an [ErrTooLarge] with other words.
type tooHard struct{}

func (tooHard) Error() string        { return "the hunks take too many steps to match" }
func (tooHard) Is(target error) bool { return target == ErrTooLarge }

// Failure is a hunk that does not fit (HunkApplyFailure). It is an error.
type Failure struct {
	// HunkLineNumber is the LineNumber of the hunk, 0 when that has none.
	HunkLineNumber int   `json:"hunkLineNumber"`
	Stage          Stage `json:"stage"`
	// SearchStart is the line of the file, from 0, from which it was looked
	// for; for a hunk at the end of the file the only line where it could be.
	SearchStart int `json:"searchStart"`
	// Pattern is the context line, or all old lines.
	Pattern []string `json:"pattern"`
}

// Error names the line of the patch and the stage.
func (f *Failure) Error() string {
	at := "a hunk"
	if f.HunkLineNumber > 0 {
		at = fmt.Sprintf("patch line %d", f.HunkLineNumber)
	}
	what, first := "", ""
	if len(f.Pattern) > 0 {
		first = quote(f.Pattern[0])
	}
	switch {
	case f.Stage == StageContext:
		what = "the context " + first + " does not occur"
	case len(f.Pattern) == 1:
		what = "the line " + first + " does not occur"
	default:
		what = fmt.Sprintf("the %d lines that begin with %s do not occur", len(f.Pattern), first)
	}
	return fmt.Sprintf("%s does not fit (stage %s): %s from line %d of the file on", at, f.Stage, what, f.SearchStart+1)
}

// quoteLimit is how many bytes of a line a message shows.
const quoteLimit = 100

// quote is a line for a message.
func quote(line string) string {
	if len(line) > quoteLimit {
		return strconv.Quote(line[:quoteLimit]) + "…"
	}
	return strconv.Quote(line)
}
