//go:build !linux || portable

package pinned

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// File is one pinned file. One goroutine uses it at a time.
type File struct {
	// Info is what the file was when it was pinned.
	Info anchor.Info

	name string
	read *os.File // nil: not a regular file, or not readable
	err  error    // why it is not readable
}

// Pin looks at the entry and opens it when it is a regular file.
func Pin(dir *anchor.Dir, name string) (*File, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	p := &File{Info: info, name: name}
	if !info.IsRegular() {
		return p, nil
	}
	p.read, p.err = dir.Open(name, os.O_RDONLY|nonblock, 0)
	if p.err != nil {
		return p, nil
	}
	// What was opened is no link and lay there; whether it is what was looked
	// at first does not matter.
	opened, err := anchor.StatFile(p.read)
	if err == nil && !opened.IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ESTALE}
	}
	if err != nil {
		p.read.Close()
		return nil, err
	}
	p.Info = opened
	return p, nil
}

// Look describes the entry called name as [Pin] would: Windows gives an
// identity to open files only.
func Look(dir *anchor.Dir, name string) (anchor.Info, error) {
	p, err := Pin(dir, name)
	if err != nil {
		return anchor.Info{}, err
	}
	defer p.Close()
	return p.Info, nil
}

// Close releases the handle.
func (p *File) Close() {
	if p.read != nil {
		p.read.Close()
	}
}

// Handle is the open file, nil when it is not readable. It must not be closed.
func (p *File) Handle() *os.File { return p.read }

// Stat describes the pinned file as it is now.
func (p *File) Stat() (anchor.Info, error) {
	if p.read == nil {
		return p.Info, nil
	}
	return anchor.StatFile(p.read)
}

// Open says why the file is not readable, if so.
func (p *File) Open() error { return p.err }

// ReadAt reads from a place; io.EOF at the end.
func (p *File) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.read.ReadAt(b, off)
	if n > 0 {
		err = nil
	}
	return n, err
}

// CanWrite looks at the permission bits only.
func (p *File) CanWrite() error {
	if p.Info.Perm()&0o222 == 0 {
		return &fs.PathError{Op: "access", Path: p.name, Err: syscall.EACCES}
	}
	return nil
}

// Carry gives to the mode of from, and owner and group where permitted.
// Extended attributes and access lists are not carried over on this system.
func (p *File) Carry(from anchor.Info, to *os.File) (lost []string, err error) {
	return carry(from, to)
}
