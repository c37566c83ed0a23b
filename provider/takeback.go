package provider

import (
	"crypto/sha256"
	"errors"
	"io"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// replaceKeeping replaces where nothing can be exchanged, and keeps what was
// there: under a second name, or as a copy where there are no second names
// (exFAT), so that at no time is there no file.
func (c *call) replaceKeeping(dir *anchor.Dir, a aim, s *staged, want expected) error {
	spare, old := hiddenName(), want.info
	if err := dir.Link(a.name, dir, spare); err != nil {
		b, err := c.backup(dir, want)
		if err != nil {
			return err
		}
		spare, old = b.name, b.info
		b.f.Close()
	} else if now, err := dir.Lstat(spare); err != nil || !now.SameFile(want.info) {
		_ = dir.Unlink(spare)
		return errMoved{err: errChanged, code: CodeStaleVersion}
	}
	if err := dir.Rename(s.name, dir, a.name, anchor.Replace); err != nil {
		_ = dir.Unlink(spare)
		return err
	}
	s.name, s.old, s.copied = spare, old, true
	return nil
}

// backup copies the expected file to a hidden name beside it.
func (c *call) backup(dir *anchor.Dir, want expected) (*staged, error) {
	if err := want.p.Open(); err != nil {
		return nil, err
	}
	b, err := c.stage(dir, 0o600, false)
	if err != nil {
		return nil, err
	}
	if err = c.pour(b, want.p); err == nil {
		_, err = want.p.Carry(want.info, b.f)
	}
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		b.discard()
		return nil, err
	}
	return b, nil
}

// Why something that a patch did was not taken back.
var (
	errReplacedSince = errors.New("somebody else has put another file in its place since; that one is left")
	errWrittenSince  = errors.New("somebody else has written to it since; that is left")
	errRemovedSince  = errors.New("somebody else has removed it since; it is not made again")
	errTakenSince    = errors.New("somebody else has made a file of that name since; that one is left")
	errInTheTrash    = errors.New("it is in the trash already and could not be given its name back")
)

// ours tells whether a published file still has the bytes that were published.
// What somebody writes into a file that is moved stays in it, wherever it is.
func (s *staged) ours() bool {
	if s.names > 0 {
		return true
	}
	now, err := anchor.StatFile(s.f)
	if err != nil || now.Size != s.info.Size || now.Mtime != s.info.Mtime {
		return false
	}
	// A change inside one tick shows in neither; the bytes decide.
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(s.f, 0, s.size+1)); err != nil {
		return false
	}
	return digest(h.Sum(nil)) == s.sum
}

// takeBack gives the kept file its name back, unless others have touched the
// new one: theirs is never destroyed. nil only if the kept file is in place.
func (c *call) takeBack(a aim, s *staged) error {
	if s.name == "" {
		return errInTheTrash
	}
	if _, err := s.dir.Lstat(s.name); absent(err) {
		s.name = ""
		return errInTheTrash
	}
	now, err := pinned.Look(s.dir, a.name)
	switch {
	case absent(err) && s.copied:
		return errRemovedSince
	case absent(err):
		// putBack tells a file that was destroyed from one that was moved.
	case err != nil:
		return err
	case !now.SameFile(s.info):
		return errReplacedSince
	case !s.ours():
		return errWrittenSince
	}
	c.at("undoing")
	if s.copied {
		if err := s.dir.Rename(s.name, s.dir, a.name, anchor.Replace); err != nil {
			return err
		}
		s.name = ""
		return nil
	}
	if err := c.putBack(s, a, nil); err != nil {
		return err
	}
	now, err = pinned.Look(s.dir, a.name)
	switch {
	case absent(err):
		return errRemovedSince
	case err != nil:
		return err
	case !now.SameFile(s.old):
		return errReplacedSince
	}
	if s.name != "" && !s.ours() {
		// Written to between the look and the exchange.
		if err := s.dir.Rename(s.name, s.dir, a.name, anchor.Exchange); err != nil {
			return c.stuck(s, err)
		}
		return errWrittenSince
	}
	return nil
}
