package provider

import (
	"context"
	"errors"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// placing gives an entry that is complete the name of the destination: the
// source of a move, or a copy under its hidden name.
type placing struct {
	to  end
	dir *anchor.Dir // of to

	from     *anchor.Dir
	name     string
	fromPath string // canonical, of a move; empty when name is hidden and ours
	what     anchor.Info

	overwrite bool

	replaced record.Outcome
	trashed  *record.Entry
}

// place publishes. Without overwrite the kernel decides that nothing is
// replaced. The errors are of this call; EXDEV, and errMoved when something
// changed meanwhile, come as they are.
func (p *placing) place() error {
	now, err := p.fits()
	if err != nil {
		return err
	}
	if now == nil {
		return p.fresh()
	}
	keep, err := p.to.keepsOverwritten(p.to.path)
	if err != nil {
		return err
	}
	if p.what.IsDir() && !keep {
		return p.overEmpty()
	}
	return p.over(*now, keep)
}

// fits looks at the destination and refuses what can never be replaced. It
// gives nil when nothing is there.
func (p *placing) fits() (*anchor.Info, error) {
	now, err := look(p.dir, p.to.name)
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, p.to.ours(err)
	case !p.overwrite:
		return nil, p.exists("")
	case p.what.IsDir() && !now.IsDir():
		return nil, p.to.fail(CodeNotDirectory, "a directory can replace only a directory")
	case !p.what.IsDir() && !now.IsRegular() && !now.IsSymlink():
		return nil, p.to.fail(CodeNotRegularFile, "only a file or a link can be replaced by one")
	case now.IsRegular():
		old, err := p.to.pin(p.dir, p.to.name)
		if err != nil {
			return nil, p.to.ours(moved(err))
		}
		defer old.Close()
		if err := p.to.writable(old, false); err != nil {
			return nil, err
		}
	}
	return &now, nil
}

func (p *placing) exists(detail string) error {
	if detail == "" {
		detail = "something is there already"
	}
	return p.to.fail(CodeAlreadyExists, detail)
}

func (p *placing) fresh() error {
	if err := p.last(); err != nil {
		return err
	}
	err := p.noReplace()
	if errors.Is(err, syscall.EEXIST) {
		if p.overwrite {
			return errMoved{err: err}
		}
		return p.exists("")
	}
	if err != nil {
		return moved(err)
	}
	p.to.at("renamed")
	return p.verify()
}

// last is the last look at the context: after it the call finishes.
func (p *placing) last() error {
	p.to.at("checked")
	return p.to.alive()
}

func (p *placing) noReplace() error {
	err := errors.ErrUnsupported
	if !p.to.lacks.noReplace {
		err = p.from.Rename(p.name, p.dir, p.to.name, anchor.NoReplace)
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if p.what.IsDir() {
		// A directory can be renamed over an empty one and over nothing else:
		// one that we make takes the name for ours.
		if err := p.dir.Mkdir(p.to.name, 0o700); err != nil {
			return err
		}
		err := p.from.Rename(p.name, p.dir, p.to.name, anchor.Replace)
		if err == nil {
			return nil
		}
		if rerr := p.dir.Rmdir(p.to.name); rerr != nil || !errors.Is(err, syscall.EEXIST) {
			return err
		}
		// os.Root renames over no directory at all.
		return p.from.Rename(p.name, p.dir, p.to.name, anchor.Replace)
	}
	if err := p.from.Link(p.name, p.dir, p.to.name); err != nil {
		return err
	}
	if err := p.from.Unlink(p.name); err != nil {
		_ = p.dir.Unlink(p.to.name)
		return err
	}
	return nil
}

// verify makes sure that what has the name now is what was looked at: between
// look and rename somebody can have put another entry in its place, which then
// goes back. A copy has no place that anybody knows: another entry has come
// after it then, and is left alone.
func (p *placing) verify() error {
	if p.fromPath == "" {
		return nil
	}
	now, err := look(p.dir, p.to.name)
	if err != nil || p.what.Ino == 0 || now.SameFile(p.what) {
		return nil // moved on already by somebody, or nothing to compare by
	}
	if err := p.dir.Rename(p.to.name, p.from, p.name, anchor.NoReplace); err != nil {
		return p.to.failed(CodeIOError, "another entry than the one that was looked at was moved here, and could not be moved back", err)
	}
	return p.stale()
}

func (p *placing) stale() error {
	return p.to.fail(CodeStaleVersion, "the source was replaced while it was moved")
}

// overEmpty puts a directory in the place of an empty one: rename(2) replaces
// no other.
func (p *placing) overEmpty() error {
	if err := p.last(); err != nil {
		return err
	}
	err := p.from.Rename(p.name, p.dir, p.to.name, anchor.Replace)
	if errors.Is(err, syscall.EEXIST) {
		// Not empty in the words of some systems; or os.Root, which renames
		// over no directory at all.
		if err = p.dir.Rmdir(p.to.name); err == nil {
			if err = p.from.Rename(p.name, p.dir, p.to.name, anchor.Replace); err != nil {
				_ = p.dir.Mkdir(p.to.name, 0o777)
			}
		}
	}
	switch {
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EEXIST):
		return p.exists(saysNotEmpty)
	case err != nil:
		return moved(err)
	}
	p.to.at("renamed")
	if err := p.verify(); err != nil {
		return err
	}
	p.replaced = record.Deleted
	return nil
}

const saysNotEmpty = "the directory there is not empty"

// over exchanges both names, looks at what came out, and drops it or puts it
// into the trash; or everything is as it was.
func (p *placing) over(now anchor.Info, keep bool) error {
	// Other Wattle processes exchange and look as well.
	other, otherPath := p.from, p.fromPath
	if otherPath == "" {
		other, otherPath = p.dir, p.to.path
	}
	unlock, err := p.to.lockedDirs(p.dir, p.to.path, other, otherPath)
	if err != nil {
		return p.to.ours(err)
	}
	defer unlock()
	if err := p.last(); err != nil {
		return err
	}
	err = errors.ErrUnsupported
	if !p.to.lacks.exchange {
		err = p.from.Rename(p.name, p.dir, p.to.name, anchor.Exchange)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return p.overPlain(now, keep)
	}
	if err != nil {
		return moved(err)
	}
	p.to.at("exchanged")
	return p.settle(keep)
}

// settle decides about what an exchange brought out, which lies under the name
// of the source now. Nothing here can be cancelled.
func (p *placing) settle(keep bool) error {
	if p.fromPath != "" { // as in verify
		if now, err := look(p.dir, p.to.name); err == nil && p.what.Ino != 0 && !now.SameFile(p.what) {
			return p.exchangeBack(p.stale())
		}
	}
	old, err := look(p.from, p.name)
	if err != nil {
		return nil // somebody has taken it away: nothing to drop
	}
	if old.IsDir() != p.what.IsDir() || !old.IsDir() && !old.IsRegular() && !old.IsSymlink() {
		return p.exchangeBack(errMoved{err: errChanged})
	}
	if keep {
		return p.intoTrash(p.from, p.name, old)
	}
	return p.drop(old)
}

func (p *placing) exchangeBack(cause error) error {
	if err := p.from.Rename(p.name, p.dir, p.to.name, anchor.Exchange); err != nil {
		return p.to.failed(CodeIOError, "what was replaced could not be put back, and is "+p.whereOut(), err)
	}
	if p.fromPath != "" {
		return cause
	}
	if now, err := look(p.from, p.name); err != nil || p.what.Ino == 0 || now.SameFile(p.what) {
		return cause
	}
	// Somebody has replaced the copy since. Two entries of others and one name:
	// the younger one gets it, the other one is kept.
	if err := p.from.Rename(p.name, p.dir, p.to.name, anchor.Exchange); err != nil {
		return p.to.failed(CodeIOError, "what was put there meanwhile is "+p.whereOut(), err)
	}
	return p.to.failed(CodeIOError, "what was replaced could not be put back, and is "+p.whereOut(), errTakenAway)
}

// whereOut tells where what an exchange brought out lies.
func (p *placing) whereOut() string {
	if p.fromPath != "" {
		return "where the source was"
	}
	return "kept as " + p.name
}

// drop removes what was replaced. A name that others know is taken away first,
// so that what is removed is what was looked at.
func (p *placing) drop(old anchor.Info) error {
	name := p.name
	if p.fromPath != "" {
		name = hiddenName()
		if err := p.from.Rename(p.name, p.from, name, anchor.NoReplace); err != nil {
			return p.exchangeBack(moved(err))
		}
		if now, err := look(p.from, name); err != nil || old.Ino != 0 && !now.SameFile(old) {
			// Somebody has put a new file under the name of the source.
			if err := p.from.Rename(name, p.from, p.name, anchor.NoReplace); err != nil && !absent(err) {
				return p.to.failed(CodeIOError, "what was put in the place of the source meanwhile is kept as "+name, err)
			}
			p.replaced = record.Deleted
			return nil
		}
	}
	if err := p.from.Unlink(name); err != nil {
		return p.to.failed(codeOfErrno(err), "what was replaced could not be removed, and is kept as "+name, err)
	}
	p.replaced = record.Deleted
	return nil
}

// intoTrash keeps what was replaced. The trash decides, by identity, that it
// takes this and nothing else.
func (p *placing) intoTrash(dir *anchor.Dir, name string, old anchor.Info) error {
	if old.IsDir() {
		if es, err := dir.Walk(name); err == nil {
			inside, err := es.ReadDir(1)
			es.Close()
			if err != nil || len(inside) > 0 {
				return p.exchangeBack(p.exists(saysNotEmpty))
			}
		}
	}
	e, err := p.to.trash.Put(context.WithoutCancel(p.to.ctx), dir, name, p.to.path, old, false)
	if err != nil {
		var r *record.Error
		if errors.As(err, &r) && r.Outcome == record.Unknown {
			return p.to.unkept(err)
		}
		return p.exchangeBack(p.to.unkept(err))
	}
	p.replaced, p.trashed = record.Trashed, &e
	return nil
}

// overPlain replaces where names cannot be exchanged: by a rename. What is to
// be kept gets a second name first.
func (p *placing) overPlain(now anchor.Info, keep bool) error {
	if p.what.IsDir() {
		return p.overEmpty() // nothing is lost with it
	}
	aside := hiddenName()
	if keep {
		if err := p.dir.Link(p.to.name, p.dir, aside); err != nil {
			return moved(err)
		}
	}
	err := p.from.Rename(p.name, p.dir, p.to.name, anchor.Replace)
	if err == nil && now.SameFile(p.what) {
		// Two names of one file: rename(2) leaves both.
		_ = p.from.Unlink(p.name)
	}
	if err == nil {
		p.to.at("renamed")
		err = p.verify()
	}
	if err != nil {
		if keep {
			_ = p.dir.Link(aside, p.dir, p.to.name) // EEXIST while it is there
			_ = p.dir.Unlink(aside)
		}
		return moved(err)
	}
	if !keep {
		p.replaced = record.Deleted
		return nil
	}
	old, err := look(p.dir, aside)
	if err != nil {
		return p.to.mapped(err)
	}
	e, err := p.to.trash.Put(context.WithoutCancel(p.to.ctx), p.dir, aside, p.to.path, old, false)
	if err != nil {
		return p.to.mapped(p.to.unkept(err))
	}
	p.replaced, p.trashed = record.Trashed, &e
	return nil
}
