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
			if r.Group != nil && !r.Group.Complete() {
				return exitStatus(statusFailed)
			}
			return nil
		})
	f.add(c)
	c.Flags().StringVar(&p.ProcessID, "process", "", "bring back all that the command with this `ID` removed")
	c.Flags().StringVar(&p.Destination, "to", "", "put it at `PATH` instead of where it was; with --process a directory that stands for the workspace")
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
	g := r.Group
	if g == nil {
		return nil
	}
	for _, l := range g.Left {
		w.say("%s stays in the trash: %s: %s", printable(l.Path), l.Code, printable(l.Why))
	}
	if more := g.NotRestored - len(g.Left); more > 0 {
		w.say("%d more stay in the trash", more)
	}
	if g.NotKept > 0 {
		w.say("%d things had not been kept when the command removed them", g.NotKept)
	}
	if !g.Ended {
		w.say("the command has not ended: it may remove more")
	}
	return w.print("restored  %d files, %d directories\n", g.Files, g.Directories)
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
