package provider

import (
	"errors"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// cargo is what a move takes to its destination: the file itself or, changed or
// to another file system, its content.
type cargo struct {
	dir  *anchor.Dir // of the source
	a    aim
	p    *pin
	want expected
	// before is the text of the source, bounded; after that of the destination.
	before *string
	after  string
	// parts are the content when hunks changed it; nil: as it is.
	parts []string
	lost  []string
}

// size is that of the content in bytes.
func (g *cargo) size() int64 {
	if g.parts == nil {
		return g.p.Info.Size
	}
	n := 0
	for _, p := range g.parts {
		n += len(p)
	}
	return int64(n)
}

// cargo judges the source and makes its new text.
func (m *movingFile) cargo(p *pin) (*cargo, error) {
	g := &cargo{p: p}
	if len(m.o.Hunks) == 0 && !m.o.Codex {
		want, old, err := m.judged(p, m.o.ExpectedSource, true, 0)
		if err != nil {
			return nil, err
		}
		g.want, g.before = want, old.before
		if g.before != nil {
			g.after = *g.before
		}
		return g, m.removableUnless(p)
	}
	t, err := m.original(p, m.o.ExpectedSource, m.removableUnless)
	if err != nil {
		return nil, err
	}
	r, err := m.patched(t.text, m.o.Hunks, m.o.Codex, m.editMax-int64(len(t.mark)))
	if err != nil {
		return nil, err
	}
	g.want = t.want
	g.parts, g.after = []string{t.mark, r.Text}, toLF(r.Text)
	if p.Info.Size < m.basisMax {
		before := toLF(t.text)
		g.before = &before
	}
	return g, nil
}

func (m *movingFile) removableUnless(p *pin) error {
	if m.o.OverrideReadOnly {
		return nil
	}
	return m.removable(p)
}

// effects publishes the destination, then removes the source.
func (m *movingFile) effects(g *cargo, to *destination) (MoveOutcome, error) {
	if to.dir != nil {
		return m.into(to.dir, g, to)
	}
	ps, err := m.dst.openParents(to.a)
	if err != nil {
		return MoveOutcome{}, m.dst.ours(err)
	}
	defer ps.close()
	out, err := m.into(ps.dir, g, to)
	if err != nil {
		ps.undo()
		return MoveOutcome{}, err
	}
	ps.sync()
	return out, nil
}

func (m *movingFile) into(dir *anchor.Dir, g *cargo, to *destination) (MoveOutcome, error) {
	out := MoveOutcome{SourceBefore: g.before, Destination: WriteOutcome{Operation: OperationCreate, After: g.after}}
	if to.p != nil {
		out.Destination.Operation = OperationUpdate
	}
	s, err := m.linked(dir, g, to, &out.Destination)
	if errors.Is(err, errNoLink) {
		s, err = m.copied(dir, g, to, &out.Destination)
	}
	if err != nil {
		return MoveOutcome{}, m.dst.ours(err)
	}
	defer s.close()
	m.at("published")
	syncDir(dir)
	out.SourceFailure = m.removeSource(g, s)
	out.SourceDeleted = out.SourceFailure == nil
	out.Destination.Version = m.versionOf(g, s, to.a.path)
	return out, nil
}

// arrived is the file that was published.
type arrived struct {
	s      *staged
	linked bool // it is the source itself
}

func (a arrived) close() {
	if !a.linked {
		a.s.f.Close()
	}
}

// errNoLink: the file itself cannot be given the name.
var errNoLink = errors.New("the file cannot be linked there")

// linked gives the file itself its new name. It is a second name at first, so
// that at no moment it has none; inode, metadata and content of any kind stay,
// and so does what somebody writes into the file meanwhile.
func (m *movingFile) linked(dir *anchor.Dir, g *cargo, to *destination, out *WriteOutcome) (arrived, error) {
	// Where the source cannot be removed both would be one file for ever.
	if g.parts != nil || g.p.Handle() == nil || g.dir.CanWrite() != nil {
		return arrived{}, errNoLink
	}
	s := &staged{dir: dir, f: g.p.Handle(), sum: g.want.sum, size: g.want.info.Size, info: g.want.info, names: g.want.info.Nlink}
	got := arrived{s: s, linked: true}
	if err := m.sourceStays(g); err != nil {
		return got, err
	}
	if to.p == nil {
		m.at("staged")
		return got, m.refusedLink(g, m.named(s, to))
	}
	if to.p.Info.SameFile(g.p.Info) {
		out.Before = to.before
		return got, nil // the name is there
	}
	name := hiddenName()
	if err := m.refusedLink(g, dir.LinkFile(s.f, name)); err != nil {
		return got, err
	}
	s.name = name
	m.at("staged")
	err := m.over(s, to, out)
	if s.name != "" {
		_ = dir.Unlink(s.name)
	}
	return got, err
}

// refusedLink tells errors of linking that a copy does not meet.
func (m *movingFile) refusedLink(g *cargo, err error) error {
	for _, e := range []error{syscall.EXDEV, syscall.EPERM, syscall.EMLINK, syscall.EOPNOTSUPP, syscall.ENOSYS, errors.ErrUnsupported} {
		if errors.Is(err, e) {
			return errNoLink
		}
	}
	if errors.Is(err, syscall.ENOENT) {
		// It has no name any more, or there is no /proc to link it through.
		if now, serr := g.p.Stat(); serr == nil && now.Nlink > 0 {
			return errNoLink
		}
	}
	return err
}

// copied publishes a new file with the content and the metadata of the source.
func (m *movingFile) copied(dir *anchor.Dir, g *cargo, to *destination, out *WriteOutcome) (arrived, error) {
	for _, unnamed := range []bool{to.p == nil, false} {
		s, err := m.load(dir, unnamed, g)
		if unnamed && noUnnamed(err) {
			continue
		}
		if err != nil {
			return arrived{}, err
		}
		m.at("staged")
		if err = m.sourceStays(g); err == nil {
			if to.p != nil {
				err = m.over(s, to, out)
			} else {
				err = m.named(s, to)
			}
		}
		if err == nil {
			out.LinksBroken += others(g.p.Info.Nlink)
			out.MetadataLost = g.lost
			return arrived{s: s}, nil
		}
		s.discard()
		if !unnamed || final(err) || CodeOf(err) != "" {
			return arrived{}, err
		}
	}
	panic("unreachable: the second round always returns")
}

// named publishes without replacing.
func (m *movingFile) named(s *staged, to *destination) error {
	err := m.giveName(s, to.a.name)
	if errors.Is(err, syscall.EEXIST) {
		return m.dst.competitor(s.dir, to.a.name, err)
	}
	return moved(err)
}

// over publishes in place of the destination's file.
func (m *movingFile) over(s *staged, to *destination, out *WriteOutcome) error {
	var r replaced
	out.Before = to.before
	held, err := m.dst.publish(s.dir, to.a, s, to.want, func(old *pin) { out.Before = m.dst.basisOf(old, s.size) }, &r)
	if err != nil {
		return m.dst.ours(err)
	}
	held.Close()
	out.LinksBroken, out.Trashed = r.links, r.trashed
	return nil
}

// load stages the content.
func (m *movingFile) load(dir *anchor.Dir, unnamed bool, g *cargo) (*staged, error) {
	s, err := m.stage(dir, 0o600, unnamed, g.parts...)
	if err != nil {
		return nil, err
	}
	if g.parts == nil {
		if err = g.p.Open(); err == nil {
			err = m.pour(s, g.p)
		} else {
			err = m.ours(err)
		}
	}
	if err == nil {
		g.lost, err = g.p.Carry(g.p.Info, s.f)
	}
	if err == nil && len(m.o.Hunks) == 0 {
		// It is the same file to whoever moves it.
		_ = anchor.SetMtime(s.f, g.p.Info.Mtime)
	}
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// sourceStays looks at the source once more before its copy or its other name
// gets published.
func (m *movingFile) sourceStays(g *cargo) error {
	d := deletion{call: m.call, dir: g.dir, a: g.a, want: g.want}
	return d.still(g.a.name)
}

// removeSource removes the source. What changed since it was published
// elsewhere stays.
func (m *movingFile) removeSource(g *cargo, got arrived) *SourceFailure {
	d := deletion{call: m.call, dir: g.dir, a: g.a, want: g.want, permanent: true}
	if got.linked {
		d.want.strict, d.want.hashed = false, false // the same file cannot differ
	} else {
		if g.parts == nil {
			d.want.sum, d.want.hashed = got.s.sum, true
		}
		// A new mode, or the loss of another name to this very move, is no
		// change of what was moved (decision D5).
		if now, err := g.p.Stat(); err == nil {
			d.want.info.Ctime = now.Ctime
		}
	}
	_, err := d.do(func() (DeleteOutcome, error) { return DeleteOutcome{}, d.unlink() })
	if err == nil || absent(err) {
		return nil // or somebody else removed it
	}
	var again errMoved
	if errors.As(err, &again) {
		return &SourceFailure{Code: CodeStaleVersion, Message: m.stale("it was changed while it was moved, and stays").Error()}
	}
	err = m.mapped(err)
	return &SourceFailure{Code: CodeOf(err), Message: err.Error()}
}

// versionOf is the version of the destination once all is done: removing the
// other name of a file changes its times.
func (m *movingFile) versionOf(g *cargo, got arrived, path string) Version {
	if !got.linked || g.want.hashed {
		return m.published(got.s, path)
	}
	d, err := m.describe(g.p.Stat)
	if err != nil || d.info.Nlink == 0 {
		return missingVersion(TargetKey(path))
	}
	return d.token.version()
}
