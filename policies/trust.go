package policies

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/wattle-dev/wattle/fence"
)

var errInWorkspace = errors.New("it lies in the workspace, or a link on its way does")

// trusted follows a path to the file that it names and gives that file's own
// place, free of links. It fails with errInWorkspace when the file, or any
// link or directory on the way, lies in the workspace: whoever can write there
// chooses what would be read. Bind mounts of the workspace count too.
func (l Library) trusted(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("the path of a policy file must be absolute: %q", path)
	}
	w := wayfarer{links: 40}
	if l.Workspace != "" {
		r, err := fence.Canonical(l.Workspace)
		if err != nil {
			return "", fmt.Errorf("the workspace: %w", err)
		}
		w.ws = r.Path
		if fi, err := os.Stat(r.Path); err == nil {
			w.id = fi
		}
	}
	return w.walk(string(filepath.Separator), path)
}

// wayfarer walks a path link by link, as path_resolution(7) does, and looks
// where it is after every step.
type wayfarer struct {
	ws    string
	id    os.FileInfo // of ws, nil if it is not there
	links int
}

func (w *wayfarer) walk(dir, path string) (string, error) {
	if filepath.IsAbs(path) {
		dir = filepath.VolumeName(path) + string(filepath.Separator)
		path = path[len(filepath.VolumeName(path)):]
	}
	for _, c := range strings.Split(filepath.ToSlash(path), "/") {
		switch c {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, c)
		fi, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if w.ws != "" && (fence.PathCovers(w.ws, next) || w.id != nil && os.SameFile(w.id, fi)) {
			return "", errInWorkspace
		}
		if fi.Mode()&os.ModeSymlink == 0 {
			dir = next
			continue
		}
		if w.links--; w.links < 0 {
			return "", fmt.Errorf("too many links at %s", next)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if dir, err = w.walk(dir, target); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// writableByOthers: such a file may hold anybody's rules.
func writableByOthers(fi os.FileInfo) bool {
	return runtime.GOOS != "windows" && fi.Mode().Perm()&0o002 != 0
}
