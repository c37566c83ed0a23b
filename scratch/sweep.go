package scratch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// Sweep removes what dead owners left. Candidates are the directories that the
// journal names, and those with our marker in the parents that it names and in
// the configured roots; the disk is not searched otherwise. One is removed
// only if its marker can be locked without waiting, the process named in it
// does not live, its autoClean is not off, and every check of a clean passes.
// Where there are no locks the process alone decides, and in doubt it is kept.
//
// It is meant for the start of the daemon and may run at any time, also in
// several processes at once. The report is complete also with an error, which
// is the context's or SCRATCH_IO_ERROR when the journal cannot be read.
func (m *Manager) Sweep(ctx context.Context) (SweepReport, error) {
	s := sweep{m: m, ctx: ctx, report: SweepReport{Swept: []Cleaned{}, Kept: []Kept{}}}
	err := s.run()
	return s.report, err
}

type sweep struct {
	m      *Manager
	ctx    context.Context
	report SweepReport
	// parents to look into, in order; done are candidates already judged.
	parents []string
	known   map[string]bool
	done    map[string]bool
}

func (s *sweep) run() error {
	s.known, s.done = map[string]bool{}, map[string]bool{}
	var records []*record
	err := s.m.journal.each(func(name string, r *record, err error) {
		if err != nil {
			s.report.kept(filepath.Join(s.m.journal.dir.Path(), name), KeptBadRecord, err.Error())
			return
		}
		records = append(records, r)
	})
	if err != nil {
		return fail(CodeIO, "sweep", s.m.journal.dir.Path(), err)
	}
	for _, r := range records {
		if r.Kind == recordParent {
			s.addParent(r.Path)
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.addParent(filepath.Dir(r.Path))
		s.named(r)
	}
	for _, p := range s.m.roots {
		s.addParent(p)
	}
	for _, p := range s.parents {
		if err := s.look(p); err != nil {
			return err
		}
		s.m.dropParent(p)
	}
	return s.ctx.Err()
}

func (s *sweep) addParent(p string) {
	if !s.known[p] {
		s.known[p] = true
		s.parents = append(s.parents, p)
	}
}

// named judges a directory that a record names.
func (s *sweep) named(r *record) {
	s.done[r.Path] = true
	parent, err := anchor.OpenDir(filepath.Dir(r.Path))
	if err == nil {
		defer parent.Close()
		err = s.judge(parent, r.Path, r)
	}
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		reason := KeptUnreachable
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
			reason = KeptReplaced
		}
		s.report.kept(r.Path, reason, err.Error())
	case r.owner.state() == alive && r.owner != self():
		// It is about to be made.
	case !reachable(r):
		s.report.kept(r.Path, KeptUnreachable, "its file system is not mounted")
	default:
		_ = s.m.journal.drop(recordScratch, r.Path) // tried again next time
	}
}

// reachable tells whether a path that does not exist is really gone: the
// nearest directory above it lies on the device that the record names. If not,
// a file system is probably not mounted now.
func reachable(r *record) bool {
	for p := filepath.Dir(r.Path); ; p = filepath.Dir(p) {
		if i, ok := identity(p); ok {
			return i.Dev == r.Dev
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

// look judges the marked directories in a parent that no record names.
func (s *sweep) look(path string) error {
	parent, err := anchor.OpenDir(path)
	if err != nil {
		return nil // gone, or not to be looked at; records in it were reported
	}
	defer parent.Close()
	stream, err := parent.Stream()
	if err != nil {
		s.report.kept(path, KeptUnreachable, err.Error())
		return nil
	}
	defer stream.Close()
	for {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		es, err := stream.Next(256)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			s.report.kept(path, KeptUnreachable, err.Error())
			return nil
		}
		for _, e := range es {
			p := filepath.Join(path, e.Name)
			if e.IsDir() && looksOurs(e.Name) && !s.done[p] && marked(parent, e.Name) {
				s.done[p] = true
				_ = s.judge(parent, p, nil) // only: gone meanwhile
			}
		}
	}
}

func marked(parent *anchor.Dir, name string) bool {
	d, err := parent.Walk(name)
	if err != nil {
		return false
	}
	defer d.Close()
	_, err = d.Lstat(MarkerName)
	return err == nil
}

// judge removes one candidate or reports why not. fs.ErrNotExist when it is
// not there; other errors are in the report.
func (s *sweep) judge(parent *anchor.Dir, path string, r *record) error {
	sub, err := inspect(parent, filepath.Base(path), path, s.m.home)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		defer sub.close()
		err = s.orphan(sub, path, r)
	}
	var v *verdict
	if errors.As(err, &v) {
		s.report.kept(path, v.reason, v.Error())
		return nil
	}
	if err != nil {
		return err
	}
	files, bytes, lock, err := sub.remove(s.ctx, s.m.sync)
	if lock != nil {
		lock.Close()
	}
	if err != nil {
		s.report.Files += files
		s.report.Bytes += bytes
		s.report.kept(path, KeptFailed, err.Error())
		return nil
	}
	s.report.swept(Cleaned{Path: path, Files: files, Bytes: bytes})
	_ = s.m.journal.drop(recordScratch, path) // it names nothing; seen next time
	return nil
}

// orphan is nil when nobody owns the directory any more and it may go. The
// marker is locked then, until the subject is closed.
func (s *sweep) orphan(sub *subject, path string, r *record) error {
	lockErr := tryLock(sub.file)
	if lockErr == nil && !stillThere(sub.dir, sub.file) {
		// A new owner put its marker there between our look and our lock.
		return keep(KeptInUse, nil, "it was taken up again")
	}
	if v := ownerGone(lockErr, sub.marker.owner.state(), sub.marker.PID == os.Getpid()); v != nil {
		return v
	}
	if r != nil && (r.Workspace != sub.marker.Workspace || r.SessionID != sub.marker.SessionID) {
		return keep(KeptMismatch, nil, "marker and journal name different sessions")
	}
	clean := sub.marker.AutoClean
	if r != nil { // which no command can have written
		clean = r.AutoClean
	}
	if clean == CleanOff {
		return keep(KeptOff, nil, "autoClean is off")
	}
	if r != nil {
		if err := protectedPlace(path, sub.info, r.Workspace, s.m.home); err != nil {
			return keep(KeptPlace, err, "it must not be removed")
		}
	}
	return nil
}

// ownerGone is nil when nobody can own a directory any more: its marker could
// be locked and the process in it does not live, or there are no locks here
// and that process is certainly dead. own: the process is this one; unlocked,
// it is a session that has ended and could not clean.
func ownerGone(lockErr error, who liveness, own bool) *verdict {
	switch {
	case errors.Is(lockErr, errLocked):
		return keep(KeptInUse, nil, "it is in use")
	case lockErr != nil && !errors.Is(lockErr, errNoLocks):
		return keep(KeptUncertain, lockErr, "its marker cannot be locked")
	case who == alive && (lockErr != nil || !own):
		return keep(KeptOwnerAlive, nil, "the process that made it lives")
	case who == unknown && lockErr != nil:
		return keep(KeptUncertain, nil, "there are no locks here, and its process cannot be looked up")
	}
	return nil
}
