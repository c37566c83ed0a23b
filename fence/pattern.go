package fence

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a compiled sequence of path components.
type pattern struct {
	segs     []string // folded; "**" matches any number of components
	notUnder []string // folded
	source   string
	text     string
}

func newPattern(match string, notUnder []string, source string) (pattern, error) {
	p := pattern{source: source, text: match}
	for _, s := range strings.Split(strings.Trim(match, "/"), "/") {
		if s == "" || s == "." || s == ".." || strings.ContainsRune(s, 0) {
			return pattern{}, &PolicyError{Code: CodePolicyInvalid, Path: match, Msg: "a pattern is made of names, globs and **, without empty parts, . or .."}
		}
		if _, err := path.Match(s, "x"); err != nil {
			return pattern{}, &PolicyError{Code: CodePolicyInvalid, Path: match, Msg: "malformed glob"}
		}
		p.segs = append(p.segs, fold(s))
	}
	for _, n := range notUnder {
		p.notUnder = append(p.notUnder, fold(n))
	}
	return p, nil
}

// covers returns how many leading components of comps the pattern needs to
// match whole: 0 if it does not match any prefix. The longest match counts,
// since the most specific entry decides.
func (p *pattern) covers(comps []string) int {
	n := matchPrefix(p.segs, comps)
	if n > 0 && p.excepted(comps[:n]) {
		return 0
	}
	return n
}

// leadsTo tells whether comps, all of them, are a proper beginning of what the
// pattern matches: the path is an ancestor of a protected one, existing or not.
// Only the literal part after the last ** counts as being "on the way": for
// `**/.git/hooks` that is `….git`, not every directory.
func (p *pattern) leadsTo(comps []string) bool {
	for i := len(p.segs) - 1; i > 0; i-- {
		head := p.segs[:i]
		if allWild(head) {
			break
		}
		if matchWhole(head, comps) && !p.excepted(comps) {
			return true
		}
	}
	return false
}

func allWild(segs []string) bool {
	for _, s := range segs {
		if s != "**" {
			return false
		}
	}
	return true
}

func (p *pattern) excepted(comps []string) bool {
	for _, n := range p.notUnder {
		for _, c := range comps {
			if c == n {
				return true
			}
		}
	}
	return false
}

func matchPrefix(segs, comps []string) int {
	best := 0
	for n := len(comps); n > 0; n-- {
		if matchWhole(segs, comps[:n]) {
			best = n
			break
		}
	}
	return best
}

func matchWhole(segs, comps []string) bool {
	for len(segs) > 0 {
		if segs[0] == "**" {
			for i := 0; i <= len(comps); i++ {
				if matchWhole(segs[1:], comps[i:]) {
					return true
				}
			}
			return false
		}
		if len(comps) == 0 || !matchOne(segs[0], comps[0]) {
			return false
		}
		segs, comps = segs[1:], comps[1:]
	}
	return len(comps) == 0
}

func matchOne(glob, name string) bool {
	if !strings.ContainsAny(glob, `*?[\`) {
		return glob == name
	}
	ok, err := path.Match(glob, name)
	return err == nil && ok
}

// fold brings a name into the form in which protected and hidden names are
// compared: simple case folding, and the code points that HFS+ and NTFS ignore
// or map are left to the file systems' own pairs (CVE-2025-59944 class). It is
// a comparison form, never a path.
func fold(s string) string {
	ascii := true
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(s)
	}
	return strings.Map(foldRune, s)
}

// foldRune picks the smallest rune of the fold orbit, so that all members (K,
// k and the Kelvin sign) compare equal.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f < least {
			least = f
		}
	}
	return unicode.ToLower(least)
}

func foldAll(comps []string) []string {
	out := make([]string, len(comps))
	for i, c := range comps {
		out[i] = fold(c)
	}
	return out
}

// split gives the components of a clean absolute path; "/" has none.
func split(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}
