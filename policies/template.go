package policies

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Context is what placeholders stand for. All directories are absolute, or
// empty where there is none.
type Context struct {
	// Home is the user's home directory: `~` and {home}.
	Home string
	// Workspace is the session's: {workspace}, and what relative paths are
	// relative to.
	Workspace string
	// Scratch is the session's scratch directory, Cache the workspace's private
	// cache. What names one that is empty is left out.
	Scratch, Cache string
	// Own are Wattle's own runtime, state and configuration directories.
	Own []string
	// Env is the user's environment. Of it only variables that name places are
	// looked at (placeVariables), and TMPDIR for compat_tmp.
	Env map[string]string
}

// placeVariables may be named by {env:NAME}. They hold places, never secrets:
// a client that names one can learn its value from a message.
var placeVariables = []string{
	"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CARGO_HOME",
	"CLOUDSDK_CONFIG", "DOCKER_CONFIG", "GH_CONFIG_DIR", "GNUPGHOME",
	"GOMODCACHE", "GOOGLE_APPLICATION_CREDENTIALS", "GOPATH", "GOROOT", "GRADLE_USER_HOME", "JAVA_HOME",
	"KUBECONFIG", "NETRC", "NPM_CONFIG_USERCONFIG", "NVM_DIR", "PASSWORD_STORE_DIR", "PIP_CONFIG_FILE",
	"PYENV_ROOT", "RUSTUP_HOME", "SSH_AUTH_SOCK", "npm_config_userconfig",
}

// places gives all values of a placeholder, or a message if there is no such
// placeholder. The XDG directories are told twice when the user moved them:
// what was there before is still there.
func (c *Context) places(name string) ([]string, string) {
	one := func(dirs ...string) []string {
		var out []string
		for _, d := range dirs {
			if filepath.IsAbs(d) && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
		return out
	}
	below := func(name string) string {
		if c.Home == "" {
			return ""
		}
		return filepath.Join(c.Home, name)
	}
	switch name {
	case "home":
		return one(c.Home), ""
	case "workspace":
		return one(c.Workspace), ""
	case "scratch":
		return one(c.Scratch), ""
	case "cache":
		return one(c.Cache), ""
	case "xdg_config":
		return one(below(".config"), c.Env["XDG_CONFIG_HOME"]), ""
	case "xdg_data":
		return one(below(".local/share"), c.Env["XDG_DATA_HOME"]), ""
	case "xdg_cache":
		return one(below(".cache"), c.Env["XDG_CACHE_HOME"]), ""
	case "xdg_runtime":
		return one(c.Env["XDG_RUNTIME_DIR"]), ""
	}
	if v, ok := strings.CutPrefix(name, "env:"); ok && slices.Contains(placeVariables, v) {
		return one(filepath.SplitList(c.Env[v])...), ""
	}
	return nil, "there is no placeholder {" + name + "}; a brace itself is written twice"
}

// part is a piece of a text: literal, or the name of a placeholder.
type part struct {
	text  string
	place bool
}

// parse splits a text at its placeholders. `{{` and `}}` are braces.
func parse(text string) ([]part, string) {
	var parts []part
	var lit strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c != '{' && c != '}':
			lit.WriteByte(c)
		case i+1 < len(text) && text[i+1] == c:
			lit.WriteByte(c)
			i++
		case c == '}':
			return nil, "a } stands alone; a brace itself is written twice"
		default:
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return nil, "a { is not closed; a brace itself is written twice"
			}
			if lit.Len() > 0 {
				parts = append(parts, part{lit.String(), false})
				lit.Reset()
			}
			parts = append(parts, part{text[i+1 : i+end], true})
			i += end
		}
	}
	if lit.Len() > 0 {
		parts = append(parts, part{lit.String(), false})
	}
	for _, p := range parts {
		if p.place {
			if _, msg := new(Context).places(p.text); msg != "" {
				return nil, msg
			}
		}
	}
	return parts, ""
}

// badValue checks a value of the environment.
func badValue(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		return "a value holds no NUL byte"
	}
	_, msg := parse(text)
	return msg
}

// badPath checks a path that may begin with a placeholder.
func badPath(text string) string {
	if msg := badText(text); msg != "" {
		return msg
	}
	if text[0] == '~' && len(text) > 1 && text[1] != '/' {
		return "only one's own home can be named by ~: write ~/ and a name"
	}
	parts, msg := parse(text)
	if msg != "" {
		return msg
	}
	for i, p := range parts {
		if p.place && i > 0 {
			return "a placeholder stands at the beginning of a path only"
		}
		if i > 0 && parts[i-1].place && p.text[0] != '/' {
			return "a placeholder is a whole directory: a / must follow it"
		}
	}
	return ""
}

// badHide checks a path whose components may be globs.
func badHide(text string) string {
	if msg := badPath(text); msg != "" {
		return msg
	}
	glob := strings.ContainsAny(text, "*?[")
	for _, c := range strings.Split(text, "/") {
		if _, err := path.Match(c, "x"); err != nil && glob {
			return fmt.Sprintf("%q is a malformed glob", c)
		}
		if c == ".." && glob {
			return "a path with globs has no .."
		}
	}
	return ""
}

// paths gives the absolute paths that a text of a document stands for: none
// where its placeholder stands for nothing, several where it stands for
// several. glob says that the list may hold globs; what placeholders bring in
// is then taken literally.
func (c *Context) paths(text string, glob bool) ([]string, error) {
	heads, rest, err := c.split(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	out := make([]string, 0, len(heads))
	for _, h := range heads {
		if glob && strings.ContainsAny(h+rest, "*?[") {
			h = escapeGlob(h)
		}
		out = append(out, tidy(h+rest))
	}
	return out, nil
}

// split separates the directories that a path may begin with from the rest of
// it, which is the same for all.
func (c *Context) split(text string) (heads []string, rest string, err error) {
	if msg := badPath(text); msg != "" {
		return nil, "", errors.New(msg)
	}
	name := ""
	if text[0] == '~' {
		name, text = "home", text[1:]
	}
	parts, _ := parse(text)
	for _, p := range parts {
		if p.place {
			name = p.text
		} else {
			rest += p.text
		}
	}
	if name == "" {
		if filepath.IsAbs(rest) {
			return []string{""}, rest, nil
		}
		name, rest = "workspace", "/"+rest
	}
	heads, _ = c.places(name)
	if len(heads) == 0 && mustHave(name) {
		return nil, "", fmt.Errorf("no directory is known for {%s}", name)
	}
	return heads, rest, nil
}

// mustHave: without these an entry must not silently vanish. The others name
// what a session may do without.
func mustHave(name string) bool {
	switch name {
	case "home", "workspace", "xdg_config", "xdg_data", "xdg_cache":
		return true
	}
	return false
}

// value expands a value of the environment; ok is false if one of its
// placeholders stands for nothing. {env:NAME} stands for the variable as it
// is, an XDG directory for the one in force.
func (c *Context) value(text string) (v string, ok bool) {
	parts, msg := parse(text)
	if msg != "" {
		return "", false
	}
	for _, p := range parts {
		s := p.text
		if p.place {
			if name, env := strings.CutPrefix(p.text, "env:"); env {
				s = c.Env[name]
			} else if all, _ := c.places(p.text); len(all) > 0 {
				s = all[len(all)-1]
			} else {
				s = ""
			}
			if s == "" {
				return "", false
			}
		}
		v += s
	}
	return v, true
}

// tidy removes doubled and trailing separators and `.`. It leaves a path with
// `..` alone: what that means depends on links, and fence resolves it.
func tidy(p string) string {
	if slices.Contains(strings.Split(p, "/"), "..") {
		return p
	}
	return filepath.Clean(p)
}

// escapeGlob makes a directory stand for itself in a glob (path.Match).
func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p)
}
