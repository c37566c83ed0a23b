package cli

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// maxPaths is how many paths a command takes: what the system lets through.
const maxPaths = math.MaxInt

func newFSRemove(w *world) *cobra.Command {
	var f fileFlags
	var o provider.DeletePathOptions
	c := action("rm PATH...", "move files, directories and links to the trash, or delete them", `  wattle fs rm old.txt build
  wattle fs rm --permanent --recursive build`, 1, maxPaths,
		func(cmd *cobra.Command, args []string) error {
			switch {
			case o.Recursive && !o.Permanent:
				return usage(cmd, "--recursive goes with --permanent: the trash takes a directory whole")
			case o.CopyAcross && o.Permanent:
				return usage(cmd, "--copy-across is for the trash, and --permanent does without it")
			}
			return w.anywhere(cmd.Context(), &f, func(ctx context.Context, s *files) error {
				return w.each(ctx, args, f.json, func(path string) error {
					r, err := ask(ctx, s, api.FSDeletePath, api.FSDeletePathParams{FileRef: s.ref(path),
						Permanent: o.Permanent, Recursive: o.Recursive, CopyAcross: o.CopyAcross}, (*daemon.Session).DeletePath)
					if err != nil {
						return removeAdvice(err, &o)
					}
					return w.result(f.json, r, func() error { return w.print("%s\n", removed(path, &r)) })
				})
			})
		})
	f.add(c)
	c.Flags().BoolVar(&o.Permanent, "permanent", false, "delete outright, not to the trash")
	c.Flags().BoolVar(&o.Recursive, "recursive", false, "with --permanent: a directory with all that is in it")
	c.Flags().BoolVar(&o.CopyAcross, "copy-across", false, "copy to the home trash what no trash of its own file system takes")
	return c
}

// removed is the outcome word, the path and what goes with it. Nothing there is
// an outcome too.
func removed(path string, r *provider.DeleteOutcome) string {
	s := string(r.Outcome) + "  " + printable(path)
	switch {
	case r.Trashed != nil:
		s += "  id " + printable(r.Trashed.ID)
	case r.Entries > 1:
		s += fmt.Sprintf("  %d entries", r.Entries)
	}
	return s
}

// removeAdvice says what to do after a refusal.
func removeAdvice(err error, o *provider.DeletePathOptions) error {
	var data struct {
		Errno   string         `json:"errno"`
		Outcome record.Outcome `json:"outcome"`
	}
	e := wire(err)
	decodeData(e, &data)
	switch {
	case data.Outcome == record.Unknown:
		return hinted(err, "look at the path and at wattle trash list before you try again")
	case e.Stable() == record.CodeUnavailable && !o.CopyAcross:
		return hinted(err, "--permanent deletes it outright; --copy-across copies it to the home trash, where there is one")
	case e.Stable() == record.CodeUnavailable, e.Stable() == record.CodeFailed:
		return hinted(err, "it is still there; --permanent deletes it outright")
	case o.Permanent && data.Errno == "ENOTEMPTY" && !o.Recursive:
		return hinted(err, "--recursive deletes it with all that is in it")
	}
	return err
}

// each does something for every path and goes on after a failure, which is told
// at once. The status is that of a denial when all that failed was denied.
func (w *world) each(ctx context.Context, paths []string, asJSON bool, do func(string) error) error {
	code := 0
	for _, path := range paths {
		err := do(path)
		if err == nil {
			continue
		}
		f, ok := wrap(err).(*failed)
		if !ok || ctx.Err() != nil || errors.Is(err, errWrite) {
			return err // no more can be done
		}
		w.complain(f, false, asJSON)
		if s := f.status(false); code == 0 {
			code = s
		} else if s != code {
			code = statusFailed
		}
	}
	if code != 0 {
		return exitStatus(code)
	}
	return nil
}
