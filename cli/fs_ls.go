package cli

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
)

// pageEntries is how many entries of a directory are asked for at once: so many
// fit into a reply however long their names are.
const pageEntries = 2000

func newFSList(w *world) *cobra.Command {
	var f fileFlags
	var long bool
	c := action("ls [PATH]", "list a directory, default the current one", `  wattle fs ls src --json`, 0, 1,
		func(cmd *cobra.Command, args []string) error {
			path := "."
			if len(args) == 1 {
				path = args[0]
			}
			return w.anywhere(cmd.Context(), &f, func(ctx context.Context, s *files) error {
				p := api.FSListDirParams{FileRef: s.ref(path), ListOptions: provider.ListOptions{Limit: pageEntries}}
				for {
					r, err := ask(ctx, s, api.FSListDir, p, (*daemon.Session).ListDir)
					if err != nil {
						return err
					}
					if err := w.listed(r.Entries, f.json, long); err != nil || r.Next == "" {
						return err
					}
					p.After = r.Next
				}
			})
		})
	f.fence.add(c)
	socketFlag(c, &f.socket)
	jsonFlag(c, &f.json, "print one JSON object a line")
	c.Flags().BoolVarP(&long, "long", "l", false, "print type and size too")
	return c
}

// listed prints a page of a listing, in the order of bytes.
func (w *world) listed(entries []provider.DirEntry, asJSON, long bool) error {
	var b bytes.Buffer
	for _, e := range entries {
		if asJSON {
			line, err := encodeLine(e)
			if err != nil {
				return err
			}
			b.Write(line)
			continue
		}
		if long {
			size := "-"
			if e.Size != nil {
				size = strconv.FormatInt(*e.Size, 10)
			}
			fmt.Fprintf(&b, "%-9s %12s  ", e.Type, size)
		}
		b.WriteString(printable(e.Name))
		if e.Type == provider.TypeDirectory {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return w.bytes(b.Bytes())
}
