package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
)

func newPS(w *world) *cobra.Command {
	var socket, session string
	var asJSON bool
	c := action("ps", "list the commands of the daemon's sessions", `  wattle ps --session p3kq…`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			return w.withDaemon(cmd.Context(), socket, func(r *remote) error {
				ids := []string{session}
				if session == "" {
					ids = nil
					l, err := client.Do(cmd.Context(), r.Client, api.SessionList, api.Empty{})
					if err != nil {
						return err
					}
					for _, s := range l.Sessions {
						ids = append(ids, s.SessionID)
					}
				}
				all := api.ProcessListResult{Processes: []api.ProcessInfo{}}
				for _, id := range ids {
					l, err := client.Do(cmd.Context(), r.Client, api.ProcessList, api.SessionRef{SessionID: id})
					if session == "" && errors.Is(err, api.NewError(api.CodeSessionNotFound, "")) {
						continue // it ended meanwhile
					}
					if err != nil {
						return err
					}
					all.Processes = append(all.Processes, l.Processes...)
				}
				return w.result(asJSON, all, func() error { return w.processTable(all) })
			})
		})
	socketFlag(c, &socket)
	c.Flags().StringVar(&session, "session", "", "only of session `ID`")
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}

func (w *world) processTable(l api.ProcessListResult) error {
	return w.table("PID\tSTATE\tAGE\tSESSION\tPROCESS\tCOMMAND", func(row func(string, ...any)) {
		for _, p := range l.Processes {
			row("%d\t%s\t%s\t%s\t%s\t%s", p.PID, processState(p), age(p.StartedAt), printable(short(p.SessionID)), printable(p.ProcessID), printable(strings.Join(p.Argv, " ")))
		}
	})
}

// processState is how a command is, in a word.
func processState(p api.ProcessInfo) string {
	switch {
	case !p.Exited:
		return "running"
	case p.Signal != "":
		return printable(p.Signal)
	case p.ExitCode != nil && *p.ExitCode != 0:
		return "failed"
	case !p.Closed:
		return "exited"
	}
	return "done"
}
