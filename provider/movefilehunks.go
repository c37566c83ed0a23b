package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wattle-dev/wattle/provider/patch"
)

// rewritten applies the hunks of a move to a file's content, by the rules of
// patchText. mark is its byte-order mark or empty.
func (m *movingFile) rewritten(raw string) (mark, result string, err error) {
	if i := strings.IndexByte(raw, 0); i >= 0 {
		return "", "", m.fail(CodeNotText, fmt.Sprintf("binary: a NUL byte at offset %d", i))
	}
	if err := m.utf8(raw); err != nil {
		return "", "", err
	}
	text, had := cutBOM(raw)
	if had {
		mark = bom
	}
	r, err := patch.Apply(text, m.o.Hunks, patch.Options{Codex: m.o.Codex, MaxBytes: m.editMax - int64(len(mark))})
	var f *patch.Failure
	switch {
	case errors.As(err, &f):
		e := m.fail(CodePatchMismatch, "")
		e.Cause = f
		return "", "", e
	case err != nil:
		return "", "", m.tooLarge(m.editMax)
	}
	return mark, r.Text, nil
}
