//go:build unix && !darwin

package trash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// maxTries bounds the names that are tried for one thing.
const maxTries = 100_000

// errPlaceGone: the trash directory was removed after it was opened.
var errPlaceGone = errors.New("the trash directory was removed")

// reserved is a name in a trash that is ours: its record was made exclusively.
type reserved struct {
	p    *place
	name string
	n    int // which try it was
	file *os.File
	info anchor.Info
	text []byte
	// limit of a name here.
	limit int
}

// reserve takes the first free name after the n-th (T18). Only a name that is
// taken means the next one. The record is complete and on the disk afterwards.
func (f *freedesktop) reserve(p *place, base string, n, limit int, i record.Info) (*reserved, error) {
	for n++; n <= maxTries; n++ {
		r := &reserved{p: p, n: n, limit: limit, name: nthName(base, n, limit), text: i.Format()}
		var err error
		r.file, err = p.info.Open(r.name+record.InfoSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case errors.Is(err, syscall.ENAMETOOLONG) && limit > smallName:
			limit = smallName
			n--
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(errPlaceGone, err)
		case err != nil:
			return nil, err
		}
		f.at("reserved")
		if err := f.write(r); err != nil {
			r.drop()
			return nil, err
		}
		return r, nil
	}
	return nil, fmt.Errorf("%d names are taken: %w", maxTries, fs.ErrExist)
}

func (f *freedesktop) write(r *reserved) (err error) {
	if r.info, err = anchor.StatFile(r.file); err != nil {
		return err
	}
	if _, err = r.file.Write(r.text); err != nil {
		return err
	}
	f.at("written")
	if f.sync {
		err = r.file.Sync()
	}
	f.at("flushed")
	return err
}

// drop takes the record away again, if it is still ours.
func (r *reserved) drop() {
	r.file.Close()
	now, err := r.p.info.Lstat(r.name + record.InfoSuffix)
	if err == nil && (r.info.Ino == 0 || now.SameFile(r.info)) {
		// What stays is a record without data, which says so.
		_ = r.p.info.Unlink(r.name + record.InfoSuffix)
	}
}

// finish changes the one byte of a pending record that says so: at any moment
// there is a whole record.
func (f *freedesktop) finish(r *reserved) error {
	at := bytes.LastIndexByte(r.text, '1')
	r.text[at] = '0'
	if _, err := r.file.WriteAt([]byte{'0'}, int64(at)); err != nil {
		return err
	}
	if f.sync {
		if err := r.file.Sync(); err != nil {
			return err
		}
	}
	return r.renew(f.sync)
}

// renew makes the record again when it went between its making and the move:
// whoever empties a trash may take a record without data for a leftover.
func (r *reserved) renew(sync bool) error {
	now, err := r.p.info.Lstat(r.name + record.InfoSuffix)
	if err == nil && now.SameFile(r.info) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeRecord(r.p.info, r.name, r.text, sync)
}

// writeRecord makes a record exclusively.
func writeRecord(info *anchor.Dir, name string, text []byte, sync bool) error {
	file, err := info.Open(name+record.InfoSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err = file.Write(text); err == nil && sync {
		err = file.Sync()
	}
	return err
}

// found is what a trash has under one name.
type found struct {
	name string
	// data is the zero Info when there is none.
	data    anchor.Info
	hasData bool
	// hasRecord: there is a file of that name; text and record are its content,
	// or bad says why not. mtime is when it was written.
	hasRecord bool
	text      []byte
	record    record.Info
	original  string
	bad       error
	mtime     time.Time
}

// look reads what there is under a name. Nothing at all is fs.ErrNotExist.
func (p *place) look(name string) (*found, error) {
	e := &found{name: name}
	if p.info != nil {
		e.read(p)
	}
	if p.files != nil {
		i, err := p.files.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if e.hasData = err == nil; e.hasData {
			e.data = i
		}
	}
	if !e.hasData && !e.hasRecord {
		return nil, fs.ErrNotExist
	}
	return e, nil
}

func (e *found) read(p *place) {
	full := e.name + record.InfoSuffix
	if len(full) > maxName {
		return // such a record cannot be
	}
	i, err := p.info.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	e.hasRecord = true
	if err != nil {
		e.bad = err
		return
	}
	e.mtime = time.Unix(0, i.Mtime)
	if !i.IsRegular() {
		e.bad = errors.New("the record is not a regular file")
		return
	}
	file, err := p.info.Open(full, os.O_RDONLY, 0)
	if err != nil {
		e.bad = err
		return
	}
	defer file.Close()
	// What is longer is refused by the parser.
	if e.text, e.bad = io.ReadAll(io.LimitReader(file, record.MaxInfo+1)); e.bad != nil {
		return
	}
	if e.record, e.bad = record.ParseInfo(e.text); e.bad != nil {
		return
	}
	e.original, e.bad = e.record.Resolve(p.base)
}

// entry is what callers see. sizes are those of directories, by name.
func (e *found) entry(p *place, sizes map[string]record.Size) record.Entry {
	r := record.Entry{
		ID: idOf(p.self, e.name, e.data), TrashDir: p.dir.Path(), Name: e.name,
		OriginalPath: e.original, Type: "other", State: record.OK,
	}
	if e.hasData {
		r.Type = typeOf(e.data)
	}
	if !e.record.Deleted.IsZero() {
		r.DeletionDate = record.Date(e.record.Deleted)
	}
	switch {
	case !e.hasRecord:
		r.State = record.Orphan
	case !e.hasData, e.bad != nil, e.unfinished():
		r.State = record.Broken
	}
	if e.hasData && e.data.IsRegular() {
		r.Size = &e.data.Size
	}
	if s, ok := sizes[e.name]; ok && e.hasData && e.data.IsDir() && s.Mtime == e.mtime.Unix() {
		r.Size = &s.Bytes
	}
	return r
}

// unfinished: a copy or placeholder, and the thing seems to be in place still.
// Where it is gone the data is whole.
func (e *found) unfinished() bool {
	if !e.record.Pending {
		return false
	}
	_, err := os.Lstat(e.original)
	return err == nil
}
