package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// TestKeptRace: a command that changes what a path means while it removes by it
// gets nothing into the trash but what it may remove: no file from outside and
// no hidden one, of which the trash would be a readable copy.
func TestKeptRace(t *testing.T) {
	k := newKeepLab(t)
	tries := 400
	if soak() {
		tries = 4000
	}
	write(t, k.O+"/f", "outside\n", 0o600)
	write(t, k.W+"/hidden/f", "hidden\n", 0o600)
	for _, p := range []string{k.O + "/f", k.W + "/hidden/f"} {
		held, err := os.Open(p) // so that its inode is not another file's later
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
	}
	before, ids := snapshot(t, k.O), inodes(t, k.O, k.W+"/hidden")
	f := k.fence(fence.WorkspaceWrite, trashing, func(p *fence.Policy) {
		p.Hidden = append(p.Hidden, fence.Entry{Path: k.W + "/hidden", Source: "session"})
	})
	for _, to := range []string{k.O, k.W + "/hidden"} {
		r := k.run(f, fmt.Sprintf(`"$TOOL" tool race-remove "$W" %s %d`, to, tries), named("race"))
		if r.code() != 0 || r.Kept == nil || r.Kept.Count == 0 {
			t.Fatalf("%v %+v", r, r.Kept)
		}
		t.Logf("%s, %d denials, kept %d, not kept %d", strings.TrimSpace(r.stdout), len(r.Denials), r.Kept.Count, r.Kept.NotKept)
	}
	if after := snapshot(t, k.O); after != before {
		t.Errorf("outside changed:\n%s", differing(before, after))
	}
	// What is hidden inside can be lost that way (protect "checked").
	in := inodes(t, k.data)
	if len(in) < 10 {
		t.Errorf("hardly anything is in the trash: %v", in)
	}
	for ino, p := range ids {
		if at, ok := in[ino]; ok {
			t.Errorf("%s is in the trash: %s", p, at)
		}
	}
}

// inodes are those of the files below some directories.
func inodes(t *testing.T, dirs ...string) map[uint64]string {
	t.Helper()
	all := map[uint64]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			var st unix.Stat_t
			if err == nil && !d.IsDir() {
				err = unix.Lstat(p, &st)
				all[st.Ino] = p
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func init() {
	// race-remove W TO N: N times removes dir/f somewhere in W while dir is
	// exchanged with a link to the directory TO.
	tools["race-remove"] = func(a []string) error {
		w, to := a[0], a[1]
		n, err := strconv.Atoi(a[2])
		if err != nil {
			return err
		}
		stage, err := os.MkdirTemp(w, "stage")
		if err != nil {
			return err
		}
		dir, link, old := stage+"/dir", stage+"/link", stage+"/old"
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(to, link); err != nil {
			return err
		}
		held, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !stop.Load() {
				_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}()
		removed := 0
		for range n {
			if err := os.WriteFile(old, nil, 0o644); err != nil {
				return err
			}
			// Moved there it is no name that the command made.
			if err := unix.Renameat(unix.AT_FDCWD, old, held, "f"); err != nil {
				return err
			}
			if unix.Unlink(dir+"/f") == nil {
				removed++
			}
		}
		stop.Store(true)
		<-done
		fmt.Println("removed", removed, "of", n)
		return nil
	}
}
