package fence

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// root is one covering entry: everything at or below path.
type root struct {
	path   string
	depth  int // number of components
	source string
	// guarded: protections apply below it (workspace and extra roots, but
	// neither scratch nor caches).
	guarded bool
}

func newRoot(path, source string, guarded bool) root {
	return root{path: path, depth: len(split(filepath.ToSlash(path))), source: source, guarded: guarded}
}

// hidden is a compiled hidden entry: pat is set when the path has globs, comps
// (folded) otherwise. Names are compared folded: where they fold, ~/.SSH is
// ~/.ssh, and where they do not, nobody misses it (P09).
type hidden struct {
	path   string
	comps  []string
	pat    *pattern
	begin  string // what every folded path that pat covers begins with
	source string
}

// Fence is a compiled policy. It is immutable: any number of goroutines may
// use one at once. Make it with [New].
//
// Invariants: writable paths are canonical as of New; writable = ∅ in
// read-only unless the policy opens scratch; no writable root is refused by
// [refuseRoot].
type Fence struct {
	policy    Policy
	writable  []root // sorted by path
	protected []pattern
	// byName are the protections whose first name is a plain one, by that name;
	// anyProtected are the others. Together they are protected.
	byName       map[string][]*pattern
	anyProtected []*pattern
	hidden       []hidden
	// hiddenAt are the hidden paths without globs, folded, with their source.
	hiddenAt map[string]string
	visible  []root
	readable []root     // nil: everything
	own      [][]string // folded components of Wattle's own places
	devices  map[string]Device
	sockets  []root
	// parents are resolved directories of hidden paths, while New runs.
	parents map[string]Resolved
	// skipped are entries that could not be used, for the report.
	skipped []Skipped
}

// New compiles a policy. It resolves the roots as they are now, refuses roots
// that would open too much (POLICY_ROOT_REFUSED) and malformed entries
// (POLICY_INVALID). An extra root that does not exist is skipped and reported,
// never created; a workspace that does not exist is an error.
func New(p Policy) (*Fence, error) {
	if p.Mode.rank() == 0 {
		return nil, &PolicyError{Code: CodePolicyInvalid, Msg: "no mode"}
	}
	f := &Fence{policy: p, devices: map[string]Device{}, byName: map[string][]*pattern{}, hiddenAt: map[string]string{}, parents: map[string]Resolved{}}
	if f.policy.Network == "" {
		f.policy.Network = NetworkOn
	}
	if f.policy.Protect == "" {
		f.policy.Protect = ProtectChecked
	}
	if err := f.unavailable(); err != nil {
		return nil, err
	}
	for _, d := range p.Devices {
		f.devices[d.Path] = d
	}
	for _, pr := range p.Protected {
		if f.policy.Protect == ProtectOff {
			break
		}
		pat, err := newPattern(pr.Match, pr.NotUnder, pr.Source)
		if err != nil {
			return nil, err
		}
		f.protected = append(f.protected, pat)
	}
	f.indexProtected()
	if err := f.addHidden(); err != nil {
		return nil, err
	}
	for _, v := range p.Visible {
		f.visible = append(f.visible, newRoot(f.placeOf(v.Path), v.Source, false))
	}
	f.parents = nil
	if err := f.addWritable(); err != nil {
		return nil, err
	}
	for _, s := range p.UnixSockets {
		f.sockets = append(f.sockets, newRoot(cleanCanonical(s.Path), s.Source, false))
	}
	if p.ReadableRoots != nil {
		f.readable = []root{}
		for _, r := range p.ReadableRoots {
			c := f.resolveOrSkip(r.Path)
			if c != "" {
				f.readable = append(f.readable, newRoot(c, r.Source, false))
			}
		}
	}
	return f, nil
}

// unavailable refuses what a policy can ask for and this version cannot hold:
// a fence that is weaker than its policy says is worse than none.
func (f *Fence) unavailable() error {
	switch p := &f.policy; {
	case p.Mode == FullAccess:
	case p.Network == NetworkLoopback:
		return &PolicyError{Code: CodePolicyInvalid, Msg: "network \"loopback\" cannot be enforced by this version; use \"off\" or \"on\""}
	case p.Protect == ProtectStrict:
		return &PolicyError{Code: CodePolicyInvalid, Msg: "protect \"strict\" cannot be enforced by this version; use \"checked\""}
	case p.AttributeReads:
		return &PolicyError{Code: CodePolicyInvalid, Msg: "attribute_reads cannot be done by this version"}
	}
	return nil
}

func (f *Fence) addHidden() error {
	for _, h := range f.policy.Hidden {
		if !strings.HasPrefix(h.Path, "/") && !absolutePath(h.Path) {
			return &PolicyError{Code: CodePolicyInvalid, Path: h.Path, Msg: "a hidden path must be absolute"}
		}
		if strings.ContainsAny(h.Path, "*?[") {
			if _, err := newPattern(h.Path, nil, h.Source); err != nil {
				return err // before anything in it is resolved
			}
			at := canonicalGlob(h.Path)
			pat, err := newPattern(at, nil, h.Source)
			if err != nil {
				return err
			}
			f.hidden = append(f.hidden, hidden{path: at, pat: &pat, begin: pat.begin(), source: h.Source})
			continue
		}
		f.hide(h.Path, h.Source)
	}
	for _, o := range f.policy.Own {
		f.own = append(f.own, f.hide(o, "mode"))
	}
	return nil
}

// indexProtected sorts the protections by the name that a path must hold for
// them to say anything about it.
func (f *Fence) indexProtected() {
	for i := range f.protected {
		p := &f.protected[i]
		if name := p.firstName(); name != "" {
			f.byName[name] = append(f.byName[name], p)
		} else {
			f.anyProtected = append(f.anyProtected, p)
		}
	}
}

func (f *Fence) hide(path, source string) (folded []string) {
	c := f.placeOf(path)
	folded = foldAll(split(filepath.ToSlash(c)))
	f.hidden = append(f.hidden, hidden{path: c, comps: folded, source: source})
	at := "/" + strings.Join(folded, "/")
	if _, ok := f.hiddenAt[at]; !ok {
		f.hiddenAt[at] = source
	}
	return folded
}

// placeOf is cleanCanonical for the many hidden paths of one directory: their
// parent is resolved once, and where it does not exist nothing below it does.
func (f *Fence) placeOf(path string) string {
	dir, name := filepath.Split(filepath.Clean(path))
	if name == "" {
		return cleanCanonical(path)
	}
	r, known := f.parents[dir]
	if !known {
		var err error
		if r, err = Canonical(dir); err != nil {
			r = Resolved{Path: filepath.Clean(dir)} // matches only itself
		}
		f.parents[dir] = r
	}
	at := filepath.Join(r.Path, name)
	if !r.Exists {
		return at
	}
	if fi, err := os.Lstat(at); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		return at
	}
	return cleanCanonical(at)
}

// canonicalGlob resolves the part of a path before its first glob: it is a
// place like any other and may lead through links.
func canonicalGlob(p string) string {
	parts := strings.Split(p, "/")
	for i, c := range parts {
		if strings.ContainsAny(c, "*?[") {
			dir := strings.Join(parts[:i], "/")
			if dir == "" {
				return p
			}
			// A canonical path may hold what looks like a glob.
			return EscapeGlob(filepath.ToSlash(cleanCanonical(unescapeGlob(dir)))) + "/" + strings.Join(parts[i:], "/")
		}
	}
	return p
}

var globEscapes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// EscapeGlob makes a path that stands for itself in an [Entry] whose other
// parts are globs.
func EscapeGlob(path string) string { return globEscapes.Replace(path) }

func unescapeGlob(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == 92 && i+1 < len(p) { // a backslash
			i++
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

func (f *Fence) addWritable() error {
	p := &f.policy
	if p.Workspace != "" {
		if !absolutePath(p.Workspace) {
			return &PolicyError{Code: CodePolicyInvalid, Path: p.Workspace, Msg: "the workspace must be an absolute path"}
		}
		if err := f.addRoot(Entry{p.Workspace, "mode"}, true, p.Mode == WorkspaceWrite, true); err != nil {
			return err
		}
	}
	for _, w := range p.Writable {
		if !absolutePath(w.Path) {
			return &PolicyError{Code: CodePolicyInvalid, Path: w.Path, Msg: "a writable root must be an absolute path"}
		}
		if err := f.addRoot(w, true, p.Mode == WorkspaceWrite, false); err != nil {
			return err
		}
	}
	for _, c := range p.Caches {
		if err := f.addRoot(c, false, p.Mode == WorkspaceWrite, false); err != nil {
			return err
		}
	}
	if p.Scratch != "" {
		open := p.Mode == WorkspaceWrite || p.Mode == ReadOnly && p.ScratchInReadOnly
		if err := f.addRoot(Entry{p.Scratch, "mode"}, false, open, false); err != nil {
			return err
		}
	}
	sort.Slice(f.writable, func(i, j int) bool { return f.writable[i].path < f.writable[j].path })
	return nil
}

// addRoot resolves one root. must: it has to exist. open: it becomes writable
// in this mode; a root that is not open is still checked, so that a later
// switch of the mode cannot be the first to fail.
func (f *Fence) addRoot(e Entry, guarded, open, must bool) error {
	r, err := Canonical(e.Path)
	if err != nil || !r.Exists && must {
		if must {
			return &PolicyError{Code: CodePolicyInvalid, Path: e.Path, Msg: "the workspace " + reason(err, "does not exist")}
		}
		f.skipped = append(f.skipped, Skipped{Path: e.Path, Errno: errnoName(err, "ENOENT")})
		return nil
	}
	if must {
		if fi, err := os.Stat(r.Path); err == nil && !fi.IsDir() {
			return &PolicyError{Code: CodePolicyInvalid, Path: e.Path, Msg: "the workspace is not a directory"}
		}
	}
	if !r.Exists && guarded {
		f.skipped = append(f.skipped, Skipped{Path: e.Path, Errno: "ENOENT"})
		return nil
	}
	if msg := refuseRoot(r.Path, f.policy.Home, f.policy.Own); msg != "" && f.policy.Mode != FullAccess {
		return &PolicyError{Code: CodePolicyRootRefused, Path: r.Path, Msg: msg}
	}
	switch e.Path {
	case f.policy.Workspace:
		f.policy.Workspace = r.Path
	case f.policy.Scratch:
		f.policy.Scratch = r.Path
	}
	if !open {
		return nil
	}
	for i := range f.writable {
		if w := &f.writable[i]; w.path == r.Path { // said twice: protections stay
			w.guarded = w.guarded || guarded
			return nil
		}
	}
	f.writable = append(f.writable, newRoot(r.Path, e.Source, guarded))
	return nil
}

func (f *Fence) resolveOrSkip(p string) string {
	r, err := Canonical(p)
	if err != nil || !r.Exists {
		f.skipped = append(f.skipped, Skipped{Path: p, Errno: errnoName(err, "ENOENT")})
		return ""
	}
	return r.Path
}

// refuseRoot tells why a canonical path must never be a writable root, or "".
// Refused: /, home and its ancestors, ancestors of Wattle's own directories
// and those directories themselves (DESIGN section 2; navikt/cplt#377).
func refuseRoot(path, home string, own []string) string {
	if path == "/" {
		return "the root directory cannot be a writable root; name a directory in it"
	}
	if home != "" && covers(path, cleanCanonical(home)) {
		return "the home directory and what contains it cannot be a writable root; name a directory in it"
	}
	for _, o := range own {
		c := cleanCanonical(o)
		if covers(path, c) || covers(c, path) {
			return "it contains or lies in Wattle's own directory " + c + ", which no fence may write"
		}
	}
	return ""
}

// covers tells whether p is root or lies below it: equal, or prefix and
// separator. Both are clean; the comparison folds case where names do.
func covers(root, p string) bool {
	if foldPaths {
		root, p = fold(root), fold(p)
	}
	if root == "/" {
		return strings.HasPrefix(p, "/")
	}
	return len(p) >= len(root) && p[:len(root)] == root && (len(p) == len(root) || isSeparator(p[len(root)]))
}

// componentsCover is covers for folded components.
func componentsCover(root, p []string) bool {
	return len(p) >= len(root) && slices.Equal(root, p[:len(root)])
}

// ours tells whether a canonical path is or lies in one of Wattle's own places.
func (f *Fence) ours(canonical string) bool {
	folded := foldAll(split(filepath.ToSlash(canonical)))
	return slices.ContainsFunc(f.own, func(o []string) bool { return componentsCover(o, folded) })
}

// Mode of the fence.
func (f *Fence) Mode() Mode { return f.policy.Mode }

// Workspace is the canonical workspace, or "".
func (f *Fence) Workspace() string { return f.policy.Workspace }

// Policy returns a copy of what the fence was compiled from.
func (f *Fence) Policy() Policy { return f.policy }

// WritableRoots are the canonical writable roots, sorted; empty in read-only.
func (f *Fence) WritableRoots() []string {
	out := make([]string, 0, len(f.writable))
	for _, r := range f.writable {
		out = append(out, r.path)
	}
	return slices.Compact(out)
}

// KeepOverwritten tells whether what is overwritten by a write, a move or a copy
// goes into the trash.
func (f *Fence) KeepOverwritten() bool { return f.policy.KeepOverwritten }

// TrashCommands tells whether what commands remove goes into the trash first.
func (f *Fence) TrashCommands() bool { return f.policy.TrashCommands }

// Skipped are the entries of the policy whose path could not be used.
func (f *Fence) Skipped() []Skipped { return slices.Clone(f.skipped) }

// WithTemp returns a fence that is f with one more writable root: a private
// temporary directory that belongs to one command alone. It is writable in
// read-only too, and protections do not apply in it. path must be canonical.
func (f *Fence) WithTemp(path string) *Fence {
	g := *f
	g.writable = append(slices.Clone(f.writable), newRoot(path, "mode", false))
	sort.Slice(g.writable, func(i, j int) bool { return g.writable[i].path < g.writable[j].path })
	return &g
}

// WithHidden returns a fence that is f with more hidden paths. It is for the
// file API alone: what it hides is not granted around when a fence is compiled
// for commands, for which the kernel may hold it in another way.
func (f *Fence) WithHidden(entries ...Entry) (*Fence, error) {
	g := *f
	g.policy.Hidden = slices.Concat(f.policy.Hidden, entries)
	g.hidden, g.hiddenAt, g.own = nil, map[string]string{}, nil
	g.parents = map[string]Resolved{}
	if err := g.addHidden(); err != nil {
		return nil, err
	}
	g.parents = nil
	return &g, nil
}
