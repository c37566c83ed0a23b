package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
)

func newEvents(w *world) *cobra.Command {
	var socket, session, after string
	var follow, asJSON bool
	c := action("events", "print what the daemon's log of events holds", `  wattle events --follow --json`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			var from api.Place
			if cmd.Flags().Changed("after") {
				var err error
				if from, err = parsePlace(after); err != nil {
					return usage(cmd, "--after: %w", err)
				}
			}
			return w.withDaemon(cmd.Context(), socket, func(r *remote) error {
				if from.Epoch == "" {
					// The beginning of this life of the daemon; its first event is 2.
					from = api.Place{Epoch: r.hello.Epoch, Seq: 1}
				}
				s := stream{w: w, session: session, json: asJSON}
				return s.print(cmd.Context(), r, from, follow)
			})
		})
	socketFlag(c, &socket)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens next")
	c.Flags().StringVar(&session, "session", "", "only of session `ID`")
	c.Flags().StringVar(&after, "after", "", "begin behind the event `EPOCH:SEQ`")
	jsonFlag(c, &asJSON, "print one JSON object a line")
	return c
}

// parsePlace reads EPOCH:SEQ.
func parsePlace(s string) (api.Place, error) {
	epoch, seq, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	if !ok || epoch == "" || err != nil || n < 0 {
		return api.Place{}, fmt.Errorf("%q is not EPOCH:SEQ", s)
	}
	return api.Place{Epoch: epoch, Seq: n}, nil
}

// stream prints events as they come.
type stream struct {
	w       *world
	session string
	json    bool
}

// print subscribes after a place. Without follow it ends with the newest event
// of the moment at which the subscription began.
func (s *stream) print(ctx context.Context, r *remote, from api.Place, follow bool) error {
	p := api.EventsSubscribeParams{After: &from}
	if follow {
		// Otherwise all are asked for and sorted out here: the end is seen by
		// the number of an event that may be of another session.
		p.SessionID = s.session
	}
	sub, err := r.Subscribe(ctx, p)
	if err != nil {
		return err
	}
	if !follow && from == sub.Start {
		return nil
	}
	for {
		e, err := sub.Next(ctx)
		var closed *api.CloseError
		if errors.As(err, &closed) && closed.Code == api.CloseGoingAway {
			return fmt.Errorf("follow events: the daemon stopped: %w", client.ErrNoDaemon)
		}
		if err != nil {
			return fmt.Errorf("follow events: %w", err)
		}
		if err := s.event(e); err != nil {
			return err
		}
		if !follow && e.Seq >= sub.Start.Seq {
			return nil
		}
	}
}

// event prints one event, unless it is of another session. A gap concerns
// everybody.
func (s *stream) event(e api.Event) error {
	if s.session != "" && e.SessionID != s.session && e.Type != api.EventGap.Name {
		return nil
	}
	return s.w.result(s.json, e, func() error {
		// Seconds are enough for people; the place is what --after takes.
		return s.w.print("%s %s %-18s %-8s %s\n", e.Time.Local().Format("15:04:05.000"), s.place(e), e.Type, printable(short(e.SessionID)), eventText(e))
	})
}

func (s *stream) place(e api.Event) string {
	return printable(e.Epoch) + ":" + strconv.FormatInt(e.Seq, 10)
}

// eventText is the data of an event for people: output as text, a refusal as a
// sentence, everything else as it travels.
func eventText(e api.Event) string {
	switch e.Type {
	case api.EventProcessOutput.Name:
		if d, err := api.EventProcessOutput.Decode(e); err == nil {
			return fmt.Sprintf("%s %s: %s", printable(d.ProcessID), d.Stream, printable(string(d.Data)))
		}
	case api.EventProcessDenied.Name:
		if d, err := api.EventProcessDenied.Decode(e); err == nil {
			return fmt.Sprintf("%s %s", printable(d.ProcessID), refusal(&d.Denial))
		}
	case api.EventFSDenied.Name:
		if d, err := api.EventFSDenied.Decode(e); err == nil {
			return refusal(&d)
		}
	}
	return printable(string(e.Data))
}
