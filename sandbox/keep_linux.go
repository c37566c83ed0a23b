package sandbox

import (
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// keeping has what one command removes kept before the kernel removes it. The
// supervisor's goroutine owns it; only the record is read by others.
//
// What is kept is the inode that the supervisor looked at, by its handle, never
// a path. The kernel then resolves the name once more: a program that changes
// the path in its memory, or swaps names from another thread, in between
// removes something that was not looked at, and that is lost. It loses its own
// files that way and nothing else: the fence is asked about every name.
//
// What the kernel says to the removal is not seen. A thing that it refuses to
// remove has a second name in the trash, and the same inode.
type keeping struct {
	begin func() Keeping
	to    Keeping // nil before the first removal
	// outright are canonical directories whose content nobody wants back.
	outright []string
	// begun is when the command was about to start, in nanoseconds since 1970.
	begun int64
	// own are names that the command made and that it has not removed since,
	// bounded by maxOwn: what does not fit counts as somebody else's, and is
	// kept.
	own map[string]struct{}

	mu   sync.Mutex // of kept
	kept Kept
}

const maxOwn = 100_000

// newKeeping is nil when nothing is to be kept.
func newKeeping(k Keeper, spec *Spec, f *fence.Fence, temp *Temp) *keeping {
	if k == nil || !f.TrashCommands() {
		return nil
	}
	p := f.Policy()
	g := &keeping{begun: coarseNow(), own: map[string]struct{}{}}
	g.outright = []string{p.Scratch, spec.TempDir}
	if temp != nil {
		g.outright = append(g.outright, temp.path)
	}
	for _, c := range p.Caches {
		g.outright = append(g.outright, c.Path)
	}
	g.outright = slices.DeleteFunc(g.outright, func(d string) bool { return d == "" })
	for i, d := range g.outright {
		if r, err := fence.Canonical(d); err == nil {
			g.outright[i] = r.Path
		}
	}
	about := Removing{ID: spec.ID, Workspace: f.Workspace(), Writable: func(path string) bool { return f.Check(path, fence.Create) == nil }}
	g.begin = func() Keeping { return k.Begin(about) }
	return g
}

// coarseNow is the clock by which files are born: it stands still for some
// milliseconds. What a command makes before it moves on is kept with the rest.
func coarseNow() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts) != nil {
		return time.Now().UnixNano()
	}
	return ts.Nano()
}

// end tells the keeper, if it was ever asked.
func (k *keeping) end() {
	if k != nil && k.to != nil {
		k.to.End()
	}
}

// snapshot copies the record as it is now, nil of a nil keeping.
func (k *keeping) snapshot() *Kept {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.kept
	c.Examples = slices.Clone(c.Examples)
	return &c
}

// made notes a name that the command is about to make.
func (k *keeping) made(path string) {
	if len(k.own) < maxOwn {
		k.own[path] = struct{}{}
	}
}

// moved notes a rename. With a directory go the names in it, which are not
// followed: those count as somebody else's afterwards.
func (k *keeping) moved(from, to string, exchange bool) {
	_, f := k.own[from]
	_, t := k.own[to]
	delete(k.own, from)
	delete(k.own, to)
	if f {
		k.made(to)
	}
	if t && exchange {
		k.made(from)
	}
}

// removing has the thing at p kept, by a handle of it. wantsDir: what goes is a
// directory; the kernel refuses the other kind.
//
// A thing that the command made itself is not kept: compilers would flood the
// trash. Both must be so: it was born after the command began, and under a name
// that the command made, or moved such a thing to. The first alone would take
// what somebody else made while a shell ran for hours, the second what was moved
// to that name from elsewhere. Where a file system does not tell when a file
// was born, everything is kept.
func (k *keeping) removing(p place, handle int, wantsDir bool) {
	if handle < 0 || p.gone() || p.isDir() != wantsDir || p.path == "" || p.path[0] != '/' {
		return
	}
	_, own := k.own[p.path]
	delete(k.own, p.path)
	if slices.ContainsFunc(k.outright, func(d string) bool { return fence.PathCovers(d, p.path) }) {
		return
	}
	f := os.NewFile(uintptr(handle), p.path)
	defer f.Close()
	i, err := anchor.StatFile(f)
	if err == nil && (i.Nlink == 0 || own && i.Btime > k.begun) {
		return
	}
	if err == nil {
		if k.to == nil {
			k.to = k.begin()
		}
		switch {
		case i.IsDir():
			err = k.to.Directory(f, p.path, i)
		case i.IsRegular(), i.IsSymlink():
			err = k.to.File(f, p.path, i)
		default:
			err = errSpecial
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.kept.Count++
		return
	}
	k.kept.NotKept++
	if len(k.kept.Examples) < maxNotKept {
		k.kept.Examples = append(k.kept.Examples, NotKept{Path: p.path, Why: err.Error()})
	}
}

type keepError string

func (e keepError) Error() string { return string(e) }

const errSpecial = keepError("it is neither file nor directory nor link")

// locateRemoved is locate for a name that is about to go, its last component not
// followed. Where things are kept, the handle of what is there is held: dup it
// with takeHeld before the next call, or it is closed.
func (s *supervisor) locateRemoved(tid int, dirfd int32, path string) (place, unix.Errno) {
	s.loc.drop()
	s.loc.hold = s.keep != nil
	p, errno := s.loc.locate(tid, dirfd, path, false)
	s.loc.hold = false
	return p, errno
}

// making notes a name that is allowed to be made.
func (s *supervisor) making(p place, v verdict) verdict {
	if s.keep != nil && v.errno == 0 {
		s.keep.made(p.path)
	}
	return v
}

// removing has a thing kept that locateRemoved found and that may go.
func (s *supervisor) removing(p place, wantsDir bool) {
	if s.keep != nil {
		s.keep.removing(p, s.loc.take(), wantsDir)
	}
}

// renaming has what a rename replaces kept. The handle held is that of to.
func (s *supervisor) renaming(from, to place, exchange bool) {
	if s.keep == nil {
		return
	}
	// Two names of one file: the kernel does nothing (rename(2)).
	if to.exists && !exchange && (from.ino != to.ino || from.dev != to.dev) && from.isDir() == to.isDir() {
		s.keep.removing(to, s.loc.take(), to.isDir())
	}
	s.keep.moved(from.path, to.path, exchange)
}
