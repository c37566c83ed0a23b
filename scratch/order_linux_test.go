package scratch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/wattle-dev/wattle/scratch"
)

// Property: in whatever order sessions, turns, commands, restarts and sweeps
// come, a living session keeps its files until its time, what is cleaned is
// gone, "off" stays, and nobody else's file changes.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp("", "order-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		if root, err = filepath.EvalSymlinks(root); err != nil {
			rt.Fatal(err)
		}
		w := &world{t: t, rt: rt, root: root, live: map[string]*scratch.Dir{}, off: map[string]string{}}
		w.check(os.MkdirAll(root+"/code/shop", 0o755))
		w.check(os.WriteFile(root+"/code/shop/precious", []byte("keep"), 0o644))
		if rapid.Bool().Draw(rt, "sibling exists") {
			w.check(os.Mkdir(root+"/code/tmp", 0o755))
			w.sibling = true
		}
		w.restart()
		rt.Repeat(map[string]func(*rapid.T){
			"open":    w.open,
			"write":   w.write,
			"rm -rf":  w.remove,
			"turn":    w.turn,
			"clean":   w.clean,
			"close":   w.close,
			"sweep":   w.sweep,
			"restart": func(*rapid.T) { w.restart() },
			"":        w.invariant,
		})
		for id := range w.live {
			w.end(id)
		}
		for _, m := range w.old {
			m.Close()
		}
	})
}

type world struct {
	t       *testing.T
	old     []*scratch.Manager
	rt      *rapid.T
	root    string
	sibling bool
	m       *scratch.Manager
	n       int
	live    map[string]*scratch.Dir
	off     map[string]string // paths of ended sessions with "off" and files
}

func (w *world) check(err error) {
	if err != nil {
		w.rt.Fatal(err)
	}
}

// restart opens the state directory anew, as the next daemon does; sessions of
// the old one keep their locks, like a second process's.
func (w *world) restart() {
	m, err := scratch.NewManager(scratch.Options{StateDir: w.root + "/state", NoSync: true})
	w.check(err)
	w.old, w.m = append(w.old, m), m
}

func (w *world) open(rt *rapid.T) {
	if len(w.live) > 4 {
		rt.Skip()
	}
	auto := rapid.SampledFrom([]scratch.AutoClean{scratch.CleanTurn, scratch.CleanSession, scratch.CleanOff}).Draw(rt, "autoClean")
	w.n++
	id := fmt.Sprint("s", w.n)
	d, err := w.m.New(id, w.root+"/code/shop", config(auto))
	w.check(err)
	w.live[id] = d
}

func (w *world) pick(rt *rapid.T) (string, *scratch.Dir) {
	var ids []string
	for i := range w.n + 1 {
		if _, ok := w.live[fmt.Sprint("s", i)]; ok {
			ids = append(ids, fmt.Sprint("s", i))
		}
	}
	if len(ids) == 0 {
		rt.Skip()
	}
	id := rapid.SampledFrom(ids).Draw(rt, "session")
	return id, w.live[id]
}

func (w *world) write(rt *rapid.T) {
	_, d := w.pick(rt)
	got, err := d.Write(writer, "a/file", []byte("x"))
	w.check(err)
	if _, err := os.Stat(got.Path); err != nil {
		rt.Fatal(err)
	}
}

func (w *world) remove(rt *rapid.T) {
	_, d := w.pick(rt)
	w.check(os.RemoveAll(d.Path()))
}

func (w *world) turn(rt *rapid.T) {
	_, d := w.pick(rt)
	was := exists(d.Path())
	_, err := d.EndTurn(rt.Context())
	w.check(err)
	if want := was && d.AutoClean() != scratch.CleanTurn; exists(d.Path()) != want {
		rt.Fatalf("after the turn: %v, want %v", !want, want)
	}
}

func (w *world) clean(rt *rapid.T) {
	_, d := w.pick(rt)
	_, err := d.Clean(rt.Context(), writer)
	w.check(err)
	if exists(d.Path()) {
		rt.Fatal("still there after clean")
	}
}

func (w *world) close(rt *rapid.T) {
	id, _ := w.pick(rt)
	w.end(id)
}

func (w *world) end(id string) {
	d := w.live[id]
	was := exists(d.Path())
	_, err := d.Close(w.rt.Context())
	w.check(err)
	delete(w.live, id)
	if want := was && d.AutoClean() == scratch.CleanOff; exists(d.Path()) != want {
		w.rt.Fatalf("after the session: %v, want %v", !want, want)
	} else if want {
		w.off[id] = d.Path()
	}
}

func (w *world) sweep(rt *rapid.T) {
	before := tree(w.t, w.root+"/code")
	r, err := w.m.Sweep(rt.Context())
	w.check(err)
	if r.SweptCount != 0 {
		rt.Fatalf("swept %+v", r)
	}
	// An empty sibling of ours may go; nothing else.
	if after := tree(w.t, w.root+"/code"); after != before && exists(w.root+"/code/tmp") {
		rt.Fatalf("the sweep changed\n%s\nto\n%s", before, after)
	}
}

func (w *world) invariant(rt *rapid.T) {
	if b, err := os.ReadFile(w.root + "/code/shop/precious"); err != nil || string(b) != "keep" {
		rt.Fatal("precious", err)
	}
	for _, p := range w.off {
		if !exists(p) {
			rt.Fatalf("%s is gone", p)
		}
	}
	if w.sibling && !exists(w.root+"/code/tmp") {
		rt.Fatal("the user's sibling directory is gone")
	}
	es, err := os.ReadDir(w.root + "/code/tmp")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		rt.Fatal(err)
	}
	want := len(w.off)
	for _, d := range w.live {
		if exists(d.Path()) {
			want++
		}
	}
	if len(es) != want {
		rt.Fatalf("%d directories, want %d: %v", len(es), want, es)
	}
}
