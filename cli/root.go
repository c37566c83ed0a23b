package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot assembles the commands.
func newRoot(w *world) *cobra.Command {
	showVersion := false
	root := group(w, "wattle", "a fence, safe files and scratch for desktop agents", "")
	root.Long = `Wattle holds commands and file operations inside a fence: read-only,
workspace-write or full-access. The kernel enforces it, without root.`
	root.Example = `  wattle run -- make test        one command in a fence
  wattle explain /etc/hosts      which rule decides about a path
  wattle serve                   the daemon for agents`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = false
	root.Flags().BoolVar(&showVersion, "version", false, "print the version")
	groupRun := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if showVersion && len(args) == 0 {
			return w.printVersion(false)
		}
		return groupRun(cmd, args)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &failed{err: &usageError{cmd: cmd, err: err}}
	})
	root.AddCommand(
		newRun(w), newServe(w), newStatus(w), newExplain(w), newEvents(w), newFS(w), newTrash(w), newScratch(w),
		newSession(w), newPS(w), newPolicy(w), newConfig(w), newVersion(w),
	)
	return root
}

// group makes a command that only holds others. Without one of them it is wrong
// usage; cobra alone would print help and succeed, also for a misspelt one.
func group(w *world, use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				cmd.SetOut(w.stderr)
				_ = cmd.Help() // an error of stderr has nowhere to go
				return exitStatus(statusUsage)
			}
			msg := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
			if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
				msg += ", did you mean " + strings.Join(s, " or ")
			}
			return usage(cmd, "%s", msg)
		},
	}
}

// action makes a command that takes between least and most arguments, named in
// use.
func action(use, short, example string, least, most int, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			switch n := len(args); {
			case n < least:
				return usage(cmd, "%d arguments given, %d needed", n, least)
			case n > most:
				return usage(cmd, "%d arguments given, %d at most", n, most)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return wrap(run(cmd, args)) },
	}
}

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command, p *bool, what string) {
	cmd.Flags().BoolVar(p, "json", false, what)
}
