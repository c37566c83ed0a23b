package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
)

func newSession(w *world) *cobra.Command {
	c := group(w, "session", "the daemon's sessions", "")
	c.AddCommand(newSessionList(w), newSessionClose(w))
	return c
}

func newSessionList(w *world) *cobra.Command {
	var socket string
	var asJSON bool
	c := action("list", "list the open sessions, oldest first", `  wattle session list`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			return w.withDaemon(cmd.Context(), socket, func(r *remote) error {
				l, err := client.Do(cmd.Context(), r.Client, api.SessionList, api.Empty{})
				if err != nil {
					return err
				}
				return w.result(asJSON, l, func() error {
					return w.table("SESSION\tSTATE\tMODE\tCOMMANDS\tAGE\tWORKSPACE", func(row func(string, ...any)) {
						for _, s := range l.Sessions {
							row("%s\t%s\t%s\t%d\t%s\t%s", printable(s.SessionID), s.State, s.Mode, s.Processes, age(s.OpenedAt), printable(s.Workspace))
						}
					})
				})
			})
		})
	socketFlag(c, &socket)
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}

func newSessionClose(w *world) *cobra.Command {
	var socket string
	var asJSON bool
	c := action("close SESSION", "end a session: its commands end, its scratch is cleaned", `  wattle session close p3kq…`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			return w.withDaemon(cmd.Context(), socket, func(r *remote) error {
				e, err := client.Do(cmd.Context(), r.Client, api.SessionClose, api.SessionRef{SessionID: args[0]})
				if err != nil {
					return err
				}
				return w.result(asJSON, e, func() error { return w.print("closed %s\n", printable(args[0])) })
			})
		})
	socketFlag(c, &socket)
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}

// table prints rows in columns.
func (w *world) table(head string, rows func(row func(format string, a ...any))) error {
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	// An error of the writer is kept by it until Flush.
	fmt.Fprintln(t, head)
	rows(func(format string, a ...any) { fmt.Fprintf(t, format+"\n", a...) })
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// age is how long ago something was, in whole seconds.
func age(t time.Time) string { return time.Since(t).Round(time.Second).String() }
