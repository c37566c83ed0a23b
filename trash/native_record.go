package trash

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// A record is an information file as in a freedesktop trash, with three keys of
// our own. It is written before the system is asked, and gets the landing place
// as its last line afterwards: a line counts when it is whole, so that there is
// a whole record at any moment. One without landing place says that something
// was about to be trashed, and that it is not known what became of it.
const (
	kindKey    = "X-Wattle-Type="
	inodeKey   = "X-Wattle-Inode="
	landingKey = "X-Wattle-Landing="
)

// kept is one record.
type kept struct {
	id      string
	info    record.Info
	kind    string // as in Entry.Type
	landing string // absolute and clean; "" when the system has not said
	// inode is the number of the data in its file system, 0 when it has none.
	// Devices are not kept: their numbers change when they are mounted again.
	inode uint64
	mtime time.Time // of the record
}

func (k *kept) format() []byte {
	b := k.info.Format()
	b = append(b, kindKey+k.kind+"\n"+inodeKey+strconv.FormatUint(k.inode, 10)+"\n"...)
	if k.landing != "" {
		b = append(b, landingLine(k.landing)...)
	}
	return b
}

func landingLine(path string) string { return landingKey + url.PathEscape(path) + "\n" }

func parseKept(id string, b []byte) (*kept, error) {
	info, err := record.ParseInfo(b)
	if err != nil {
		return nil, err
	}
	if !plainPath(info.Path) {
		return nil, errors.New("its path is not absolute and clean")
	}
	k := &kept{id: id, info: info, kind: "other"}
	var hasKind, hasInode, hasLanding bool
	for line := range strings.SplitAfterSeq(string(b), "\n") {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		// Of a key that is there twice the first counts, as in ParseInfo.
		if v, ok := strings.CutPrefix(line, kindKey); ok && !hasKind {
			k.kind, hasKind = v, true
		}
		if v, ok := strings.CutPrefix(line, inodeKey); ok && !hasInode {
			if k.inode, err = strconv.ParseUint(v, 10, 64); err != nil {
				return nil, errors.New("its inode is not a number")
			}
			hasInode = true
		}
		if v, ok := strings.CutPrefix(line, landingKey); ok && !hasLanding {
			if k.landing, err = url.PathUnescape(v); err != nil || !plainPath(k.landing) {
				return nil, errors.New("its landing place is not absolute and clean")
			}
			hasLanding = true
		}
	}
	switch k.kind {
	case "file", "directory", "symlink", "other":
	default:
		return nil, fmt.Errorf("its type %q is none", k.kind)
	}
	return k, nil
}

// plainPath tells whether a path names an entry of a directory.
func plainPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && filepath.Dir(path) != path && strings.IndexByte(path, 0) < 0
}

// is tells whether something is the data of the record.
func (k *kept) is(i anchor.Info) bool {
	return typeOf(i) == k.kind && (k.inode == 0 || i.Ino == 0 || i.Ino == k.inode)
}

// recordsPath is where the records are: wattle/trash in the data directory.
func (n *native) recordsPath() string { return filepath.Join(n.home, "wattle", "trash") }

// recordsReal is where that leads, or would lead if it were made.
func (n *native) recordsReal() string {
	there, rest := n.recordsPath(), ""
	for {
		real, err := filepath.EvalSymlinks(there)
		if err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(there) == there {
			return n.recordsPath()
		}
		there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest)
	}
}

// records is the opened directory of the records.
type records struct {
	n   *native
	dir *anchor.Dir
}

// openRecords opens the directory, and makes what is missing with create. It is
// used only if nobody else may write to it.
func (n *native) openRecords(create bool) (*records, error) {
	// Links above the data directory lead where they lead; beneath it there are
	// none.
	there, rest := n.home, filepath.Join("wattle", "trash")
	for {
		real, err := filepath.EvalSymlinks(there)
		if err == nil {
			there = real
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || !create || filepath.Dir(there) == there {
			return nil, err
		}
		there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest)
	}
	top, err := anchor.OpenDir(there)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	var dir *anchor.Dir
	if create {
		dir, err = top.MkdirAll(rest, 0o700)
	} else {
		dir, err = top.Walk(rest)
	}
	if err != nil {
		return nil, err
	}
	i, err := dir.Stat()
	if err == nil && n.sys.owners() && (i.UID != n.uid || i.Perm()&0o022 != 0) {
		err = fmt.Errorf("%s: it belongs to user %d, mode %04o: somebody else may write to it", dir.Path(), i.UID, i.Perm())
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return &records{n, dir}, nil
}

func (r *records) close() { r.dir.Close() }

const idLength = 20

// newID makes the name of a record. It is opaque, and lower case, for file
// systems that do not tell cases apart.
func newID() string { return strings.ToLower(rand.Text())[:idLength] }

// isID tells whether s can be the name of a record.
func isID(s string) bool {
	return len(s) == idLength && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// write makes the file of a record exclusively, whole and on the disk.
func (r *records) write(k *kept) error {
	file, err := r.dir.Open(k.id+record.InfoSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(k.format())
	if err == nil && r.n.sync {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = r.drop(k.id) // what stays says itself that it is no record
		return err
	}
	r.flush()
	return nil
}

// landed adds the landing place. A record that went meanwhile is made again:
// whoever empties the trash may take it for a leftover.
func (r *records) landed(k *kept, landing string) error {
	k.landing = landing
	file, err := r.dir.Open(k.id+record.InfoSuffix, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return r.write(k)
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(landingLine(landing))
	if err == nil && r.n.sync {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if _, err := r.dir.Lstat(k.id + record.InfoSuffix); errors.Is(err, fs.ErrNotExist) {
		return r.write(k)
	}
	return nil
}

func (r *records) drop(id string) error {
	err := r.dir.Unlink(id + record.InfoSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		r.flush()
	}
	return err
}

// flush makes names durable where that is wanted. A failure loses nothing but
// that.
func (r *records) flush() {
	if r.n.sync {
		_ = r.dir.Sync()
	}
}

// read gives one record; fs.ErrNotExist when there is none. With another error
// it may still have id and mtime.
func (r *records) read(id string) (*kept, error) {
	bad := &kept{id: id, kind: "other"}
	name := id + record.InfoSuffix
	i, err := r.dir.Lstat(name)
	if err != nil {
		return bad, err
	}
	bad.mtime = time.Unix(0, i.Mtime)
	if !i.IsRegular() {
		return bad, errors.New("the record is not a regular file")
	}
	file, err := r.dir.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return bad, err
	}
	defer file.Close()
	// What is longer is refused by the parser.
	b, err := io.ReadAll(io.LimitReader(file, record.MaxInfo+1))
	if err != nil {
		return bad, err
	}
	k, err := parseKept(id, b)
	if err != nil {
		return bad, err
	}
	k.mtime = bad.mtime
	return k, nil
}

// each calls visit with the id of every record.
func (r *records) each(ctx context.Context, visit func(id string) error) error {
	return stream(ctx, r.dir, func(e anchor.Entry) error {
		if id, ok := strings.CutSuffix(e.Name, record.InfoSuffix); ok && isID(id) {
			return visit(id)
		}
		return nil
	})
}

// presence is what lies at a place, compared with what should.
type presence int

const (
	gone   presence = iota // nothing
	itself                 // the thing
	other                  // another thing
	hidden                 // it cannot be looked at
)

// landingOf opens the directory in which the data of a record is, and tells
// what is there. dir is nil unless there is something.
func landingOf(landing string, is func(anchor.Info) bool) (dir *anchor.Dir, i anchor.Info, p presence, err error) {
	at, err := filepath.EvalSymlinks(filepath.Dir(landing))
	if err == nil {
		dir, err = anchor.OpenDir(at)
	}
	if err == nil {
		i, err = lookAt(dir, filepath.Base(landing))
	}
	switch {
	case err == nil && is(i):
		return dir, i, itself, nil
	case err == nil:
		return dir, i, other, nil
	}
	if dir != nil {
		dir.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, i, gone, err
	}
	return nil, i, hidden, err
}

// entry is what callers see of a record.
func (k *kept) entry(i anchor.Info, s record.State) record.Entry {
	at := k.landing
	e := record.Entry{ID: k.id, OriginalPath: k.info.Path, Type: k.kind, State: s}
	if at == "" {
		at = k.info.Path // where it may still be
	} else {
		e.TrashDir = filepath.Dir(at)
	}
	if e.Name = k.id; at != "" {
		e.Name = filepath.Base(at)
	}
	if !k.info.Deleted.IsZero() {
		e.DeletionDate = record.Date(k.info.Deleted)
	}
	if s == record.OK && i.IsRegular() {
		e.Size = &i.Size
	}
	return e
}
