package policies

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// ParseTOML reads a policy file. name is what sources (`file:NAME:LINE`) and
// errors call it. Every error is an [*Error] of code POLICY_INVALID with line,
// column and excerpt.
func ParseTOML(name string, data []byte) (Document, error) {
	return parseTOML(Origin{originFile, name}, data)
}

func parseTOML(o Origin, data []byte) (Document, error) {
	if len(data) > maxBytes {
		return Document{}, &Error{Code: CodeInvalid, Name: o.String(), Msg: fmt.Sprintf("%d bytes are too many, %d at most", len(data), maxBytes)}
	}
	if tooManyKeys(data) {
		return Document{}, &Error{Code: CodeInvalid, Name: o.String(), Msg: fmt.Sprintf("more than %d keys", maxKeys)}
	}
	// go-toml judges syntax, duplicates and redefinitions. It matches the keys
	// of a struct in any case, so the document is not decoded by it but from
	// its syntax tree, which has the spelling and the place of everything.
	var syntax map[string]any
	if err := toml.Unmarshal(data, &syntax); err != nil {
		return Document{}, syntaxError(o, err)
	}
	tree, err := readTree(data)
	if err != nil {
		return Document{}, syntaxError(o, err)
	}
	d := decoder{doc: Document{Origin: o}, keys: map[string]place{}}
	if m := d.document(tree); m != nil {
		return Document{}, mistakeError(o, data, m)
	}
	if f := d.doc.check(); f != nil {
		return Document{}, mistakeError(o, data, d.locate(data, f))
	}
	return d.doc, nil
}

func syntaxError(o Origin, err error) *Error {
	e := &Error{Code: CodeInvalid, Name: o.String(), Msg: err.Error(), Err: err}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		e.Line, e.Column = de.Position()
		e.Excerpt = de.String()
	}
	return e
}

// mistake is what is wrong with a document, and where.
type mistake struct {
	at  place
	msg string
}

func mistakeError(o Origin, data []byte, m *mistake) *Error {
	line, col, text := Excerpt(data, m.at.offset, m.at.length, m.msg)
	return &Error{Code: CodeInvalid, Name: o.String(), Line: line, Column: col, Msg: m.msg, Excerpt: text}
}

// locate finds the place of a flaw: its line, else its key.
func (d *decoder) locate(data []byte, f *flaw) *mistake {
	m := &mistake{at: d.keys[f.key], msg: f.msg}
	if f.line == 0 {
		return m
	}
	rest := data
	for n := 1; n < f.line; n++ {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
	}
	full, _, _ := bytes.Cut(rest, []byte("\n"))
	text := bytes.TrimLeft(full, " \t")
	m.at = place{offset: len(data) - len(rest) + len(full) - len(text), length: len(bytes.TrimRight(text, " \t\r"))}
	return m
}
