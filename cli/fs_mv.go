package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// placeAdvice says what to do where something cannot be made at a path.
func placeAdvice(err error, overwrite bool) error {
	exists := "--overwrite replaces a file; to put something into a directory, name the whole path DIR/NAME"
	if overwrite {
		exists = "only a file, or an empty directory, is replaced"
	}
	return advised(err, map[string]string{
		string(provider.CodeAlreadyExists): exists,
		record.CodeUnavailable:             "what would be replaced has no trash to go to; remove it with wattle fs rm --permanent first",
	})
}

func newFSMove(w *world) *cobra.Command {
	var f fileFlags
	var overwrite bool
	c := action("mv SOURCE DESTINATION", "move or rename a file, a directory or a link", `  wattle fs mv draft.md docs/guide.md`, 2, 2,
		func(cmd *cobra.Command, args []string) error {
			r, err := one(cmd.Context(), w, &f, func(ctx context.Context, s *files) (provider.MovePathOutcome, error) {
				return ask(ctx, s, api.FSMovePath, api.FSMovePathParams{FileRef: s.ref(args[0]), Destination: args[1], Overwrite: overwrite}, (*daemon.Session).MovePath)
			})
			if err != nil {
				return placeAdvice(err, overwrite)
			}
			return w.result(f.json, r, func() error {
				w.told(0, r.MetadataLost)
				w.replaced(r.Replaced, r.Trashed)
				if r.Copied {
					w.say("it lies on another file system now, and was copied")
				}
				return w.print("moved %s to %s\n", printable(args[0]), printable(r.Path))
			})
		})
	f.add(c)
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace a file that is there, or an empty directory")
	return c
}

func newFSCopy(w *world) *cobra.Command {
	var f fileFlags
	var overwrite, recursive bool
	c := action("cp SOURCE DESTINATION", "copy a file, a link itself, or a directory", `  wattle fs cp --recursive templates/app app`, 2, 2,
		func(cmd *cobra.Command, args []string) error {
			r, err := one(cmd.Context(), w, &f, func(ctx context.Context, s *files) (provider.CopyPathOutcome, error) {
				return ask(ctx, s, api.FSCopyPath, api.FSCopyPathParams{FileRef: s.ref(args[0]), Destination: args[1],
					Overwrite: overwrite, Recursive: recursive}, (*daemon.Session).CopyPath)
			})
			if err != nil {
				if !recursive && !overwrite {
					err = advised(err, map[string]string{string(provider.CodeNotRegularFile): "a directory is copied with --recursive"})
				}
				return placeAdvice(err, overwrite)
			}
			return w.result(f.json, r, func() error {
				w.told(0, r.MetadataLost)
				w.replaced(r.Replaced, r.Trashed)
				return w.print("copied %s to %s  %s, %s\n", printable(args[0]), printable(r.Path), count(int64(r.Files), "file"), count(r.Bytes, "byte"))
			})
		})
	f.add(c)
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace a file that is there, or an empty directory")
	c.Flags().BoolVar(&recursive, "recursive", false, "copy a directory with all that is in it")
	return c
}

// replaced tells what became of what was at a destination.
func (w *world) replaced(o record.Outcome, e *record.Entry) {
	switch {
	case e != nil:
		w.say("what was there is in the trash  id %s", printable(e.ID))
	case o != "":
		w.say("what was there is %s", o)
	}
}

// count is a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}

func newFSMakeDir(w *world) *cobra.Command {
	var f fileFlags
	var parents bool
	c := action("mkdir PATH...", "make directories", `  wattle fs mkdir --parents src/app/testdata`, 1, maxPaths,
		func(cmd *cobra.Command, args []string) error {
			return w.anywhere(cmd.Context(), &f, func(ctx context.Context, s *files) error {
				return w.each(ctx, args, f.json, func(path string) error {
					r, err := ask(ctx, s, api.FSMakeDir, api.FSMakeDirParams{FileRef: s.ref(path), Parents: parents}, (*daemon.Session).MakeDir)
					if err != nil {
						if parents {
							return err
						}
						return advised(err, map[string]string{
							string(provider.CodeNotFound):      "--parents makes the missing directories too",
							string(provider.CodeAlreadyExists): "--parents accepts a directory that is there",
						})
					}
					return w.result(f.json, r, func() error {
						for _, d := range r.Made {
							if err := w.print("made %s\n", printable(d)); err != nil {
								return err
							}
						}
						return nil
					})
				})
			})
		})
	f.add(c)
	c.Flags().BoolVar(&parents, "parents", false, "make missing parents, and accept a directory that is there")
	return c
}
