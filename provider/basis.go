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

// previous looks at the content of the file before it is replaced: for the
// basis `before` (fs-contract 4.2), for its hash, and for its byte-order mark.
// Losing the basis never fails the write; not being able to hash a file whose
// guard needs it does.
func (w *writing) previous(p *pin, needHash bool) (previous, error) {
	var out previous
	keep := int64(0)
	if w.wantsBasis(p.Info.Size) {
		keep = p.Info.Size
	}
	if keep == 0 && !needHash && p.Info.Size > 0 {
		out.bom = hasBOM(p)
		return out, nil
	}
	read, err := w.read(p, reading{keep: keep, toEnd: needHash})
	if aborted := w.alive(); aborted != nil {
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
func (w *writing) wantsBasis(size int64) bool {
	return int64(len(w.content)) < w.basisMax && size < w.basisMax
}

// basis is the text of a pass, nil unless it is whole and text.
func basis(read content) *string {
	if read.over || read.size != read.info.Size || strings.IndexByte(read.text, 0) >= 0 || invalidUTF8(read.text) >= 0 {
		return nil
	}
	text, _ := cutBOM(read.text)
	text = toLF(text)
	return &text
}

// basisOf is the basis of a file that was replaced in another state than the
// one seen before. The publication has begun: nothing cancels it.
func (w *writing) basisOf(p *pin) *string {
	now, err := p.Stat()
	if err != nil || !w.wantsBasis(now.Size) {
		return nil
	}
	p.Info = now
	sure := *w.call
	sure.ctx = context.WithoutCancel(w.ctx)
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
