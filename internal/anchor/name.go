package anchor

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// CheckName tells whether s is the name of one entry of a directory: not
// empty, not "." or "..", without separator and without NUL. The error wraps
// EINVAL. On Windows ":" (streams, volumes) is refused too.
func CheckName(s string) error {
	if s == "" || s == "." || s == ".." || strings.ContainsAny(s, badInName) {
		return &fs.PathError{Op: "check name", Path: s, Err: syscall.EINVAL}
	}
	return nil
}

// badInName: a separator of this system, NUL, and on Windows the colon. The
// backslash is an ordinary byte in a Linux name.
var badInName = func() string {
	if filepath.Separator == '\\' {
		return "/\\:\x00"
	}
	return "/\x00"
}()

// splitRel cuts a relative path into names. "." alone is no name: the
// directory itself.
func splitRel(rel string) ([]string, error) {
	if rel == "." {
		return nil, nil
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for _, p := range parts {
		if CheckName(p) != nil {
			return nil, &fs.PathError{Op: "check name", Path: rel, Err: syscall.EINVAL}
		}
	}
	return parts, nil
}
