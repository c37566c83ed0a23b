package patch

import (
	"fmt"
	"strings"
)

// Check tells what is wrong with hunks that did not come from [Parse]: kinds
// that are not those of the lines, and line breaks inside of lines. Messages
// name the line of the patch, or the place in the list, from 1, where there is
// none.
func Check(hunks []Hunk) error {
	for i := range hunks {
		h := &hunks[i]
		at := fmt.Sprintf("patch line %d", h.LineNumber)
		if h.LineNumber <= 0 {
			at = fmt.Sprintf("hunk %d", i+1)
		}
		if h.Kinds != "" && !h.agrees() {
			return fmt.Errorf("%s: its kinds are not those of its lines", at)
		}
		sides := [][]string{h.OldLines, h.NewLines}
		if h.Context != nil {
			sides = append(sides, []string{*h.Context})
		}
		for _, side := range sides {
			for _, s := range side {
				if strings.ContainsAny(s, "\r\n") {
					return fmt.Errorf("%s: there is a line break in the line %s", at, quote(s))
				}
			}
		}
	}
	return nil
}
