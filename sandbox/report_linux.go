package sandbox

import (
	"github.com/wattle-dev/wattle/fence"
)

// report says what was really applied to a start.
func report(k fence.Kernel, rs *fence.Ruleset, landlocked bool, out *launched, f *fence.Fence, scoped bool) fence.Enforcement {
	e := fence.Enforcement{
		Level: fence.LevelPartial, Supervisor: out.supervisor != nil, Seccomp: out.seccomp,
		KillTree: fence.KillTreeSubreaper, Protect: fence.ProtectOff,
		Skipped: []fence.Skipped{}, Governed: []string{}, NotGoverned: []fence.Gap{},
	}
	if scoped {
		e.KillTree = fence.KillTreeLandlock
	}
	governs := func(what string, is bool) {
		if is {
			e.Governed = append(e.Governed, what)
		}
	}
	supervised := out.supervisor != nil
	if landlocked {
		e.LandlockABI, e.LandlockErrata = rs.ABI, k.Errata
		e.Skipped = append(e.Skipped, rs.Skipped...)
		for _, g := range rs.Gaps {
			switch {
			case g.What == "truncate" && supervised:
			case g.What == "pathname-sockets" && supervised:
				g.Why = "the supervisor checks connections by path, then lets them go on: a program that changes the address in its memory in between can win; datagrams sent to a socket by path are not seen"
				e.NotGoverned = append(e.NotGoverned, g)
			case (g.What == "udp" || g.What == "tcp") && out.seccomp:
			default:
				e.NotGoverned = append(e.NotGoverned, g)
			}
		}
	} else {
		e.NotGoverned = append(e.NotGoverned, fence.Gap{What: "fs-write", Why: k.Why, Since: "Landlock ABI 1"})
	}
	net := f.Policy().Network == fence.NetworkOff
	governs("fs-write", landlocked)
	governs("fs-read", landlocked)
	governs("truncate", landlocked && rs.ABI >= 3 || supervised)
	governs("device-ioctl", landlocked && rs.ABI >= 5)
	governs("signals", scoped)
	governs("abstract-sockets", scoped)
	governs("pathname-sockets", landlocked && rs.ABI >= 9)
	governs("network", net && out.seccomp)
	governs("io_uring", out.seccomp)
	governs("foreign-architectures", out.seccomp)
	governs("terminal-injection", out.seccomp)
	governs("metadata", out.seccomp && !supervised && f.Mode() == fence.ReadOnly)
	if landlocked && f.Mode() == fence.WorkspaceWrite {
		e.NotGoverned = append(e.NotGoverned, fence.Gap{What: "hard-links", Why: "a file outside that has a hard link inside a writable root already can be written through that link"})
	}
	if !net {
		e.NotGoverned = append(e.NotGoverned, fence.Gap{What: "network", Why: "the policy leaves the network open"})
	}
	if supervised && f.Policy().Protect == fence.ProtectOff {
		e.NotGoverned = append(e.NotGoverned, fence.Gap{What: "protected-paths", Why: "the policy protects nothing (protect \"off\")"})
	} else if supervised {
		e.Protect = fence.ProtectChecked
		e.NotGoverned = append(e.NotGoverned,
			fence.Gap{What: "protected-paths", Why: "the supervisor checks a change and then lets it go on (protect \"checked\"): a program that changes the path in its memory in between can win"},
			fence.Gap{What: "metadata", Why: "mode, owner, times and attributes outside the writable roots are checked and then let go on: a program that changes the path in its memory in between can win"})
	} else {
		why := "no supervisor"
		if out.nested {
			why = "another supervisor is above this process, and the kernel allows one"
		}
		e.NotGoverned = append(e.NotGoverned,
			fence.Gap{What: "attribution", Why: why},
			fence.Gap{What: "protected-paths", Why: why})
		if f.Mode() != fence.ReadOnly {
			e.NotGoverned = append(e.NotGoverned, fence.Gap{What: "metadata", Why: why})
		}
	}
	if f.TrashCommands() {
		why := notKeptByName
		if supervised && out.supervisor.keep != nil {
			governs("trash-commands", true)
		} else if supervised {
			why = "this program has no trash to keep it in"
		} else {
			why = "no supervisor"
		}
		e.NotGoverned = append(e.NotGoverned, fence.Gap{What: "trash-commands", Why: why})
	}
	if len(e.NotGoverned) == 0 && len(e.Skipped) == 0 {
		e.Level = fence.LevelFull
	}
	if !landlocked {
		e.Level = fence.LevelNone
	}
	return e
}

// notKeptByName is what trash_commands cannot give back.
const notKeptByName = "what a command overwrites or empties in place is not kept, nor what it removes under a name that it swaps in the last moment"

// unfenced is the report of a full-access start.
func unfenced(f *fence.Fence) fence.Enforcement {
	e := fence.Enforcement{
		Level: fence.LevelNone, KillTree: fence.KillTreeSubreaper, Protect: fence.ProtectOff,
		Skipped: []fence.Skipped{}, Governed: []string{},
		NotGoverned: []fence.Gap{{What: "everything", Why: "full-access has no fence"}},
	}
	if f != nil && f.TrashCommands() {
		e.NotGoverned = append(e.NotGoverned, fence.Gap{What: "trash-commands", Why: "full-access has no supervisor: what its commands remove is gone"})
	}
	return e
}

// Enforcement is what a fence in read-only on this machine would have applied,
// as far as can be told without a start: what `initialize` answers.
func (r *Runner) Enforcement() fence.Enforcement {
	f, err := fence.New(fence.Policy{Mode: fence.ReadOnly, Devices: fence.DefaultDevices()})
	if err != nil {
		return unfenced(nil)
	}
	return r.EnforcementOf(f)
}

// EnforcementOf is what a start under that fence would have applied. It looks
// at the disk. A start may still get less: another supervisor may be above.
func (r *Runner) EnforcementOf(f *fence.Fence) fence.Enforcement {
	if !f.Mode().Fenced() {
		return unfenced(f)
	}
	if r.kernel.LandlockABI == 0 {
		return fence.Enforcement{Level: fence.LevelNone, KillTree: fence.KillTreeSubreaper, Protect: fence.ProtectOff,
			Skipped: []fence.Skipped{}, Governed: []string{},
			NotGoverned: []fence.Gap{{What: "commands", Why: r.kernel.Why, Since: "Landlock ABI 1"}}}
	}
	rs := f.CompileLandlock(r.kernel)
	sup := &supervisor{}
	if r.opts.Keeper != nil {
		sup.keep = &keeping{}
	}
	return report(r.kernel, rs, true, &launched{supervisor: sup, seccomp: true}, f, rs.SignalScoped())
}
