package policies

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wattle-dev/wattle/fence"
)

// Stable codes of errors (PROTOCOL section 1). CodeInvalid is the same code
// that fence.New uses.
const (
	CodeInvalid = fence.CodePolicyInvalid
	// CodeNotFound: no preset and no policy file has this name.
	CodeNotFound = "POLICY_NOT_FOUND"
	// CodeRefused: there is such a file, but it must not be trusted.
	CodeRefused = "POLICY_REFUSED"
)

// Error says why a policy cannot be used.
type Error struct {
	Code string
	// Name is the document: a preset's or file's name, or "session".
	Name string
	// Line and Column count from 1, columns in bytes; 0 means that the place is
	// not known.
	Line, Column int
	Msg          string
	// Excerpt shows the place, in several lines; "" if there is none.
	Excerpt string
	// Err is the cause, if it was another error.
	Err error
}

// Error is one line: document, place, reason.
func (e *Error) Error() string {
	s := "read policy"
	if e.Name != "" {
		s += " " + e.Name
		if e.Line > 0 {
			s += ":" + strconv.Itoa(e.Line)
			if e.Column > 0 {
				s += ":" + strconv.Itoa(e.Column)
			}
		}
	}
	return s + ": " + e.Msg
}

// Detail is Error and, below it, the excerpt: for a person at a terminal.
func (e *Error) Detail() string {
	if e.Excerpt == "" {
		return e.Error()
	}
	return e.Error() + "\n" + e.Excerpt
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Excerpt shows the lines around a place of a document and underlines it, in the
// form that go-toml gives its own errors. offset and length are bytes; line and
// column count from 1.
func Excerpt(doc []byte, offset, length int, msg string) (line, column int, text string) {
	lines := strings.Split(string(doc), "\n")
	start := 0
	for line < len(lines)-1 && start+len(lines[line]) < offset {
		start += len(lines[line]) + 1
		line++
	}
	column = offset - start + 1
	first, last := max(0, line-3), min(len(lines)-1, line+3)
	for first < line && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	for last > line && strings.TrimSpace(lines[last]) == "" {
		last--
	}
	width := len(strconv.Itoa(last + 1))
	var b strings.Builder
	for i := first; i <= last; i++ {
		l := strings.TrimSuffix(lines[i], "\r")
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("%*d| %s", width, i+1, l), " "))
		if i == line {
			before := l[:min(column-1, len(l))]
			pad := strings.Map(func(r rune) rune {
				if r == '\t' {
					return '\t'
				}
				return ' '
			}, before)
			n := max(1, min(length, len(l)-len(before)))
			fmt.Fprintf(&b, "%*s| %s%s %s\n", width, "", pad, strings.Repeat("~", n), msg)
		}
	}
	return line + 1, column, strings.TrimSuffix(b.String(), "\n")
}
