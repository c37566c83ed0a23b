package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api/client"
)

func newScratchSweep(w *world) *cobra.Command {
	var socket string
	var asJSON bool
	c := action("sweep", "remove what killed daemons and runs left, when no daemon runs", `  wattle scratch sweep`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			r, err := w.dial(cmd.Context(), socket)
			if err == nil {
				_ = r.Close()
				return hinted(errors.New("sweep scratch: a daemon runs; it sweeps when it starts"), "restart it, or end a session of it with wattle session close")
			}
			if !errors.Is(err, client.ErrNoDaemon) {
				return err
			}
			h, err := w.newHost(nil)
			if err != nil {
				return err
			}
			defer h.Close()
			rep, err := h.Sweep(cmd.Context())
			if err != nil {
				return err
			}
			return w.result(asJSON, rep, func() error {
				for _, k := range rep.Kept {
					w.say("left %s: %s", printable(k.Path), printable(strings.TrimSpace(string(k.Reason)+" "+k.Detail)))
				}
				return w.print("%s\n", sweptText(rep))
			})
		})
	socketFlag(c, &socket)
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}
