//go:build unix && !darwin

package trash

import (
	"os"
	"path/filepath"
	"slices"
)

// guard goes by the mount table and not by handles: a fence goes by paths too.
func (f *freedesktop) guard(roots []string) []string {
	all, err := mounts()
	// Without a table the directories above the roots stand for their mounts.
	if err != nil || !listsMounts {
		for _, r := range roots {
			for ; ; r = filepath.Dir(r) {
				all = append(all, mount{point: r})
				if r == filepath.Dir(r) {
					break
				}
			}
		}
	}
	out := []string{f.homePath()}
	for _, m := range all {
		if m.auto {
			continue
		}
		used := slices.ContainsFunc(roots, func(r string) bool { return within(m.point, r) || m.point == pointOf(r, all) })
		if m.network && !used {
			continue
		}
		// The whole of .Trash is closed, not our part of it alone.
		for _, name := range []string{".Trash", f.topNames()[1]} {
			path := filepath.Join(m.point, name)
			if !used {
				if fi, err := os.Lstat(path); err != nil || !fi.IsDir() {
					continue
				}
			}
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pointOf is where the mount in which a path lies is mounted.
func pointOf(path string, all []mount) string {
	at := ""
	for _, m := range all {
		if within(path, m.point) && len(m.point) > len(at) {
			at = m.point
		}
	}
	return at
}
