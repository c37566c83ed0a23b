//go:build unix && !darwin

package trash

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// homePath is the canonical path of the home trash, or where it will be.
func (f *freedesktop) homePath() string {
	path, rest := filepath.Join(f.home, "Trash"), ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(path) == path {
			return filepath.Join(path, rest)
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// mountBeneath is a mount point below path, or "". A rename takes what is
// mounted beneath a directory along.
func mountBeneath(path string) (string, error) {
	all, err := mounts()
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if m.point != path && within(m.point, path) {
			return m.point, nil
		}
	}
	return "", nil
}

func (f *freedesktop) holds(path string) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return false
	}
	if all, err := mounts(); err == nil && f.mountedBeneath(path, all) {
		return true
	}
	inside, last := f.along(path)
	if inside || last == nil {
		return inside
	}
	_, above := f.homeIdentities()
	return isOne(above, *last)
}

// liesIn tells whether a directory is a trash or lies in one, and whether it
// is there at all.
func (f *freedesktop) liesIn(dir string) (inside, there bool) {
	inside, last := f.along(dir)
	return inside, last != nil
}

// along goes along a path by handles and compares identities, so that other
// spellings, and other mounts of the same directory, are seen. last is the
// directory at its end, nil when there is none.
func (f *freedesktop) along(path string) (inside bool, last *anchor.Info) {
	if all, err := mounts(); err == nil && f.boundFromTrash(path, all) {
		return true, nil
	}
	home, _ := f.homeIdentities()
	cur, err := anchor.OpenDir("/")
	if err != nil {
		return false, nil
	}
	defer func() { cur.Close() }()
	here, err := cur.Stat()
	if err != nil {
		return false, nil
	}
	top := here // of the mount in which cur lies
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if name == "" {
			break
		}
		i, err := cur.Lstat(name)
		if err != nil {
			return false, nil
		}
		if isOne(home, i) || i.IsDir() && here.SameFile(top) && trashName(name) {
			return true, nil
		}
		next, err := cur.Walk(name)
		if err != nil {
			return false, nil // a file or a link, or something that may not be entered
		}
		cur.Close()
		cur = next
		if !i.SameMount(here) {
			top = i
		}
		here = i
	}
	return false, &here
}

// homeIdentities are those of the home trash and its halves, and of the
// directories above it.
func (f *freedesktop) homeIdentities() (home, above []anchor.Info) {
	cur, err := anchor.OpenDir(f.homePath())
	if err != nil {
		return nil, nil
	}
	defer func() { cur.Close() }()
	i, err := cur.Stat()
	if err != nil {
		return nil, nil
	}
	home = append(home, i)
	for _, half := range []string{"info", "files"} {
		if i, err := cur.Lstat(half); err == nil {
			home = append(home, i)
		}
	}
	for {
		up, err := cur.Parent()
		if err != nil {
			return home, above
		}
		cur.Close()
		cur = up
		j, err := cur.Stat()
		if err != nil || j.SameFile(i) && j.SameMount(i) {
			return home, above
		}
		above, i = append(above, j), j
	}
}

func isOne(set []anchor.Info, i anchor.Info) bool {
	for _, s := range set {
		if s.SameFile(i) {
			return true
		}
	}
	return false
}

// trashName tells whether a directory at the top of a mount is a trash by its
// name, anybody's. Without regard to case, which some file systems have none of.
func trashName(name string) bool {
	name = strings.ToLower(name)
	digits, ok := strings.CutPrefix(name, ".trash-")
	return name == ".trash" || ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// boundFromTrash tells whether the mount in which path lies shows the inside of
// a trash.
func (f *freedesktop) boundFromTrash(path string, all []mount) bool {
	var at mount
	for _, m := range all {
		// Of several at one place the last is on top.
		if within(path, m.point) && len(m.point) >= len(at.point) {
			at = m
		}
	}
	for part := range strings.SplitSeq(at.root, "/") {
		if trashName(part) {
			return true
		}
	}
	return false
}

// mountedBeneath tells whether a mount at or below path has a trash of ours.
func (f *freedesktop) mountedBeneath(path string, all []mount) bool {
	for _, m := range all {
		if m.auto || !within(m.point, path) {
			continue
		}
		for _, name := range f.topNames() {
			if fi, err := os.Lstat(filepath.Join(m.point, name)); err == nil && fi.IsDir() {
				return true
			}
		}
	}
	return false
}
