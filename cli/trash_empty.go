package cli

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
)

func newTrashEmpty(w *world) *cobra.Command {
	var f trashFlags
	var p api.TrashEmptyParams
	var days int
	var yes bool
	c := action("empty [ID...]", "remove things in the trash for good", `  wattle trash empty kq3….x7a…
  wattle trash empty --older-than 30 --yes
  wattle trash empty`, 0, math.MaxInt,
		func(cmd *cobra.Command, args []string) error {
			p := p
			ctx := cmd.Context()
			if len(args) > 0 {
				if cmd.Flags().Changed("older-than") || p.Orphans {
					return usage(cmd, "--older-than and --orphans are for more than what is named")
				}
				p.IDs = args
			} else {
				p.OlderThanDays = &days
			}
			if err := p.Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			if len(args) == 0 && !yes {
				if err := w.confirm(cmd, days); err != nil {
					return err
				}
			}
			r, err := onTrash(ctx, w, &f, api.TrashEmpty, p, func(h *daemon.Host, p *api.TrashEmptyParams) (api.TrashEmptyResult, error) {
				return h.EmptyTrash(ctx, p)
			})
			if err != nil {
				return err
			}
			err = w.result(f.json, r, func() error {
				for _, l := range r.Left {
					what := l.Entry.OriginalPath
					if what == "" {
						what = l.Entry.ID
					}
					w.say("%s stays: %s", printable(what), printable(l.Error.Message))
				}
				return w.print("removed %d entries, %d files, %d bytes\n", len(r.Entries), r.Files, r.Bytes)
			})
			if err == nil && len(r.Left) > 0 {
				err = exitStatus(statusFailed)
			}
			return err
		})
	f.add(c)
	c.Long = `Remove things in the trash for good: those that are named; else all, or all that
were trashed more than some days ago, of this user in every file system. That is
asked about once on a terminal, and needs --yes elsewhere.`
	c.Flags().IntVar(&days, "older-than", 0, "only what was trashed more than `DAYS` ago")
	c.Flags().BoolVar(&p.Orphans, "orphans", false, "also data without a record of where it was")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// confirm asks once before more goes than was named.
func (w *world) confirm(cmd *cobra.Command, days int) error {
	if !isTerminal(w.stdin) || !isTerminal(w.stderr) {
		return usage(cmd, "nobody can be asked here; name what is to go, or say --yes")
	}
	what := "everything in the trash"
	if days > 0 {
		what = fmt.Sprintf("what was trashed more than %d days ago", days)
	}
	fmt.Fprintf(w.stderr, "Remove %s for good? [y/N] ", what) // an error of stderr has nowhere to go
	answer, err := bufio.NewReader(w.stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a == "y" || a == "yes" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return errors.New("empty the trash: not confirmed, nothing was removed")
}
