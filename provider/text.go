package provider

import (
	"strings"
	"unicode/utf8"
)

// bom is the UTF-8 byte-order mark. It is no part of a text here.
const bom = "\xef\xbb\xbf"

// sampleSize is how much of a file a read searches for NUL bytes.
const sampleSize = 8192

// cutBOM takes one leading byte-order mark away.
func cutBOM(s string) (text string, had bool) { return strings.CutPrefix(s, bom) }

// toLF is the view of a text in which every CR LF is one LF. A CR alone stays.
func toLF(s string) string {
	if !strings.Contains(s, "\r\n") {
		return s
	}
	return strings.ReplaceAll(s, "\r\n", "\n")
}

// invalidUTF8 gives the offset of the first byte that is no UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// lineBreaks counts the CR LF and the bare LF in s, and tells which came first.
func lineBreaks(s string) (crlf, lf int, crlfFirst bool) {
	crlf = strings.Count(s, "\r\n")
	lf = strings.Count(s, "\n") - crlf
	if i := strings.IndexByte(s, '\n'); i > 0 {
		crlfFirst = s[i-1] == '\r'
	}
	return crlf, lf, crlfFirst
}
