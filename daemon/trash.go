package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/trash"
)

// newBin makes the trash of this user. It touches nothing.
func newBin(p Places) (*trash.Bin, error) {
	// Where users have no numbers the trash does not go by them.
	return trash.New(trash.Config{DataHome: p.Data, UID: max(0, os.Geteuid())})
}

// measureTime is how long the end of a host waits for the sizes of directories
// that were trashed last. Without one a file manager measures for itself.
const measureTime = 2 * time.Second

func (h *Host) closeBin() {
	ctx, cancel := context.WithTimeout(context.Background(), measureTime)
	defer cancel()
	h.bin.Close(ctx)
}

// tempDirs are the system's temporary directories, canonical. One that holds
// the home directory would make every delete permanent, and is none.
func tempDirs(home string) []string {
	var out []string
	own := home
	if r, err := fence.Canonical(home); err == nil {
		own = r.Path
	}
	for _, d := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		r, err := fence.Canonical(d)
		if err == nil && r.Exists && r.Path != "/" && !fence.PathCovers(r.Path, own) {
			out = append(out, r.Path)
		}
	}
	return out
}

// closeTrash hides the trash in a policy, also where there is none yet: who may
// write there can empty it, and what is in it has left the workspace. A root in
// the trash would open it again and is refused.
func (h *Host) closeTrash(p *fence.Policy) error {
	roots := make([]string, 0, 1+len(p.Writable)+len(p.Caches))
	entries := append([]fence.Entry{{Path: p.Workspace}}, p.Writable...)
	for _, e := range append(entries, p.Caches...) {
		if e.Path == "" {
			continue
		}
		// What cannot be resolved is no root (fence.New).
		if r, err := fence.Canonical(e.Path); err == nil {
			roots = append(roots, r.Path)
		}
	}
	for _, dir := range h.bin.Guard(roots...) {
		at := dir
		if strings.ContainsAny(dir, "*?[") {
			at = fence.EscapeGlob(dir)
		}
		p.Hidden = append(p.Hidden, fence.Entry{Path: at, Source: "mode"})
		for _, r := range roots {
			if fence.PathCovers(dir, r) && p.Mode.Fenced() {
				return &fence.PolicyError{Code: fence.CodePolicyRootRefused, Path: r,
					Msg: "it lies in the trash " + dir + ", which no fence may write; restore what is in it first"}
			}
		}
	}
	return nil
}

// keeper keeps in the trash what commands remove.
type keeper struct{ bin *trash.Bin }

// Begin implements [sandbox.Keeper].
func (k keeper) Begin(r sandbox.Removing) sandbox.Keeping {
	return k.bin.Group(trash.GroupOptions{ID: r.ID, Base: r.Workspace, Writable: r.Writable})
}

// inPlace is the canonical path of a name itself: of a link the link's.
func inPlace(path string) (string, error) {
	path = filepath.Clean(path)
	r, err := fence.Canonical(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(r.Path, filepath.Base(path)), nil
}
