package patch

import (
	"cmp"
	"slices"
	"strings"
)

// Result is a patched text.
type Result struct {
	Text string
	// InsertedAt has, for each hunk that only adds, in the order of the hunks,
	// the line of the new text, from 1, where its first line stands.
	InsertedAt []int
}

// Apply applies the hunks of one file to its text, all or none. The text is
// UTF-8 without byte-order mark and may have any line ends; bytes outside of
// the changed lines stay (facts/patch.md sections 4 and 5). No hunks: the text
// itself, which with o.Codex gets a final line end.
//
// The error is a *[Failure] for a hunk that does not fit, or [ErrTooLarge].
// Hunks that [Check] would refuse do not harm: their kinds are not believed,
// and a line break in an added line is written as it stands.
//
// Memory: the new text, and at most 20 bytes a line of the text.
func Apply(text string, hunks []Hunk, o Options) (Result, error) {
	if uint64(len(text)) > maxText {
		return Result{}, ErrTooLarge
	}
	l := locator{matcher: matcher{file: split(text), hunks: hunks}, codex: o.Codex, pairs: maxPairsAll}
	for i := range hunks {
		if err := l.add(&hunks[i]); err != nil {
			return Result{}, err
		}
	}
	slices.SortStableFunc(l.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	w := writer{file: l.file, codex: o.Codex, limit: o.MaxBytes, insertedAt: make([]int, l.inserted)}
	if err := w.write(l.edits); err != nil {
		return Result{}, err
	}
	r := Result{Text: w.out.String()}
	if l.inserted > 0 {
		r.InsertedAt = w.insertedAt
	}
	return r, nil
}

// edit is a hunk with its place in the file.
type edit struct {
	at    int // the line of the file where it begins
	kinds string
	added []string // its new lines
	// slot is where the writer reports the line, -1 for a hunk that does not
	// only add.
	slot int
}

// locator finds the place of one hunk after the other. It works on the lines of
// the original text only.
type locator struct {
	matcher
	codex    bool
	cursor   int
	pairs    int // what is left for pairing lines
	edits    []edit
	inserted int
}

func (l *locator) add(h *Hunk) error {
	if h.Context != nil {
		block := []string{*h.Context}
		at, ok, err := l.find(block, l.cursor, false)
		if err != nil {
			return err
		}
		if !ok {
			return &Failure{HunkLineNumber: h.LineNumber, Stage: StageContext, SearchStart: l.cursor, Pattern: block}
		}
		l.cursor = at + 1
	}
	cut := cutHunk{old: h.OldLines, added: h.NewLines, kinds: h.kinds(&l.pairs)}
	if len(cut.old) == 0 {
		l.place(l.addition(h, false), cut)
		return nil
	}
	at, ok, err := l.find(cut.old, l.cursor, h.IsEndOfFile)
	if last := len(cut.old) - 1; err == nil && !ok && cut.old[last] == "" {
		cut.drop()
		if last == 0 {
			l.place(l.addition(h, true), cut)
			return nil
		}
		at, ok, err = l.find(cut.old, l.cursor, h.IsEndOfFile)
	}
	if err != nil {
		return err
	}
	if !ok {
		f := &Failure{HunkLineNumber: h.LineNumber, Stage: StageOldLines, SearchStart: l.cursor, Pattern: h.OldLines}
		if h.IsEndOfFile {
			f.SearchStart = max(l.file.len()-len(h.OldLines), 0)
		}
		return f
	}
	l.cursor = at + len(cut.old)
	l.place(at, cut)
	return nil
}

// addition is where a hunk without old lines adds (section 5.2). The cursor
// stays where it is: it counts lines of the original. emptied: it had one, an
// empty line that stands for the end of the region.
func (l *locator) addition(h *Hunk, emptied bool) int {
	end := l.file.len()
	switch {
	case h.IsEndOfFile:
		return end
	case l.codex && emptied:
		// The empty pattern, which fits at the cursor.
		return l.cursor
	case l.codex, h.Context == nil:
		return end
	}
	return l.cursor
}

func (l *locator) place(at int, c cutHunk) {
	e := edit{at: at, kinds: c.kinds, added: c.added, slot: -1}
	if len(c.old) == 0 {
		if len(c.added) == 0 {
			return
		}
		e.slot = l.inserted
		l.inserted++
	}
	l.edits = append(l.edits, e)
}

// cutHunk is a hunk as it is looked for.
type cutHunk struct {
	old, added []string
	kinds      string
}

// drop takes away the empty last old line, which stands for the end of the
// region, and with it an empty last new line (rule M4). A context line that
// loses one of its sides becomes an added or a removed one.
func (c *cutHunk) drop() {
	kinds := []byte(c.kinds)
	lose := func(side, other byte) {
		for i := len(kinds) - 1; i >= 0; i-- {
			switch kinds[i] {
			case side:
				kinds = slices.Delete(kinds, i, i+1)
				return
			case Context:
				kinds[i] = other
				return
			}
		}
	}
	c.old = c.old[:len(c.old)-1]
	lose(Removed, Added)
	if last := len(c.added) - 1; last >= 0 && c.added[last] == "" {
		c.added = c.added[:last]
		lose(Added, Removed)
	}
	c.kinds = string(kinds)
}

// writer puts the new text together.
type writer struct {
	file       *lines
	codex      bool
	limit      int64
	out        strings.Builder
	insertedAt []int
	lines      int // in out

	// The last line in out still lacks its end: it gets end, or that of the
	// file if empty, when another line follows, and at the end unless bare.
	owes bool
	end  string
	bare bool

	ofFile string // the end for new lines where nothing is replaced; "" if not known
}

// write writes the file with the edits, which are sorted and do not overlap.
func (w *writer) write(edits []edit) error {
	size := int64(len(w.file.text))
	for _, e := range edits {
		for _, s := range e.added {
			size += int64(len(s)) + 2
		}
	}
	if w.limit > 0 {
		size = min(size, w.limit)
	}
	w.out.Grow(int(size))
	done := 0
	for _, e := range edits {
		if err := w.keep(done, e.at); err != nil {
			return err
		}
		var err error
		if done, err = w.edit(e); err != nil {
			return err
		}
	}
	if err := w.keep(done, w.file.len()); err != nil {
		return err
	}
	if w.owes && (w.codex || !w.bare) {
		return w.finishLine()
	}
	return nil
}

// edit writes one edit and gives the line of the file where it ends. Lines
// between two context lines are a run: its added lines take the place of its
// removed ones.
func (w *writer) edit(e edit) (int, error) {
	at, added := e.at, e.added
	for i := 0; i < len(e.kinds); {
		if e.kinds[i] == Context {
			if err := w.keep(at, at+1); err != nil {
				return 0, err
			}
			at, added, i = at+1, added[1:], i+1
			continue
		}
		from, n := at, 0
		for ; i < len(e.kinds) && e.kinds[i] != Context; i++ {
			if e.kinds[i] == Removed {
				at++
			} else {
				n++
			}
		}
		if n == 0 {
			continue
		}
		if e.slot >= 0 {
			w.insertedAt[e.slot] = w.lines + 1
		}
		if err := w.add(added[:n], from, at); err != nil {
			return 0, err
		}
		added = added[n:]
	}
	return at, nil
}

// keep copies the lines of the file from i to before j.
func (w *writer) keep(i, j int) error {
	if i == j {
		return nil
	}
	raw := w.file.raw(i, j)
	if err := w.put(raw); err != nil {
		return err
	}
	w.lines += j - i
	// Only the last line of the file can lack its end, and keeps to that.
	w.owes, w.end, w.bare = endOf(raw) == "", "", true
	return nil
}

// add writes lines in place of those of the file from i to before j.
func (w *writer) add(added []string, i, j int) error {
	end := ""
	if !w.codex {
		end, _ = w.file.majority(i, j)
	}
	n := w.file.len()
	// The file has no final line end, and this is its new end (section 5.4).
	bare := j == n && n > 0 && endOf(w.file.text) == ""
	for _, s := range added {
		if err := w.put(s); err != nil {
			return err
		}
		// A CR inside ends a line too.
		w.lines += 1 + strings.Count(strings.TrimSuffix(s, "\r"), "\r")
		w.owes, w.end, w.bare = true, end, bare
	}
	return nil
}

// put writes s behind the end of the last line.
func (w *writer) put(s string) error {
	if w.owes {
		if err := w.finishLine(); err != nil {
			return err
		}
	}
	return w.raw(s)
}

func (w *writer) finishLine() error {
	end := w.end
	if end == "" {
		end = w.style()
	}
	w.owes = false
	return w.raw(end)
}

func (w *writer) raw(s string) error {
	if w.limit > 0 && int64(w.out.Len()+len(s)) > w.limit {
		return ErrTooLarge
	}
	w.out.WriteString(s)
	return nil
}

// style is the line end of the file: the most frequent one, LF if that is not
// clear; for Codex the first one (section 5.3).
func (w *writer) style() string {
	if w.ofFile != "" {
		return w.ofFile
	}
	n := w.file.len()
	if w.codex {
		n = min(n, 1)
	}
	end, tie := w.file.majority(0, n)
	if end == "" || tie {
		end = "\n"
	}
	w.ofFile = end
	return end
}
