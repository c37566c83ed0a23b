package sandbox

import (
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/wattle-dev/wattle/fence"
)

// Variables that describe the fence to the command.
const (
	EnvMode    = "WATTLE_SANDBOX"         // the mode
	EnvNetwork = "WATTLE_SANDBOX_NETWORK" // 1 when the network is open, else 0
)

// defaultPass are the names that pass from the caller when the policy does not
// say (facts/presets section 3).
var defaultPass = []string{"PATH", "HOME", "LANG", "LC_*", "LANGUAGE", "TERM", "COLORTERM", "TZ", "USER", "LOGNAME", "SHELL", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES"}

// defaultPath is for callers without one, as login(1) sets it.
const defaultPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// Environment builds a command's environment from nothing: what the policy
// lets pass of the caller's, then what the policy sets, then tmp for the
// temporary-directory variables, then the request's own, then the two that
// describe the fence. Names that look like secrets never pass from the caller;
// a request may set them, it says so itself. The result is sorted and has each
// name once.
func Environment(f *fence.Fence, caller []string, request map[string]string, tmp string) []string {
	p := f.Policy()
	pass := p.Env.Pass
	if pass == nil {
		pass = defaultPass
	}
	full := p.Mode == fence.FullAccess
	env := map[string]string{}
	for _, kv := range caller {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" || ours(k) {
			continue
		}
		if full || passes(pass, k) && !secret(k) {
			env[k] = v
		}
	}
	for k, v := range p.Env.Set {
		if full && env[k] != "" {
			continue // no fence: the caller's own settings stand
		}
		if !full && tmp != "" && unusable(f, p, v) {
			v = tmp // a cache that this mode cannot write: a private one instead
		}
		env[k] = v
	}
	if tmp != "" && !full {
		env["TMPDIR"], env["TMP"], env["TEMP"] = tmp, tmp, tmp
		env["TMPPREFIX"] = tmp + "/zsh"
	}
	if env["PATH"] == "" {
		env["PATH"] = defaultPath
	}
	for k, v := range request {
		if !ours(k) && validName(k) && !strings.ContainsRune(v, 0) {
			env[k] = v
		}
	}
	env[EnvMode] = string(p.Mode)
	env[EnvNetwork] = "1"
	if p.Network == fence.NetworkOff {
		env[EnvNetwork] = "0"
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}

// unusable tells whether a value names a cache or scratch place that the fence
// does not let be written, as in read-only.
func unusable(f *fence.Fence, p fence.Policy, v string) bool {
	in := p.Scratch != "" && fence.PathCovers(p.Scratch, v)
	for _, c := range p.Caches {
		in = in || fence.PathCovers(c.Path, v)
	}
	return in && f.Check(v, fence.Mkdir) != nil
}

func validName(k string) bool { return k != "" && !strings.ContainsAny(k, "=\x00") }

// ours are variables for Wattle's own programs: none reaches a command.
func ours(k string) bool { return strings.HasPrefix(k, "WATTLE_") }

func passes(pass []string, k string) bool {
	return slices.ContainsFunc(pass, func(p string) bool {
		ok, err := path.Match(p, k)
		return err == nil && ok
	})
}

// secret tells whether a name looks like that of a credential, or of something
// that makes every program load or reach what the caller has.
func secret(k string) bool {
	u := strings.ToUpper(k)
	for _, s := range []string{"_TOKEN", "_KEY", "_SECRET"} {
		if strings.HasSuffix(u, s) {
			return true
		}
	}
	switch u {
	case "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT":
		return true
	}
	return strings.Contains(u, "PASSWORD") || strings.Contains(u, "PASSWD")
}
