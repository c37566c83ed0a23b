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

// inProcess opens a session without a daemon for one call of do, and closes it.
func inProcess[R any](ctx context.Context, w *world, f *fenceFlags, do func(*daemon.Session) (R, error)) (R, error) {
	var none R
	h, err := w.newHost(nil)
	if err != nil {
		return none, err
	}
	defer h.Close()
	req, err := f.request(h)
	if err != nil {
		return none, err
	}
	s, err := h.Open(ctx, req)
	if err != nil {
		return none, err
	}
	defer s.Close(context.WithoutCancel(ctx), api.ClosedByClient)
	return do(s)
}
