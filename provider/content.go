package provider

import (
	"crypto/sha256"
	"errors"
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
	if err := p.Open(); err != nil {
		return out, err
	}
	c.at("opened")
	if err := c.pass(p, r, &out); err != nil || out.over && !r.toEnd {
		return out, err
	}
	after, err := p.Stat()
	if err != nil {
		return out, err
	}
	s := stampOf(c.clock, p.Info)
	if out.stable = s == stampOf(c.clock, after); out.stable {
		c.known.record(s, out.sum)
	}
	return out, nil
}

// pass reads. The size is a hint only: files of the kernel have content and
// size 0, and a sparse file may only claim to be large.
func (c *call) pass(p *pin, r reading, out *content) error {
	var kept strings.Builder
	if want := p.Info.Size; r.keep != 0 && (r.keep < 0 || want <= r.keep) {
		kept.Grow(int(min(want, 64<<20)))
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	h := sha256.New()
	for {
		if err := c.alive(); err != nil {
			return err
		}
		n, err := p.ReadAt(buf[:], out.size)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if r.accept != nil {
			if err := r.accept(buf[:n], out.size); err != nil {
				return err
			}
		}
		out.size += int64(n)
		h.Write(buf[:n])
		switch {
		case out.over:
		case r.keep >= 0 && out.size > r.keep:
			out.over = true
			kept = strings.Builder{}
			if !r.toEnd {
				return nil
			}
		default:
			kept.Write(buf[:n])
		}
		if n < len(buf) && out.size == p.Info.Size {
			break // a short read at the expected end: nothing more to ask for
		}
	}
	h.Sum(out.sum[:0])
	out.text = kept.String()
	return nil
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
