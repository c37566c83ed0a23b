package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
)

// watchEvents begins the types of the events of watches.
const watchEvents = "watch."

func newFSWatch(w *world) *cobra.Command {
	var f fileFlags
	c := action("watch PATH", "print what may have changed, until interrupted", `  wattle fs watch src --json`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			return w.anywhere(cmd.Context(), &f, func(ctx context.Context, s *files) error {
				err := w.watch(ctx, s, args[0], f.json)
				if code := signalled(ctx); code != 0 && errors.Is(err, context.Canceled) {
					return exitStatus(code) // as asked for
				}
				return err
			})
		})
	c.Long = `Print what may have changed: of a file or a missing path, that it is another one
than before; of a directory, which of its direct entries is. One line a change,
until interrupted. "overflow" says that changes were lost: look at everything.

With --json the first object is the reply to fs/watch, which comes when the
watch is active; the others are its events.`
	f.fence.add(c)
	socketFlag(c, &f.socket)
	jsonFlag(c, &f.json, "print one JSON object a line")
	return c
}

// watch prints changes until the context or the watch ends.
func (w *world) watch(ctx context.Context, s *files, path string, asJSON bool) error {
	next, err := s.watchEvents(ctx)
	if err != nil {
		return err
	}
	r, err := ask(ctx, s, api.FSWatch, s.ref(path), (*daemon.Session).Watch)
	if err != nil {
		return err
	}
	err = w.result(asJSON, r, func() error {
		w.say("watching %s", printable(path))
		if r.Blind != "" {
			w.say("not every change can be seen there: %s", printable(r.Blind))
		}
		return nil
	})
	for err == nil {
		var e api.Event
		if e, err = next(); err == nil {
			err = w.change(e, asJSON)
		}
	}
	return err
}

// watchEvents makes the events of the session's watch come.
func (s *files) watchEvents(ctx context.Context) (next func() (api.Event, error), err error) {
	if s.remote == nil {
		return func() (api.Event, error) {
			select {
			case e := <-s.changes:
				return e, nil
			case <-ctx.Done():
				return api.Event{}, context.Cause(ctx)
			}
		}, nil
	}
	sub, err := s.remote.Subscribe(ctx, api.EventsSubscribeParams{SessionID: s.id, Types: []string{
		api.EventWatchChanged.Name, api.EventWatchOverflow.Name, api.EventWatchError.Name, api.EventSessionClosed.Name}})
	if err != nil {
		return nil, err
	}
	return func() (api.Event, error) {
		e, err := sub.Next(ctx)
		var closed *api.CloseError
		switch {
		case errors.As(err, &closed) && closed.Code == api.CloseGoingAway:
			return e, fmt.Errorf("watch: the daemon stopped: %w", client.ErrNoDaemon)
		case err != nil:
			return e, fmt.Errorf("watch: %w", err)
		case e.Type == api.EventSessionClosed.Name:
			return e, api.NewError(api.CodeSessionNotFound, "watch: the session was closed")
		}
		return e, nil
	}, nil
}

// change prints one event. The error of a watch ends it.
func (w *world) change(e api.Event, asJSON bool) error {
	var over error
	line := "overflow"
	switch e.Type {
	case api.EventWatchChanged.Name:
		d, err := api.EventWatchChanged.Decode(e)
		if err != nil {
			return err
		}
		line = "changed  " + printable(d.Path)
	case api.EventWatchError.Name:
		d, err := api.EventWatchError.Decode(e)
		if err != nil {
			return err
		}
		over = api.NewError(d.Code, d.Message)
	}
	if asJSON {
		if err := w.jsonLine(w.stdout, e); err != nil {
			return err
		}
		if over != nil {
			return exitStatus(statusFailed)
		}
		return nil
	}
	if over != nil {
		return over
	}
	return w.print("%s\n", line)
}
