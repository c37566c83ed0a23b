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

// content is one pass over a pinned file, from its first byte to its end.
type content struct {
	// info is what the file was before the pass.
	info anchor.Info
	// text are the bytes, if they were to be kept and were not too many.
	text string
	over bool // more bytes than were to be kept
	size int64
	sum  digest
	// stable: the file's stamp was the same before and after, so that sum
	// belongs to it.
	stable bool
	// made is the clock before the pass.
	made int64
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

// read opens a pinned regular file and passes over it. st_size is a hint only:
// files of the kernel have content and size 0.
func (c *call) read(p *pinned.File, r reading) (content, error) {
	out := content{made: c.clock.Now()}
	if err := p.Open(); err != nil {
		return out, err
	}
	info, err := p.Stat()
	if err != nil {
		return out, err
	}
	out.info = info
	c.at("opened")
	var kept strings.Builder
	if want := info.Size; r.keep != 0 && (r.keep < 0 || want <= r.keep) {
		kept.Grow(int(min(want, 64<<20))) // a sparse file may only claim to be large
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	h := sha256.New()
	for {
		if err := c.alive(); err != nil {
			return out, err
		}
		n, err := p.ReadAt(buf[:], out.size)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, err
		}
		if r.accept != nil {
			if err := r.accept(buf[:n], out.size); err != nil {
				return out, err
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
				return out, nil
			}
		default:
			kept.Write(buf[:n])
		}
	}
	h.Sum(out.sum[:0])
	out.text = kept.String()
	after, err := p.Stat()
	if err != nil {
		return out, err
	}
	out.stable = stampOf(c.clock, info) == stampOf(c.clock, after)
	if out.stable {
		c.known.record(stampOf(c.clock, info), out.sum)
	}
	return out, nil
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
