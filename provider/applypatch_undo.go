package provider

import (
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// unreplace is takeBack for a patch that is undone.
func (c *call) unreplace(a aim, s *staged) error {
	unlock, err := c.lockedDir(s.dir, a.path)
	if err != nil {
		return err
	}
	defer unlock()
	return c.takeBack(a, s)
}

// uncreate takes the name of a new file away, unless others have touched it.
func (c *call) uncreate(a aim, s *staged) error {
	unlock, err := c.lockedDir(s.dir, a.path)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := pinned.Look(s.dir, a.name)
	switch {
	case absent(err):
		return nil
	case err != nil:
		return err
	case !now.SameFile(s.info):
		return errReplacedSince
	case !s.ours():
		return errWrittenSince
	}
	c.at("undoing")
	hidden := hiddenName()
	if err := s.dir.Rename(a.name, s.dir, hidden, anchor.Replace); err != nil {
		if absent(err) {
			return nil
		}
		return err
	}
	now, err = pinned.Look(s.dir, hidden)
	if err == nil && now.SameFile(s.info) && s.ours() {
		return s.dir.Unlink(hidden)
	}
	if err := c.nameBack(s.dir, hidden, a.name); err != nil {
		return err
	}
	return errWrittenSince
}

// takeAway puts the expected file aside, where it can be brought back from.
func (c *call) takeAway(dir *anchor.Dir, a aim, want expected) (hidden string, err error) {
	unlock, err := c.lockedDir(dir, a.path)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := c.unchanged(dir, a.name, want); err != nil {
		return "", err
	}
	c.at("checked")
	if err := c.alive(); err != nil {
		return "", err
	}
	return c.putAside(dir, a.name, want)
}
