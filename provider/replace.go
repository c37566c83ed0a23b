package provider

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/dirlock"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
	"github.com/wattle-dev/wattle/trash/record"
)

// expected is the file that a replacement may replace.
type expected struct {
	p *pin
	// info is the state on which guard and new content rest.
	info anchor.Info
	// sum is the hash of its content, if hashed.
	sum    digest
	hashed bool
	// strict: no other state may be replaced. Not strict, any regular file may
	// (an unguarded write).
	strict bool
	// kept: what is replaced goes into the trash, or nothing is replaced.
	kept bool
	// dressed: the new file has the metadata of another one (a move), which
	// that of the replaced file must not overwrite.
	dressed bool
}

// replaced tells what a replacement did.
type replaced struct {
	version Version
	links   int
	lost    []string
	trashed *record.Entry // of a file that is kept
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
func (c *call) replace(dir *anchor.Dir, a aim, want expected, look func(*pin), parts ...string) (replaced, error) {
	s, err := c.stage(dir, 0o600, false, parts...)
	if err != nil {
		return replaced{}, moved(err)
	}
	defer s.discard()
	var out replaced
	if out.lost, err = want.p.Carry(want.info, s.f); err != nil {
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
func (c *call) publish(dir *anchor.Dir, a aim, s *staged, want expected, look func(*pin), out *replaced) (*dirlock.Held, error) {
	held, unlock, err := c.lockDir(dir, a.path)
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

func (c *call) swap(dir *anchor.Dir, a aim, s *staged, want expected, look func(*pin), out *replaced) (err error) {
	if want.kept {
		s.keep = true
		defer func() {
			if err == nil {
				out.trashed, err = c.keepReplaced(s, a)
			}
		}()
	}
	if err := c.unchanged(dir, a.name, want); err != nil {
		return err
	}
	c.at("checked")
	if err := c.alive(); err != nil {
		return err
	}
	err = errors.ErrUnsupported
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
	if s.keep {
		return moved(c.replaceKeeping(dir, a, s, want))
	}
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
func (c *call) settleExchange(s *staged, a aim, want expected, out *replaced, look func(*pin)) error {
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
	if !want.dressed && (i.Perm() != want.info.Perm() || i.UID != want.info.UID || i.GID != want.info.GID) {
		// The mode at publication is the current one (decision D5).
		if lost, err := old.p.Carry(i, s.f); err == nil {
			out.lost = lost
		}
	}
	out.links = others(i.Nlink)
	if s.keep {
		s.old = i
		return nil
	}
	_ = s.dir.Unlink(s.name)
	s.name = ""
	return nil
}

// cameOut is the file that an exchange brought out. p is the one that was
// expected, when it is that.
type cameOut struct {
	info anchor.Info
	p    *pin
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
	p, err := c.pin(s.dir, s.name)
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
	if err := old.p.Open(); err != nil {
		return err
	}
	var r content
	if err := c.pass(old.p, reading{keep: 0, toEnd: true}, &r); err != nil {
		return err
	}
	if r.sum != want.sum {
		return errMoved{err: errChanged, code: CodeStaleVersion}
	}
	return nil
}

// putBack takes a refused content back and returns cause.
//
// It exchanges until the youngest file of others is in place. Each exchange
// brings out what lies at the target now: when that is the file that was put
// there last, nobody came in between; otherwise somebody has replaced the
// target since, what came out is younger and must go back in, and what we hold
// after that has been replaced by them.
//
// That last step holds only for a file that was destroyed by replacing it. When
// it was moved elsewhere, what we hold has been replaced by nobody, and is kept.
// Files are told apart by identity, so each is pinned: its inode number cannot
// become that of another one meanwhile.
func (c *call) putBack(s *staged, a aim, cause error) error {
	last := laid{info: s.info, stat: func() (anchor.Info, error) { return anchor.StatFile(s.f) }, names: s.names}
	for range 64 {
		put, err := pinned.Pin(s.dir, s.name)
		if err != nil {
			return c.stuck(s, err)
		}
		defer put.Close()
		now, err := s.dir.Lstat(a.name)
		if err == nil && !now.SameFile(last.info) {
			// Replaced since: putting back what we hold, even for a moment,
			// would show an older content again.
			return c.superseded(s, a, last, cause)
		}
		c.at("restoring")
		if err == nil {
			err = s.dir.Rename(s.name, s.dir, a.name, anchor.Exchange)
		}
		if absent(err) {
			return c.superseded(s, a, last, cause)
		}
		if err != nil {
			return c.stuck(s, err)
		}
		out, err := s.dir.Lstat(s.name)
		if err != nil {
			return c.stuck(s, err)
		}
		if out.SameFile(last.info) {
			return cause
		}
		if !last.destroyed() {
			// Its place was taken without replacing it. Two files of others
			// and one name: the younger gets it, the other one is kept.
			if err := s.dir.Rename(s.name, s.dir, a.name, anchor.Exchange); err != nil {
				return c.stuck(s, err)
			}
			return c.stuck(s, errTakenAway)
		}
		last = laid{info: put.Info, stat: put.Stat}
	}
	return c.stuck(s, syscall.EBUSY)
}

// laid is a file that was put at the target.
type laid struct {
	info anchor.Info
	stat func() (anchor.Info, error)
	// names it has elsewhere.
	names uint64
}

// destroyed: it has not the name any more that it was put at, nor another one
// instead.
func (l laid) destroyed() bool {
	now, err := l.stat()
	return err == nil && now.Nlink <= l.names
}

var errTakenAway = errors.New("somebody moved it away in the same moment")

// superseded ends a putBack whose target is another file than the one that was
// put there last, or none. If that one was destroyed, what we hold was replaced
// or removed together with it.
func (c *call) superseded(s *staged, a aim, last laid, cause error) error {
	if last.destroyed() {
		return cause
	}
	// Moved away. If its place is free, what we hold belongs there.
	if err := s.dir.Rename(s.name, s.dir, a.name, anchor.NoReplace); err != nil {
		return c.stuck(s, errTakenAway)
	}
	s.name = ""
	return cause
}

// stuck gives up without removing anything that is not ours.
func (c *call) stuck(s *staged, err error) error {
	if now, lerr := s.dir.Lstat(s.name); lerr == nil && !now.SameFile(s.info) {
		kept := s.name
		s.name = ""
		return c.failed(CodeIOError, fmt.Sprintf("the file in its place could not be put back and is kept as %s", kept), err)
	}
	return c.failed(CodeIOError, "the file in its place could not be put back", err)
}
