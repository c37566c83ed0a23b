package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
)

func newExplain(w *world) *cobra.Command {
	var f fenceFlags
	access := fence.Write
	var asJSON bool
	c := action("explain PATH", "tell which rule decides about a path; status 77 when it refuses", `  wattle explain .git/hooks/pre-commit
  wattle explain ~/.ssh/id_ed25519 --access read`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			wd, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("find current directory: %w", err)
			}
			var fc *fence.Fence
			r, err := inProcess(cmd.Context(), w, &f, func(s *daemon.Session) (api.FenceExplainResult, error) {
				fc = s.Fence()
				return daemon.Explain(fc, wd, args[0], access)
			})
			if err != nil {
				return err
			}
			if err := w.result(asJSON, r, func() error { return w.print("%s", explained(r, access, fc.Mode())) }); err != nil {
				return err
			}
			if !r.Allowed {
				return exitStatus(statusDenied)
			}
			return nil
		})
	f.add(c)
	f.addRoots(c)
	c.Flags().TextVar(&access, "access", access, "`A` is "+accesses(", "))
	complete(c, "access", strings.Split(accesses(" "), " ")...)
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}

func accesses(sep string) string {
	var out []string
	for _, a := range fence.Accesses {
		out = append(out, string(a))
	}
	return strings.Join(out, sep)
}

// explained is a decision for people.
func explained(r api.FenceExplainResult, access fence.Access, mode fence.Mode) string {
	if r.Allowed {
		return fmt.Sprintf("allowed: %s %s in %s\n", access, printable(r.Path), mode)
	}
	d := r.Denial
	var b strings.Builder
	fmt.Fprintf(&b, "denied: %s %s in %s\n", access, printable(r.Path), mode)
	fmt.Fprintf(&b, "  rule   %s\n", d.RuleText())
	fmt.Fprintf(&b, "  from   %s\n", printable(d.RuleSource))
	fmt.Fprintf(&b, "  hint   %s\n", printable(d.Hint))
	if d.Grant == nil {
		b.WriteString("  grant  none is offered for this path\n")
	} else {
		fmt.Fprintf(&b, "  grant  %s %s\n", d.Grant.Access, printable(d.Grant.Path))
	}
	return b.String()
}
