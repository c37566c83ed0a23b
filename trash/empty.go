//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/wattle-dev/wattle/trash/record"
)

func (f *freedesktop) empty(ctx context.Context, o EmptyOptions) (Emptied, error) {
	done := Emptied{Entries: []record.Entry{}}
	if o.IDs != nil {
		for _, id := range o.IDs {
			if err := ctx.Err(); err != nil {
				return done, failed(opEmpty, "", "", err)
			}
			p, e, err := f.find(ctx, opEmpty, id)
			if err != nil {
				done.Left = append(done.Left, Left{record.Entry{ID: id}, err})
				continue
			}
			f.erase(ctx, p, []*found{e}, &done)
			p.close()
		}
		return done, nil
	}
	limit := f.now().Add(-o.OlderThan)
	_, err := f.each(ctx, func(p *place) error {
		// A directory is read to its end before names in it go. Pieces of it,
		// so that memory is bounded.
		for {
			var piece []*found
			err := p.names(ctx, func(name string) error {
				e, err := p.look(name)
				if err != nil || done.keeps(p, e) {
					return nil
				}
				if !e.hasRecord && !o.Orphans || o.OlderThan > 0 && e.age().After(limit) {
					return nil
				}
				if piece = append(piece, e); len(piece) == eraseAtOnce {
					return errEnough
				}
				return nil
			})
			before := len(done.Left)
			f.erase(ctx, p, piece, &done)
			if err == nil || !errors.Is(err, errEnough) {
				return err
			}
			// What cannot be removed is met again in the next piece: too much of
			// it needs a person.
			if len(done.Left)-before == len(piece) || len(done.Left) >= eraseAtOnce {
				return nil
			}
		}
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return done, failed(opEmpty, "", "", err)
	}
	return done, nil
}

// eraseAtOnce is how many entries are collected before they are removed.
const eraseAtOnce = 4096

// keeps tells whether an entry was tried already and stayed.
func (d *Emptied) keeps(p *place, e *found) bool {
	if len(d.Left) == 0 {
		return false
	}
	id := idOf(p.self, e.name, e.data)
	for _, l := range d.Left {
		if l.Entry.ID == id {
			return true
		}
	}
	return false
}

// age is when the entry was trashed, as far as that is known.
func (e *found) age() time.Time {
	switch {
	case !e.record.Deleted.IsZero():
		return e.record.Deleted
	case e.hasRecord:
		return e.mtime
	}
	return time.Unix(0, e.data.Ctime)
}

// erase removes data first, then records, then lines of directorysizes.
func (f *freedesktop) erase(ctx context.Context, p *place, entries []*found, done *Emptied) {
	sizes := map[string]record.Size{}
	for _, s := range readSizes(p.dir) {
		sizes[s.Name] = s
	}
	gone := map[string]bool{}
	for _, e := range entries {
		if ctx.Err() != nil {
			break // the caller says so
		}
		entry := e.entry(p, sizes)
		files, bytes, err := f.eraseOne(ctx, p, e)
		done.Files += files
		done.Bytes += bytes
		if err != nil {
			done.Left = append(done.Left, Left{entry, failed(opEmpty, p.dir.Path()+"/files/"+e.name, "", err)})
			continue
		}
		done.Entries = append(done.Entries, entry)
		if e.data.IsDir() {
			gone[e.name] = true
		}
	}
	if len(gone) > 0 {
		f.sizes.forget(p, gone)
	}
}

func (f *freedesktop) eraseOne(ctx context.Context, p *place, e *found) (files, bytes int64, err error) {
	if e.hasData {
		files, bytes, err = remove(ctx, p.files, e.name, e.data)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return files, bytes, err
		}
	}
	f.at("erased")
	if !e.hasRecord {
		return files, bytes, nil
	}
	if err := p.info.Unlink(e.name + record.InfoSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return files, bytes, err
	}
	if e.hasData || p.files == nil {
		return files, bytes, nil
	}
	// The record had no data. If somebody was between record and move, the data
	// is there now, and gets its record back. He looks after his move, and we
	// after our removal, so that one of us sees it.
	if _, err := p.files.Lstat(e.name); err == nil {
		if err := writeRecord(p.info, e.name, e.text, f.sync); err != nil && !errors.Is(err, fs.ErrExist) {
			return files, bytes, err
		}
	}
	return files, bytes, nil
}
