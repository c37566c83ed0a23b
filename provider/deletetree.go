package provider

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// survey is what a look at a whole tree has found.
type survey struct {
	dirs int // directories, the tree's own included
}

// inspector looks at every entry of a tree before any of it is removed. One
// directory is open at a time, reached anew from the parent's handle; those that
// wait are known by their way, at most Config.ListMaxEntries of them.
type inspector struct {
	*call
	a     aim
	mount anchor.Info
	found survey
	wait  []string // relative to the parent of the tree
}

// survey refuses a tree that holds what may not be deleted. What comes into it
// later is not seen; a fenced command can put nothing protected there.
func (c *call) survey(dir *anchor.Dir, a aim, tree anchor.Info) (survey, error) {
	s := inspector{call: c, a: a, mount: tree, wait: []string{a.name}}
	for len(s.wait) > 0 {
		rel := s.wait[len(s.wait)-1]
		s.wait = s.wait[:len(s.wait)-1]
		if err := s.directory(dir, rel); err != nil {
			return s.found, err
		}
	}
	return s.found, nil
}

func (s *inspector) directory(parent *anchor.Dir, rel string) error {
	d, err := walkFar(parent, rel)
	if changedPath(err) {
		if rel == s.a.name {
			return errMoved{err: err, code: CodeStaleVersion}
		}
		return nil // gone or exchanged meanwhile
	}
	if err != nil {
		return s.inside(rel, err)
	}
	defer d.Close()
	self, err := d.Stat()
	if err != nil {
		return s.inside(rel, err)
	}
	if !self.SameMount(s.mount) {
		return s.never(record.ReasonProtected, "a file system is mounted in it: "+s.within(rel))
	}
	s.found.dirs++
	stream, err := d.Stream()
	if err != nil {
		if errors.Is(err, syscall.EACCES) && s.fence.Mode() == fence.FullAccess {
			return nil // it is opened up when it is removed
		}
		return s.inside(rel, err)
	}
	defer stream.Close()
	for {
		if err := s.alive(); err != nil {
			return err
		}
		es, err := stream.Next(1024)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.inside(rel, err)
		}
		for _, e := range es {
			if err := s.entry(filepath.Join(rel, e.Name), e); err != nil {
				return err
			}
		}
	}
}

func (s *inspector) entry(rel string, e anchor.Entry) error {
	at := filepath.Join(s.a.dir, rel)
	if d := s.fence.CheckAs(at, s.shown, fence.Delete); d != nil {
		detail := "it contains " + s.within(rel)
		if d.Rule == fence.RuleHidden {
			// Hidden names are not told.
			own := *d
			own.Path, d, detail = s.a.path, &own, "it contains something hidden"
		}
		return &Error{Code: CodeSandboxDenied, Op: s.op, Path: s.shown, Detail: detail, Cause: d, Outcome: record.Rejected}
	}
	if !e.IsDir() {
		return nil
	}
	if len(s.wait) >= s.listMax {
		return s.refused(CodeTooLarge, record.ReasonInspection, "too many directories")
	}
	s.wait = append(s.wait, rel)
	return nil
}

// within is the way from the tree to an entry.
func (s *inspector) within(rel string) string {
	if in, err := filepath.Rel(s.a.name, rel); err == nil {
		return in
	}
	return rel
}

// inside is a failure to look at a directory of the tree: what is in it is not
// known, so nothing is deleted.
func (s *inspector) inside(rel string, err error) error {
	e := s.failed(codeOfErrno(err), "what is in it cannot be looked at: "+s.within(rel), err)
	e.Outcome, e.Reason = record.Rejected, record.ReasonInspection
	return e
}

// walkFar is Walk for a way that may be longer than the kernel takes at once.
func walkFar(d *anchor.Dir, rel string) (*anchor.Dir, error) {
	const most = 2048
	cur := d
	for len(rel) > most {
		cut := most
		for cut > 0 && rel[cut] != filepath.Separator {
			cut--
		}
		if cut == 0 {
			break
		}
		next, err := cur.Walk(rel[:cut])
		if cur != d {
			cur.Close()
		}
		if err != nil {
			return nil, err
		}
		cur, rel = next, rel[cut+1:]
	}
	out, err := cur.Walk(rel)
	if cur != d {
		cur.Close()
	}
	return out, err
}

// pathOf gives the path in an error of a tree's removal.
func pathOf(err error) (string, bool) {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Path, true
	}
	return "", false
}
