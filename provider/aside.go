package provider

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
	"github.com/wattle-dev/wattle/trash/record"
)

// putAside gives an entry that is to go a hidden name, and looks at it there,
// where nobody changes it by name. What is not the expected one comes back. The
// removal has begun: nothing here can be cancelled.
func (c *call) putAside(dir *anchor.Dir, name string, want expected) (aside string, err error) {
	sure := *c
	sure.ctx = context.WithoutCancel(c.ctx)
	aside = hiddenName()
	how := anchor.NoReplace
	if c.lacks.noReplace {
		how = anchor.Replace // nobody has that name by chance
	}
	err = dir.Rename(name, dir, aside, how)
	if errors.Is(err, errors.ErrUnsupported) {
		err = dir.Rename(name, dir, aside, anchor.Replace)
	}
	if err != nil {
		return "", moved(err)
	}
	c.at("aside")
	if err := sure.isExpected(dir, aside, want); err != nil {
		return "", sure.restore(dir, aside, name, err)
	}
	return aside, nil
}

// isExpected tells whether what was put aside is what was to go. Renaming it
// changed its ctime.
func (c *call) isExpected(dir *anchor.Dir, aside string, want expected) error {
	now, err := pinned.Look(dir, aside)
	if err != nil {
		return err
	}
	if i := want.info; !now.SameFile(i) || want.strict && (now.Size != i.Size || now.Mtime != i.Mtime) {
		return errMoved{err: errChanged, code: CodeStaleVersion}
	}
	return c.sameContent(cameOut{info: now, p: want.p}, want)
}

// restore gives what was put aside its name again, if nobody has taken that
// meanwhile, and returns cause. Otherwise it is kept under the hidden name.
func (c *call) restore(dir *anchor.Dir, aside, name string, cause error) error {
	c.at("restoring")
	err := c.rename(dir, aside, name)
	if i, lerr := dir.Lstat(aside); err != nil && lerr == nil && i.IsDir() && !errors.Is(err, syscall.EEXIST) {
		// A directory has no second name; renamed, it replaces an empty
		// directory at most.
		err = dir.Rename(aside, dir, name, anchor.Replace)
	}
	if err != nil {
		e := c.failed(CodeIOError, "it was changed meanwhile, could not be put back, and is kept as "+aside, err)
		e.Outcome = record.Unknown
		return e
	}
	return cause
}

// nameBack gives a file that was hidden its name back. It never replaces; a
// file that cannot get its name is kept.
func (c *call) nameBack(dir *anchor.Dir, hidden, name string) error {
	if err := c.rename(dir, hidden, name); err != nil {
		if _, lerr := dir.Lstat(name); lerr == nil {
			err = errTakenSince
		}
		return fmt.Errorf("the file is kept as %s: %w", hidden, bare(err))
	}
	return nil
}
