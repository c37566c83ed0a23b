//go:build unix && !darwin

package trash

import (
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/trash/record"
)

// maxName is NAME_MAX nearly everywhere; smallName that of file systems which
// encrypt names.
const (
	maxName   = 255
	smallName = 143
)

// maxExtension is how long the last part of a name may be to be kept at the
// end.
const maxExtension = 32

// nthName is the n-th name, from 1, to try for a thing: "a.txt", "a.2.txt",
// "a.3.txt". With the suffix of its record it takes at most limit bytes; what
// is too much is cut from the stem at the border of a character.
func nthName(name string, n, limit int) string {
	limit -= len(record.InfoSuffix)
	if n == 1 && len(name) <= limit {
		return name
	}
	ext := filepath.Ext(name)
	if len(ext) == len(name) || len(ext) > maxExtension {
		ext = "" // a hidden file, or hardly an extension
	}
	stem := name[:len(name)-len(ext)]
	end := ext
	if n > 1 {
		end = fmt.Sprintf(".%d%s", n, ext)
	}
	return cut(stem, limit-len(end)) + end
}

// cut shortens s to at most n bytes, not within a character. Bytes that are no
// UTF-8 are cut anywhere.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := n; i >= 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n]
}
