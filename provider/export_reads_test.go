package provider

// Window finds the lines of a text that comes in pieces; total are all lines.
func Window(pieces []string, w LineWindow, l WindowLimits) (o ReadOutcome) {
	lines := newLineWindow(w, l)
	for _, p := range pieces {
		lines.feed([]byte(p))
	}
	o.Offset, o.TotalLines = w.Offset, lines.end()
	o.Lines, o.TruncatedByBytes = lines.lines, lines.full
	o.Footer = footer(o, l.Bytes)
	return o
}

// Text puts the characters of a text together that is read in chunks of these
// sizes, over and over. bad is the offset of a byte that is no UTF-8, or -1.
func Text(content string, sizes []byte) (pieces []string, bom bool, bad int) {
	r := runes{buf: make([]byte, 64)}
	for i, off := 0, 0; off < len(content); i++ {
		room := r.room()
		n := 1
		if len(sizes) > 0 {
			n = int(sizes[i%len(sizes)])%len(room) + 1
		}
		n = copy(room[:n], content[off:])
		piece, bad := r.take(n)
		if bad >= 0 {
			return nil, false, off - r.rest + bad
		}
		off += n
		if len(piece) > 0 {
			pieces = append(pieces, string(piece))
		}
	}
	if len(r.tail) > 0 {
		return nil, false, len(content) - len(r.tail)
	}
	return pieces, r.bom, -1
}

// Page gives a page of names, and how many were held at most.
func Page(names []string, after string, most int) (page []string, held int) {
	p := pageOf(after, most)
	for _, n := range names {
		p.add(n)
		held = max(held, len(p.names))
	}
	return p.sorted(), held
}

func pageOf(after string, most int) page { return page{after: after, most: most} }
