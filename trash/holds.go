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

// surroundings is what there was to know before a look: the mount table, and
// where the home trash is.
type surroundings struct {
	mounts []mount
	// home are the identities of the home trash and its halves, above those of
	// the directories that hold it; none when there is no home trash.
	home, above []anchor.Info
	// path is the canonical path of the home trash, or where it will be.
	path string
}

func (f *freedesktop) around() (*surroundings, error) {
	s := &surroundings{path: f.homePath()}
	s.home, s.above = homeIdentities(s.path)
	var err error
	s.mounts, err = mounts()
	return s, err
}

// mountBeneath is a mount point below path, or "". A rename takes what is
// mounted beneath a directory along.
func (s *surroundings) mountBeneath(path string) string {
	for _, m := range s.mounts {
		if m.point != path && within(m.point, path) {
			return m.point
		}
	}
	return ""
}

func (f *freedesktop) holds(path string) bool {
	// Without a mount table the rest is looked at all the same.
	s, _ := f.around()
	return f.held(path, s)
}

func (f *freedesktop) held(path string, s *surroundings) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return false
	}
	if f.mountedBeneath(path, s.mounts) {
		return true
	}
	inside, last := s.along(path)
	return inside || last != nil && isOne(s.above, *last)
}

// along goes along a path by handles and compares identities, so that other
// spellings, and other mounts of the same directory, are seen. last is the
// directory at its end, nil when there is none.
func (s *surroundings) along(path string) (inside bool, last *anchor.Info) {
	if boundFromTrash(path, s.mounts) {
		return true, nil
	}
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
		if isOne(s.home, i) || i.IsDir() && here.SameFile(top) && trashName(name) {
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
func homeIdentities(path string) (home, above []anchor.Info) {
	cur, err := anchor.OpenDir(path)
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
func boundFromTrash(path string, all []mount) bool {
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
