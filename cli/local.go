package cli

import (
	"context"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
)

// newHost wires the rooms in this process. The socket of the daemon that may
// run beside it is hidden from its fences too; where none can be had, there is
// none to hide.
func (w *world) newHost(publish func(api.Event)) (*daemon.Host, error) {
	places, err := daemon.FindPlaces(w.getenv)
	if err != nil {
		return nil, err
	}
	conf, err := places.LoadConfig("", w.getenv)
	if err != nil {
		return nil, err
	}
	socket, err := places.Socket("", w.getenv)
	if err != nil {
		socket = ""
	}
	return daemon.NewHost(places, daemon.HostOptions{Socket: socket, Ephemeral: true, Publish: publish, TrashOff: !conf.Trash.Enabled})
}

// ownSession opens a session without a daemon for as long as use runs, and
// closes it. publish takes the events of the session; nil drops them.
func (w *world) ownSession(ctx context.Context, f *fenceFlags, publish func(api.Event), use func(*daemon.Session) error) error {
	h, err := w.newHost(publish)
	if err != nil {
		return err
	}
	defer h.Close()
	req, err := f.request(h)
	if err != nil {
		return err
	}
	s, err := h.Open(ctx, req)
	if err != nil {
		return err
	}
	defer s.Close(context.WithoutCancel(ctx), api.ClosedByClient)
	return use(s)
}

// inProcess is ownSession for one call that has a result.
func inProcess[R any](ctx context.Context, w *world, f *fenceFlags, do func(*daemon.Session) (R, error)) (R, error) {
	var out R
	err := w.ownSession(ctx, f, nil, func(s *daemon.Session) (err error) {
		out, err = do(s)
		return err
	})
	return out, err
}
