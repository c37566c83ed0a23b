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
// match whole: 0 if it does not match any prefix. The longest match that is
// not excepted counts, since the most specific entry decides.
func (p *pattern) covers(comps []string) int {
	var buf [stackReach]bool
	at := p.reach(comps, buf[:0], nil)
	first := p.firstException(comps)
	for n := min(len(comps), first); n > 0; n-- {
		if at[n] {
			return n
		}
	}
	return 0
}

// leadsTo tells whether comps, all of them, are a proper beginning of what the
// pattern matches: the path is an ancestor of a protected one, existing or not.
// Only the part after the last ** counts as being on the way: for
// `**/.git/hooks` that is `….git`, not every directory. Where a beginning ends
// in **, as in `**/.git/modules/*/**/hooks`, every directory below may be one
// and no file is: what is not known to be a directory counts only where the **
// stands for nothing.
func (p *pattern) leadsTo(comps []string, directory bool) bool {
	if p.firstException(comps) < len(comps) {
		return false
	}
	var buf [stackReach]bool
	found := false
	p.reach(comps, buf[:0], func(i int, at []bool) {
		if found || i == 0 || i == len(p.segs) || allWild(p.segs[:i]) {
			return
		}
		if p.segs[i-1] != "**" {
			found = at[len(comps)]
			return
		}
		// at holds for every number of components from where ** began.
		found = at[len(comps)] && (directory || !at[max(len(comps)-1, 0)])
	})
	return found
}

// firstName is the name that every path must hold which the pattern covers, or
// which leads to one: its first segment that is no **, if that is a plain name.
func (p *pattern) firstName() string {
	for _, s := range p.segs {
		if s == "**" {
			continue
		}
		if strings.ContainsAny(s, `*?[\`) {
			return ""
		}
		return s
	}
	return ""
}

// begin is what every absolute path begins with that the pattern covers: its
// plain segments before the first glob.
func (p *pattern) begin() string {
	var b strings.Builder
	for _, s := range p.segs {
		if strings.ContainsAny(s, `*?[\`) {
			break
		}
		b.WriteString("/" + s)
	}
	return b.String()
}

// stackReach is how many components a path can have before reach allocates.
const stackReach = 48

// reach runs the pattern over comps in one pass and tells after how many
// components it can have been matched whole. each is called after every number
// of segments with the same for that beginning. The cost is the product of both
// lengths, whatever the pattern: a path is what an attacker chooses.
func (p *pattern) reach(comps []string, buf []bool, each func(i int, at []bool)) []bool {
	n := len(comps) + 1
	at := buf
	if n > cap(at) {
		at = make([]bool, n)
	}
	at = at[:n]
	clear(at)
	at[0] = true
	for i, s := range p.segs {
		if each != nil {
			each(i, at)
		}
		if s == "**" {
			for j := 1; j < n; j++ {
				at[j] = at[j] || at[j-1]
			}
			continue
		}
		for j := n - 1; j > 0; j-- {
			at[j] = at[j-1] && matchOne(s, comps[j-1])
		}
		at[0] = false
	}
	return at
}

// begins tells whether comps are the beginning of what a pattern of fixed depth
// matches.
func (p *pattern) begins(comps []string) bool {
	return len(comps) < len(p.segs) && !p.anyDepth() && matchAll(p.segs[:len(comps)], comps)
}

func matchAll(segs, comps []string) bool {
	for i := range segs {
		if !matchOne(segs[i], comps[i]) {
			return false
		}
	}
	return true
}

func allWild(segs []string) bool {
	for _, s := range segs {
		if s != "**" {
			return false
		}
	}
	return true
}

// firstException is how many components come before the first one that takes
// everything below it out of the pattern; len(comps) when none does.
func (p *pattern) firstException(comps []string) int {
	for i, c := range comps {
		for _, n := range p.notUnder {
			if c == n {
				return i
			}
		}
	}
	return len(comps)
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
