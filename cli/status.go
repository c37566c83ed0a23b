package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
)

func newStatus(w *world) *cobra.Command {
	var socket string
	var asJSON bool
	c := action("status", "tell what the daemon does; status 69 when none runs", `  wattle status --json`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			return w.withDaemon(cmd.Context(), socket, func(r *remote) error {
				st, err := client.Do(cmd.Context(), r.Client, api.ServerStatus, api.Empty{})
				if err != nil {
					return err
				}
				return w.result(asJSON, st, func() error { return w.print("%s", statusText(st, r.hello)) })
			})
		})
	socketFlag(c, &socket)
	jsonFlag(c, &asJSON, "print the result as JSON")
	return c
}

func statusText(st api.ServerStatusResult, hello api.InitializeResult) string {
	var b strings.Builder
	up := (time.Duration(st.UptimeMs) * time.Millisecond).Round(time.Second)
	fmt.Fprintf(&b, "%s %s  pid %d  up %s\n", printable(st.Server.Name), printable(st.Server.Version), st.PID, up)
	fmt.Fprintf(&b, "fence        %s, landlock ABI %d, supervisor %s\n", hello.Enforcement.Level, hello.Enforcement.LandlockABI, yesNo(hello.Enforcement.Supervisor))
	fmt.Fprintf(&b, "sessions     %d\ncommands     %d\nconnections  %d\nepoch        %s\n", st.Sessions, st.Processes, st.Connections, printable(st.Epoch))
	for _, m := range []map[string]int64{st.Counters, st.Sizes} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "  %-22s %d\n", printable(k), m[k])
		}
	}
	return b.String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
