package cli

import (
	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/policies"
)

func newPolicy(w *world) *cobra.Command {
	c := group(w, "policy", "presets and policy files", "")
	c.AddCommand(newPolicyList(w), newPolicyShow(w), newPolicyCheck(w))
	return c
}

// library finds policies as a daemon of this user would.
func (w *world) library(dir string) (policies.Library, error) {
	places, err := daemon.FindPlaces(w.getenv)
	if err != nil {
		return policies.Library{}, err
	}
	lib := policies.Library{Dirs: places.PolicyDirs}
	if dir != "" {
		if dir, err = absolute(dir); err != nil {
			return lib, err
		}
		lib.Dirs = append([]string{dir}, lib.Dirs...)
	}
	return lib, nil
}

func policyDirFlag(c *cobra.Command, p *string) {
	c.Flags().StringVar(p, "policy-dir", "", "look for policies in `D` first")
}

// policyList is the result of policy list.
type policyList struct {
	Policies []policies.Info `json:"policies"`
}

func newPolicyList(w *world) *cobra.Command {
	var dir string
	var asJSON bool
	c := action("list", "list the presets and the user's policy files", `  wattle policy list`, 0, 0,
		func(*cobra.Command, []string) error {
			lib, err := w.library(dir)
			if err != nil {
				return err
			}
			l := policyList{lib.List()}
			return w.result(asJSON, l, func() error {
				return w.table("NAME\tUSED\tFROM\tDESCRIPTION", func(row func(string, ...any)) {
					for _, p := range l.Policies {
						used, text := "when named", p.Description
						if p.Default {
							used = "always"
						}
						if p.Problem != "" {
							used, text = "never", p.Problem
						}
						row("%s\t%s\t%s\t%s", printable(p.Name), used, printable(p.Source), printable(text))
					}
				})
			})
		})
	policyDirFlag(c, &dir)
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}

// policyShown is the result of policy show.
type policyShown struct {
	Name   string            `json:"name"`
	TOML   string            `json:"toml"`
	Policy policies.Document `json:"policy"`
}

func newPolicyShow(w *world) *cobra.Command {
	var dir string
	var asJSON bool
	c := action("show NAME", "print a policy as it was written", `  wattle policy show git`, 1, 1,
		func(_ *cobra.Command, args []string) error {
			lib, err := w.library(dir)
			if err != nil {
				return err
			}
			text, err := lib.Text(args[0])
			if err != nil {
				return err
			}
			d, err := lib.Load(args[0])
			if err != nil {
				return err
			}
			return w.result(asJSON, policyShown{args[0], text, d}, func() error { return w.print("%s", text) })
		})
	policyDirFlag(c, &dir)
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}

// policyChecked is the result of policy check, for a file without errors.
type policyChecked struct {
	OK          bool   `json:"ok"`
	Description string `json:"description"`
}

func newPolicyCheck(w *world) *cobra.Command {
	var asJSON bool
	c := action("check FILE", "tell what is wrong with a policy file", `  wattle policy check ~/.config/wattle/policies/mine.toml`, 1, 1,
		func(_ *cobra.Command, args []string) error {
			lib, err := w.library("")
			if err != nil {
				return err
			}
			path, err := absolute(args[0])
			if err != nil {
				return err
			}
			d, err := lib.LoadFile(path)
			if err != nil {
				return hinted(err, "wattle policy show NAME prints a preset to compare with")
			}
			return w.result(asJSON, policyChecked{true, d.Description}, func() error {
				return w.print("%s can be used\n", printable(args[0]))
			})
		})
	jsonFlag(c, &asJSON, "print the result, or the error, as JSON")
	return c
}
