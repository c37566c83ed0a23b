package provider

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// stride is how much is copied by the kernel between two looks at the context.
const stride = 8 << 20

// fileTries bounds how often a file that changes while it is copied is copied
// again.
const fileTries = 4

// fileInto gives an empty file the content and the metadata of a pinned one.
// The content is that of one moment: a file that changes meanwhile is copied
// anew. c names the file in errors.
func (y *copying) fileInto(c *call, p *pin, f *os.File) (int64, error) {
	if err := p.Open(); err != nil {
		return 0, c.ours(moved(err))
	}
	for range fileTries {
		n, err := y.contentInto(c, p, f)
		if err != nil {
			return n, err
		}
		after, err := p.Stat()
		if err != nil {
			return n, c.ours(err)
		}
		if after.Size == p.Info.Size && after.Mtime == p.Info.Mtime {
			lost, err := p.Carry(after, f)
			if err != nil {
				return n, c.ours(err)
			}
			y.lost.add(lost)
			if anchor.SetMtime(f, after.Mtime) != nil {
				y.lost.add([]string{"mtime"})
			}
			return n, nil
		}
		p.Info = after
		if err := f.Truncate(0); err != nil {
			return n, y.to.ours(err)
		}
	}
	return 0, c.fail(CodeIOError, "it kept changing while it was copied")
}

// contentInto copies all bytes and leaves holes out. The size is a hint where it
// is 0: files of the kernel have content all the same. Elsewhere a file that
// became longer has changed, which its state tells.
func (y *copying) contentInto(c *call, p *pin, f *os.File) (off int64, err error) {
	for size := p.Info.Size; size == 0 || off < size; {
		if err := c.alive(); err != nil {
			return off, err
		}
		n := 0
		if size <= chunk {
			n, err = y.chunkInto(c, p, f, off)
		} else {
			from, to := p.Data(off)
			if from >= size { // a hole at the end
				return size, y.to.ours(f.Truncate(size))
			}
			off = from
			n, err = p.CopyRange(f, off, int(min(to-off, stride)))
			if errors.Is(err, errors.ErrUnsupported) {
				n, err = y.chunkInto(c, p, f, off)
			}
		}
		if err != nil {
			return off, y.to.ours(err)
		}
		if n == 0 {
			break
		}
		off += int64(n)
	}
	return off, nil
}

// chunkInto copies one chunk through memory; 0 at the end.
func (y *copying) chunkInto(c *call, p *pin, f *os.File, off int64) (int, error) {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	n, err := p.ReadAt(buf[:], off)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	if err != nil {
		return 0, c.ours(err)
	}
	if _, err := f.WriteAt(buf[:n], off); err != nil {
		return 0, y.to.ours(err)
	}
	return n, nil
}

// entryInto copies one entry of a tree that is no directory to the name it has
// there. again: it is a directory now.
func (y *copying) entryInto(c *call, src *anchor.Dir, name string, dst *anchor.Dir) (again bool, err error) {
	p, err := y.from.call.pin(src, name)
	if absent(err) {
		return false, nil // it went before it was copied
	}
	if err != nil {
		return false, c.ours(err)
	}
	defer p.Close()
	switch i := p.Info; {
	case i.IsDir():
		return true, nil
	case !i.SameMount(y.p.Info):
		return false, c.failed(CodeIOError, saysMounted, syscall.EXDEV)
	case i.IsSymlink():
		err = y.linkInto(src, name, i, dst, name)
	case i.IsRegular():
		err = y.newFile(c, p, dst, name)
	default:
		return false, c.notRegular()
	}
	if err == nil {
		y.files++
	}
	return false, err
}

const saysMounted = "another file system is mounted there; copying goes into none"

func (y *copying) newFile(c *call, p *pin, dst *anchor.Dir, name string) error {
	f, err := dst.Open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return y.to.ours(err)
	}
	defer f.Close()
	n, err := y.fileInto(c, p, f)
	if err != nil {
		return err
	}
	y.bytes += n
	return pinned.SyncAlone(f)
}
