package fence

// Level is how much of the policy the kernel holds for a command.
type Level string

const (
	LevelFull    Level = "full"    // all that this version of Wattle can ask for
	LevelPartial Level = "partial" // something is in NotGoverned or Skipped
	LevelNone    Level = "none"    // nothing: full-access, or no kernel support
)

// Protect is how writes inside a writable root are kept from protected paths.
type Protect string

const (
	// ProtectStrict: the supervisor performs the call itself on pinned handles.
	ProtectStrict Protect = "strict"
	// ProtectChecked: the supervisor checks the call, then lets it go on. A
	// command that rewrites the path in its memory in between can win.
	ProtectChecked Protect = "checked"
	// ProtectOff: nobody looks.
	ProtectOff Protect = "off"
)

// Skipped is a rule whose path could not be used.
type Skipped struct {
	Path  string `json:"path"`
	Errno string `json:"errno"`
}

// Gap is something that this fence does not hold, why, and the Landlock ABI or
// release of Wattle from which it could.
type Gap struct {
	What  string `json:"what"`
	Why   string `json:"why"`
	Since string `json:"since,omitzero"`
}

// Enforcement reports what was really applied (PROTOCOL section 2). It is in
// the reply of every start. Level = full ⇒ NotGoverned = ∅ ∧ Skipped = ∅.
type Enforcement struct {
	Level          Level     `json:"level"`
	LandlockABI    int       `json:"landlockAbi"`
	LandlockErrata int       `json:"landlockErrata"`
	Supervisor     bool      `json:"supervisor"`
	Seccomp        bool      `json:"seccomp"`
	KillTree       string    `json:"killTree"`
	Protect        Protect   `json:"protect"`
	Skipped        []Skipped `json:"skipped"`
	Governed       []string  `json:"governed"`
	NotGoverned    []Gap     `json:"notGoverned"`
}

// Ways in which a whole tree is ended, strongest first.
const (
	KillTreeLandlock  = "landlock"
	KillTreeCgroup    = "cgroup"
	KillTreeSubreaper = "subreaper"
)
