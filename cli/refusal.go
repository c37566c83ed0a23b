package cli

import (
	"fmt"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// maxRefusals is how many refusals a summary names.
const maxRefusals = 20

// refusal is one denial in a line.
func refusal(d *fence.Denial) string {
	s := fmt.Sprintf("denied %s %s (%s; %s)", d.Access, printable(d.Path), d.RuleText(), printable(d.Hint))
	if d.Count > 1 {
		s += fmt.Sprintf(" ×%d", d.Count)
	}
	return s
}

// sumUp tells what the fence refused to a command.
func (w *world) sumUp(st sandbox.State) {
	for i := range st.Denials {
		if i == maxRefusals {
			break
		}
		w.say("%s", refusal(&st.Denials[i]))
	}
	more := len(st.Denials) - maxRefusals
	switch {
	case more > 0 && st.DenialsTruncated:
		w.say("%d more denials, and others that were not recorded", more)
	case more > 0:
		w.say("%d more denials", more)
	case st.DenialsTruncated:
		w.say("other denials were not recorded")
	}
}

// enforced tells in a few lines what the kernel holds of a fence.
func (w *world) enforced(e fence.Enforcement) {
	w.say("fence: level %s, landlock ABI %d, supervisor %s, seccomp %s, protect %s, tree ended by %s",
		e.Level, e.LandlockABI, yesNo(e.Supervisor), yesNo(e.Seccomp), e.Protect, e.KillTree)
	for _, g := range e.NotGoverned {
		since := ""
		if g.Since != "" {
			since = " (held from " + g.Since + ")"
		}
		w.say("fence: not held: %s: %s%s", printable(g.What), printable(g.Why), printable(since))
	}
	for i, s := range e.Skipped {
		if i == maxRefusals {
			w.say("fence: %d more paths skipped", len(e.Skipped)-i)
			break
		}
		w.say("fence: skipped %s (%s)", printable(s.Path), s.Errno)
	}
}
