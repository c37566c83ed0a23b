package provider

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
)

// Resolve implements [Provider].
func (l *Local) Resolve(ctx context.Context, f *fence.Fence, path string, o ResolveOptions) (Target, error) {
	c, err := l.begin(ctx, f, "resolve", path)
	if err != nil {
		return Target{}, err
	}
	way, shown, err := c.absolute(path, o)
	if err != nil {
		return Target{}, err
	}
	r, err := c.canonical(way, fence.Read)
	if err != nil {
		return Target{}, err
	}
	if err := c.may(r.Path, fence.Read); err != nil {
		return Target{}, err
	}
	if err := c.alive(); err != nil {
		return Target{}, err
	}
	return Target{TargetKey: TargetKey(r.Path), DisplayPath: shown}, nil
}

// absolute gives the path to resolve and the displayPath: absolute, no link
// resolved. A spelling with ".." stays as it is written: only the kernel knows
// where the parent of a link's target is. A trailing slash stays in the path to
// resolve, since it says that a directory is meant.
func (c *call) absolute(path string, o ResolveOptions) (way, shown string, err error) {
	if strings.TrimSpace(path) == "" {
		return "", "", c.fail(CodeNotFound, "the path must not be empty")
	}
	if strings.IndexByte(path, 0) >= 0 {
		return "", "", c.fail(CodeNotFound, "a path cannot contain a NUL byte")
	}
	if err := checkSpelling(path); err != nil {
		return "", "", c.failed(CodeIOError, "not a file name on this system", err)
	}
	way = path
	if !filepath.IsAbs(way) {
		cwd := o.Cwd
		if cwd == "" {
			cwd = c.cwd
		}
		if !filepath.IsAbs(cwd) {
			return "", "", c.fail(CodeNotFound, "the directory that the path is relative to must be absolute")
		}
		way = cwd + string(filepath.Separator) + way
	}
	if runtime.GOOS == "windows" {
		return filepath.Clean(way), filepath.Clean(way), nil
	}
	if hasParent(way) {
		return way, way, nil
	}
	return way, filepath.Clean(way), nil
}

func hasParent(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// canonical resolves a displayPath as it leads now. A failure on the way to a
// place that the fence refuses is a refusal, so that errors tell nothing about
// hidden paths.
func (c *call) canonical(shown string, a fence.Access) (fence.Resolved, error) {
	r, err := c.fence.Resolve(shown)
	if err == nil {
		return r, nil
	}
	if aborted := c.alive(); aborted != nil {
		return r, aborted
	}
	if denied := c.may(filepath.Clean(shown), a); denied != nil {
		return r, denied
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return r, c.failed(CodeNotFound, "a parent is not a directory", err)
	case errors.Is(err, fs.ErrNotExist):
		return r, c.failed(CodeNotFound, "parent traversal crosses a missing directory", err)
	}
	return r, c.mapped(err)
}

// Contains implements [Provider].
func (l *Local) Contains(parent, child Target) bool {
	return fence.PathCovers(string(parent.TargetKey), string(child.TargetKey))
}

// ProcessPath implements [Provider].
func (l *Local) ProcessPath(t Target) string { return string(t.TargetKey) }

// ProcessPathFromHostPath implements [Reader].
func (l *Local) ProcessPathFromHostPath(host string) (string, bool) {
	if !filepath.IsAbs(host) {
		return "", false
	}
	return filepath.Clean(host), true
}

// FileURL implements [Provider]. RFC 8089; a drive letter gets a leading slash.
func (l *Local) FileURL(t Target) string {
	p := filepath.ToSlash(string(t.TargetKey))
	if filepath.VolumeName(string(t.TargetKey)) != "" {
		p = "/" + p
	}
	u := url.URL{Scheme: "file", Path: p}
	return u.String()
}
