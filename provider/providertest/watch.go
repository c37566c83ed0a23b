//go:build unix

package providertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// RunWatch holds an implementation to the watch of the contract alone.
func RunWatch(t *testing.T, mk Make) {
	t.Run("entries", func(t *testing.T) { testWatchEntries(t, mk) })
	t.Run("one name", func(t *testing.T) { testWatchName(t, mk) })
	t.Run("start", func(t *testing.T) { testWatchStart(t, mk) })
	t.Run("end", func(t *testing.T) { testWatchEnd(t, mk) })
}

// watcher is a watch and what it has told.
type watcher struct {
	w     *World
	shown string
	watch provider.Watch

	mu   sync.Mutex
	told []provider.Change
	more chan struct{} // capacity 1
}

func (w *World) watch(f *fence.Fence, name string) *watcher {
	w.T.Helper()
	target := w.Resolve(name)
	x := &watcher{w: w, shown: target.DisplayPath, more: make(chan struct{}, 1)}
	var err error
	x.watch, err = w.P.Watch(w.T.Context(), f, target, x.receive)
	w.must(err)
	w.T.Cleanup(func() { w.must(x.watch.Close()) })
	return x
}

func (x *watcher) receive(c provider.Change) {
	x.mu.Lock()
	x.told = append(x.told, c)
	x.mu.Unlock()
	select {
	case x.more <- struct{}{}:
	default:
	}
}

// soFar gives what was told up to now.
func (x *watcher) soFar() []provider.Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.told)
}

// until waits until enough was told, and gives all of it.
func (x *watcher) until(what string, enough func([]provider.Change) bool) []provider.Change {
	x.w.T.Helper()
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	for {
		if told := x.soFar(); enough(told) {
			return told
		}
		select {
		case <-x.more:
		case <-patience.C:
			x.w.T.Fatalf("%s was not told; told were %v", what, x.soFar())
		}
	}
}

// name waits for a change of an entry, "" for the target itself.
func (x *watcher) name(n string) []provider.Change {
	x.w.T.Helper()
	return x.until(fmt.Sprintf("a change of %q", n), func(told []provider.Change) bool {
		return slices.ContainsFunc(told, func(c provider.Change) bool { return c.Kind == provider.Changed && c.Name == n })
	})
}

// checkChanges holds every change to the rules of all.
func (x *watcher) checkChanges(told []provider.Change) {
	x.w.T.Helper()
	for _, c := range told {
		want := x.shown
		if c.Name != "" {
			want += "/" + c.Name
		}
		if c.Path != want || (c.Err != nil) != (c.Kind == provider.WatchFailed) {
			x.w.T.Errorf("not a whole change: %+v, path %s", c, want)
		}
	}
}

// deed is something that is done below W/d or to it.
type deed struct {
	name string
	disk func(w *World)
	do   func(w *World)
	// want are the names that are told in a watch of W/d, "" for itself.
	want []string
}

func (w *World) ok(do op) { w.T.Helper(); w.must(do(w)) }

func (w *World) open(name string, flag int, content string) {
	w.T.Helper()
	f, err := os.OpenFile(w.Path(name), flag, 0o644)
	w.must(err)
	_, err = f.WriteString(content)
	w.must(err)
	w.must(f.Close())
}

func (w *World) move(from, to string) { w.T.Helper(); w.must(os.Rename(w.Path(from), w.Path(to))) }
func (w *World) remove(name string)   { w.T.Helper(); w.must(os.Remove(w.Path(name))) }

func withFile(w *World) { w.File("W/d/f", "old") }
func withTree(w *World) { w.Dir("W/d/t/sub"); w.File("W/d/t/sub/x", "") }

// deeds change f at most, and further names where they say so.
var deeds = []deed{
	{name: "create", do: func(w *World) { w.open("W/d/f", os.O_CREATE|os.O_EXCL|os.O_WRONLY, "x") }, want: []string{"f"}},
	{name: "create empty", do: func(w *World) { w.open("W/d/f", os.O_CREATE|os.O_EXCL|os.O_WRONLY, "") }, want: []string{"f"}},
	{name: "write in place", disk: withFile, do: func(w *World) { w.open("W/d/f", os.O_WRONLY, "new") }, want: []string{"f"}},
	{name: "append", disk: withFile, do: func(w *World) { w.open("W/d/f", os.O_WRONLY|os.O_APPEND, "x") }, want: []string{"f"}},
	{name: "truncate", disk: withFile, do: func(w *World) { w.must(os.Truncate(w.Path("W/d/f"), 0)) }, want: []string{"f"}},
	{name: "open and truncate", disk: withFile, do: func(w *World) { w.open("W/d/f", os.O_WRONLY|os.O_TRUNC, "") }, want: []string{"f"}},
	{name: "replace by rename", disk: func(w *World) { withFile(w); w.File("W/d/g", "new") }, do: func(w *World) { w.move("W/d/g", "W/d/f") }, want: []string{"f", "g"}},
	{name: "replace from elsewhere", disk: func(w *World) { withFile(w); w.File("W/g", "new") }, do: func(w *World) { w.move("W/g", "W/d/f") }, want: []string{"f"}},
	{name: "rename in", disk: func(w *World) { w.File("W/g", "new") }, do: func(w *World) { w.move("W/g", "W/d/f") }, want: []string{"f"}},
	{name: "rename away", disk: withFile, do: func(w *World) { w.move("W/d/f", "W/g") }, want: []string{"f"}},
	{name: "rename away and back", disk: withFile, do: func(w *World) { w.move("W/d/f", "W/g"); w.move("W/g", "W/d/f") }, want: []string{"f"}},
	{name: "rename inside", disk: withFile, do: func(w *World) { w.move("W/d/f", "W/d/g") }, want: []string{"f", "g"}},
	{name: "delete", disk: withFile, do: func(w *World) { w.remove("W/d/f") }, want: []string{"f"}},
	{name: "delete and make again", disk: withFile, do: func(w *World) { w.remove("W/d/f"); w.File("W/d/f", "again") }, want: []string{"f"}},
	{name: "make and delete", do: func(w *World) { w.File("W/d/f", "x"); w.remove("W/d/f") }, want: []string{"f"}},
	{name: "chmod", disk: withFile, do: func(w *World) { w.must(os.Chmod(w.Path("W/d/f"), 0o600)) }, want: []string{"f"}},
	{name: "times", disk: withFile, do: func(w *World) { w.must(os.Chtimes(w.Path("W/d/f"), time.Unix(1, 0), time.Unix(1, 0))) }, want: []string{"f"}},
	{name: "mkdir", do: func(w *World) { w.must(os.Mkdir(w.Path("W/d/f"), 0o755)) }, want: []string{"f"}},
	{name: "rmdir", disk: func(w *World) { w.Dir("W/d/sub") }, do: func(w *World) { w.remove("W/d/sub") }, want: []string{"sub"}},
	{name: "symlink", do: func(w *World) { w.Link("W/d/f", "none") }, want: []string{"f"}},
	{name: "hard link", disk: func(w *World) { w.File("W/g", "x") }, do: func(w *World) { w.must(os.Link(w.Path("W/g"), w.Path("W/d/f"))) }, want: []string{"f"}},
	{name: "FIFO", do: func(w *World) { w.FIFO("W/d/f") }, want: []string{"f"}},

	{name: "writeText, new (E11)", do: func(w *World) { w.ok(write("ws", "W/d/f", "x", noGuard)) }, want: []string{"f"}},
	{name: "writeText, guarded new (E11)", do: func(w *World) { w.ok(write("ws", "W/d/f", "x", ifAbsent)) }, want: []string{"f"}},
	{name: "writeText, replace (E11)", disk: withFile, do: func(w *World) { w.ok(write("ws", "W/d/f", "x", noGuard)) }, want: []string{"f"}},
	{name: "writeText, large", do: func(w *World) { w.ok(write("ws", "W/d/f", strings.Repeat("x", 1<<20), noGuard)) }, want: []string{"f"}},
	{name: "editText (E11)", disk: withFile, do: func(w *World) { w.ok(edit("ws", "W/d/f", "old", "new", provider.EditOptions{})) }, want: []string{"f"}},
	{name: "all of E11", do: func(w *World) {
		w.ok(write("ws", "W/d/f", "x", noGuard))
		w.ok(write("ws", "W/d/f", "y", noGuard))
		w.ok(edit("ws", "W/d/f", "y", "z", provider.EditOptions{}))
	}, want: []string{"f"}},

	{name: "patchText", disk: func(w *World) { w.File("W/d/f", "old\n") }, do: func(w *World) { w.ok(patchWith("ws", "W/d/f", oldToNew, provider.EditOptions{})) }, want: []string{"f"}},
	{name: "deleteFile", disk: withFile, do: func(w *World) { w.ok(deleteFile("ws", "W/d/f", provider.DeleteOptions{Permanent: true})) }, want: []string{"f"}},
	{name: "deletePath, a directory", disk: withTree, do: func(w *World) {
		w.ok(deletePath("ws", "W/d/t", provider.DeletePathOptions{Permanent: true, Recursive: true}, record.Deleted))
	}, want: []string{"t"}},
	{name: "moveFile", disk: withFile, do: func(w *World) { w.ok(moveFile("ws", "W/d/f", "W/d/g", provider.MoveOptions{})) }, want: []string{"f", "g"}},
	{name: "movePath over a file", disk: func(w *World) { withFile(w); w.File("W/d/g", "g") }, do: func(w *World) { w.ok(movePath("ws", "W/d/f", "W/d/g", true)) }, want: []string{"f", "g"}},
	{name: "movePath, a directory away", disk: withTree, do: func(w *World) { w.ok(movePath("ws", "W/d/t", "W/g", false)) }, want: []string{"t"}},
	{name: "copyPath", disk: func(w *World) { w.File("W/d/g", "g") }, do: func(w *World) { w.ok(copyPath("ws", "W/d/g", "W/d/f", provider.CopyPathOptions{})) }, want: []string{"f"}},
	{name: "copyPath, a directory", disk: func(w *World) { withTree(w); w.move("W/d/t", "W/g") }, do: func(w *World) {
		w.ok(copyPath("ws", "W/g", "W/d/f", provider.CopyPathOptions{Recursive: true}))
	}, want: []string{"f"}},
	{name: "makeDir", do: func(w *World) { w.ok(makeDir("ws", "W/d/f/sub", true, "W/d/f", "W/d/f/sub")) }, want: []string{"f"}},

	// What is no change of an entry that may be seen.
	{name: "nothing", disk: withFile, do: func(w *World) {}},
	{name: "read", disk: withFile, do: func(w *World) { w.ok(read("ws", "W/d/f")); w.ok(list("ws", "W/d")) }},
	{name: "refused write", disk: withFile, do: func(w *World) {
		if err := write("ro", "W/d/f", "x", noGuard)(w); provider.CodeOf(err) != provider.CodeSandboxDenied {
			w.T.Error(err)
		}
	}},
	{name: "in a subdirectory", disk: func(w *World) { w.Dir("W/d/sub") }, do: func(w *World) { w.File("W/d/sub/f", "x"); w.ok(write("ws", "W/d/sub/g", "x", noGuard)) }},
	{name: "beside the directory", do: func(w *World) { w.File("W/f", "x"); w.File("O/f", "x"); w.remove("W/f") }},
	{name: "our temporary names", do: func(w *World) {
		n := "W/d/" + provider.TempPrefix + "AAAABBBBCCCCDDDD"
		w.File(n, "x")
		w.open(n, os.O_WRONLY|os.O_APPEND, "x")
		w.remove(n)
	}},
	{name: "hidden", do: func(w *World) {
		w.File("W/d/k.secret", "x")
		w.must(os.Chmod(w.Path("W/d/k.secret"), 0o600))
		w.remove("W/d/k.secret")
	}},
	{name: "hidden, the visible half of a rename", disk: withFile, do: func(w *World) { w.move("W/d/f", "W/d/k.secret") }, want: []string{"f"}},

	// Names that look like others.
	{name: "a file with a kernel's name", do: func(w *World) { w.File("W/d/#123", "x"); w.open("W/d/#123", os.O_WRONLY|os.O_APPEND, "y") }, want: []string{"#123"}},
	{name: "write to a file with a kernel's name", disk: func(w *World) { w.File("W/d/#123", "x") }, do: func(w *World) { w.open("W/d/#123", os.O_WRONLY|os.O_APPEND, "y") }, want: []string{"#123"}},
	{name: "remove a file with a kernel's name", disk: func(w *World) { w.File("W/d/#123", "x") }, do: func(w *World) { w.remove("W/d/#123") }, want: []string{"#123"}},
	{name: "strange names", do: func(w *World) { w.File("W/d/a\nb", ""); w.File("W/d/..x", ""); w.File("W/d/\xff", "") }, want: []string{"..x", "a\nb", "\xff"}},
	{name: "the longest name", do: func(w *World) { w.File("W/d/"+strings.Repeat("n", 255), "") }, want: []string{strings.Repeat("n", 255)}},

	{name: "mode of the directory itself", do: func(w *World) { w.must(os.Chmod(w.Path("W/d"), 0o700)) }, want: []string{""}},
	{name: "many", do: func(w *World) {
		for i := range 50 {
			w.File(fmt.Sprintf("W/d/n%02d", i), "")
		}
	}, want: func() (ns []string) {
		for i := range 50 {
			ns = append(ns, fmt.Sprintf("n%02d", i))
		}
		return ns
	}()},
}

// testWatchEntries watches W/d itself. After each deed comes a last change: what
// was not told before it will not be told.
func testWatchEntries(t *testing.T, mk Make) {
	for _, r := range deeds {
		t.Run(r.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			w.Dir("W/d")
			if r.disk != nil {
				r.disk(w)
			}
			x := w.watch(w.WS, "W/d")
			r.do(w)
			w.Link("W/d/zz-last", "none")
			told := x.name("zz-last")
			x.checkChanges(told)
			var got []string
			for _, c := range told {
				if c.Kind != provider.Changed {
					t.Errorf("%+v", c)
				} else if !slices.Contains(got, c.Name) && c.Name != "zz-last" {
					got = append(got, c.Name)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, r.want) {
				t.Errorf("told were %q, want %q", got, r.want)
			}
		})
	}
}

// testWatchName watches W/d/f. Where nothing may be told, a watch of W/d shows
// that the deed has arrived, and then one single change of f must be the first.
func testWatchName(t *testing.T, mk Make) {
	for _, r := range deeds {
		t.Run(r.name, func(t *testing.T) {
			w := NewWorld(t, mk(t))
			w.Dir("W/d")
			if r.disk != nil {
				r.disk(w)
			}
			d, x := w.watch(w.WS, "W/d"), w.watch(w.WS, "W/d/f")
			r.do(w)
			if slices.Contains(r.want, "f") {
				x.checkChanges(x.name(""))
				return
			}
			w.Link("W/d/zz-last", "none")
			d.name("zz-last")
			if _, err := os.Lstat(w.Path("W/d/f")); err == nil {
				w.must(os.Chmod(w.Path("W/d/f"), 0o640))
			} else {
				w.Link("W/d/f", "none")
			}
			told := x.name("")
			x.checkChanges(told)
			if len(told) != 1 {
				t.Errorf("told were %+v", told)
			}
		})
	}
	t.Run("of one file again and again", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		x := w.watch(w.WS, "W/d/f")
		for i, step := range []func(){
			func() { w.File("W/d/f", "1") },
			func() { w.ok(write("ws", "W/d/f", "2", noGuard)) },
			func() { w.remove("W/d/f") },
			func() { w.must(os.Mkdir(w.Path("W/d/f"), 0o755)) },
			func() { w.remove("W/d/f") },
			func() { w.Link("W/d/f", "none") },
			func() { w.File("W/g", "3"); w.move("W/g", "W/d/f") },
			func() { w.ok(edit("ws", "W/d/f", "3", "4", provider.EditOptions{})) },
		} {
			before := len(x.soFar())
			step()
			x.until(fmt.Sprint("step ", i), func(told []provider.Change) bool { return len(told) > before })
		}
		x.checkChanges(x.soFar())
	})
	t.Run("below a link to the directory", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		w.File("W/d/f", "x")
		w.Link("W/l", "d")
		w.Link("W/lf", "d/f")
		dir, file, link := w.watch(w.WS, "W/l"), w.watch(w.WS, "W/l/f"), w.watch(w.WS, "W/lf")
		w.open("W/d/f", os.O_WRONLY, "y")
		dir.checkChanges(dir.name("f"))
		file.checkChanges(file.name(""))
		link.checkChanges(link.name(""))
	})
	t.Run("two of one directory", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		one, two := w.watch(w.WS, "W/d"), w.watch(w.WS, "W/d")
		w.File("W/d/a", "")
		one.name("a")
		two.name("a")
		w.must(one.watch.Close())
		n := len(one.soFar())
		w.File("W/d/b", "")
		two.name("b")
		if now := one.soFar(); len(now) != n {
			t.Errorf("told after Close: %+v", now[n:])
		}
	})
}

// watchOp begins a watch and ends it again; nothing may be told.
func watchOp(mode, name string) op {
	return func(w *World) error {
		t := provider.Target{TargetKey: provider.TargetKey(filepath.Clean(w.Path(name))), DisplayPath: w.Path(name)}
		x, err := w.P.Watch(w.T.Context(), w.mode(mode), t, func(c provider.Change) { w.T.Errorf("told was %+v", c) })
		if err != nil {
			return err
		}
		return x.Close()
	}
}

func testWatchStart(t *testing.T, mk Make) {
	run(t, mk, []row{
		{name: "directory", disk: func(w *World) { w.Dir("W/d") }, do: watchOp("ro", "W/d")},
		{name: "file", disk: func(w *World) { w.File("W/f", "") }, do: watchOp("ro", "W/f")},
		{name: "missing", do: watchOp("ro", "W/f")},
		{name: "outside", do: watchOp("ws", "O/f")},
		{name: "the root", do: func(w *World) error {
			x, err := w.P.Watch(w.T.Context(), w.WS, provider.Target{TargetKey: "/", DisplayPath: "/"}, func(provider.Change) {})
			if err != nil {
				return err
			}
			return x.Close()
		}},
		{name: "link that leads to nothing", disk: func(w *World) { w.Link("W/l", "none") }, do: watchOp("ro", "W/l")},
		{name: "missing parent", do: watchOp("ro", "W/d/f"), code: provider.CodeNotFound},
		{name: "file as parent", disk: func(w *World) { w.File("W/d", "") }, do: watchOp("ro", "W/d/f"), code: provider.CodeNotFound},
		{name: "hidden", disk: func(w *World) { w.File("W/k.secret", "") }, do: watchOp("ro", "W/k.secret"), code: provider.CodeSandboxDenied},
		{name: "hidden, missing", do: watchOp("ws", "W/k.secret"), code: provider.CodeSandboxDenied},
		{name: "hidden, parent missing", do: watchOp("ws", "W/none.secret/k.secret"), code: provider.CodeSandboxDenied},
		{name: "link to a hidden one", disk: func(w *World) { w.File("W/k.secret", ""); w.Link("W/l", "k.secret") }, do: watchOp("ws", "W/l"), code: provider.CodeSandboxDenied},
		{name: "hidden, full access", disk: func(w *World) { w.File("W/k.secret", "") }, do: watchOp("full", "W/k.secret")},
		{name: "unreadable directory", disk: func(w *World) { w.Dir("W/d", 0o300) }, do: watchOp("ws", "W/d"), code: provider.CodePermissionDenied, as: "user"},
		{name: "unsearchable parent", disk: func(w *World) { w.Dir("W/d/e"); w.Dir("W/d", 0o600) }, do: watchOp("ws", "W/d/e/f"), code: provider.CodePermissionDenied, as: "user"},
	})
	t.Run("no fence", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		_, err := w.P.Watch(t.Context(), nil, w.Resolve("W"), func(c provider.Change) { t.Errorf("told was %+v", c) })
		if provider.CodeOf(err) != provider.CodeSandboxDenied {
			t.Error(err)
		}
	})
	t.Run("readable roots", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		f, err := fence.New(fence.Policy{Mode: fence.WorkspaceWrite, Workspace: w.W, ReadableRoots: []fence.Entry{{Path: w.W, Source: "session"}}})
		w.must(err)
		if _, err := w.P.Watch(t.Context(), f, w.Resolve("O"), func(provider.Change) {}); provider.CodeOf(err) != provider.CodeSandboxDenied {
			t.Error(err)
		}
		x := w.watch(f, "W")
		w.File("W/f", "")
		x.name("f")
	})
	t.Run("cancelled before", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, name := range []string{"W", "W/f", "W/none/f", "W/k.secret"} {
			target := provider.Target{TargetKey: provider.TargetKey(w.Path(name)), DisplayPath: w.Path(name)}
			_, err := w.P.Watch(ctx, w.WS, target, func(c provider.Change) { t.Errorf("told was %+v", c) })
			if provider.CodeOf(err) != provider.CodeAborted {
				t.Errorf("%s: %v", name, err)
			}
			w.checkError(err)
		}
	})
	t.Run("nothing is missed from the return on", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		for i := range 100 {
			name := fmt.Sprintf("W/d%d", i)
			w.Dir(name)
			d, f := w.watch(w.WS, name), w.watch(w.WS, name+"/f")
			w.Link(name+"/f", "none")
			d.name("f")
			f.name("")
		}
	})
}

// failed waits for the end of a watch.
func (x *watcher) failed() provider.Change {
	x.w.T.Helper()
	told := x.until("the end", func(told []provider.Change) bool {
		return len(told) > 0 && told[len(told)-1].Kind == provider.WatchFailed
	})
	x.checkChanges(told)
	return told[len(told)-1]
}

func testWatchEnd(t *testing.T, mk Make) {
	for _, r := range []struct {
		name string
		do   func(w *World)
	}{
		{"directory removed", func(w *World) { w.must(os.RemoveAll(w.Path("W/a/d"))) }},
		{"directory moved", func(w *World) { w.move("W/a/d", "W/e") }},
		{"directory replaced", func(w *World) { w.move("W/a/d", "W/e"); w.Dir("W/a/d") }},
		{"removed and made again", func(w *World) { w.must(os.RemoveAll(w.Path("W/a/d"))); w.Dir("W/a/d") }},
		// Seen with the next change.
		{"moved together with its parent", func(w *World) { w.move("W/a", "W/b"); w.File("W/b/d/f", "x") }},
		{"moved to a hidden place", func(w *World) { w.move("W/a", "W/a.secret"); w.File("W/a.secret/d/f", "x") }},
		{"a link in its place", func(w *World) { w.move("W/a", "W/b"); w.Link("W/a", "b"); w.File("W/b/d/f", "x") }},
	} {
		for _, at := range []string{"W/a/d", "W/a/d/f"} {
			t.Run(r.name+"/"+at, func(t *testing.T) {
				w := NewWorld(t, mk(t))
				w.Dir("W/a/d")
				x := w.watch(w.WS, at)
				r.do(w)
				c := x.failed()
				if provider.CodeOf(c.Err) != provider.CodeNotFound {
					t.Errorf("%+v", c)
				}
				w.checkError(c.Err)
				// Then silence, and the watch can be closed.
				n := len(x.soFar())
				w.Dir("W/a/d")
				y := w.watch(w.WS, at)
				w.must(os.WriteFile(w.Path("W/a/d/f"), []byte("y"), 0o644))
				y.until("a change", func(told []provider.Change) bool { return len(told) > 0 })
				if now := x.soFar(); len(now) != n {
					t.Errorf("told after the end: %+v", now[n:])
				}
				w.must(x.watch.Close())
			})
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		ctx, cancel := context.WithCancel(t.Context())
		x := &watcher{w: w, more: make(chan struct{}, 1)}
		entered, leave := make(chan struct{}, 1), make(chan struct{})
		watch, err := w.P.Watch(ctx, w.WS, w.Resolve("W/d"), func(c provider.Change) {
			x.receive(c)
			cancel() // from inside: allowed
			entered <- struct{}{}
			<-leave
		})
		w.must(err)
		w.File("W/d/a", "")
		<-entered
		w.File("W/d/b", "")
		close(leave)
		w.must(watch.Close())
		other := w.watch(w.WS, "W/d")
		w.File("W/d/c", "")
		other.name("c")
		if told := x.soFar(); len(told) != 1 {
			t.Errorf("told were %+v", told)
		}
	})
	t.Run("Close, more than once and at once", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		for range 20 {
			var running, after sync.WaitGroup
			var mu sync.Mutex
			closed := false
			watch, err := w.P.Watch(t.Context(), w.WS, w.Resolve("W/d"), func(c provider.Change) {
				mu.Lock()
				defer mu.Unlock()
				if closed {
					t.Errorf("told after Close: %+v", c)
				}
			})
			w.must(err)
			running.Go(func() {
				for range 50 {
					w.File("W/d/f", "x")
				}
			})
			for range 3 {
				after.Go(func() {
					if err := watch.Close(); err != nil {
						t.Error(err)
					}
					mu.Lock()
					closed = true
					mu.Unlock()
				})
			}
			after.Wait()
			running.Wait()
		}
	})
	t.Run("a slow receiver is told each name once", func(t *testing.T) {
		w := NewWorld(t, mk(t))
		w.Dir("W/d")
		x := &watcher{w: w, shown: w.Path("W/d"), more: make(chan struct{}, 1)}
		enter, leave := make(chan struct{}), make(chan struct{})
		var once sync.Once
		watch, err := w.P.Watch(t.Context(), w.WS, w.Resolve("W/d"), func(c provider.Change) {
			once.Do(func() { close(enter); <-leave })
			x.receive(c)
		})
		w.must(err)
		w.Link("W/d/first", "none")
		<-enter
		other := w.watch(w.WS, "W/d")
		for range 10 {
			for _, n := range []string{"a", "b", "c"} {
				w.File("W/d/"+n, "x")
			}
		}
		w.Link("W/d/last", "none")
		other.name("last")
		close(leave)
		told := x.name("last")
		w.must(watch.Close())
		var got []string
		for _, c := range told {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, []string{"first", "a", "b", "c", "last"}) {
			t.Errorf("told were %q", got)
		}
	})
}
