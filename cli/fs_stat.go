package cli

import (
	"context"
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
			r, err := one(cmd.Context(), w, &f, func(ctx context.Context, s *files) (*provider.Info, error) {
				if !link {
					return ask(ctx, s, api.FSStat, s.ref(args[0]), (*daemon.Session).Stat)
				}
				l, err := ask(ctx, s, api.FSLstat, s.ref(args[0]), (*daemon.Session).Lstat)
				if err != nil || l == nil {
					return nil, err
				}
				return &provider.Info{Version: l.Version, Type: l.Type, Size: l.Size}, nil
			})
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

func newFSResolve(w *world) *cobra.Command {
	var f fileFlags
	c := action("resolve PATH", "print the canonical path, links followed; nothing need be there", `  wattle fs resolve ./link/new.txt`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			r, err := one(cmd.Context(), w, &f, func(ctx context.Context, s *files) (provider.Target, error) { return s.resolve(ctx, args[0]) })
			if err != nil {
				return err
			}
			// The key of a file on this machine is its path.
			return w.result(f.json, r, func() error { return w.print("%s\n", printable(string(r.TargetKey))) })
		})
	f.add(c)
	return c
}

// resolve gives the identity of a path.
func (s *files) resolve(ctx context.Context, path string) (provider.Target, error) {
	p := api.FSResolveParams{SessionID: s.id, Path: path, Cwd: here()}
	return ask(ctx, s, api.FSResolve, p, func(x *daemon.Session, ctx context.Context, p *api.FSResolveParams) (provider.Target, error) {
		return x.Resolve(ctx, p.Path, p.Cwd)
	})
}
