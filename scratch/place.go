package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// place is where a session's directory goes: base exists, and sibling, when
// not "", is the directory in it that may have to be made.
type place struct {
	base    string
	sibling string
}

func (p place) parent() string { return filepath.Join(p.base, p.sibling) }

// altSibling is appended to the sibling's name in trap a, where the workspace
// itself has that name.
const altSibling = "-scratch"

// findPlace chooses the parent of the scratch directory for a canonical
// workspace. It only looks. It never chooses a place in the workspace.
func findPlace(workspace string, c Config) (place, error) {
	p, err := beside(workspace, c.SiblingDir)
	if err == nil || c.Root == "" {
		return p, err
	}
	root, rerr := fence.Canonical(c.Root)
	switch {
	case rerr != nil:
		return place{}, fmt.Errorf("%w; the configured root %s cannot be used: %w", err, c.Root, rerr)
	case fence.PathCovers(workspace, root.Path):
		return place{}, failf(CodeConfigInvalid, "configure", c.Root, "root must lie outside the workspace %s", workspace)
	}
	d, rerr := anchor.OpenDir(root.Path)
	if rerr == nil {
		rerr = d.CanWrite()
		d.Close()
	}
	if rerr != nil {
		return place{}, fmt.Errorf("%w; the configured root cannot be used: %w", err, rerr)
	}
	return place{base: root.Path}, nil
}

// beside is the usual place, or why there is none.
func beside(workspace, sibling string) (place, error) {
	base := filepath.Dir(workspace)
	if base == workspace {
		return place{}, fmt.Errorf("the workspace %s has nothing beside it", workspace)
	}
	d, err := anchor.OpenDir(base)
	if err != nil {
		return place{}, fmt.Errorf("the workspace's parent cannot be opened: %w", err)
	}
	defer d.Close()
	ws, err := d.Lstat(filepath.Base(workspace))
	if err != nil {
		return place{}, fmt.Errorf("the workspace cannot be looked at: %w", err)
	}
	for _, name := range []string{sibling, sibling + altSibling} {
		p := place{base: base, sibling: name}
		// By name, for when identities are unknown, and by identity, for
		// file systems that fold case and for bind mounts.
		if fence.PathCovers(workspace, p.parent()) || len(name) > maxName {
			continue
		}
		i, err := d.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := d.CanWrite(); err != nil {
				return place{}, fmt.Errorf("%s cannot be made: %w", p.parent(), err)
			}
			return p, nil
		case err != nil:
			return place{}, fmt.Errorf("%s cannot be looked at: %w", p.parent(), err)
		case i.SameFile(ws):
			continue
		case i.IsSymlink():
			return place{}, fmt.Errorf("%s is a link, which is not followed: %w", p.parent(), syscall.ELOOP)
		case !i.IsDir():
			return place{}, fmt.Errorf("%s is in the way: %w", p.parent(), syscall.ENOTDIR)
		}
		s, err := d.Walk(name)
		if err == nil {
			err = s.CanWrite()
			s.Close()
		}
		if err != nil {
			return place{}, fmt.Errorf("%s cannot be written: %w", p.parent(), err)
		}
		return p, nil
	}
	return place{}, fmt.Errorf("the workspace is itself called %q, and no other name is free", sibling)
}

// ownedByUs: on systems without owners every file has uid 0 here.
func ownedByUs(i anchor.Info) bool {
	uid := os.Geteuid()
	return uid < 0 || i.UID == uint32(uid)
}

// protectedPlace tells why a directory must never be removed whatever its
// marker says: it is the workspace, an ancestor of it or inside it, or home or
// an ancestor of it. It looks at names and at identities, since a bind mount
// gives a directory a second name.
func protectedPlace(path string, dir anchor.Info, workspace, home string) error {
	if fence.PathCovers(workspace, path) {
		return fmt.Errorf("it is, or lies in, the workspace %s", workspace)
	}
	for _, p := range []string{workspace, home} {
		if p == "" {
			continue
		}
		if fence.PathCovers(path, p) {
			return fmt.Errorf("it holds %s", p)
		}
		for ; ; p = filepath.Dir(p) {
			if i, ok := identity(p); ok && i.SameFile(dir) {
				return fmt.Errorf("it is %s under another name", p)
			}
			if p == filepath.Dir(p) {
				break
			}
		}
	}
	ws, ok := identity(workspace)
	for p := filepath.Dir(path); ok && p != filepath.Dir(p); p = filepath.Dir(p) {
		if i, found := identity(p); found && i.SameFile(ws) {
			return fmt.Errorf("it lies in the workspace, which is also %s", p)
		}
	}
	return nil
}

func identity(p string) (anchor.Info, bool) {
	d, err := anchor.OpenDir(p)
	if err != nil {
		return anchor.Info{}, false
	}
	defer d.Close()
	i, err := d.Stat()
	return i, err == nil
}
