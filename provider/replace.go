package provider

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/dirlock"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// expected is the file that a replacement may replace.
type expected struct {
	p *pinned.File
	// info is the state on which guard and new content rest.
	info anchor.Info
	// sum is the hash of its content, if hashed.
	sum    digest
	hashed bool
	// strict: no other state may be replaced. Not strict, any regular file may
	// (an unguarded write).
	strict bool
}

// replaced tells what a replacement did.
type replaced struct {
	version Version
	links   int
	lost    []string
}

// verifyBytes is the size up to which the file that came out is always compared
// by content; above it, only if its times are too young to be trusted.
const verifyBytes = 1 << 20

var errChanged = errors.New("the file changed")

// replace publishes parts in place of the expected file (fs-contract 4.8). The
// errors that mean "decide anew" are errMoved; whatever the error is, target
// and directory are as if nothing had been tried.
//
// look, if set, sees the replaced file before it is removed, when it was not in
// the expected state.
func (c *call) replace(dir *anchor.Dir, a aim, want expected, look func(*pinned.File), parts ...string) (replaced, error) {
	s, err := c.stage(dir, 0o600, false, parts...)
	if err != nil {
		return replaced{}, moved(err)
	}
	defer s.discard()
	var out replaced
	if out.lost, err = want.p.Carry(s.f); err != nil {
		return replaced{}, err
	}
	if err := s.finish(); err != nil {
		return replaced{}, err
	}
	c.at("staged")
	held, err := c.publish(dir, a, s, want, look, &out)
	if err != nil {
		return replaced{}, err
	}
	defer held.Close()
	out.version = c.published(s, a.path)
	_ = held.Sync() // as in syncDir
	return out, nil
}

// publish is the part of replace under the directory's lock. The handle is for
// the sync, which others need not wait for.
func (c *call) publish(dir *anchor.Dir, a aim, s *staged, want expected, look func(*pinned.File), out *replaced) (*dirlock.Held, error) {
	held, unlock, err := c.lockDir(dir, a)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.swap(dir, a, s, want, look, out); err != nil {
		held.Close()
		return nil, err
	}
	return held, nil
}

func (c *call) swap(dir *anchor.Dir, a aim, s *staged, want expected, look func(*pinned.File), out *replaced) error {
	if err := c.unchanged(dir, a.name, want); err != nil {
		return err
	}
	c.at("checked")
	if err := c.alive(); err != nil {
		return err
	}
	err := errors.ErrUnsupported
	if !c.lacks.exchange {
		err = dir.Rename(s.name, dir, a.name, anchor.Exchange)
	}
	if err == nil {
		c.at("exchanged")
		return c.settleExchange(s, a, want, out, look)
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return moved(err)
	}
	out.links = others(want.info.Nlink)
	if err := dir.Rename(s.name, dir, a.name, anchor.Replace); err != nil {
		return moved(err)
	}
	s.name = ""
	return nil
}

// moved turns the errors of a path or file that is not there any more.
func moved(err error) error {
	if changedPath(err) {
		return errMoved{err: err}
	}
	return err
}

// others is how many other names an inode has.
func others(nlink uint64) int { return int(max(nlink, 1) - 1) }

// lockDir makes the exchange, the look at what came out and the exchange back
// one step among all Wattle processes. Inside this one the calls line up, so
// that only one at a time has to try for the directory's lock.
func (c *call) lockDir(dir *anchor.Dir, a aim) (held *dirlock.Held, unlock func(), err error) {
	inner, err := c.dirs.lock(c.ctx, filepath.Dir(a.path))
	if err != nil {
		return nil, nil, err
	}
	held, err = dirlock.Lock(c.ctx, dir, lockPatience)
	if err != nil {
		inner()
		return nil, nil, err
	}
	return held, func() { held.Unlock(); inner() }, nil
}

// unchanged looks once more right before the publication, when nothing has to
// be put back yet.
func (c *call) unchanged(dir *anchor.Dir, name string, want expected) error {
	now, err := pinned.Look(dir, name)
	switch {
	case err != nil:
		return moved(err)
	case !now.IsRegular():
		return errMoved{err: errChanged}
	case want.strict && (!now.SameFile(want.info) || now.Size != want.info.Size || now.Mtime != want.info.Mtime || now.Ctime != want.info.Ctime):
		return errMoved{err: errChanged, code: CodeStaleVersion}
	}
	return nil
}

// settleExchange looks at the file that the exchange brought out, which lies
// under the staged file's hidden name now. It is removed if it may be replaced,
// and put back otherwise. Nothing here can be cancelled: the publication has
// begun.
func (c *call) settleExchange(s *staged, a aim, want expected, out *replaced, look func(*pinned.File)) error {
	sure := *c
	sure.ctx = context.WithoutCancel(c.ctx)
	old, err := sure.cameOut(s, want)
	if err != nil {
		return sure.putBack(s, a, err)
	}
	defer old.close()
	i := old.info
	same := i.SameFile(want.info) && i.Size == want.info.Size && i.Mtime == want.info.Mtime
	switch {
	case !i.IsRegular():
		return sure.putBack(s, a, errMoved{err: errChanged})
	case want.strict && !same:
		return sure.putBack(s, a, errMoved{err: errChanged, code: CodeStaleVersion})
	case want.strict:
		if err := sure.sameContent(old, want); err != nil {
			return sure.putBack(s, a, err)
		}
	case !same && look != nil:
		look(old.p)
	}
	if i.Perm() != want.info.Perm() || i.UID != want.info.UID || i.GID != want.info.GID {
		// The mode at publication is the current one (decision D5).
		if lost, err := old.p.Carry(s.f); err == nil {
			out.lost = lost
		}
	}
	out.links = others(i.Nlink)
	_ = s.dir.Unlink(s.name)
	s.name = ""
	return nil
}

// cameOut is the file that an exchange brought out. p is the one that was
// expected, when it is that.
type cameOut struct {
	info anchor.Info
	p    *pinned.File
	own  bool // p was pinned for this
}

func (o cameOut) close() {
	if o.own {
		o.p.Close()
	}
}

func (c *call) cameOut(s *staged, want expected) (cameOut, error) {
	info, err := pinned.Look(s.dir, s.name)
	if err != nil {
		return cameOut{}, err
	}
	if info.SameFile(want.info) {
		return cameOut{info: info, p: want.p}, nil
	}
	p, err := pinned.Pin(s.dir, s.name)
	if err != nil {
		return cameOut{}, err
	}
	return cameOut{info: p.Info, p: p, own: true}, nil
}

// sameContent compares what came out with what the guard was about. The
// exchange itself changed ctime, so a writer that restores mtime shows only
// here.
func (c *call) sameContent(old cameOut, want expected) error {
	if !want.hashed {
		return nil
	}
	young := stampOf(c.clock, old.info)
	young.ctime = young.mtime
	if old.info.Size > verifyBytes && !racy(c.clock, c.clock.Now(), young) {
		return nil
	}
	r, err := c.read(old.p, reading{keep: 0, toEnd: true})
	if err != nil {
		return err
	}
	if r.sum != want.sum {
		return errMoved{err: errChanged, code: CodeStaleVersion}
	}
	return nil
}

// putBack exchanges until the youngest file of others is in place again, and
// returns cause. Each exchange brings out what lies at the target now: when
// that is the file that was put there last, nobody came in between and the rest
// is older; otherwise somebody has replaced the target since, and what came out
// must go back in. Files are told apart by identity, so each is pinned: its
// inode number cannot become that of another one meanwhile. (s.f holds the
// first of them.)
func (c *call) putBack(s *staged, a aim, cause error) error {
	last := s.info // what lies at the target, as far as we know
	for range 64 {
		put, err := pinned.Pin(s.dir, s.name)
		if err != nil {
			return c.stuck(s, err)
		}
		defer put.Close()
		if now, err := s.dir.Lstat(a.name); err == nil && !now.SameFile(last) {
			// Replaced since: what we hold is the older one, and putting it
			// back even for a moment would show it again.
			return cause
		}
		c.at("restoring")
		err = s.dir.Rename(s.name, s.dir, a.name, anchor.Exchange)
		if absent(err) {
			// Somebody removed the target: what we hold was removed with it.
			return cause
		}
		if err != nil {
			return c.stuck(s, err)
		}
		out, err := s.dir.Lstat(s.name)
		if err != nil {
			return c.stuck(s, err)
		}
		if out.SameFile(last) {
			return cause
		}
		last = put.Info
	}
	return c.stuck(s, syscall.EBUSY)
}

// stuck gives up without removing anything that is not ours.
func (c *call) stuck(s *staged, err error) error {
	if now, lerr := s.dir.Lstat(s.name); lerr == nil && !now.SameFile(s.info) {
		kept := s.name
		s.name = ""
		return c.failed(CodeIOError, fmt.Sprintf("the replaced file could not be put back and is kept as %s", kept), err)
	}
	return c.failed(CodeIOError, "the replaced file could not be put back", err)
}
