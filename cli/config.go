package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/daemon"
)

// newConfig groups what can be asked about the configuration.
func newConfig(w *world) *cobra.Command {
	c := group(w, "config", "the configuration", `The configuration is in config.toml in $XDG_CONFIG_HOME/wattle, above that of the
system in /etc/wattle. WATTLE_CONFIG, or --config of serve, names another file,
which is the only one then.`)
	c.AddCommand(newConfigCheck(w), newConfigShow(w))
	return c
}

// configuration reads what holds, or one file alone.
func (w *world) configuration(file string) (daemon.Config, error) {
	places, err := daemon.FindPlaces(w.getenv)
	if err != nil {
		return daemon.Config{}, err
	}
	return places.LoadConfig(file, w.getenv)
}

// configChecked is the result of config check, for a configuration without
// errors.
type configChecked struct {
	OK bool `json:"ok"`
}

func newConfigCheck(w *world) *cobra.Command {
	var asJSON bool
	c := action("check [FILE]", "tell what is wrong with the configuration, or with a file", `  wattle config check`, 0, 1,
		func(_ *cobra.Command, args []string) error {
			file, what := "", "the configuration"
			if len(args) == 1 {
				var err error
				if file, err = absolute(args[0]); err != nil {
					return err
				}
				what = printable(args[0])
			}
			if _, err := w.configuration(file); err != nil {
				return err
			}
			return w.result(asJSON, configChecked{true}, func() error { return w.print("%s can be used\n", what) })
		})
	jsonFlag(c, &asJSON, "print the result, or the error, as JSON")
	return c
}

// configShown is the result of config show.
type configShown struct {
	Settings []daemon.Setting `json:"settings"`
}

func newConfigShow(w *world) *cobra.Command {
	var asJSON, origin bool
	c := action("show", "print what holds", `  wattle config show --origin`, 0, 0,
		func(*cobra.Command, []string) error {
			conf, err := w.configuration("")
			if err != nil {
				return err
			}
			s := configShown{conf.Settings()}
			return w.result(asJSON, s, func() error {
				for _, k := range s.Settings {
					line := fmt.Sprintf("%s = %v", k.Key, k.Value)
					if origin {
						line = pad(line, 32) + "  # " + printable(k.Origin)
					}
					if err := w.print("%s\n", line); err != nil {
						return err
					}
				}
				return nil
			})
		})
	c.Flags().BoolVar(&origin, "origin", false, "also where each value comes from")
	jsonFlag(c, &asJSON, "print one JSON object, with the origins")
	return c
}
