package trash

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// opened is a record with what is at its landing place now.
type opened struct {
	*kept
	// dir holds the data; nil when there is none that can be looked at.
	dir  *anchor.Dir
	data anchor.Info
	at   presence
	// err says why the record cannot be read, or the place not looked at.
	err    error
	unread bool // it is the record
}

func (o *opened) close() {
	if o.dir != nil {
		o.dir.Close()
	}
}

// look reads a record and looks at its landing place. Its error is fs.ErrNotExist
// when there is no record.
func (r *records) look(id string) (*opened, error) {
	k, err := r.read(id)
	o := &opened{kept: k}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		o.err, o.unread = err, true
	case k.landing != "":
		o.dir, o.data, o.at, o.err = landingOf(k.landing, k.is)
	}
	return o, nil
}

// broken says what is wrong with an entry, "" when nothing is.
func (o *opened) broken() string {
	switch {
	case o.unread:
		return "the record cannot be read: " + o.err.Error()
	case o.landing == "":
		if _, err := os.Lstat(o.info.Path); err == nil {
			return "it was not trashed, as far as is known; something is at " + o.info.Path
		}
		return "it is not known where it landed; look for it in the system's trash"
	case o.at == gone:
		return "it is not at " + o.landing + " any more"
	case o.at == other:
		return "another thing is at " + o.landing
	case o.at == hidden:
		return o.landing + " cannot be looked at: " + o.err.Error()
	}
	return ""
}

func (o *opened) shown() record.Entry {
	if o.broken() != "" {
		return o.entry(o.data, record.Broken)
	}
	return o.entry(o.data, record.OK)
}

func (n *native) list(ctx context.Context) (Listing, error) {
	l := Listing{Entries: []record.Entry{}}
	r, err := n.openRecords(false)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		l.Problems = append(l.Problems, Problem{n.recordsPath(), err.Error()})
		return l, nil
	}
	defer r.close()
	err = r.each(ctx, func(id string) error {
		o, err := r.look(id)
		if err != nil {
			return nil // it went meanwhile
		}
		defer o.close()
		if len(l.Entries) >= MaxListed {
			l.Truncated = true
			return errFull
		}
		if why := o.broken(); why != "" {
			l.Problems = append(l.Problems, Problem{filepath.Join(r.dir.Path(), id+record.InfoSuffix), why})
		}
		l.Entries = append(l.Entries, o.shown())
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return l, failed("list the trash", "", "", err)
	}
	return l, nil
}

// errFull ends a listing.
var errFull = errors.New("there are more")

// find opens the entry of an id.
func (r *records) find(op, id string) (*opened, error) {
	absent := failure(record.CodeNotFound, record.ReasonOperationFailed, op, "", "no entry "+id, nil)
	if !isID(id) {
		return nil, absent
	}
	o, err := r.look(id)
	if err != nil {
		return nil, absent
	}
	return o, nil
}

func (n *native) empty(ctx context.Context, o EmptyOptions) (Emptied, error) {
	done := Emptied{Entries: []record.Entry{}}
	r, err := n.openRecords(false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, failed(opEmpty, n.recordsPath(), "", err)
	}
	if err == nil {
		defer r.close()
	}
	ids := o.IDs
	if ids == nil && r != nil {
		// The directory is read to its end before names in it go.
		if err := r.each(ctx, func(id string) error { ids = append(ids, id); return nil }); err != nil {
			return done, failed(opEmpty, "", "", err)
		}
		slices.Sort(ids)
	}
	limit := n.now().Add(-o.OlderThan)
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return done, failed(opEmpty, "", "", err)
		}
		named := o.IDs != nil
		if r == nil {
			done.Left = append(done.Left, Left{record.Entry{ID: id}, failure(record.CodeNotFound, record.ReasonOperationFailed, opEmpty, "", "no entry "+id, nil)})
			continue
		}
		e, err := r.find(opEmpty, id)
		if err != nil {
			if named {
				done.Left = append(done.Left, Left{record.Entry{ID: id}, err})
			}
			continue // it went meanwhile
		}
		if named || o.OlderThan <= 0 || !e.age().After(limit) {
			n.erase(ctx, r, e, named, &done)
		}
		e.close()
	}
	return done, nil
}

// age is when the entry was trashed, as far as that is known.
func (o *opened) age() time.Time {
	if !o.info.Deleted.IsZero() {
		return o.info.Deleted
	}
	return o.mtime
}

// erase removes data first, then what the system keeps beside it, then the
// record. It removes nothing but the data of the record: of one whose place
// another thing has, it takes the record only, and not even that when the entry
// was meant by its id.
func (n *native) erase(ctx context.Context, r *records, o *opened, named bool, done *Emptied) {
	entry := o.shown()
	err := func() error {
		switch {
		case o.at == hidden:
			return failed(opEmpty, o.landing, "", o.err)
		case o.at == other && named:
			return failure(codeStale, record.ReasonOperationFailed, opEmpty, o.landing, "the entry is another thing now", nil)
		case o.at == itself:
			landed := filepath.Base(o.landing)
			files, bytes, err := eraseData(ctx, o.dir, landed, o.data)
			done.Files += files
			done.Bytes += bytes
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return failed(opEmpty, o.landing, "", err)
			}
			n.dropCompanion(o.dir, landed)
		}
		if err := r.drop(o.id); err != nil {
			return failed(opEmpty, o.landing, "its record cannot be removed", err)
		}
		return nil
	}()
	if err != nil {
		done.Left = append(done.Left, Left{entry, err})
		return
	}
	done.Entries = append(done.Entries, entry)
}

// eraseData removes what has a name if it is still the thing.
func eraseData(ctx context.Context, d *anchor.Dir, name string, i anchor.Info) (files, bytes int64, err error) {
	if i.IsDir() {
		o := anchor.RemoveOptions{}
		if i.Ino != 0 {
			o.Expect = &i
		}
		return d.RemoveTree(ctx, name, o)
	}
	now, err := lookAt(d, name)
	if err != nil {
		return 0, 0, err
	}
	if !sameThing(now, i) {
		return 0, 0, errors.New("another thing has that name now")
	}
	if err := d.Unlink(name); err != nil {
		return 0, 0, err
	}
	if now.IsRegular() && now.Nlink <= 1 {
		bytes = now.Size
	}
	return 1, bytes, nil
}
