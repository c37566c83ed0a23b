package fence

import (
	"path"
	"path/filepath"
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
// values of otherwise harmless keys.
func GuardGitConfig(prev, next []byte) []string {
	n, ok := parseGitConfig(string(next))
	if !ok {
		return []string{"?"}
	}
	p, _ := parseGitConfig(string(prev)) // what cannot be read there is not kept by a harmless change either
	bad := map[string]bool{}
	for key, vals := range n {
		if equalValues(p[key], vals) {
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
	if !strings.HasSuffix(key, ".url") {
		return true
	}
	for _, v := range vals {
		if strings.Contains(v, "::") || strings.HasPrefix(v, "-") {
			return false
		}
	}
	return true
}

func equalValues(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
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

// parseGitConfig reads the part of the git-config(1) syntax that git itself
// writes, and refuses what it is not sure of. Keys are lower case except the
// middle part; each has its values in order.
func parseGitConfig(s string) (map[string][]string, bool) {
	out := map[string][]string{}
	section := ""
	s = strings.TrimPrefix(s, "\ufeff")
	lines := strings.Split(s, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(strings.TrimSuffix(lines[i], "\r"))
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			name, rest, ok := parseSection(line)
			if !ok {
				return nil, false
			}
			section = name
			line = strings.TrimSpace(rest)
			if line == "" || line[0] == '#' || line[0] == ';' {
				continue
			}
		}
		if section == "" {
			return nil, false
		}
		key, raw, hasValue := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if !validKey(key) {
			return nil, false
		}
		val := "true"
		if hasValue {
			for strings.HasSuffix(raw, `\`) && !strings.HasSuffix(raw, `\\`) && i+1 < len(lines) {
				i++
				raw = raw[:len(raw)-1] + strings.TrimSuffix(lines[i], "\r")
			}
			v, ok := parseValue(raw)
			if !ok {
				return nil, false
			}
			val = v
		}
		out[section+"."+key] = append(out[section+"."+key], val)
	}
	return out, true
}

func validKey(k string) bool {
	if k == "" || !(k[0] >= 'a' && k[0] <= 'z') {
		return false
	}
	for i := 0; i < len(k); i++ {
		c := k[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// parseSection reads `[section]` or `[section "name"]`, with what follows.
func parseSection(line string) (name, rest string, ok bool) {
	i := 1
	for i < len(line) && (line[i] >= 'a' && line[i] <= 'z' || line[i] >= 'A' && line[i] <= 'Z' || line[i] >= '0' && line[i] <= '9' || line[i] == '-' || line[i] == '.') {
		i++
	}
	name = strings.ToLower(line[1:i])
	if name == "" || i >= len(line) {
		return "", "", false
	}
	if line[i] == ']' {
		return name, line[i+1:], true
	}
	j := i
	for j < len(line) && (line[j] == ' ' || line[j] == '\t') {
		j++
	}
	if j == i || j >= len(line) || line[j] != '"' {
		return "", "", false
	}
	var sub strings.Builder
	for j++; j < len(line); j++ {
		switch line[j] {
		case '\\':
			j++
			if j >= len(line) {
				return "", "", false
			}
			sub.WriteByte(line[j])
		case '"':
			if j+1 >= len(line) || line[j+1] != ']' {
				return "", "", false
			}
			return name + "." + sub.String(), line[j+2:], true
		default:
			sub.WriteByte(line[j])
		}
	}
	return "", "", false
}

// parseValue reads one value: quotes, escapes, trailing comment.
func parseValue(raw string) (string, bool) {
	raw = strings.TrimLeft(raw, " \t")
	var b strings.Builder
	quoted := false
	end := 0 // length without trailing blanks outside quotes
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '\\':
			i++
			if i >= len(raw) {
				return "", false
			}
			switch raw[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'b':
				b.WriteByte('\b')
			case '\\', '"':
				b.WriteByte(raw[i])
			default:
				return "", false
			}
			end = b.Len()
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '#' || c == ';'):
			return b.String()[:end], true
		default:
			b.WriteByte(c)
			if quoted || c != ' ' && c != '\t' && c != '\r' {
				end = b.Len()
			}
		}
	}
	if quoted {
		return "", false
	}
	return b.String()[:end], true
}
