package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
)

// errNothing: there is no such file, which stat does not call an error.
var errNothing = errors.New("nothing is there")

func newFSStat(w *world) *cobra.Command {
	var f fileFlags
	var link bool
	c := action("stat PATH", "describe a file; status 1 when nothing is there", `  wattle fs stat go.mod --json`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			get := func(id string) api.FileRef { return file(id, args[0]) }
			var r *provider.Info
			var err error
			if link {
				var l *provider.PathInfo
				l, err = anywhere(cmd.Context(), w, &f.fence, f.socket, api.FSLstat, get,
					func(s *daemon.Session, p api.FileRef) (*provider.PathInfo, error) { return s.Lstat(cmd.Context(), &p) })
				if l != nil {
					r = &provider.Info{Version: l.Version, Type: l.Type, Size: l.Size}
				}
			} else {
				r, err = anywhere(cmd.Context(), w, &f.fence, f.socket, api.FSStat, get,
					func(s *daemon.Session, p api.FileRef) (*provider.Info, error) { return s.Stat(cmd.Context(), &p) })
			}
			if err != nil {
				return err
			}
			if r == nil && !f.json {
				return fmt.Errorf("stat %s: %w", args[0], errNothing)
			}
			err = w.result(f.json, r, func() error {
				size := ""
				if r.Size != nil {
					size = fmt.Sprintf("%d bytes  ", *r.Size)
				}
				return w.print("%s  %sversion %s\n", r.Type, size, printable(string(r.Version)))
			})
			if err == nil && r == nil {
				return exitStatus(statusFailed)
			}
			return err
		})
	c.Flags().BoolVar(&link, "no-follow", false, "describe a link itself")
	f.add(c)
	return c
}
