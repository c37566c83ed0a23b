package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
)

// newScratch groups what can be done with scratch. A session owns it: all but
// sweep act on a session that the daemon has.
func newScratch(w *world) *cobra.Command {
	c := group(w, "scratch", "scratch directories of the daemon's sessions", `Scratch directories belong to the daemon's sessions. To act on one, the session
is taken over for a moment with its resume token and left detached.`)
	c.AddCommand(newScratchCreate(w), newScratchWrite(w), newScratchList(w), newScratchClean(w), newScratchSweep(w))
	return c
}

// scratchFlags name the session.
type scratchFlags struct {
	socket, session, token string
	takeOver               bool
	json                   bool
}

func (f *scratchFlags) add(c *cobra.Command) {
	socketFlag(c, &f.socket)
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "the session `ID`")
	fl.StringVar(&f.token, "token", "", "its resume token `T`, from the reply that opened it")
	fl.BoolVar(&f.takeOver, "take-over", false, "also when another connection holds the session, which is closed then")
	for _, n := range []string{"session", "token"} {
		if err := c.MarkFlagRequired(n); err != nil {
			panic(err) // the flag was registered above
		}
	}
	jsonFlag(c, &f.json, "print the result, or the error, as JSON")
}

// inScratch resumes the session, makes one call, and leaves the session
// detached by closing the connection. A session that somebody holds is left
// alone unless told otherwise: resuming it would cut its agent off.
func inScratch[P, R any](ctx context.Context, w *world, f *scratchFlags, m api.Method[P, R], p P) (R, error) {
	var out R
	err := w.withDaemon(ctx, f.socket, func(r *remote) error {
		ref := api.SessionRef{SessionID: f.session}
		if !f.takeOver {
			s, err := client.Do(ctx, r.Client, api.SessionGet, ref)
			if err != nil {
				return err
			}
			if s.State == api.SessionAttached {
				return hinted(errors.New("resume session: another connection holds it"), "--take-over closes that connection")
			}
		}
		if _, err := client.Do(ctx, r.Client, api.SessionResume, api.SessionResumeParams{SessionRef: ref, ResumeToken: f.token}); err != nil {
			return err
		}
		var err error
		out, err = call(ctx, r, m, p)
		return err
	})
	return out, err
}

func (f *scratchFlags) ref() api.SessionRef { return api.SessionRef{SessionID: f.session} }

func newScratchCreate(w *world) *cobra.Command {
	var f scratchFlags
	c := action("create [NAME]", "make the directory, or one in it, and print its path", `  wattle scratch create probes --session ID --token T`, 0, 1,
		func(cmd *cobra.Command, args []string) error {
			p := api.ScratchCreateParams{SessionRef: f.ref()}
			if len(args) == 1 {
				p.Name = args[0]
			}
			r, err := inScratch(cmd.Context(), w, &f, api.ScratchCreate, p)
			if err != nil {
				return err
			}
			return w.result(f.json, r, func() error { return w.print("%s\n", printable(r.Path)) })
		})
	f.add(c)
	return c
}

func newScratchWrite(w *world) *cobra.Command {
	var f scratchFlags
	c := action("write NAME", "write a file with what is on stdin", `  echo probe | wattle scratch write a/probe.txt --session ID --token T`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			data, err := w.content("scratch write", args[0])
			if err != nil {
				return err
			}
			r, err := inScratch(cmd.Context(), w, &f, api.ScratchWrite, api.ScratchWriteParams{SessionRef: f.ref(), Name: args[0], Data: &data})
			if err != nil {
				return err
			}
			return w.result(f.json, r, func() error { return w.print("%s  %d bytes\n", printable(r.Path), r.Bytes) })
		})
	f.add(c)
	return c
}

func newScratchList(w *world) *cobra.Command {
	var f scratchFlags
	c := action("list", "list the files", `  wattle scratch list --session ID --token T`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			r, err := inScratch(cmd.Context(), w, &f, api.ScratchList, f.ref())
			if err != nil {
				return err
			}
			return w.result(f.json, r, func() error {
				var b strings.Builder
				for _, e := range r.Entries {
					fmt.Fprintf(&b, "%10d  %s\n", e.Bytes, printable(e.Path))
				}
				if r.Truncated {
					w.say("%s holds more than is listed", printable(r.Path))
				}
				return w.print("%s", b.String())
			})
		})
	f.add(c)
	return c
}

func newScratchClean(w *world) *cobra.Command {
	var f scratchFlags
	c := action("clean", "remove the directory now", `  wattle scratch clean --session ID --token T`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			r, err := inScratch(cmd.Context(), w, &f, api.ScratchClean, f.ref())
			if err != nil {
				return err
			}
			return w.result(f.json, r, func() error { return w.print("removed %d files, %d bytes\n", r.Files, r.Bytes) })
		})
	f.add(c)
	return c
}
