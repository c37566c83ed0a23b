package fence

import (
	"path/filepath"
	"strings"
)

const foldPaths = true

func absolutePath(p string) bool { return filepath.IsAbs(p) }

func isSeparator(c byte) bool { return c == '\\' || c == '/' }

func splitOS(p string) []string { return strings.Split(filepath.ToSlash(p), "/") }

func errnoName(err error, def string) string { return def }

func reason(err error, def string) string {
	if err != nil {
		return "cannot be used: " + err.Error()
	}
	return def
}
