package fence

import (
	"path/filepath"
	"strings"
)

// deny makes the record of a refusal: the rule in words, what to do instead,
// and the smallest grant if one is offered.
func (f *Fence) deny(canonical, requested string, access Access, rule Rule, source string) *Denial {
	d := &Denial{
		Code: CodeSandboxDenied, Path: canonical, Requested: requested, Access: access,
		Mode: f.policy.Mode, Rule: rule, RuleSource: source,
		WritableRoots: f.WritableRoots(),
		Verdict:       VerdictFence, Evidence: EvidenceDecision,
	}
	switch rule {
	case RuleReadOnly:
		d.Hint = "ask for workspace-write to change files in the workspace"
		if ws := f.policy.Workspace; ws == "" || !covers(ws, canonical) {
			d.Hint = "nothing can be written in read-only; this path lies outside the workspace too"
		}
	case RuleOutside:
		d.Grant = f.smallestGrant(canonical, access)
		places := f.placesToWrite()
		switch {
		case places == "":
			d.Hint = "this session has no writable root"
		case d.Grant == nil:
			d.Hint = "write in " + places + " instead; no grant is offered for this path"
		default:
			d.Hint = "write in " + places + ", or ask for a grant of " + d.Grant.Path
		}
	case RuleProtected:
		d.Hint = "programs outside the fence run what is written here; ask the user to make this change"
	case RuleHidden:
		d.Hint = "this path is hidden from the session; a policy can make it visible"
	case RuleReadableRoots:
		d.Hint = "the policy lists what can be read, and this path is not in it"
		d.Grant = &Grant{Path: canonical, Access: Read}
	case RuleUnixSocket:
		d.Hint = "sockets of programs outside the fence are closed; a policy can name this one"
		d.Grant = &Grant{Path: canonical, Access: Connect}
	case RuleNetwork:
		d.Hint = "the network is closed in this session; ask for network on"
	case RuleMetadata:
		d.Hint = "mode, owner, times and attributes outside the writable roots cannot be changed"
	}
	return d
}

// placesToWrite names the roots that are meant for a person's files, the
// workspace first; caches are for tools.
func (f *Fence) placesToWrite() string {
	var out, rest []string
	for _, r := range f.writable {
		switch {
		case r.path == f.policy.Workspace:
			out = append(out, r.path)
		case r.guarded:
			rest = append(rest, r.path)
		}
	}
	for _, r := range f.writable {
		if r.path == f.policy.Scratch {
			rest = append(rest, r.path)
		}
	}
	return strings.Join(append(out, rest...), " or ")
}

// systemDirs are never offered as a grant: an agent that asks for them has
// taken a wrong turn, and a user who wants it can write a policy.
var systemDirs = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/lib", "/var/run"}

// smallestGrant is the path itself for changes of an existing file's content
// or metadata, else the directory whose entries change.
func (f *Fence) smallestGrant(canonical string, access Access) *Grant {
	if !absolutePath(canonical) || strings.IndexByte(canonical, 0) >= 0 || filepath.Clean(canonical) != canonical {
		return nil
	}
	for _, v := range f.visible {
		if covers(v.path, canonical) {
			return nil // a root above would not decide, the exception below a hidden path does
		}
	}
	p, a := canonical, Write
	switch access {
	case Create, Delete, Rename, Link, Mkdir, Bind:
		p = filepath.Dir(canonical)
	}
	if p == "/tmp" || p == "/var/tmp" {
		return nil // they are everybody's; TMPDIR is what helps
	}
	for _, s := range systemDirs {
		if covers(s, p) {
			return nil
		}
	}
	if refuseRoot(p, f.policy.Home, f.policy.Own) != "" {
		return nil
	}
	return &Grant{Path: p, Access: a}
}
