package provider

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// staged is a new file that has all of its content and is not published yet.
type staged struct {
	dir  *anchor.Dir
	f    *os.File
	name string // empty: it has no name
	sum  digest
	size int64
	// info is the file as it was when it was complete.
	info anchor.Info
	// keep: when it replaces a file, that one is not removed: name is then the
	// hidden name of the replaced file, old its identity, and discard removes
	// it. copied: what is kept is a copy, or a second name, of a file that was
	// replaced without an exchange.
	keep   bool
	old    anchor.Info
	copied bool
	// names is how many names it had before it was staged: none, unless it is
	// a file that is moved.
	names uint64
}

// hiddenName is short, and independent of the target's name, which may be as
// long as names can be. 80 bits: nobody meets it by chance.
func hiddenName() string { return TempPrefix + rand.Text()[:16] }

// stage writes parts into a new file in dir. unnamed asks for a file without a
// name; errors.ErrUnsupported where there are none.
func (c *call) stage(dir *anchor.Dir, perm uint32, unnamed bool, parts ...string) (*staged, error) {
	s := &staged{dir: dir}
	var err error
	switch {
	case unnamed && c.lacks.unnamed:
		return nil, errors.ErrUnsupported
	case unnamed:
		s.f, err = dir.OpenUnnamed(perm)
	default:
		s.name = hiddenName()
		s.f, err = dir.Open(s.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	}
	if err != nil {
		return nil, err
	}
	if err := c.fill(s, parts); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

func (c *call) fill(s *staged, parts []string) error {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	h := sha256.New()
	var total int64
	for _, part := range parts {
		for len(part) > 0 {
			if err := c.alive(); err != nil {
				return err
			}
			n := copy(buf[:], part)
			part = part[n:]
			h.Write(buf[:n])
			if _, err := s.f.Write(buf[:n]); err != nil {
				return err
			}
			total += int64(n)
		}
	}
	h.Sum(s.sum[:0])
	s.size = total
	return nil
}

// pour fills a staged file with the content of a pinned one that is open.
func (c *call) pour(s *staged, p *pin) error {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	cur := c.scanner(p, true)
	for {
		n, err := cur.next(buf[:])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if _, err := s.f.Write(buf[:n]); err != nil {
			return err
		}
	}
	s.size, s.sum = cur.off, cur.digest()
	return nil
}

// finish makes content and metadata durable, and makes sure that all of it is
// there. Nothing may be written after it.
func (s *staged) finish() error {
	if err := s.f.Sync(); err != nil {
		return err
	}
	info, err := anchor.StatFile(s.f)
	if err == nil && info.Size != s.size {
		err = &fs.PathError{Op: "write", Err: syscall.EIO}
	}
	s.info = info
	return err
}

// discard closes the file and takes its name away, if it still has one.
func (s *staged) discard() {
	s.f.Close()
	if s.name != "" {
		_ = s.dir.Unlink(s.name)
	}
}

// published is the version of the file that was published: of the content that was staged,
// whatever somebody made of it since. It is racy by nature: the file was
// written just now.
func (c *call) published(s *staged, path string) Version {
	now, err := anchor.StatFile(s.f)
	if err == nil && now.Nlink == 0 {
		return missingVersion(TargetKey(path))
	}
	// Publishing changes ctime. A change of size or mtime is somebody else's:
	// the older stamp then differs from the file, and its hash decides.
	if err != nil || now.Size != s.info.Size || now.Mtime != s.info.Mtime {
		now = s.info
	} else {
		c.known.record(stampOf(c.clock, now), s.sum)
	}
	return token{stamp: stampOf(c.clock, now), racy: true, hashed: true, sum: s.sum}.version()
}

// publishNew gives the content a name that must not be taken: EEXIST if it is.
// An unnamed file is linked, so that no other name ever shows; else a hidden
// one is renamed, or linked, without replacing. (A watcher of the directory is
// told of writes to an unnamed file under the kernel's own name for it, "#" and
// the inode number, which can never be opened.)
func (c *call) publishNew(dir *anchor.Dir, name string, mode *uint32, parts ...string) (*staged, error) {
	for _, unnamed := range []bool{true, false} {
		s, err := c.stageNew(dir, mode, unnamed, nil, parts...)
		if unnamed && noUnnamed(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.at("staged")
		if err := c.alive(); err != nil {
			s.discard()
			return nil, err
		}
		if err = c.giveName(s, name); err == nil {
			return s, nil
		}
		s.discard()
		if unnamed && !final(err) {
			continue
		}
		return nil, err
	}
	panic("unreachable: the second round always returns")
}

// noUnnamed: the file system has no files without a name.
func noUnnamed(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EOPNOTSUPP)
}

// stageNew stages a file that gets a name of its own: with an exact mode, or
// the kernel's when mode is nil. dress, if set, gives it its metadata instead.
func (c *call) stageNew(dir *anchor.Dir, mode *uint32, unnamed bool, dress func(*os.File) error, parts ...string) (*staged, error) {
	perm := uint32(0o666)
	if mode != nil || dress != nil {
		perm = 0o600
	}
	s, err := c.stage(dir, perm, unnamed, parts...)
	if err != nil {
		return nil, err
	}
	switch {
	case dress != nil:
		err = dress(s.f)
	case mode != nil:
		err = s.f.Chmod(fs.FileMode(*mode & 0o777))
	}
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// final: errors that another way of publishing would meet as well.
func final(err error) bool {
	for _, e := range []error{syscall.EEXIST, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EROFS, syscall.EIO, syscall.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// giveName publishes. It never replaces.
func (c *call) giveName(s *staged, name string) error {
	if s.name == "" {
		return s.dir.LinkFile(s.f, name)
	}
	if err := c.rename(s.dir, s.name, name); err != nil {
		return err
	}
	s.name = ""
	return nil
}

// rename gives an entry that is no directory another name in its directory. It
// never replaces: EEXIST.
func (c *call) rename(dir *anchor.Dir, from, to string) error {
	err := errors.ErrUnsupported
	if !c.lacks.noReplace {
		err = dir.Rename(from, dir, to, anchor.NoReplace)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		if err = dir.Link(from, dir, to); err == nil {
			_ = dir.Unlink(from)
		}
	}
	return err
}
