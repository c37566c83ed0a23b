package cli

import (
	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

func newTrashRestore(w *world) *cobra.Command {
	var f trashFlags
	var p api.TrashRestoreParams
	c := action("restore [ID]", "bring something back from the trash, never over something", `  wattle trash restore kq3….x7a…
  wattle trash restore kq3….x7a… --to old.txt
  wattle trash restore --process ID`, 0, 1,
		func(cmd *cobra.Command, args []string) error {
			p := p
			if len(args) == 1 {
				p.ID = args[0]
			}
			switch {
			case (p.ID == "") == (p.ProcessID == ""):
				return usage(cmd, "name one entry by its ID, or one command with --process")
			case p.ProcessID != "" && p.Destination != "":
				return usage(cmd, "--to and --process exclude each other: what a command removed goes back to where it was")
			}
			var err error
			if p.Destination, err = absolute(p.Destination); err != nil {
				return err
			}
			ctx := cmd.Context()
			r, err := onTrash(ctx, w, &f, api.TrashRestore, p, func(h *daemon.Host, p *api.TrashRestoreParams) (api.TrashRestoreResult, error) {
				return h.RestoreTrash(ctx, p)
			})
			if err != nil {
				return restoreAdvice(err, &p)
			}
			if err := w.result(f.json, r, func() error { return w.tellRestored(r) }); err != nil {
				return err
			}
			if len(r.Left) > 0 {
				return exitStatus(statusFailed)
			}
			return nil
		})
	f.add(c)
	c.Flags().StringVar(&p.ProcessID, "process", "", "bring back all that the command with this `ID` removed")
	c.Flags().StringVar(&p.Destination, "to", "", "put it at `PATH` instead of where it was")
	c.Flags().BoolVar(&p.Parents, "parents", false, "make the directories that are missing on the way")
	c.Flags().BoolVar(&p.CopyAcross, "copy-across", false, "copy it when the place is in another file system")
	return c
}

func (w *world) tellRestored(r api.TrashRestoreResult) error {
	for _, one := range r.Restored {
		if err := w.print("restored  %s\n", printable(one.Path)); err != nil {
			return err
		}
		w.told(0, one.MetadataLost)
	}
	for _, l := range r.Left {
		w.say("%s stays in the trash: %s", printable(l.Entry.OriginalPath), printable(l.Error.Message))
	}
	return nil
}

// restoreAdvice says what to do after a refusal.
func restoreAdvice(err error, p *api.TrashRestoreParams) error {
	switch wire(err).Stable() {
	case string(provider.CodeAlreadyExists):
		return hinted(err, "put it somewhere else with --to")
	case string(provider.CodeNotFound):
		if !p.Parents {
			return hinted(err, "--parents makes the directories that are missing")
		}
	case string(provider.CodeStaleVersion):
		return hinted(err, "list the trash again with wattle trash list --all")
	case record.CodeUnavailable:
		if !p.CopyAcross {
			return hinted(err, "--copy-across copies it there, or put it somewhere else with --to")
		}
	case record.CodeUnknown:
		return hinted(err, "look at the place and at wattle trash list --all before you try again")
	}
	return err
}
