package fence

import (
	"errors"
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ErrNoLandlock: this kernel cannot restrict anything. [Ruleset.Open] returns
// it instead of a descriptor that would mean no fence.
var ErrNoLandlock = errors.New("landlock is not available")

// ProbeKernel asks the kernel what it can enforce. It asks by system call,
// never by version or by /sys, which may be absent in a container.
func ProbeKernel() Kernel {
	v, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return Kernel{Why: "landlock is not built into this kernel, or its system calls are filtered away (ENOSYS)"}
	case errors.Is(err, unix.EOPNOTSUPP):
		return Kernel{Why: "landlock is built in but not enabled at boot, see lsm= (EOPNOTSUPP)"}
	case err != nil:
		return Kernel{Why: "landlock cannot be asked for: " + err.Error()}
	}
	k := Kernel{LandlockABI: v}
	if e, err := ll.LandlockGetErrata(); err == nil {
		k.Errata = e
	}
	return k
}

// Open makes the kernel object. The descriptor is close-on-exec, serves any
// number of starts, and is the caller's to close; flags go to
// landlock_restrict_self. A ruleset that would restrict nothing is an error
// (ErrNoLandlock): fd = -1 with a nil error never leaves this function.
func (r *Ruleset) Open() (fd int, flags uint32, err error) {
	if r.ABI < 1 || r.HandledFS == 0 {
		return -1, 0, ErrNoLandlock
	}
	cfg := landlock.Config{
		HandledAccessFS:  landlock.AccessFSSet(r.HandledFS),
		HandledAccessNet: landlock.AccessNetSet(r.HandledNet),
		Scoped:           landlock.ScopedSet(r.Scoped),
	}
	rules := make([]landlock.Rule, 0, len(r.Rules))
	for _, p := range r.Rules {
		rule := landlock.PathAccess(landlock.AccessFSSet(p.Rights), p.Path)
		if !p.Must {
			rule = rule.IgnoreIfMissing()
		}
		rules = append(rules, rule)
	}
	fd, flags, err = cfg.NewRulesetFD(rules...)
	if err != nil {
		return -1, 0, fmt.Errorf("make landlock ruleset: %w", err)
	}
	if fd < 0 {
		return -1, 0, ErrNoLandlock
	}
	return fd, flags, nil
}
