//go:build unix && !darwin

package trash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

const (
	// maxTrees bounds how often one name can be kept in a group: each time in a
	// tree of its own.
	maxTrees = 64
	// maxLost is how many things that were not kept a part names.
	maxLost = 100
	// maxParts bounds the mounts of one group, and the handles held.
	maxParts = 64
)

// removal is a group of the freedesktop trash.
type removal struct {
	// f is a copy of the back end that flushes nothing, so that a command does
	// not wait for the disk; flush is whether the end does.
	f     *freedesktop
	flush bool
	o     GroupOptions
	begun int64
	// parts are by mount. One that cannot keep anything has an error.
	parts map[uint64]*part
	home  string
	max   int
	count int
	lost  int64
	// dirs are directories that have a line, by path; at most MaxGroup.
	dirs map[string]dirLines
	// trees are where the names of files are that are in another tree than the
	// first, by path; as many as there are files at most.
	trees map[string]int
}

type dirLines struct{ seen, removed bool }

func (f *freedesktop) group(o GroupOptions) keeping {
	quiet := *f
	quiet.sync = false
	return &removal{f: &quiet, flush: f.sync, o: o, max: MaxGroup, begun: f.now().UnixNano(), parts: map[uint64]*part{}, dirs: map[string]dirLines{}, trees: map[string]int{}}
}

// part is a group's entry in one trash.
type part struct {
	r *removal
	p *place
	// name of the entry; root is its directory, base the one that it stands for.
	name string
	root *anchor.Dir
	base string
	list *os.File
	size int64 // of what list has
	kept int
	lost int
	// last is the directory beneath root that was used last.
	lastPath string
	last     *anchor.Dir
	err      error // why there is none
}

func (r *removal) keep(f *os.File, path string, i anchor.Info) error {
	err := r.tryKeep(f, path, i)
	if errors.Is(err, errPlaceGone) {
		// Somebody emptied the trash meanwhile: once more, with another entry.
		r.dropPart(i)
		err = r.tryKeep(f, path, i)
	}
	if err != nil {
		r.lost++
		if pt := r.parts[mountKey(i)]; pt != nil {
			pt.note(path, err)
		}
	}
	return err
}

func (r *removal) tryKeep(f *os.File, path string, i anchor.Info) error {
	if r.count >= r.max {
		return fmt.Errorf("more than %d things were removed", r.max)
	}
	pt, err := r.part(path, i)
	if err != nil {
		return err
	}
	r.see(pt, filepath.Dir(path))
	if i.IsDir() {
		return pt.directory(path, i)
	}
	return pt.file(f, path, i)
}

func mountKey(i anchor.Info) uint64 {
	if i.MountID != 0 {
		return i.MountID
	}
	return i.Dev
}

// part is the group's entry for the mount of a thing, made when it is first
// needed. What cannot be had once is not tried again.
func (r *removal) part(path string, i anchor.Info) (*part, error) {
	if r.home == "" {
		r.home = r.f.homePath()
	}
	if within(path, r.home) || r.f.inTopTrash(path) {
		return nil, errors.New("it lies in a trash (T26)")
	}
	key := mountKey(i)
	if pt := r.parts[key]; pt != nil {
		return pt, pt.err
	}
	if len(r.parts) >= maxParts {
		return nil, fmt.Errorf("the command removes from more than %d mounts", maxParts)
	}
	pt, err := r.newPart(path, i)
	if err != nil {
		pt = &part{err: err}
	}
	r.parts[key] = pt
	return pt, err
}

func (r *removal) dropPart(i anchor.Info) {
	if pt := r.parts[mountKey(i)]; pt != nil {
		pt.close()
		delete(r.parts, mountKey(i))
	}
	clear(r.dirs) // their lines are gone as well
	clear(r.trees)
}

// inTopTrash tells by its name whether a path lies in our trash of some top
// directory.
func (f *freedesktop) inTopTrash(path string) bool {
	for _, name := range f.topNames() {
		if strings.Contains(path+"/", "/"+name+"/") {
			return true
		}
	}
	return false
}

func (r *removal) newPart(path string, i anchor.Info) (*part, error) {
	dir, err := anchor.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	parent, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	if !parent.SameMount(i) {
		return nil, errors.New("something is mounted there")
	}
	t := &thing{dir: dir, name: filepath.Base(path), path: path, info: i, parent: parent}
	var refused []string
	for _, open := range []func(*thing) (*place, error){r.f.homeFor, r.f.sharedFor, r.f.sideFor} {
		p, err := open(t)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				refused = append(refused, err.Error())
			}
			continue
		}
		if at := p.files.Path(); r.o.Writable != nil && (r.o.Writable(at) || r.o.Writable(filepath.Join(at, "x"))) {
			refused = append(refused, p.dir.Path()+": the command may write to it")
			p.undo()
			p.close()
			continue
		}
		pt, err := r.begin(p, r.baseFor(path, i))
		if err != nil {
			p.undo()
			p.close()
		}
		return pt, err
	}
	return nil, errors.New("no trash can take it (" + strings.Join(refused, "; ") + ")")
}

// baseFor is the directory that the entry stands for: the group's, if it is in
// the same mount, so that the record can name it relative to the mount.
func (r *removal) baseFor(path string, i anchor.Info) string {
	if r.o.Base != "" && within(path, r.o.Base) {
		if d, err := anchor.OpenDir(r.o.Base); err == nil {
			defer d.Close()
			if b, err := d.Stat(); err == nil && b.SameMount(i) {
				return r.o.Base
			}
		}
	}
	return filepath.Dir(path)
}

// groupPrefix begins the names of groups' entries.
const groupPrefix = "rm-"

// groupName is the name for a group's entry: its id as far as a name can have
// it.
func groupName(id string) string {
	safe := strings.Map(func(c rune) rune {
		if c < 0x80 && (c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			return c
		}
		return '_'
	}, id)
	return groupPrefix + safe[:min(len(safe), 64)]
}

// begin makes the entry: its record first (T18), then the directory, then the
// list in it.
func (r *removal) begin(p *place, base string) (*part, error) {
	name := groupName(r.o.ID)
	i := record.Info{Path: p.relative(filepath.Join(base, name)), Deleted: r.f.now()}
	res := &reserved{}
	for {
		var err error
		if res, err = r.f.reserve(p, name, res.n, maxName, i); err != nil {
			return nil, err
		}
		err = p.files.Mkdir(res.name, 0o700)
		if err == nil {
			break
		}
		res.drop()
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	defer res.file.Close()
	pt := &part{r: r, p: p, name: res.name, base: base}
	var err error
	if pt.root, err = p.files.Walk(res.name); err == nil {
		if pt.list, err = pt.root.Open(record.RemovedName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = pt.write(record.Removed{ID: r.o.ID, Begun: r.begun}.Format())
		}
	}
	if err == nil {
		return pt, nil
	}
	if pt.root != nil {
		_ = pt.root.Unlink(record.RemovedName)
		pt.root.Close()
	}
	if pt.list != nil {
		pt.list.Close()
	}
	_ = p.files.Rmdir(res.name)
	res.drop()
	return nil, err
}

// write appends to the list, whole or not at all.
func (pt *part) write(b []byte) error {
	if _, err := pt.list.WriteAt(b, pt.size); err != nil {
		pt.takeBack(0)
		return err
	}
	pt.size += int64(len(b))
	return nil
}

// takeBack takes the last n bytes away. If that fails there is a line without a
// thing, which a restore passes over.
func (pt *part) takeBack(n int) {
	if pt.list.Truncate(pt.size-int64(n)) == nil {
		pt.size -= int64(n)
	}
}

// rel is a path as lines have it.
func (pt *part) rel(path string) string {
	switch {
	case path == pt.base:
		return "."
	case pt.base == "/":
		return path[1:]
	case within(path, pt.base):
		return path[len(pt.base)+1:]
	}
	return path
}

// inTree is where a path of a line lies in a group, relative to its entry.
func inTree(rel string, tree int) string {
	if strings.HasPrefix(rel, "/") {
		rel = "~elsewhere" + rel
	}
	if tree > 1 {
		rel = fmt.Sprintf("~%d/%s", tree, rel)
	}
	return rel
}

// dir opens a directory beneath root, made when missing. errTaken: a file has
// that name in this tree.
func (pt *part) dir(rel string) (*anchor.Dir, error) {
	if pt.last != nil && pt.lastPath == rel {
		return pt.last, nil
	}
	d, err := pt.root.MkdirAll(rel, 0o700)
	switch {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return nil, errTaken
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.Join(errPlaceGone, err)
	case err != nil:
		return nil, err
	}
	if pt.last != nil {
		pt.last.Close()
	}
	pt.last, pt.lastPath = d, rel
	return d, nil
}

var errTaken = errors.New("the name is taken")

// file links a file into the group. The line comes first, so that there is
// nothing in the group that no line names.
func (pt *part) file(f *os.File, path string, i anchor.Info) error {
	rel := pt.rel(path)
	for tree := max(1, pt.r.trees[path]); tree <= maxTrees; tree++ {
		at := inTree(rel, tree)
		d, err := pt.dir(filepath.Dir(at))
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return err
		}
		name := filepath.Base(at)
		line := record.RemovedLine{Kind: record.RemovedFile, Tree: tree, Path: rel}.Format()
		if err := pt.write(line); err != nil {
			return err
		}
		err = d.LinkFile(f, name)
		if err == nil {
			pt.kept++
			pt.r.count++
			if tree > 1 {
				pt.r.trees[path] = tree
			}
			return nil
		}
		pt.takeBack(len(line))
		switch {
		case errors.Is(err, fs.ErrExist):
			if have, err := d.Lstat(name); err == nil && have.SameFile(i) {
				return nil // the removal was tried before, and refused
			}
			continue
		case errors.Is(err, fs.ErrNotExist):
			if now, err := anchor.StatFile(f); err == nil && now.Nlink == 0 {
				return nil // somebody else was faster
			}
			return errors.Join(errPlaceGone, err)
		}
		return err
	}
	return fmt.Errorf("its name was removed more than %d times", maxTrees)
}

// directory notes that a directory goes, and has it in the group.
func (pt *part) directory(path string, i anchor.Info) error {
	has := pt.r.dirs[path]
	if has.removed {
		return nil
	}
	rel := pt.rel(path)
	for tree := 1; tree <= maxTrees; tree++ {
		// Only for who looks into the trash: the line has all that is needed.
		_, err := pt.dir(inTree(rel, tree))
		if errors.Is(err, errTaken) {
			continue
		}
		if errors.Is(err, errPlaceGone) {
			return err
		}
		break
	}
	if err := pt.write(dirLine(record.RemovedDir, rel, i)); err != nil {
		return err
	}
	pt.kept++
	pt.r.count++
	if has.removed = true; has.seen || len(pt.r.dirs) < MaxGroup {
		pt.r.dirs[path] = has
	}
	return nil
}

func dirLine(k record.RemovedKind, rel string, i anchor.Info) []byte {
	return record.RemovedLine{Kind: k, Path: rel, Mode: i.Perm(), Mtime: i.Mtime, UID: i.UID, GID: i.GID}.Format()
}

// see notes what a directory is before the first thing goes from it: its time
// changes with that. It is looked at by its path: whoever swaps it gets another
// time back.
func (r *removal) see(pt *part, path string) {
	if _, ok := r.dirs[path]; ok || len(r.dirs) >= MaxGroup {
		return
	}
	d, err := anchor.OpenDir(path)
	if err != nil {
		return
	}
	defer d.Close()
	i, err := d.Stat()
	if err != nil || pt.write(dirLine(record.RemovedSeen, pt.rel(path), i)) != nil {
		return // it will have the time of its end
	}
	r.dirs[path] = dirLines{seen: true}
}

// note names a thing that was not kept.
func (pt *part) note(path string, why error) {
	if pt.err != nil || pt.lost >= maxLost {
		return
	}
	pt.lost++
	// A full disk is one of the reasons, and then this fails as well.
	_ = pt.write(record.RemovedLine{Kind: record.RemovedLost, Path: pt.rel(path), Why: why.Error()}.Format())
}

func (r *removal) end() {
	for _, pt := range r.parts {
		if pt.err == nil {
			pt.end(r.lost)
		}
	}
	clear(r.parts)
}

// end makes a part durable and measures it; one that kept nothing goes.
func (pt *part) end(lost int64) {
	defer pt.close()
	if pt.kept == 0 && lost == 0 {
		pt.drop()
		return
	}
	_ = pt.write(record.RemovedLine{Kind: record.RemovedEnd, Kept: int64(pt.kept), Lost: lost}.Format())
	if pt.r.flush {
		_ = pt.list.Sync()
		_ = pt.p.info.Sync()
		_ = pt.p.files.Sync()
	}
	if i, err := pt.root.Stat(); err == nil && i.Nlink > 0 {
		pt.r.f.sizes.measure(pt.p, pt.name, i)
	}
}

// drop takes away an entry in which there is nothing but its list.
func (pt *part) drop() {
	if remains(pt.root) {
		return
	}
	if pt.root.Unlink(record.RemovedName) == nil && pt.p.files.Rmdir(pt.name) == nil {
		_ = pt.p.info.Unlink(pt.name + record.InfoSuffix)
	}
}

func (pt *part) close() {
	if pt.err != nil {
		return
	}
	if pt.last != nil {
		pt.last.Close()
	}
	pt.list.Close()
	pt.root.Close()
	pt.p.close()
}
