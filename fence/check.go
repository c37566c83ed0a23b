package fence

import (
	"path"
	"path/filepath"
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
	root   root     // of kindWritable and kindProtected
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
	comps := split(filepath.ToSlash(canonical))
	m := f.decide(canonical, comps)
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
		if d := f.checkOnTheWay(canonical, requested, comps, access, m.root, directory); d != nil {
			return d
		}
		return nil
	case kindProtected:
		if m.sampleHook(comps, access) {
			return nil
		}
		return f.deny(canonical, requested, access, RuleProtected, m.source)
	}
	if f.policy.Mode == ReadOnly {
		return f.deny(canonical, requested, access, RuleReadOnly, "mode")
	}
	return f.deny(canonical, requested, access, RuleOutside, "mode")
}

// decide finds the most specific entry that covers the path.
func (f *Fence) decide(canonical string, comps []string) match {
	var m match
	m.depth = -1
	if f.readable == nil {
		m.offer(match{kind: kindReadable, depth: 0, source: "mode"})
	}
	for _, r := range f.readable {
		if covers(r.path, canonical) {
			m.offer(match{kind: kindReadable, depth: len(split(r.path)), source: r.source})
		}
	}
	for _, v := range f.visible {
		if covers(v.path, canonical) {
			m.offer(match{kind: kindReadable, depth: len(split(v.path)), source: v.source})
		}
	}
	var inner *root
	for i := range f.writable {
		r := &f.writable[i]
		if covers(r.path, canonical) {
			m.offer(match{kind: kindWritable, depth: len(split(r.path)), source: r.source, root: *r})
			if inner == nil || len(r.path) > len(inner.path) {
				inner = r
			}
		}
	}
	// By every root that covers the path, not only by the innermost: a root
	// named below a protected name does not take the protection away. Scratch
	// and caches do, wherever they lie.
	for i := range f.writable {
		r := &f.writable[i]
		if !inner.holds() || !r.guarded || len(f.protected) == 0 || !covers(r.path, canonical) {
			continue
		}
		base := len(split(r.path))
		rel := foldAll(comps[base:])
		for i := range f.protected {
			if n := f.protected[i].covers(rel); n > 0 {
				m.offer(match{kind: kindProtected, depth: base + n, source: f.protected[i].source, root: *r, pat: &f.protected[i]})
			}
		}
	}
	folded := foldAll(comps)
	for _, o := range f.own {
		if componentsCover(o, folded) {
			return match{kind: kindHidden, depth: len(comps), source: "mode"} // no entry shows these
		}
	}
	for i := range f.hidden {
		h := &f.hidden[i]
		if h.pat != nil {
			if n := h.pat.covers(folded); n > 0 {
				m.offer(match{kind: kindHidden, depth: n, source: h.source})
			}
		} else if componentsCover(h.comps, folded) {
			m.offer(match{kind: kindHidden, depth: len(h.comps), source: h.source})
		}
	}
	// A session's own scratch is its own although a pattern hides the scratch of
	// all others: it counts as one component more specific than it is.
	if sc := f.policy.Scratch; sc != "" && covers(sc, canonical) {
		own := match{kind: kindReadable, depth: len(split(sc)) + 1, source: "mode"}
		if inner != nil && inner.path == sc {
			own.kind, own.root = kindWritable, *inner
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

// holds: there is a root, and protections apply in it.
func (r *root) holds() bool { return r != nil && r.guarded }

// checkOnTheWay refuses what would move a protected path away or put another
// one in its place, although the path itself is free: `.git` may be made as a
// directory and emptied, but not renamed, replaced or made as a link or file.
func (f *Fence) checkOnTheWay(canonical, requested string, comps []string, access Access, in root, directory bool) *Denial {
	base := len(split(in.path))
	if len(comps) == base && (access == Rename || access == Delete) {
		// The root itself: its parent is not ours to change.
		d := f.deny(canonical, requested, access, RuleOutside, in.source)
		d.Grant, d.Hint = nil, "a root itself cannot be moved or removed, only what is in it"
		return d
	}
	switch access {
	case Rename:
		if d := f.checkHiddenBelow(canonical, requested, comps); d != nil {
			return d
		}
	case Create, Link, Bind, Write:
	default:
		return nil
	}
	for i := range f.writable {
		r := &f.writable[i]
		if !in.guarded || !r.guarded || len(f.protected) == 0 || !covers(r.path, canonical) {
			continue
		}
		rel := foldAll(comps[len(split(r.path)):])
		for i := range f.protected {
			if f.protected[i].leadsTo(rel, directory) {
				return f.deny(canonical, requested, access, RuleProtected, f.protected[i].source)
			}
		}
	}
	return nil
}

// checkHiddenBelow refuses to move a directory that has a hidden path in it: the
// path would get another name and come into sight.
func (f *Fence) checkHiddenBelow(canonical, requested string, comps []string) *Denial {
	folded := foldAll(comps)
	for i := range f.hidden {
		h := &f.hidden[i]
		if h.pat != nil && h.pat.begins(folded) || h.pat == nil && componentsCover(folded, h.comps) {
			return f.deny(canonical, requested, Rename, RuleHidden, h.source)
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

// PathCovers tells whether canonical is root or lies below it, by whole
// components: /ws-evil is not below /ws. Both must be clean and absolute.
func PathCovers(root, canonical string) bool { return covers(root, canonical) }
