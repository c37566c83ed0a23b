package fence

import (
	"fmt"
	"strings"
)

// CodeSandboxDenied is the stable code of every refusal by the fence. It is
// never used for a refusal by the kernel's ordinary permissions.
const CodeSandboxDenied = "FS_SANDBOX_DENIED"

// Rule names the kind of rule that decided.
type Rule string

const (
	RuleOutside       Rule = "outside-writable-roots"
	RuleProtected     Rule = "protected"
	RuleHidden        Rule = "hidden"
	RuleReadOnly      Rule = "read-only"
	RuleUnixSocket    Rule = "unix-socket"
	RuleMetadata      Rule = "metadata"
	RuleNetwork       Rule = "network"
	RuleReadableRoots Rule = "readable-roots"
)

// Verdict says who refused. A list of denials holds VerdictFence only.
type Verdict string

const (
	VerdictFence      Verdict = "fence"      // our policy
	VerdictPermission Verdict = "permission" // the kernel's ordinary refusal
	VerdictUnknown    Verdict = "unknown"
)

// Evidence says how a verdict is known.
type Evidence string

const (
	EvidenceDecision   Evidence = "decision"   // the file API asked Check before acting
	EvidenceSupervisor Evidence = "supervisor" // the supervisor answered the call itself
	EvidenceLandlock   Evidence = "landlock"
)

// Grant is the smallest widening that would allow a refused access.
type Grant struct {
	Path   string `json:"path"`
	Access Access `json:"access"`
}

// Denial is one refusal by the fence (PROTOCOL section 1). It is an error.
// Path is canonical; Requested is the path as the caller spelled it.
// Invariant: Code = CodeSandboxDenied ∧ Verdict = VerdictFence.
type Denial struct {
	Code          string   `json:"code"`
	Path          string   `json:"path"`
	Requested     string   `json:"requested"`
	Access        Access   `json:"access"`
	Mode          Mode     `json:"mode"`
	Rule          Rule     `json:"rule"`
	RuleSource    string   `json:"ruleSource"`
	WritableRoots []string `json:"writableRoots"`
	Hint          string   `json:"hint"`
	// Grant is nil when no grant is offered: system directories, hidden and
	// protected paths. Hint then says what to do instead.
	Grant *Grant `json:"grant,omitzero"`

	// Of commands only.
	Syscall string `json:"syscall,omitzero"`
	PID     int    `json:"pid,omitzero"`
	Process string `json:"process,omitzero"`
	Errno   string `json:"errno,omitzero"`
	// Count is how many equal refusals this record stands for, 0 meaning one.
	Count int `json:"count,omitzero"`

	Verdict  Verdict  `json:"verdict"`
	Evidence Evidence `json:"evidence"`
}

// Error names access, path, rule and hint: all that a person needs.
func (d *Denial) Error() string {
	return fmt.Sprintf("%s %s denied in %s (%s); %s", d.Access, d.Path, d.Mode, d.RuleText(), d.Hint)
}

// RuleText is the rule in words, for messages to people.
func (d *Denial) RuleText() string { return strings.ReplaceAll(string(d.Rule), "-", " ") }

// Key is equal for denials that are the same refusal again: same path, access,
// rule and process. The supervisor counts those instead of listing them.
func (d *Denial) Key() string {
	return strings.Join([]string{d.Path, string(d.Access), string(d.Rule), d.Syscall, d.Process}, "\x00")
}
