package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
)

func newFSList(w *world) *cobra.Command {
	var f fileFlags
	c := action("ls [PATH]", "list a directory, default the current one", `  wattle fs ls src`, 0, 1,
		func(cmd *cobra.Command, args []string) error {
			path := "."
			if len(args) == 1 {
				path = args[0]
			}
			r, err := anywhere(cmd.Context(), w, &f.fence, f.socket, api.FSListDir,
				func(id string) api.FSListDirParams { return api.FSListDirParams{FileRef: file(id, path)} },
				func(s *daemon.Session, p api.FSListDirParams) (api.FSListDirResult, error) {
					return s.ListDir(cmd.Context(), &p)
				})
			if err != nil {
				return err
			}
			return w.result(f.json, r, func() error {
				var b strings.Builder
				for _, e := range r.Entries {
					b.WriteString(printable(e.Name))
					if e.Type == provider.TypeDirectory {
						b.WriteByte('/')
					}
					b.WriteByte('\n')
				}
				return w.print("%s", b.String())
			})
		})
	f.add(c)
	return c
}
