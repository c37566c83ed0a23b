package scratch

import "fmt"

// Prompt is the section for the model's prompt. It depends on nothing but the
// workspace, the session and the configuration, so it is the same, byte for
// byte, for the whole session. A nil Dir (no workspace) gives "".
func (d *Dir) Prompt() string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf(promptText, d.Path(), d.config.AutoClean.sentence())
}

const promptText = `## Scratch directory

%[1]s is yours for files that exist only to try something out. It lies beside the workspace and is never part of version control.

Put there: try-out tests, fixtures, sample and generated data, captured logs, probes, one-off scripts, conversion products. Do not create such files next to the project's sources.

How to use it: with the scratch actions (create, write, list, clean), or with ordinary file writes and commands under that path. The temporary directory of commands (TMPDIR and its kin) points there. The directory is made when it is first needed.

%[2]s If something in it must live longer, ask the user where it belongs; do not move it into the project. Make real changes on the real files, never on a copy in the scratch directory.
`

// sentence is what the prompt says about removal; it must be true.
func (a AutoClean) sentence() string {
	switch a {
	case CleanSession:
		return "It is removed, with everything in it, when the session is closed."
	case CleanOff:
		return "It is not removed by itself: it stays until it is removed with the clean action or by the user."
	}
	return "It is removed, with everything in it, at the end of every turn."
}
