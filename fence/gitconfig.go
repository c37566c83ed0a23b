package fence

import (
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// IsGitConfig tells whether a protected path is a git configuration that may
// be replaced under guard: `config` or `config.worktree` of a git directory.
func IsGitConfig(canonical string) bool {
	n := fold(path.Base(filepath.ToSlash(canonical)))
	return n == "config" || n == "config.worktree"
}

// harmlessKeys are the git configuration keys that run nothing and lead
// nowhere outside (DESIGN section 2). Sections with a name between are written
// `section.*.key`. Everything else that changes is refused: an allow-list, for
// git learns new keys that run programs with every release.
var harmlessKeys = map[string]bool{
	"core.bare": true, "core.filemode": true, "core.ignorecase": true, "core.precomposeunicode": true,
	"core.repositoryformatversion": true, "core.symlinks": true, "core.logallrefupdates": true,
	"core.autocrlf": true, "core.eol": true, "core.safecrlf": true, "core.quotepath": true,
	"core.sparsecheckout": true, "core.sparsecheckoutcone": true, "core.abbrev": true, "core.hidedotfiles": true,
	"extensions.objectformat": true, "extensions.refstorage": true, "extensions.worktreeconfig": true,
	"extensions.partialclone": true, "extensions.noop": true, "extensions.preciousobjects": true,
	"remote.*.url": true, "remote.*.fetch": true, "remote.*.push": true, "remote.*.mirror": true,
	"remote.*.tagopt": true, "remote.*.prune": true, "remote.*.promisor": true, "remote.*.partialclonefilter": true,
	"branch.*.remote": true, "branch.*.merge": true, "branch.*.rebase": true, "branch.*.pushremote": true,
	"branch.*.description": true, "branch.*.vscode-merge-base": true,
	"submodule.*.url": true, "submodule.*.active": true, "submodule.*.branch": true, "submodule.*.ignore": true,
	"submodule.active": true, "submodule.recurse": true, "submodule.fetchjobs": true,
	"user.name": true, "user.email": true, "user.signingkey": true,
	"init.defaultbranch": true, "pull.rebase": true, "pull.ff": true, "push.default": true, "push.autosetupremote": true,
	"merge.ff": true, "merge.conflictstyle": true, "rebase.autostash": true, "rebase.autosquash": true,
	"fetch.prune": true, "commit.gpgsign": true, "tag.gpgsign": true, "gc.auto": true, "index.version": true,
	"index.sparse": true, "advice.*": true, "color.ui": true, "lfs.repositoryformatversion": true,
}

// GuardGitConfig compares two versions of a git configuration and returns the
// keys that changed (were added, removed or given other values) and may not,
// sorted; none means that the new version is harmless. What cannot be parsed
// is refused as the key "?": git and this parser must agree on what is said.
//
// URLs that name a program (`ext::`) or a transport helper are refused as
// values of otherwise harmless keys; a branch's remote may be a URL too.
func GuardGitConfig(prev, next []byte) []string {
	n, ok := parseGitConfig(string(next))
	if !ok {
		return []string{"?"}
	}
	p, _ := parseGitConfig(string(prev)) // what cannot be read there is not kept by a harmless change either
	bad := map[string]bool{}
	for key, vals := range n {
		if slices.Equal(p[key], vals) {
			continue
		}
		if !harmlessKeys[keyPattern(key)] || !harmlessValues(key, vals) {
			bad[key] = true
		}
	}
	for key := range p {
		if _, kept := n[key]; !kept && !removable(key) {
			bad[key] = true
		}
	}
	out := make([]string, 0, len(bad))
	for k := range bad {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// removable: harmless keys may go, and so may whole remotes, branches and
// submodules with whatever they held.
func removable(key string) bool {
	if harmlessKeys[keyPattern(key)] {
		return true
	}
	for _, s := range []string{"remote.", "branch.", "submodule."} {
		if strings.HasPrefix(key, s) {
			return true
		}
	}
	return false
}

func harmlessValues(key string, vals []string) bool {
	if !strings.HasSuffix(key, ".url") && !strings.HasSuffix(key, "remote") {
		return true
	}
	for _, v := range vals {
		if strings.Contains(v, "::") || strings.HasPrefix(v, "-") {
			return false
		}
	}
	return true
}

// keyPattern replaces the middle of section.name.key by *.
func keyPattern(key string) string {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first == last {
		if strings.HasPrefix(key, "advice.") {
			return "advice.*"
		}
		return key
	}
	return key[:first] + ".*" + key[last:]
}

// parseGitConfig reads a git configuration as git does (config.c, from
// git_parse_source on), and refuses what git refuses or what it would cut
// short. Keys are lower case except the middle part; each has its values in
// order.
func parseGitConfig(s string) (map[string][]string, bool) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, false // git cuts names and values there
	}
	r := &configReader{rest: strings.TrimPrefix(s, "\ufeff")}
	out := map[string][]string{}
	section := ""
	for comment := false; ; {
		c := r.next()
		switch {
		case c == '\n':
			if r.end {
				return out, true
			}
			comment = false
		case comment || isConfigSpace(c):
		case c == '#' || c == ';':
			comment = true
		case c == '[':
			name, ok := r.section()
			if !ok || name == "" {
				return nil, false
			}
			section = name
		case !isLetter(c) || section == "":
			return nil, false
		default:
			key, val, ok := r.entry(c)
			if !ok {
				return nil, false
			}
			key = section + "." + key
			out[key] = append(out[key], val)
		}
	}
}

// configReader gives the bytes of a configuration; line ends are LF or CR LF,
// and the end of the file is one more line end.
type configReader struct {
	rest string
	end  bool
}

func (r *configReader) next() byte {
	if r.rest == "" {
		r.end = true
		return '\n'
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	if c == '\r' && strings.HasPrefix(r.rest, "\n") {
		c, r.rest = '\n', r.rest[1:]
	}
	return c
}

// section reads what follows `[`: `name]` or `name "sub"]`.
func (r *configReader) section() (string, bool) {
	var b strings.Builder
	for {
		c := r.next()
		switch {
		case r.end:
			return "", false
		case c == ']':
			return b.String(), true
		case isConfigSpace(c):
			return r.subsection(b.String(), c)
		case !isKeyByte(c) && c != '.':
			return "", false
		}
		b.WriteByte(lower(c))
	}
}

func (r *configReader) subsection(name string, c byte) (string, bool) {
	for isConfigSpace(c) {
		if c == '\n' {
			return "", false
		}
		c = r.next()
	}
	if c != '"' {
		return "", false
	}
	var b strings.Builder
	b.WriteString(name + ".")
	for {
		c := r.next()
		if c == '"' {
			return b.String(), r.next() == ']' && !r.end
		}
		if c == '\\' {
			c = r.next()
		}
		if c == '\n' {
			return "", false
		}
		b.WriteByte(c)
	}
}

// entry reads one variable, whose name begins with c.
func (r *configReader) entry(c byte) (key, val string, ok bool) {
	var b strings.Builder
	for !r.end && isKeyByte(c) {
		b.WriteByte(lower(c))
		c = r.next()
	}
	for c == ' ' || c == '\t' {
		c = r.next()
	}
	switch c {
	case '\n':
		return b.String(), "true", true
	case '=':
		val, ok = r.value()
		return b.String(), val, ok
	}
	return "", "", false
}

// value reads up to the end of the line, which a backslash moves to the next
// line, though not in a comment.
func (r *configReader) value() (string, bool) {
	var b strings.Builder
	quoted, comment := false, false
	blanks := "" // not yet known to be inside the value
	for {
		c := r.next()
		switch {
		case c == '\n':
			return b.String(), !quoted
		case comment:
			continue
		case isConfigSpace(c) && !quoted:
			if b.Len() > 0 {
				blanks += string(c)
			}
			continue
		case !quoted && (c == '#' || c == ';'):
			comment = true
			continue
		}
		b.WriteString(blanks)
		blanks = ""
		switch c {
		case '"':
			quoted = !quoted
			continue
		case '\\':
			switch c = r.next(); c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				return "", false
			}
		}
		b.WriteByte(c)
	}
}

// isConfigSpace is git's own isspace: no vertical tab, no form feed, nothing
// beyond ASCII.
func isConfigSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isLetter(c byte) bool { return lower(c) >= 'a' && lower(c) <= 'z' }

func isKeyByte(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
