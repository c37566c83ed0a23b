package fence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSymlinks is what Linux allows in one resolution (path_resolution(7)).
const maxSymlinks = 40

// maxPath is PATH_MAX without its terminating NUL (limits.h).
const maxPath = 4095

// Resolved is a path after its links have been followed.
type Resolved struct {
	// Path is absolute and clean; no component of its existing part is a link,
	// except the last one of a dangling link.
	Path string
	// Exists: something is there (not a dangling link).
	Exists bool
	// Missing are the components of Path that do not exist, outermost first.
	Missing []string
	// Dangling is set when the last component is a link that leads to nothing:
	// Path is then the link's own place and Dangling where it leads, canonical.
	Dangling string
}

// Canonical resolves an absolute path as the kernel would, following every
// link, with any number of missing components at its end. It only looks.
//
// Errors wrap what the kernel would say: ENAMETOOLONG beyond PATH_MAX, ELOOP
// after 40 links, ENOTDIR when a file is used as a directory, EACCES when a
// directory cannot be searched; EINVAL for a relative path or a NUL byte; and
// ENOENT when `..` follows a component that does not exist (the kernel says
// the same, and a lexical answer would be a guess).
//
// The answer is a snapshot: links may change right after. Whoever acts on it
// must do so on handles that refuse links.
func Canonical(p string) (Resolved, error) {
	if strings.IndexByte(p, 0) >= 0 || !absolutePath(p) {
		return Resolved{}, &fs.PathError{Op: "resolve", Path: p, Err: syscall.EINVAL}
	}
	if len(p) > maxPath {
		return Resolved{}, &fs.PathError{Op: "resolve", Path: p[:64] + "…", Err: syscall.ENAMETOOLONG}
	}
	w := walker{vol: filepath.VolumeName(p), links: 0}
	return w.walk(p)
}

type walker struct {
	vol   string
	links int
}

func (w *walker) walk(p string) (Resolved, error) {
	sep := string(filepath.Separator)
	cur := w.vol + sep
	pending := splitOS(p[len(w.vol):])
	var missing []string
	for len(pending) > 0 {
		c := pending[0]
		pending = pending[1:]
		switch c {
		case "", ".":
			continue
		case "..":
			if len(missing) > 0 {
				return Resolved{}, &fs.PathError{Op: "resolve", Path: p, Err: syscall.ENOENT}
			}
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, c)
		if len(missing) > 0 {
			missing = append(missing, c)
			cur = next
			continue
		}
		fi, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, c)
			cur = next
		case err != nil:
			return Resolved{}, fmt.Errorf("resolve %s: %w", p, err)
		case fi.Mode()&fs.ModeSymlink != 0:
			w.links++
			if w.links > maxSymlinks {
				return Resolved{}, &fs.PathError{Op: "resolve", Path: p, Err: syscall.ELOOP}
			}
			t, err := os.Readlink(next)
			if err != nil {
				return Resolved{}, fmt.Errorf("resolve %s: %w", p, err)
			}
			if onlyDots(pending) {
				return w.lastLink(p, cur, next, t, len(pending) > 0)
			}
			if absolutePath(t) {
				w.vol = filepath.VolumeName(t)
				cur = w.vol + sep
				t = t[len(w.vol):]
			}
			pending = append(splitOS(t), pending...)
		case !fi.IsDir() && len(pending) > 0: // a trailing slash counts, as for the kernel
			return Resolved{}, &fs.PathError{Op: "resolve", Path: p, Err: syscall.ENOTDIR}
		default:
			cur = next
		}
	}
	return Resolved{Path: cur, Exists: len(missing) == 0, Missing: missing}, nil
}

// lastLink resolves a link that is the last component: to its target, or, when
// that does not exist, to its own place with Dangling set.
func (w *walker) lastLink(p, dir, link, target string, slash bool) (Resolved, error) {
	t := target
	if !absolutePath(t) {
		t = dir + string(filepath.Separator) + t
	}
	sub := walker{vol: filepath.VolumeName(t), links: w.links}
	r, err := sub.walk(t)
	w.links = sub.links
	if err != nil {
		if errors.Is(err, syscall.ENOENT) {
			return Resolved{Path: link, Missing: nil, Dangling: filepath.Clean(t)}, nil
		}
		return Resolved{}, err
	}
	if r.Exists {
		if fi, err := os.Lstat(r.Path); slash && err == nil && !fi.IsDir() {
			return Resolved{}, &fs.PathError{Op: "resolve", Path: p, Err: syscall.ENOTDIR}
		}
		return r, nil
	}
	d := r.Path
	if r.Dangling != "" {
		d = r.Dangling
	}
	return Resolved{Path: link, Dangling: d}, nil
}

func onlyDots(parts []string) bool {
	for _, c := range parts {
		if c != "" && c != "." {
			return false
		}
	}
	return true
}

// cleanCanonical resolves what can be resolved and falls back to the clean
// spelling, which then matches only itself.
func cleanCanonical(p string) string {
	if r, err := Canonical(p); err == nil {
		return r.Path
	}
	return filepath.Clean(p)
}

// Resolve makes a path canonical and, when it lies in none of the fence's
// roots by name, looks whether one of its ancestors *is* a writable root by
// identity (a bind mount, a case alias): the path is then told below that
// root. facts/fs-contract section 7.
func (f *Fence) Resolve(p string) (Resolved, error) {
	r, err := Canonical(p)
	if err != nil {
		return r, err
	}
	r.Path = f.Unalias(r.Path)
	return r, nil
}

// Unalias rewrites a canonical path whose ancestor is, by identity, a writable
// root, and returns any other path as it is. It looks at the disk.
func (f *Fence) Unalias(canonical string) string {
	if len(f.writable) == 0 {
		return canonical
	}
	for _, w := range f.writable {
		if covers(w.path, canonical) {
			return canonical
		}
	}
	ids := make([]os.FileInfo, 0, len(f.writable))
	paths := make([]string, 0, len(f.writable))
	for _, w := range f.writable {
		if fi, err := os.Stat(w.path); err == nil {
			ids, paths = append(ids, fi), append(paths, w.path)
		}
	}
	for dir := canonical; ; dir = filepath.Dir(dir) {
		if fi, err := os.Lstat(dir); err == nil {
			for i := range ids {
				if os.SameFile(ids[i], fi) {
					rest := strings.TrimPrefix(canonical[len(dir):], string(filepath.Separator))
					return filepath.Join(paths[i], rest)
				}
			}
		}
		if dir == filepath.Dir(dir) {
			return canonical
		}
	}
}
