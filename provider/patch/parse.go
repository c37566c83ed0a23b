package patch

import (
	"fmt"
	"strings"
	"unicode"
)

// Markers of the language.
const (
	markBegin       = "*** Begin Patch"
	markEnd         = "*** End Patch"
	markEnvironment = "*** Environment ID:"
	markAdd         = "*** Add File: "
	markDelete      = "*** Delete File: "
	markUpdate      = "*** Update File: "
	markMove        = "*** Move to: "
	markEndOfFile   = "*** End of File"
	markChunk       = "@@"
)

// ParseError is a text that is no patch.
type ParseError struct {
	// Line is where in the patch, the Begin line being 1; 0 when it is about
	// the outer form: Begin, End or the environment.
	Line    int
	Message string
}

func (e *ParseError) Error() string {
	if e.Line == 0 {
		return "parse patch: " + e.Message
	}
	return fmt.Sprintf("parse patch: line %d: %s", e.Line, e.Message)
}

// Parse reads a patch (facts/patch.md sections 2 and 3). The error is a
// *[ParseError]. Texts in the result are parts of text, so the result costs
// memory in proportion to it: at most some 40 bytes for each line of the patch,
// and a copy of what is added as new files.
//
// A patch without operations is no error, except with o.Codex; nor is a move
// without hunks. o.MaxBytes has no meaning here.
func Parse(text string, o Options) ([]Operation, error) {
	body, err := outer(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	p := parser{codex: o.Codex, n: 1}
	// The lines between Begin and End; both are there.
	first, last := strings.IndexByte(body, '\n'), strings.LastIndexByte(body, '\n')
	for at := first + 1; at <= last; {
		end := at + strings.IndexByte(body[at:], '\n')
		p.n++
		if err := p.line(strings.TrimSuffix(body[at:end], "\r")); err != nil {
			return nil, err
		}
		at = end + 1
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	if o.Codex && len(p.ops) == 0 {
		return nil, &ParseError{Message: "the patch changes no file"}
	}
	return p.ops, nil
}

// outer gives the lines from Begin to End; a here-document around them is taken
// off (rules P2 and P3).
func outer(text string) (string, error) {
	err := checkEnds(text)
	if err == nil {
		return text, nil
	}
	first, last := ends(text)
	switch first {
	case "<<EOF", "<<'EOF'", `<<"EOF"`:
	default:
		return "", err
	}
	if !strings.HasSuffix(last, "EOF") || strings.Count(text, "\n") < 3 {
		return "", err
	}
	inner := text[strings.IndexByte(text, '\n')+1 : strings.LastIndexByte(text, '\n')]
	return inner, checkEnds(inner)
}

func checkEnds(text string) error {
	first, last := ends(text)
	switch {
	case strings.TrimSpace(first) != markBegin:
		return &ParseError{Message: "the first line must be " + markBegin}
	case strings.TrimSpace(last) != markEnd:
		return &ParseError{Message: "the last line must be " + markEnd}
	}
	return nil
}

// ends gives the first and the last line.
func ends(text string) (first, last string) {
	first, _, _ = strings.Cut(text, "\n")
	last = text[strings.LastIndexByte(text, '\n')+1:]
	return strings.TrimSuffix(first, "\r"), strings.TrimSuffix(last, "\r")
}

// parser reads one line after the other. The operation at the end of ops is
// open: its lines are still coming.
type parser struct {
	codex bool
	ops   []Operation
	n     int // number of the line being read
	env   bool
	added strings.Builder // content of an open add

	// Of an open update.
	kinds  []byte // of its last hunk
	blanks int    // empty lines so far, before any hunk
	blank1 int    // the number of the first of them
	sealed bool   // its last hunk has had the end-of-file mark
}

func (p *parser) errorf(line int, format string, a ...any) error {
	return &ParseError{Line: line, Message: fmt.Sprintf(format, a...)}
}

// open gives the open operation, nil before the first one.
func (p *parser) open() *Operation {
	if len(p.ops) == 0 {
		return nil
	}
	return &p.ops[len(p.ops)-1]
}

func (p *parser) line(line string) error {
	op := p.open()
	if op != nil && op.Kind == Update {
		// Only the right side: an indented header is a line of the file.
		right := strings.TrimRightFunc(line, unicode.IsSpace)
		if done, err := p.header(right); done || err != nil {
			return err
		}
		return p.updateLine(op, line, right)
	}
	if op != nil && op.Kind == Add && strings.HasPrefix(line, "+") {
		p.added.WriteString(line[1:])
		p.added.WriteByte('\n')
		return nil
	}
	trimmed := strings.TrimSpace(line)
	done, err := p.header(trimmed)
	if !done && err == nil {
		err = p.errorf(p.n, "%s is no header of a file; these are: %s{path}, %s{path}, %s{path}", quote(trimmed), markAdd, markDelete, markUpdate)
	}
	return err
}

// header takes a line that begins an operation, and refuses those of the outer
// form, which have no place here any more. done is false for any other line.
func (p *parser) header(line string) (done bool, err error) {
	for _, h := range [...]struct {
		mark string
		kind Kind
	}{{markAdd, Add}, {markDelete, Delete}, {markUpdate, Update}} {
		// The line is trimmed, so that there is a path behind the blank.
		if path, ok := strings.CutPrefix(line, h.mark); ok {
			if err := p.finish(); err != nil {
				return false, err
			}
			p.ops = append(p.ops, Operation{Kind: h.kind, Path: path, LineNumber: p.n})
			return true, nil
		}
	}
	if line == markEnd {
		return false, p.errorf(0, "%s must be the last line", markEnd)
	}
	if id, ok := strings.CutPrefix(line, markEnvironment); ok {
		switch {
		case p.env:
			return false, p.errorf(0, "the environment is given twice")
		case p.n != 2:
			return false, p.errorf(0, "the environment must stand directly after %s", markBegin)
		case strings.TrimSpace(id) == "":
			return false, p.errorf(0, "the environment is empty")
		}
		p.env = true
		return true, nil
	}
	return false, nil
}

// finish closes the open operation.
func (p *parser) finish() error {
	op := p.open()
	switch {
	case op == nil:
	case op.Kind == Add:
		op.Content = p.added.String()
		p.added = strings.Builder{}
	case op.Kind == Update:
		p.takeBlanks(op)
		if len(op.Hunks) == 0 && (op.MoveTo == "" || p.codex) {
			return p.errorf(op.LineNumber, "the update of %s has no chunk", quote(op.Path))
		}
		return p.finishHunk(op)
	}
	return nil
}

// finishHunk closes the last hunk of an update, if there is one.
func (p *parser) finishHunk(op *Operation) error {
	if len(op.Hunks) > 0 {
		h := &op.Hunks[len(op.Hunks)-1]
		if len(p.kinds) == 0 {
			return p.errorf(h.LineNumber, "the chunk has no lines")
		}
		h.Kinds = string(p.kinds)
	}
	p.kinds, p.sealed, p.blanks = p.kinds[:0], false, 0
	return nil
}

// updateLine takes a line of an update that is no header; right is the line
// without trailing blanks.
func (p *parser) updateLine(op *Operation, line, right string) error {
	if path, ok := strings.CutPrefix(right, markMove); ok && p.n == op.LineNumber+1 {
		op.MoveTo = path
		return nil
	}
	if context, ok := strings.CutPrefix(right, markChunk+" "); ok || right == markChunk {
		// Empty lines between the header and the first marker are dropped
		// here: as a chunk they would move the cursor (P15).
		if err := p.finishHunk(op); err != nil {
			return err
		}
		h := Hunk{LineNumber: p.n}
		if ok {
			h.Context = &context
		}
		op.Hunks = append(op.Hunks, h)
		return nil
	}
	if right == markEndOfFile && !p.sealed {
		return p.endOfFile(op)
	}
	if p.sealed && right == "" {
		return nil
	}
	if line == "" && len(op.Hunks) == 0 {
		if p.blanks == 0 {
			p.blank1 = p.n
		}
		p.blanks++
		return nil
	}
	kind, text := byte(Context), ""
	if line != "" {
		kind, text = line[0], line[1:]
	}
	if p.sealed || kind != Context && kind != Removed && kind != Added {
		if len(p.kinds) > 0 || p.blanks > 0 {
			return p.errorf(p.n, "unexpected %s: a chunk must start with %s", quote(line), markChunk)
		}
		return p.errorf(p.n, "unexpected line %s: the lines of a chunk begin with a blank, + or -", quote(line))
	}
	p.takeBlanks(op)
	if len(op.Hunks) == 0 {
		op.Hunks = append(op.Hunks, Hunk{LineNumber: p.n})
	}
	p.take(op, kind, text)
	return nil
}

func (p *parser) endOfFile(op *Operation) error {
	p.takeBlanks(op)
	if len(op.Hunks) == 0 {
		return nil
	}
	if len(p.kinds) == 0 {
		return p.errorf(p.n, "%s needs a line of the chunk before it", markEndOfFile)
	}
	op.Hunks[len(op.Hunks)-1].IsEndOfFile = true
	p.sealed = true
	return nil
}

// takeBlanks makes the first chunk of the empty lines that came before
// anything else: no marker followed them.
func (p *parser) takeBlanks(op *Operation) {
	if p.blanks == 0 {
		return
	}
	op.Hunks = append(op.Hunks, Hunk{LineNumber: p.blank1})
	for range p.blanks {
		p.take(op, Context, "")
	}
	p.blanks = 0
}

func (p *parser) take(op *Operation, kind byte, text string) {
	h := &op.Hunks[len(op.Hunks)-1]
	p.kinds = append(p.kinds, kind)
	if kind != Added {
		h.OldLines = append(h.OldLines, text)
	}
	if kind != Removed {
		h.NewLines = append(h.NewLines, text)
	}
}
