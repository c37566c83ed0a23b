package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

func TestCopyKeepsEverything(t *testing.T) {
	for _, how := range []string{"copy", "move", "across"} {
		t.Run(how, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			p.grove("d")
			want := whole(t, p.W+"/d")
			if how == "move" {
				_, err := p.move("d", "x", false)
				must(t, err)
			} else {
				o, err := p.copy("d", "x", false)
				must(t, err)
				if o.Files != 5 || o.Bytes != 210_003 || o.MetadataLost != nil {
					t.Errorf("%+v", o)
				}
				if whole(t, p.W+"/d") != want {
					t.Error("the source was changed")
				}
			}
			if got := whole(t, p.W+"/x"); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A directory hands its default access list down; a copy has the source's.
func TestCopyIntoDirectoryWithDefaultACL(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	p.grove("d")
	p.put("f", "f")
	must(t, os.Chmod(p.W+"/f", 0o600))
	must(t, os.Mkdir(p.W+"/open", 0o755))
	list := acl([3]uint32{aclUserObj, 7, noID}, [3]uint32{aclUser, 7, 65533}, [3]uint32{aclGroupObj, 7, noID}, [3]uint32{aclMask, 7, noID}, [3]uint32{aclOther, 7, noID})
	setAttr(t, p.W+"/open", "system.posix_acl_default", list)
	_, err := p.copy("d", "open/d", false)
	must(t, err)
	if got, want := whole(t, p.W+"/open/d"), whole(t, p.W+"/d"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	_, err = p.copy("f", "open/f", false)
	must(t, err)
	for _, n := range []string{"open/f", "open/d/a", "open/d/sub"} {
		if got := attr(t, p.W+"/"+n, "system.posix_acl_access"); got != nil {
			t.Errorf("%s has an access list: %x", n, got)
		}
	}
}

// Whatever the point at which a call is cancelled or the disk fails: before the
// publication nothing is left, afterwards everything is there.
func TestCancelledCopyLeavesNothing(t *testing.T) {
	points := map[string]int{}
	for _, op := range []string{"copy tree", "copy file", "copy link", "copy over", "move", "move over", "across"} {
		for _, point := range []string{"locked", "found", "surveyed", "copied", "staged", "checked", "renamed", "exchanged", "published"} {
			t.Run(op+"/"+point, func(t *testing.T) {
				p := newPlace(t, "", provider.Config{})
				p.grove("d")
				p.put("f", "content")
				must(t, os.Symlink("text", p.W+"/l"))
				names := []string{"d", "f", "l"}
				from, to, over := map[string]string{"copy tree": "d", "copy file": "f", "copy link": "l", "copy over": "f", "move": "d", "move over": "f", "across": "d"}[op], "x", false
				switch op {
				case "copy over", "move over":
					p.put("x", "old")
					names, over = append(names, "x"), true
				case "across":
					p.memory("m", "")
					to, names = "m/x", append(names, "m")
				}
				source := whole(t, p.W+"/"+from)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				met := false
				p.l.SetHook(func(at string) {
					if at == point {
						met = true
						cancel()
					}
				})
				var err error
				if strings.HasPrefix(op, "copy") {
					_, err = p.l.CopyPath(ctx, p.f, from, to, provider.CopyPathOptions{Recursive: true, Overwrite: over})
				} else {
					_, err = p.l.MovePath(ctx, p.f, from, to, provider.MovePathOptions{Overwrite: over})
				}
				if met {
					points[point]++
				}
				done := !met || point == "renamed" || point == "exchanged" || point == "published"
				if done {
					must(t, err)
					if got := whole(t, p.W+"/"+to); got != source {
						t.Errorf("%s\nwant %s", got, source)
					}
					return
				}
				code(t, err, provider.CodeAborted)
				if whole(t, p.W+"/"+from) != source {
					t.Error("the source was changed")
				}
				if over && p.get("x") != "old" {
					t.Errorf("%q", p.get("x"))
				}
				p.only(names...)
				if es, _ := os.ReadDir(p.W + "/m"); len(es) != 0 {
					t.Errorf("left: %v", es)
				}
			})
		}
	}
	for _, point := range []string{"locked", "found", "surveyed", "copied", "staged", "checked", "renamed", "exchanged"} {
		if points[point] == 0 {
			t.Errorf("nothing came by %s", point)
		}
	}
}

func TestCopyOfManyFiles(t *testing.T) {
	p := newPlace(t, fastDir(t), provider.Config{})
	for i := range 100 {
		must(t, os.MkdirAll(fmt.Sprintf("%s/d/%d/in", p.W, i), 0o755))
		for j := range 100 {
			p.put(fmt.Sprintf("d/%d/in/%d", i, j), fmt.Sprint(i, j))
		}
	}
	o, err := p.copy("d", "x", false)
	must(t, err)
	if o.Files != 10_000 {
		t.Errorf("%+v", o)
	}
	if whole(t, p.W+"/x") != whole(t, p.W+"/d") {
		t.Error("the copy differs")
	}
	before := whole(t, p.W+"/x")
	_, err = p.move("x", "y", false)
	must(t, err)
	if whole(t, p.W+"/y") != before {
		t.Error("the moved tree differs")
	}
	// Somebody has less room.
	small, err := provider.NewLocal(provider.Config{Cwd: p.W, ListMaxEntries: 10_000})
	must(t, err)
	_, err = small.CopyPath(t.Context(), p.f, "d", "z", provider.CopyPathOptions{Recursive: true})
	code(t, err, provider.CodeTooLarge)
	p.only("d", "y")
}

// Depth costs no handles.
func TestCopyOfDeepTree(t *testing.T) {
	p := newPlace(t, fastDir(t), provider.Config{})
	deep := strings.Repeat("/d", 1500)
	must(t, os.MkdirAll(p.W+deep, 0o755))
	for i := 100; i <= 1500; i += 100 {
		must(t, os.WriteFile(p.W+strings.Repeat("/d", i)+"/f", []byte(fmt.Sprint(i)), 0o644))
	}
	open := func() int {
		es, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(es)
	}
	base, most := open(), 0
	p.l.SetHook(func(at string) {
		if at == "copied" {
			most = max(most, open())
		}
	})
	o, err := p.copy("d", "x", false)
	must(t, err)
	if o.Files != 15 {
		t.Errorf("%+v", o)
	}
	if most-base > 80 {
		t.Errorf("%d handles", most-base)
	}
	t.Logf("handles at once: %d", most-base)
	p.l.SetHook(nil)
	if _, err := os.ReadFile(p.W + "/x" + deep[2:] + "/f"); err != nil {
		t.Error(err)
	}
	if now := open(); now > base+2 {
		t.Errorf("%d handles are left open", now-base)
	}
	// Deeper than a path can be long: refused with nothing made.
	at := p.W + "/y"
	must(t, os.Mkdir(at, 0o755))
	fd, err := unix.Open(at, unix.O_PATH, 0)
	must(t, err)
	for range 2100 {
		must(t, unix.Mkdirat(fd, "d", 0o755))
		next, err := unix.Openat(fd, "d", unix.O_PATH, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	_, err = p.copy("y", "z", false)
	code(t, err, provider.CodeTooLarge)
	p.only("d", "x", "y")
}

func TestCopyOfSparseFile(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	f, err := os.Create(p.W + "/f")
	must(t, err)
	_, err = f.WriteAt([]byte("begin"), 0)
	must(t, err)
	_, err = f.WriteAt([]byte("middle"), 200<<20)
	must(t, err)
	must(t, f.Truncate(300<<20))
	must(t, f.Close())
	o, err := p.copy("f", "x", false)
	must(t, err)
	if o.Bytes != 300<<20 {
		t.Errorf("%+v", o)
	}
	var a, b unix.Stat_t
	must(t, unix.Stat(p.W+"/f", &a))
	must(t, unix.Stat(p.W+"/x", &b))
	if b.Size != a.Size || b.Blocks > 2*a.Blocks {
		t.Errorf("%d blocks of %d bytes; the source has %d", b.Blocks, b.Size, a.Blocks)
	}
	x, err := os.Open(p.W + "/x")
	must(t, err)
	defer x.Close()
	var m [6]byte
	_, err = x.ReadAt(m[:], 200<<20)
	if err != nil || string(m[:]) != "middle" {
		t.Errorf("%q, %v", m, err)
	}
}

// A file that changes while it is copied is copied as it was at one moment.
func TestCopyOfChangingFile(t *testing.T) {
	p := newPlace(t, fastDir(t), provider.Config{})
	a, b := strings.Repeat("a", 3<<20), strings.Repeat("b", 3<<20)
	p.put("f", a)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			f, err := os.OpenFile(p.W+"/f", os.O_WRONLY, 0)
			if err != nil {
				return
			}
			text := []string{a, b}[i%2]
			for off := 0; off < len(text); off += 1 << 20 {
				_, _ = f.WriteAt([]byte(text[off:off+1<<20]), int64(off))
			}
			f.Close()
			<-time.After(3 * time.Millisecond)
		}
	})
	var got tally
	for i := range 40 {
		_, err := p.copy("f", fmt.Sprint("x", i), false)
		got.add(err)
		if err != nil && !strings.Contains(err.Error(), "kept changing") {
			t.Error(err)
		}
	}
	stop()
	wg.Wait()
	t.Logf("%v", &got)
	for i := range 40 {
		c, err := os.ReadFile(fmt.Sprint(p.W, "/x", i))
		if err != nil {
			continue
		}
		// The writer works in place, so a moment in the middle of it is one
		// too; but only one border can be in it.
		s := string(c)
		if len(s) != 3<<20 || strings.Count(s, "ab")+strings.Count(s, "ba") > 1 {
			t.Errorf("a mixture: %d bytes, %d borders", len(s), strings.Count(s, "ab")+strings.Count(s, "ba"))
		}
	}
}

// Files of the kernel have content and no size.
func TestCopyOfKernelFile(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	_, err := p.copy("/proc/self/status", "x", false)
	must(t, err)
	if !strings.Contains(p.get("x"), "\nPid:") {
		t.Errorf("%.80q", p.get("x"))
	}
}

// Inside the tree that is copied or moved a directory and a link to the outside
// exchange their names, and so do the tree itself and such a link: nothing from
// outside gets in, and nothing outside is touched.
func TestSwapsDuringCopyAndMove(t *testing.T) {
	for _, where := range []string{"inside", "root"} {
		t.Run(where, func(t *testing.T) {
			p := newPlace(t, fastDir(t), provider.Config{})
			for _, n := range []string{"a", "b", "c"} {
				must(t, os.WriteFile(p.O+"/"+n, []byte("outside"), 0o644))
			}
			before := listing(t, p.O)
			must(t, os.MkdirAll(p.W+"/src/d", 0o755))
			for _, n := range []string{"a", "b", "c"} {
				p.put("src/d/"+n, "inside")
			}
			a, b := p.W+"/src/d", p.W+"/src/l"
			if where == "root" {
				a, b = p.W+"/src", p.W+"/l"
			}
			must(t, os.Symlink(p.O, b))
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			var swaps atomic.Int64
			wg.Go(func() {
				for ctx.Err() == nil {
					if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
						swaps.Add(1)
					}
				}
			})
			all, limit := raceTries()
			rounds := int64(all / 50)
			deadline := time.Now().Add(limit / 4)
			var got tally
			tries := int64(0)
			for ; tries < rounds && time.Now().Before(deadline); tries++ {
				to := fmt.Sprint("x", tries)
				_, err := p.copy("src", to, false)
				got.add(err)
				sane(t, p.W+"/"+to)
				if tries%4 != 0 {
					must(t, os.RemoveAll(p.W+"/"+to))
					continue
				}
				// Moved away and back. One exchange may still be on its way.
				_, err = p.move("src", to+"m", false)
				got.add(err)
				if err == nil {
					must(t, unix.Renameat2(unix.AT_FDCWD, p.W+"/"+to+"m", unix.AT_FDCWD, p.W+"/src", unix.RENAME_NOREPLACE))
				}
				must(t, os.RemoveAll(p.W+"/"+to))
			}
			stop()
			wg.Wait()
			t.Logf("tries: %d, exchanges: %d; %v", tries, swaps.Load(), &got)
			if after := listing(t, p.O); after != before {
				t.Errorf("outside was touched:\n%s\nbefore:\n%s", after, before)
			}
			if got.n["done"] == 0 || swaps.Load() == 0 {
				t.Error("the race did not happen")
			}
			es, _ := os.ReadDir(p.W)
			for _, e := range es {
				if strings.HasPrefix(e.Name(), provider.TempPrefix) {
					t.Errorf("left: %s", e.Name())
				}
			}
		})
	}
}

// sane fails when something from outside is in a tree.
func sane(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, de os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if de.Type().IsRegular() {
			if c, _ := os.ReadFile(p); string(c) != "inside" {
				t.Errorf("%s has %q", p, c)
			}
		}
		return nil
	})
	must(t, err)
}
