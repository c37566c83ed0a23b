package provider

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"strings"
	"sync"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/provider/internal/pinned"
)

// chunk is how much is read or written between two looks at the context.
const chunk = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// pin is a pinned file and the clock right before its state was taken.
type pin struct {
	*pinned.File
	made int64
}

func (c *call) pin(dir *anchor.Dir, name string) (*pin, error) {
	made := c.clock.Now()
	p, err := pinned.Pin(dir, name)
	if err != nil {
		return nil, err
	}
	return &pin{File: p, made: made}, nil
}

// content is one pass over a pinned file, from its first byte to its end.
type content struct {
	// info is what the file was when it was pinned.
	info anchor.Info
	// text are the bytes, if they were to be kept and were not too many.
	text string
	over bool // more bytes than were to be kept
	size int64
	sum  digest
	// stable: the file's stamp was still that of info after the pass, so that
	// sum belongs to it.
	stable bool
	made   int64 // of the pin
}

// reading says how a pass treats what it reads.
type reading struct {
	// keep is how many bytes are kept at most; below 0 any number.
	keep int64
	// toEnd reads on for the hash when keep is exceeded.
	toEnd bool
	// accept may refuse the bytes read so far, at the end of each chunk.
	accept func(part []byte, off int64) error
}

// read opens a pinned regular file and passes over it.
func (c *call) read(p *pin, r reading) (content, error) {
	out := content{made: p.made, info: p.Info}
	if err := c.openPinned(p); err != nil {
		return out, err
	}
	if err := c.pass(p, r, &out); err != nil || out.over && !r.toEnd {
		return out, err
	}
	return out, c.confirm(p, &out)
}

func (c *call) openPinned(p *pin) error {
	if err := p.Open(); err != nil {
		return err
	}
	c.at("opened")
	return nil
}

// confirm, after the last byte, tells whether sum belongs to the state in which
// the file was pinned, and remembers it then.
func (c *call) confirm(p *pin, out *content) error {
	after, err := p.Stat()
	if err != nil {
		return err
	}
	s := stampOf(c.clock, p.Info)
	if out.stable = s == stampOf(c.clock, after); out.stable {
		c.known.record(s, out.sum)
	}
	return nil
}

// pass reads. A sparse file may only claim to be large, so the size makes no
// more than the first room for it.
func (c *call) pass(p *pin, r reading, out *content) error {
	var kept strings.Builder
	if want := p.Info.Size; r.keep != 0 && (r.keep < 0 || want <= r.keep) {
		kept.Grow(int(min(want, 64<<20)))
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	cur := c.scanner(p, true)
	for {
		b := buf[:]
		if left := r.keep - out.size; r.keep >= 0 && !r.toEnd && left < int64(len(b)) {
			b = b[:left+1] // one more tells that it is too large
		}
		n, err := cur.next(b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if r.accept != nil {
			if err := r.accept(b[:n], out.size); err != nil {
				return err
			}
		}
		out.size += int64(n)
		switch {
		case out.over:
		case r.keep >= 0 && out.size > r.keep:
			out.over = true
			kept = strings.Builder{}
			if !r.toEnd {
				return nil
			}
		default:
			kept.Write(b[:n])
		}
	}
	out.sum = cur.digest()
	out.text = kept.String()
	return nil
}

// scanner goes over an opened file once, from its first byte to its end. The
// size is a hint only: files of the kernel have content and size 0.
type scanner struct {
	*call
	p   *pin
	off int64     // bytes read so far
	sum hash.Hash // nil: the content is not hashed
	end bool
}

func (c *call) scanner(p *pin, hashed bool) *scanner {
	r := &scanner{call: c, p: p}
	if hashed {
		r.sum = sha256.New()
	}
	return r
}

// next reads on into b, which is not empty; io.EOF at the end. It looks at the
// context first.
func (r *scanner) next(b []byte) (int, error) {
	if err := r.alive(); err != nil {
		return 0, err
	}
	if r.end {
		return 0, io.EOF
	}
	n, err := r.p.ReadAt(b, r.off)
	if err != nil {
		return 0, err
	}
	r.off += int64(n)
	if r.sum != nil {
		r.sum.Write(b[:n])
	}
	// A short read at the expected end: nothing more to ask for.
	r.end = n < len(b) && r.off == r.p.Info.Size
	return n, nil
}

func (r *scanner) digest() (sum digest) {
	if r.sum != nil {
		r.sum.Sum(sum[:0])
	}
	return sum
}

// whole gives the version of the file after its last byte: as [call.token], and
// without a hash when there was none to make.
func (r *scanner) whole() (Version, error) {
	read := content{made: r.p.made, info: r.p.Info, size: r.off, sum: r.digest()}
	if r.sum != nil {
		if err := r.confirm(r.p, &read); err != nil {
			return "", err
		}
	}
	return r.token(read).version(), nil
}

// token is the version of the file that was read to its end.
func (c *call) token(r content) token {
	s := stampOf(c.clock, r.info)
	t := token{stamp: s, racy: racy(c.clock, r.made, s)}
	if r.stable {
		t.hashed, t.sum = true, r.sum
	}
	return t
}
