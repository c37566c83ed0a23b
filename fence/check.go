package fence

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// kind orders what decides on a tie: hidden > protected > writable > readable.
type kind int

const (
	kindNone kind = iota
	kindReadable
	kindWritable
	kindProtected
	kindHidden
)

// match is the entry that decides about a path: depth is the number of
// components that it covers, the more the more specific.
type match struct {
	kind   kind
	depth  int
	source string
	root   *root    // of kindWritable and kindProtected
	pat    *pattern // of kindProtected
}

func (m *match) offer(o match) {
	if o.depth > m.depth || o.depth == m.depth && o.kind > m.kind {
		*m = o
	}
}

// Check decides whether canonical may be reached with access. It is pure and
// total: canonical must be absolute and clean, as [Canonical] makes it, and
// what is not is refused. nil means allowed by the fence; the kernel may still
// say no.
func (f *Fence) Check(canonical string, access Access) *Denial {
	return f.CheckAs(canonical, canonical, access)
}

// CheckAs is Check with the spelling that the caller used, for the denial.
func (f *Fence) CheckAs(canonical, requested string, access Access) *Denial {
	return f.check(canonical, requested, access, false)
}

// CheckDirectory is CheckAs for what is known to be a directory: moving one
// moves what may be protected somewhere in it.
func (f *Fence) CheckDirectory(canonical, requested string, access Access) *Denial {
	return f.check(canonical, requested, access, true)
}

func (f *Fence) check(canonical, requested string, access Access, directory bool) *Denial {
	if f.policy.Mode == FullAccess {
		return nil
	}
	if !absolutePath(canonical) || filepath.Clean(canonical) != canonical || strings.IndexByte(canonical, 0) >= 0 {
		return f.deny(canonical, requested, access, RuleOutside, "mode")
	}
	a := ask(canonical)
	m := f.decide(&a)
	if m.kind == kindHidden {
		return f.deny(canonical, requested, access, RuleHidden, m.source)
	}
	switch access {
	case Read, Execute:
		if f.readable != nil && m.kind == kindNone {
			if _, ok := f.devices[canonical]; ok {
				return nil
			}
			return f.deny(canonical, requested, access, RuleReadableRoots, "session")
		}
		return nil
	case Connect:
		return f.checkConnect(canonical, requested, m)
	}
	if f.deviceWrite(canonical, access) {
		return nil
	}
	switch m.kind {
	case kindWritable:
		if d := f.checkOnTheWay(&a, requested, access, m.root, directory); d != nil {
			return d
		}
		return nil
	case kindProtected:
		if m.sampleHook(a.comps, access) {
			return nil
		}
		return f.deny(canonical, requested, access, RuleProtected, m.source)
	}
	if f.policy.Mode == ReadOnly {
		return f.deny(canonical, requested, access, RuleReadOnly, "mode")
	}
	return f.deny(canonical, requested, access, RuleOutside, "mode")
}

// asked is one path, taken apart once.
type asked struct {
	path   string
	folded string
	comps  []string // of path
	fold   []string // of folded; as long as comps
}

func ask(canonical string) asked {
	p := filepath.ToSlash(canonical)
	a := asked{path: canonical, folded: fold(p), comps: split(p)}
	a.fold = a.comps
	if a.folded != p {
		a.fold = split(a.folded)
	}
	return a
}

// decide finds the most specific entry that covers the path. It is asked for
// every call of a command that changes something, so what cannot cover the
// path is passed over by one look at a table.
func (f *Fence) decide(a *asked) match {
	var m match
	m.depth = -1
	if f.readable == nil {
		m.offer(match{kind: kindReadable, depth: 0, source: "mode"})
	}
	for i := range f.readable {
		if r := &f.readable[i]; covers(r.path, a.path) {
			m.offer(match{kind: kindReadable, depth: r.depth, source: r.source})
		}
	}
	for i := range f.visible {
		if v := &f.visible[i]; covers(v.path, a.path) {
			m.offer(match{kind: kindReadable, depth: v.depth, source: v.source})
		}
	}
	var inner *root
	for i := range f.writable {
		r := &f.writable[i]
		if covers(r.path, a.path) {
			m.offer(match{kind: kindWritable, depth: r.depth, source: r.source, root: r})
			if inner == nil || r.depth > inner.depth {
				inner = r
			}
		}
	}
	f.eachProtection(a, inner, func(r *root, rel []string, p *pattern) bool {
		if n := p.covers(rel); n > 0 {
			m.offer(match{kind: kindProtected, depth: r.depth + n, source: p.source, root: r, pat: p})
		}
		return true
	})
	if f.hiddenMatch(a, &m) {
		return match{kind: kindHidden, depth: len(a.comps), source: "mode"} // no entry shows our own places
	}
	// A session's own scratch is its own although a pattern hides the scratch of
	// all others: it counts as one component more specific than it is.
	if sc := f.policy.Scratch; sc != "" && covers(sc, a.path) {
		own := match{kind: kindReadable, depth: len(split(sc)) + 1, source: "mode"}
		if inner != nil && inner.path == sc {
			own.kind, own.root = kindWritable, inner
		}
		if f.readable == nil || own.kind == kindWritable {
			m.offer(own)
		}
	}
	if m.depth < 0 {
		m = match{}
	}
	return m
}

// eachProtection calls do with every protection that can say something about
// the path, relative to every root that covers it and not only to the
// innermost: a root named below a protected name does not take the protection
// away. Scratch and caches do, wherever they lie. It ends when do says false.
func (f *Fence) eachProtection(a *asked, inner *root, do func(r *root, rel []string, p *pattern) bool) {
	if inner == nil || !inner.guarded || len(f.protected) == 0 {
		return
	}
	for i := range f.writable {
		r := &f.writable[i]
		if !r.guarded || !covers(r.path, a.path) {
			continue
		}
		rel := a.fold[r.depth:]
		for _, p := range f.anyProtected {
			if !do(r, rel, p) {
				return
			}
		}
		for k, c := range rel {
			if slices.Contains(rel[:k], c) {
				continue
			}
			for _, p := range f.byName[c] {
				if !do(r, rel, p) {
					return
				}
			}
		}
	}
}

// hiddenMatch offers the hidden entries that cover the path; true when it is
// one of our own places.
func (f *Fence) hiddenMatch(a *asked, m *match) bool {
	for _, o := range f.own {
		if componentsCover(o, a.fold) {
			return true
		}
	}
	depth := 0
	for i := 1; i <= len(a.folded); i++ {
		if i < len(a.folded) && a.folded[i] != '/' {
			continue
		}
		depth++
		if source, ok := f.hiddenAt[a.folded[:i]]; ok {
			m.offer(match{kind: kindHidden, depth: depth, source: source})
		}
	}
	for i := range f.hidden {
		h := &f.hidden[i]
		if h.pat == nil || !strings.HasPrefix(a.folded, h.begin) {
			continue
		}
		if n := h.pat.covers(a.fold); n > 0 {
			m.offer(match{kind: kindHidden, depth: n, source: h.source})
		}
	}
	return false
}

// checkOnTheWay refuses what would move a protected path away or put another
// one in its place, although the path itself is free: `.git` may be made as a
// directory and emptied, but not renamed, replaced or made as a link or file.
func (f *Fence) checkOnTheWay(a *asked, requested string, access Access, in *root, directory bool) *Denial {
	if len(a.comps) == in.depth && (access == Rename || access == Delete) {
		// The root itself: its parent is not ours to change.
		d := f.deny(a.path, requested, access, RuleOutside, in.source)
		d.Grant, d.Hint = nil, "a root itself cannot be moved or removed, only what is in it"
		return d
	}
	switch access {
	case Rename:
		if d := f.checkHiddenBelow(a, requested); d != nil {
			return d
		}
	case Create, Link, Bind, Write:
	default:
		return nil
	}
	var d *Denial
	f.eachProtection(a, in, func(_ *root, rel []string, p *pattern) bool {
		if p.leadsTo(rel, directory) {
			d = f.deny(a.path, requested, access, RuleProtected, p.source)
		}
		return d == nil
	})
	return d
}

// checkHiddenBelow refuses to move a directory that has a hidden path in it: the
// path would get another name and come into sight.
func (f *Fence) checkHiddenBelow(a *asked, requested string) *Denial {
	for i := range f.hidden {
		h := &f.hidden[i]
		if h.pat != nil && h.pat.begins(a.fold) || h.pat == nil && componentsCover(a.fold, h.comps) {
			return f.deny(a.path, requested, Rename, RuleHidden, h.source)
		}
	}
	return nil
}

// sampleHook: where a hooks directory is what protects the path, it may be made
// as a directory, and takes files called *.sample directly in it: git never
// runs those, and `git init` writes them.
func (m *match) sampleHook(comps []string, access Access) bool {
	if m.pat.segs[len(m.pat.segs)-1] != "hooks" {
		return false
	}
	switch len(comps) - m.depth {
	case 0:
		return access == Mkdir
	case 1:
		return strings.HasSuffix(comps[len(comps)-1], ".sample") &&
			(access == Create || access == Write || access == Metadata || access == Delete)
	}
	return false
}

func (f *Fence) deviceWrite(canonical string, access Access) bool {
	if access != Write && access != Metadata {
		return false
	}
	if d, ok := f.devices[canonical]; ok {
		return d.Write && access == Write
	}
	// Terminals of the command itself: /dev/pts/N.
	if d, ok := f.devices[path.Dir(filepath.ToSlash(canonical))]; ok {
		return d.Write && d.Ioctl
	}
	return false
}

func (f *Fence) checkConnect(canonical, requested string, m match) *Denial {
	if m.kind == kindWritable || m.kind == kindProtected {
		return nil
	}
	for _, s := range f.sockets {
		if covers(s.path, canonical) {
			return nil
		}
	}
	return f.deny(canonical, requested, Connect, RuleUnixSocket, "mode")
}

// Guarded tells whether protections apply at canonical: it lies in a writable
// root that holds protected names.
func (f *Fence) Guarded(canonical string) bool {
	if len(f.protected) == 0 {
		return false
	}
	var inner *root
	for i := range f.writable {
		if r := &f.writable[i]; covers(r.path, canonical) && (inner == nil || len(r.path) > len(inner.path)) {
			inner = r
		}
	}
	return inner != nil && inner.guarded
}

// Looser tells whether less is protected at from than at to: a directory that is
// moved there may hold anything. Both are canonical.
func (f *Fence) Looser(from, to string) bool {
	return f.Guarded(to) && (!f.Guarded(from) || f.exempt(from) > f.exempt(to))
}

// exempt counts the components of a path below which some protections do not
// apply ([Protection].NotUnder).
func (f *Fence) exempt(canonical string) int {
	n := 0
	for _, c := range ask(canonical).fold {
		if slices.ContainsFunc(f.protected, func(p pattern) bool { return slices.Contains(p.notUnder, c) }) {
			n++
		}
	}
	return n
}

// PathCovers tells whether canonical is root or lies below it, by whole
// components: /ws-evil is not below /ws. Both must be clean and absolute.
func PathCovers(root, canonical string) bool { return covers(root, canonical) }
