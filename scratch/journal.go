package scratch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// journal remembers, in the state directory, which directories were going to
// be made. It is a directory with one small file a record, so that several
// processes (the daemon, commands without one) use it without a lock, a torn
// record costs nobody else's, and it is as large as what is not yet cleaned.
//
// A record appears under its name whole or not at all: it is written to a
// temporary file, flushed and renamed. It is written before the directory is
// made and removed after the directory is gone.
type journal struct {
	dir *anchor.Dir
	// sync: flush to disk, so that a power failure loses no record.
	sync bool
}

// recordKind tells the two records apart.
type recordKind string

const (
	// recordScratch: a scratch directory that was going to be made at Path.
	recordScratch recordKind = "scratch"
	// recordParent: a sibling directory that we made, and remove when empty.
	recordParent recordKind = "parent"
)

type record struct {
	Schema    int        `json:"schema"`
	Kind      recordKind `json:"kind"`
	Path      string     `json:"path"`
	Workspace string     `json:"workspace,omitzero"`
	SessionID string     `json:"sessionId,omitzero"`
	CreatedAt time.Time  `json:"createdAt"`
	owner     `json:",inline"`
	AutoClean AutoClean `json:"autoClean,omitzero"`
	// Dev is the device of the directory in which Path lies: with it a path
	// that is gone is told apart from a file system that is not mounted now.
	Dev uint64 `json:"dev,omitzero"`
	// Ino and Btime identify a parent.
	Ino   uint64 `json:"ino,omitzero"`
	Btime int64  `json:"btime,omitzero"`
}

const (
	recordSchema = 1
	recordSuffix = ".json"
	recordTemp   = ".new-"
	maxRecord    = 64 << 10
)

// file is the record's name: one place has one record.
func (r *record) file() string { return recordFile(r.Kind, r.Path) }

func recordFile(kind recordKind, path string) string {
	sum := sha256.Sum256([]byte(path))
	return string(kind) + "-" + hex.EncodeToString(sum[:16]) + recordSuffix
}

// put writes a record, over an older one for the same path.
func (j *journal) put(r *record) error {
	r.Schema = recordSchema
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := recordTemp + rand.Text()
	f, err := j.dir.Open(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil && j.sync {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = j.dir.Rename(tmp, j.dir, r.file(), anchor.Replace)
	}
	if err != nil {
		_ = j.dir.Unlink(tmp) // best effort: the next sweep removes it
		return err
	}
	if j.sync {
		return j.dir.Sync()
	}
	return nil
}

// has tells whether a record is there.
func (j *journal) has(kind recordKind, path string) bool {
	_, err := j.dir.Lstat(recordFile(kind, path))
	return err == nil
}

// get reads one record; fs.ErrNotExist when there is none.
func (j *journal) get(kind recordKind, path string) (*record, error) {
	return j.read(recordFile(kind, path))
}

func (j *journal) read(name string) (*record, error) {
	f, err := j.dir.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i, err := anchor.StatFile(f)
	if err != nil {
		return nil, err
	}
	if !i.IsRegular() || i.Size > maxRecord || !ownedByUs(i) {
		return nil, fmt.Errorf("journal record %s is none of ours", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(name, b)
	if err != nil {
		return nil, fmt.Errorf("journal record %s: %w", name, err)
	}
	return r, nil
}

func decodeRecord(name string, b []byte) (*record, error) {
	r := new(record)
	if err := json.Unmarshal(b, r, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	switch {
	case r.Schema != recordSchema:
		return nil, fmt.Errorf("schema %d", r.Schema)
	case r.Kind != recordScratch && r.Kind != recordParent:
		return nil, fmt.Errorf("kind %q", r.Kind)
	case r.file() != name:
		return nil, errors.New("it is not about what its name says")
	case !filepath.IsAbs(r.Path) || filepath.Clean(r.Path) != r.Path:
		return nil, fmt.Errorf("path %q", r.Path)
	}
	return r, nil
}

// drop removes a record; absent is success.
func (j *journal) drop(kind recordKind, path string) error {
	err := j.dir.Unlink(recordFile(kind, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// staleTemp is when a temporary record has certainly lost its writer, which
// needs it for milliseconds.
const staleTemp = time.Hour

// each calls f with every record, or with the name and error of one that
// cannot be read, and removes temporary files that killed writers left.
func (j *journal) each(f func(name string, r *record, err error)) error {
	s, err := j.dir.Stream()
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		es, err := s.Next(256)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range es {
			if !strings.HasSuffix(e.Name, recordSuffix) {
				j.dropStale(e.Name)
				continue
			}
			r, err := j.read(e.Name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // cleaned meanwhile
			}
			f(e.Name, r, err)
		}
	}
}

func (j *journal) dropStale(name string) {
	if !strings.HasPrefix(name, recordTemp) {
		return
	}
	if i, err := j.dir.Lstat(name); err == nil && time.Since(time.Unix(0, i.Mtime)) > staleTemp {
		_ = j.dir.Unlink(name) // it is tried again at the next sweep
	}
}
