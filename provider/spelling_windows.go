package provider

import (
	"path/filepath"
	"strings"
	"syscall"
)

// checkSpelling refuses what Windows takes for something else than a file of
// that name: streams (name:stream), devices (NUL, COM1.txt), and trailing dots
// and blanks, which it drops.
func checkSpelling(path string) error {
	for part := range strings.SplitSeq(filepath.ToSlash(path[len(filepath.VolumeName(path)):]), "/") {
		if part == "" || part == "." || part == ".." {
			continue
		}
		if strings.Contains(part, ":") || strings.TrimRight(part, ". ") != part || !filepath.IsLocal(part) {
			return syscall.EINVAL
		}
	}
	return nil
}
