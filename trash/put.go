//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// thing is what is to be trashed.
type thing struct {
	dir        *anchor.Dir
	name, path string
	// pin holds the inode, so that no other can take its number.
	pin    *pin
	info   anchor.Info
	parent anchor.Info
}

func (f *freedesktop) put(ctx context.Context, dir *anchor.Dir, name, path string, want anchor.Info, across bool) (record.Entry, error) {
	if err := ctx.Err(); err != nil {
		return record.Entry{}, failed(opPut, path, "", err)
	}
	t, err := f.inspect(dir, name, path, want)
	if err != nil {
		return record.Entry{}, err
	}
	defer t.pin.close()
	f.at("inspected")
	var refused []string
	for _, open := range []func(*thing) (*place, error){f.homeFor, f.sharedFor, f.sideFor} {
		entry, err := f.try(open, t)
		if u := (*unfit)(nil); errors.As(err, &u) {
			if !errors.Is(err, fs.ErrNotExist) {
				refused = append(refused, err.Error())
			}
			continue
		}
		if errors.Is(err, syscall.EXDEV) {
			// Some file systems cannot move what comes from a lower layer.
			refused = append(refused, err.Error())
			continue
		}
		return entry, err
	}
	if across {
		return f.putAcross(ctx, t, refused)
	}
	return record.Entry{}, failure(record.CodeUnavailable, record.ReasonBackend, opPut, path,
		"no trash can take it ("+strings.Join(refused, "; ")+")"+wayForward, nil)
}

// maxOpens bounds how often one trash is opened because somebody removed it in
// between.
const maxOpens = 8

// try puts the thing into one trash. The error is an *unfit when that trash is
// not to be used.
func (f *freedesktop) try(open func(*thing) (*place, error), t *thing) (record.Entry, error) {
	for n := 1; ; n++ {
		p, err := open(t)
		if err != nil {
			return record.Entry{}, err
		}
		entry, err := f.putInto(p, t)
		if err != nil {
			p.undo()
		}
		p.close()
		if !errors.Is(err, errPlaceGone) || n == maxOpens {
			return entry, err
		}
	}
}

// inspect makes every check that needs no trash directory (trash.md section 2,
// step 2; T21). Nothing has been made when it refuses.
func (f *freedesktop) inspect(dir *anchor.Dir, name, path string, want anchor.Info) (*thing, error) {
	reject := func(r record.Reason, why string) error {
		return failure(record.CodeRejected, r, opPut, path, why, nil)
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || anchor.CheckName(name) != nil {
		return nil, reject(record.ReasonInvalidPath, "the path is not canonical")
	}
	t := &thing{dir: dir, name: name, path: path}
	var err error
	if t.parent, err = dir.Stat(); err != nil {
		return nil, failed(opPut, path, "", err)
	}
	if t.pin, err = pinEntry(dir, name); err != nil {
		return nil, failed(opPut, path, "", err)
	}
	if err := f.check(t, want, reject); err != nil {
		t.pin.close()
		return nil, err
	}
	return t, nil
}

func (f *freedesktop) check(t *thing, want anchor.Info, reject func(record.Reason, string) error) error {
	var err error
	if t.info, err = t.pin.stat(); err != nil {
		return failed(opPut, t.path, "", err)
	}
	around, err := f.around()
	if err != nil {
		return failure(record.CodeRejected, record.ReasonInspection, opPut, t.path, "what is mounted cannot be read", err)
	}
	switch i := t.info; {
	case !i.SameFile(want):
		return failure(codeStale, record.ReasonOperationFailed, opPut, t.path, "another thing has that name now", nil)
	case !i.SameMount(t.parent):
		return reject(record.ReasonProtected, "something is mounted there")
	case !i.IsRegular() && !i.IsDir() && !i.IsSymlink():
		return reject(record.ReasonUnsupportedType, "it is neither file nor directory nor link")
	case f.held(t.path, around) || within(around.path, t.path):
		return reject(record.ReasonProtected, "it is a trash directory, lies in one, or contains one")
	}
	if t.info.IsDir() {
		if at := around.mountBeneath(t.path); at != "" {
			return reject(record.ReasonProtected, "something is mounted at "+at)
		}
	}
	return t.permitted()
}

// permitted is what the kernel would say to the move, asked before anything is
// made (T21).
func (t *thing) permitted() error {
	where := filepath.Dir(t.path)
	if err := t.dir.CanWrite(); err != nil {
		return failed(opPut, t.path, "the directory "+where+" is not writable", err)
	}
	// Also its own ".." changes, which needs permission on itself.
	if t.info.IsDir() {
		self, err := t.dir.Walk(t.name)
		if err != nil {
			return failed(opPut, t.path, "", err)
		}
		defer self.Close()
		if err := self.CanWrite(); err != nil {
			return failed(opPut, t.path, "the directory "+t.path+" is not writable itself", err)
		}
	}
	return nil
}

func (f *freedesktop) homeFor(t *thing) (*place, error) {
	p, err := f.openHome(true)
	if err != nil {
		return nil, err
	}
	return p.takes(t)
}

func (f *freedesktop) sharedFor(t *thing) (*place, error) { return f.topFor(t, f.openShared) }
func (f *freedesktop) sideFor(t *thing) (*place, error)   { return f.topFor(t, f.openSide) }

func (f *freedesktop) topFor(t *thing, open func(*anchor.Dir, string, bool) (*place, error)) (*place, error) {
	if !listsMounts {
		return nil, &unfit{filepath.Dir(t.path), "mounts cannot be listed here, so that nothing would find it again", nil}
	}
	top, ups, err := topOf(t.dir)
	if err != nil {
		return nil, &unfit{filepath.Dir(t.path), "its top directory cannot be reached", err}
	}
	defer top.Close()
	base := filepath.Dir(t.path)
	for range ups {
		base = filepath.Dir(base)
	}
	if remote(top) {
		return nil, &unfit{base, "it is on another machine (T25)", nil}
	}
	p, err := open(top, base, true)
	if err != nil {
		return nil, err
	}
	return p.takes(t)
}

// takes closes p unless it is in the mount of the thing. By mount, not by
// device: two mounts of one file system have one device number, and rename(2)
// between them is EXDEV.
func (p *place) takes(t *thing) (*place, error) {
	i, err := p.files.Stat()
	if err == nil && i.SameMount(t.parent) {
		return p, nil
	}
	u := &unfit{p.dir.Path(), "it is in another mount", err}
	p.undo()
	p.close()
	return nil, u
}

// relative is the path that a record in p has for a path (T15).
func (p *place) relative(path string) string {
	if p.home {
		return path
	}
	if rel, err := filepath.Rel(p.base, path); err == nil && within(path, p.base) {
		return rel
	}
	return path
}

// putInto moves a thing into one trash: steps 4 to 9.
func (f *freedesktop) putInto(p *place, t *thing) (record.Entry, error) {
	f.at("opened")
	i := record.Info{Path: p.relative(t.path), Deleted: f.now()}
	r := &reserved{limit: maxName}
	for {
		var err error
		if r, err = f.reserve(p, filepath.Base(t.path), r.n, r.limit, i); err != nil {
			return record.Entry{}, failed(opPut, t.path, "its record cannot be written in "+p.dir.Path(), err)
		}
		f.at("recorded")
		if i.Pending {
			err = f.moveOver(t.dir, t.name, p.files, r.name, t.info.IsDir())
		} else {
			err = f.moveWhole(t.dir, t.name, p.files, r.name)
		}
		if err == nil {
			break
		}
		if errors.As(err, new(*moveBroken)) {
			r.file.Close()
			return record.Entry{}, unknown(opPut, t.path, "", nil, err)
		}
		r.drop()
		if !i.Pending && errors.Is(err, errors.ErrUnsupported) {
			// Once more, by a placeholder; a record must not claim that it is
			// the thing.
			i.Pending = true
			r.n--
			continue
		}
		if errors.Is(err, fs.ErrExist) {
			continue // data without a record is in the way
		}
		return record.Entry{}, failed(opPut, t.path, f.why(t, err), err)
	}
	defer r.file.Close()
	f.at("moved")
	e := &found{name: r.name, hasData: true, data: t.info, hasRecord: true, record: i, original: t.path}
	e.record.Pending = false
	entry := e.entry(p, nil)
	if err := f.verify(p.files, r.name, t); err != nil {
		if back := f.move(p.files, r.name, t.dir, t.name, t.info.IsDir()); back != nil {
			return record.Entry{}, unknown(opPut, t.path, "another thing was moved, and cannot be moved back", &entry, back)
		}
		r.drop()
		return record.Entry{}, failure(codeStale, record.ReasonOperationFailed, opPut, t.path, "another thing has that name now", err)
	}
	f.at("verified")
	end := func() error { return r.renew(f.sync) }
	if i.Pending {
		end = func() error { return f.finish(r) }
	}
	if err := end(); err != nil {
		return record.Entry{}, unknown(opPut, t.path, "it was moved, and its record cannot be finished", &entry, err)
	}
	f.settle(p, t)
	f.at("settled")
	if t.info.IsDir() {
		f.sizes.measure(p, r.name, t.info)
	}
	return entry, nil
}

// why says more of a refused move than its errno.
func (f *freedesktop) why(t *thing, err error) string {
	switch {
	case errors.Is(err, syscall.EPERM):
		return "it cannot be moved (it, or its directory " + filepath.Dir(t.path) + ", is immutable; or the directory is sticky and it belongs to somebody else)"
	case errors.Is(err, fs.ErrPermission):
		return "the directory " + filepath.Dir(t.path) + " is not writable"
	}
	return "it cannot be moved"
}

// verify tells whether what was moved is the pinned thing.
func (f *freedesktop) verify(files *anchor.Dir, name string, t *thing) error {
	now, err := files.Lstat(name)
	if err != nil {
		return err
	}
	// Asked again: on an overlay a thing may have another number once it was
	// copied up.
	want, err := t.pin.stat()
	if err == nil && !now.SameFile(want) {
		err = syscall.ESTALE
	}
	return err
}

// settle makes record, data and the gap durable. The thing is in the trash
// already: a failure here is no failure of the call.
func (f *freedesktop) settle(p *place, t *thing) {
	if !f.sync {
		return
	}
	for _, d := range []*anchor.Dir{p.info, p.files, t.dir} {
		_ = d.Sync()
	}
}

// within tells whether path is dir or lies in it; both clean.
func within(path, dir string) bool {
	if path == dir || dir == "/" {
		return true
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && rest[0] == '/'
}
