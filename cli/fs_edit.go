package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
)

func newFSEdit(w *world) *cobra.Command {
	var f fileFlags
	var e provider.EditRequest
	var ifVersion string
	c := action("edit PATH --old TEXT --new TEXT", "replace literal text in a file", `  wattle fs edit go.mod --old 'go 1.25' --new 'go 1.26'`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			var o provider.EditOptions
			if cmd.Flags().Changed("if-version") {
				if ifVersion == "" {
					return usage(cmd, "--if-version: an empty version")
				}
				o.Expected = &provider.VersionGuard{Version: provider.Version(ifVersion)}
			}
			r, err := one(cmd.Context(), w, &f, func(ctx context.Context, s *files) (provider.EditOutcome, error) {
				return ask(ctx, s, api.FSEditText, api.FSEditTextParams{FileRef: s.ref(args[0]), Edit: e, EditOptions: o}, (*daemon.Session).EditText)
			})
			if err != nil {
				return err
			}
			return w.result(f.json, r, func() error {
				w.told(r.LinksBroken, r.MetadataLost)
				return w.print("edited %s\n", printable(args[0]))
			})
		})
	f.add(c)
	c.Flags().StringVar(&e.OldString, "old", "", "the `TEXT` to look for, letter for letter")
	c.Flags().StringVar(&e.NewString, "new", "", "the `TEXT` to put there; empty deletes")
	c.Flags().BoolVar(&e.ReplaceAll, "all", false, "replace every occurrence, not just one")
	c.Flags().StringVar(&ifVersion, "if-version", "", "only if the file still has version `V`")
	for _, n := range []string{"old", "new"} {
		if err := c.MarkFlagRequired(n); err != nil {
			panic(err) // the flag was registered above
		}
	}
	return c
}
