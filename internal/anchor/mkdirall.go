package anchor

import (
	"errors"
	"io/fs"
)

// MkdirAll opens the directory rel beneath this one and makes what is missing
// of it with perm (narrowed by the umask). A link at any component is ELOOP, a
// file ENOTDIR. Directories that are there keep their permissions. A directory
// that somebody else makes meanwhile is used.
func (d *Dir) MkdirAll(rel string, perm uint32) (*Dir, error) {
	if s, err := d.Walk(rel); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	parts, err := splitRel(rel)
	if err != nil {
		return nil, err
	}
	cur := d
	for i, p := range parts {
		next, err := cur.Walk(p)
		if errors.Is(err, fs.ErrNotExist) {
			if err = cur.Mkdir(p, perm); err == nil || errors.Is(err, fs.ErrExist) {
				next, err = cur.Walk(p)
			}
		}
		if i > 0 {
			cur.Close()
		}
		if err != nil {
			return nil, err
		}
		cur = next
	}
	return cur, nil
}
