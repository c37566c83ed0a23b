package provider

import (
	"context"
	"strings"
)

// previous is what is known of the file that a write replaces.
type previous struct {
	read     content
	complete bool    // read was a whole pass
	before   *string // the basis, nil when there is none
	bom      bool
}

// judged compares a pinned regular file with a guard, nil for none, and gives the
// state that was found and what is known of its content. strict: no other state
// may be replaced or removed. size is that of the content which comes in its
// place.
func (c *call) judged(p *pin, guard *VersionGuard, strict bool, size int64) (expected, previous, error) {
	how, sum := fresh, digest{}
	if guard != nil {
		how, sum = c.judge(guard.Version, stampOf(c.clock, p.Info))
	}
	if how == stale {
		return expected{}, previous{}, c.stale(saysChanged)
	}
	c.at("judged")
	old, err := c.previous(p, how == byHash, size)
	switch {
	case err != nil:
		return expected{}, previous{}, err
	case how == byHash && old.read.sum != sum:
		return expected{}, previous{}, c.stale(saysChanged)
	case old.complete && strict && !old.read.stable:
		return expected{}, previous{}, errMoved{err: errChanged, code: CodeStaleVersion}
	}
	want := expected{p: p, info: p.Info, strict: strict}
	if old.complete {
		want.sum, want.hashed = old.read.sum, true
	}
	return want, old, nil
}

// previous looks at the content of the file before it is replaced or removed:
// for the basis `before` (fs-contract 4.2), for its hash, and for its byte-order
// mark. Losing the basis never fails the call; not being able to hash a file
// whose guard needs it does.
func (c *call) previous(p *pin, needHash bool, size int64) (previous, error) {
	var out previous
	keep := int64(0)
	if c.wantsBasis(p.Info.Size, size) {
		keep = p.Info.Size
	}
	if keep == 0 && !needHash && p.Info.Size > 0 {
		out.bom = hasBOM(p)
		return out, nil
	}
	read, err := c.read(p, reading{keep: keep, toEnd: needHash})
	if aborted := c.alive(); aborted != nil {
		return out, aborted
	}
	if err != nil {
		if needHash {
			return out, moved(err)
		}
		return out, nil
	}
	out.read = read
	out.complete = !read.over || needHash
	out.before = basis(read)
	if _, out.bom = cutBOM(read.text); read.over {
		out.bom = hasBOM(p)
	}
	return out, nil
}

// wantsBasis: both contents strictly below the limit, in bytes.
func (c *call) wantsBasis(old, now int64) bool { return old < c.basisMax && now < c.basisMax }

// basis is the text of a pass, nil unless it is whole and text.
func basis(read content) *string {
	if read.over || read.size != read.info.Size || strings.IndexByte(read.text, 0) >= 0 || invalidUTF8(read.text) >= 0 {
		return nil
	}
	text, _ := cutBOM(read.text)
	text = toLF(text)
	return &text
}

// basisOf is the basis of a file that was replaced, by a content of that size, in
// another state than the one seen before. The publication has begun: nothing
// cancels it.
func (c *call) basisOf(p *pin, size int64) *string {
	now, err := p.Stat()
	if err != nil || !c.wantsBasis(now.Size, size) {
		return nil
	}
	p.Info = now
	sure := *c
	sure.ctx = context.WithoutCancel(c.ctx)
	read, err := sure.read(p, reading{keep: now.Size})
	if err != nil {
		return nil
	}
	return basis(read)
}

func hasBOM(p *pin) bool {
	if p.Open() != nil {
		return false
	}
	var b [len(bom)]byte
	n, err := p.ReadAt(b[:], 0)
	return err == nil && string(b[:n]) == bom
}
