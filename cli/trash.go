package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// newTrash groups what a person does with the trash. No fence holds him: it is
// his own.
func newTrash(w *world) *cobra.Command {
	c := group(w, "trash", "what was deleted: list it, bring it back, remove it for good", `What was deleted, by Wattle or by any other program that uses the desktop's trash.
Through the daemon when one runs, in this process otherwise.`)
	c.AddCommand(newTrashList(w), newTrashRestore(w), newTrashEmpty(w))
	return c
}

// trashFlags are the flags of every command of the trash.
type trashFlags struct {
	socket string
	json   bool
}

func (f *trashFlags) add(c *cobra.Command) {
	socketFlag(c, &f.socket)
	jsonFlag(c, &f.json, "print the result, or the error, as JSON")
}

// onTrash makes one call: on the daemon when one runs, so that its events tell
// of it, in this process otherwise.
func onTrash[P, R any](ctx context.Context, w *world, f *trashFlags, m api.Method[P, R], p P, local func(*daemon.Host, *P) (R, error)) (R, error) {
	var none R
	r, err := w.dial(ctx, f.socket)
	if errors.Is(err, client.ErrNoDaemon) && f.socket == "" {
		h, err := w.newHost(nil)
		if err != nil {
			return none, err
		}
		defer h.Close()
		return local(h, &p)
	}
	if err != nil {
		return none, err
	}
	defer r.Close()
	return call(ctx, r, m, p)
}

func newTrashList(w *world) *cobra.Command {
	var f trashFlags
	var all bool
	var dir string
	c := action("list", "list what is in the trash of the current directory, or all", `  wattle trash list
  wattle trash list --all --json`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			if all && dir != "" {
				return usage(cmd, "--all and --workspace exclude each other")
			}
			ctx := cmd.Context()
			l, err := onTrash(ctx, w, &f, api.TrashList, api.TrashListParams{All: true}, func(h *daemon.Host, _ *api.TrashListParams) (trash.Listing, error) {
				return h.ListTrash(ctx)
			})
			if err != nil {
				return err
			}
			if !all {
				if l, err = listedBelow(l, dir); err != nil {
					return err
				}
			}
			for _, p := range l.Problems {
				w.say("%s: %s", printable(p.Path), printable(p.Detail))
			}
			if l.Truncated {
				w.say("there is more in the trash than is listed")
			}
			if f.json {
				for _, e := range l.Entries {
					if err := w.jsonLine(w.stdout, e); err != nil {
						return err
					}
				}
				return nil
			}
			return w.print("%s", listed(l.Entries))
		})
	f.add(c)
	c.Flags().BoolVar(&all, "all", false, "also what was elsewhere")
	c.Flags().StringVar(&dir, "workspace", "", "what was in `DIR`, default the current one")
	return c
}

// listedBelow is what of a listing was in a directory.
func listedBelow(l trash.Listing, dir string) (trash.Listing, error) {
	if dir == "" {
		dir = "."
	}
	dir, err := absolute(dir)
	if err != nil {
		return l, err
	}
	r, err := fence.Canonical(dir)
	if err != nil {
		return l, err
	}
	return daemon.Below(l, r.Path), nil
}

// listed is one line for each entry: id, date, type, size, path.
func listed(entries []record.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		date, size, path := e.DeletionDate, "-", e.OriginalPath
		if date == "" {
			date = strings.Repeat("-", len(record.DateForm))
		}
		if e.Size != nil {
			size = strconv.FormatInt(*e.Size, 10)
		}
		if path == "" {
			path = e.TrashDir + "/files/" + e.Name
		}
		b.WriteString(e.ID + "  " + printable(date) + "  " + pad(e.Type, 9) + "  " + padLeft(size, 12) + "  " + printable(path))
		if e.State != record.OK {
			b.WriteString("  (" + string(e.State) + ")")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func pad(s string, n int) string     { return s + strings.Repeat(" ", max(0, n-len(s))) }
func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-len(s))) + s }
