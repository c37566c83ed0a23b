package daemon

import (
	"context"

	"github.com/wattle-dev/wattle/api"
)

// subscribe sends events to the connection from a place on; the subscription
// before it, if there is one, has ended when it begins. Its goroutine ends
// with the subscription or the connection.
func (cl *client) subscribe(after api.Place, f Filter) {
	cl.unsubscribe()
	ctx, cancel := context.WithCancel(context.Background())
	cl.subMu.Lock()
	defer cl.subMu.Unlock()
	cl.unsub = cancel
	cl.subWG.Add(1)
	go func() {
		defer cl.subWG.Done()
		defer cancel()
		defer func() {
			if v := recover(); v != nil {
				cl.server.host.log.Error().Any("panic", v).Msg("subscription panicked")
				cl.conn.Close(api.CloseInternal, "internal error")
			}
		}()
		_ = cl.server.log.Follow(ctx, after, f, cl.conn)
	}()
}

// unsubscribe ends the subscription and waits until nothing more is queued.
func (cl *client) unsubscribe() {
	cl.subMu.Lock()
	cancel := cl.unsub
	cl.unsub = nil
	cl.subMu.Unlock()
	if cancel != nil {
		cancel()
	}
	cl.subWG.Wait()
}

func (s *Server) subscribeEvents(_ context.Context, r *api.Request, p *api.EventsSubscribeParams) (api.EventsSubscribeResult, error) {
	cl, err := s.caller(r)
	if err != nil {
		return api.EventsSubscribeResult{}, err
	}
	place := s.log.Place()
	from := place
	if p.After != nil {
		from = *p.After
	}
	cl.subscribe(from, Filter{Session: p.SessionID, Types: p.Types})
	return api.EventsSubscribeResult{Place: place}, nil
}

func (s *Server) unsubscribeEvents(_ context.Context, r *api.Request, _ *api.Empty) (api.Empty, error) {
	cl, err := s.caller(r)
	if err != nil {
		return api.Empty{}, err
	}
	cl.unsubscribe()
	return api.Empty{}, nil
}
