package daemon

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
)

// handlers connects the methods of the protocol with what carries them out.
func (s *Server) handlers() {
	api.On(s.mux, api.Initialize, s.initialize)
	api.On(s.mux, api.SessionOpen, s.sessionOpen)
	api.On(s.mux, api.SessionResume, s.sessionResume)
	api.On(s.mux, api.SessionClose, s.sessionClose)
	api.On(s.mux, api.SessionList, s.sessionList)
	api.On(s.mux, api.SessionGet, s.sessionGet)
	api.On(s.mux, api.SessionSetMode, s.sessionSetMode)
	api.On(s.mux, api.SessionGrant, s.sessionGrant)
	api.On(s.mux, api.TurnBegin, s.turnBegin)
	api.On(s.mux, api.TurnEnd, s.turnEnd)
	api.On(s.mux, api.FenceStatus, s.fenceStatus)
	api.On(s.mux, api.FenceExplain, s.fenceExplain)
	s.fileHandlers()
	s.trashHandlers()
	s.scratchHandlers()
	s.processHandlers()
	api.On(s.mux, api.EventsSubscribe, s.subscribeEvents)
	api.On(s.mux, api.EventsUnsubscribe, s.unsubscribeEvents)
	api.On(s.mux, api.ServerStatus, s.status)
}

// Missing are the methods of the protocol that this server does not serve.
func (s *Server) Missing() []string { return s.mux.Missing() }

func implementation() api.Implementation { return api.Implementation{Name: "wattle", Version: Version} }

func (s *Server) initialize(_ context.Context, r *api.Request, _ *api.InitializeParams) (api.InitializeResult, error) {
	return api.InitializeResult{
		ProtocolVersion: api.ProtocolVersion, Server: implementation(),
		Platform:    api.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernelRelease()},
		Enforcement: s.host.Enforcement(), Epoch: s.log.Epoch(), Limits: r.Conn.Limits(),
	}, nil
}

func (s *Server) sessionOpen(ctx context.Context, r *api.Request, p *api.SessionOpenParams) (api.SessionOpenResult, error) {
	var none api.SessionOpenResult
	cl, err := s.caller(r)
	if err != nil {
		return none, err
	}
	req := OpenRequest{Workspace: p.Workspace, Mode: p.Mode, WritableRoots: p.WritableRoots, Network: p.Network, Observation: p.Observation}
	for _, ref := range p.Policies {
		if ref.Inline == nil {
			req.Policies = append(req.Policies, ref.Name)
			continue
		}
		d, err := policies.ParseJSON(ref.Inline)
		if err != nil {
			return none, err
		}
		req.Documents = append(req.Documents, d)
	}
	if p.Scratch != nil {
		req.Scratch = *p.Scratch
	}
	ttl := s.opts.DetachedTTL
	if p.DetachedTTLMs != nil {
		ttl = time.Duration(*p.DetachedTTLMs) * time.Millisecond
	}
	x, err := s.host.Open(ctx, req)
	if err != nil {
		return none, err
	}
	if err := s.adopt(cl, x, p.OnDisconnect != api.DisconnectTerminate, ttl); err != nil {
		x.Close(context.WithoutCancel(ctx), api.ClosedByServer)
		return none, err
	}
	emit(x, "", api.EventSessionOpened, api.SessionOpenedData{Workspace: x.workspace, Mode: x.Mode()})
	return x.describe(), nil
}

func (s *Server) sessionResume(_ context.Context, r *api.Request, p *api.SessionResumeParams) (api.SessionOpenResult, error) {
	cl, err := s.caller(r)
	if err != nil {
		return api.SessionOpenResult{}, err
	}
	x, err := s.resume(cl, p.SessionID, p.ResumeToken)
	if err != nil {
		return api.SessionOpenResult{}, err
	}
	emit(x, x.currentTurn(), api.EventSessionResumed, api.Empty{})
	return x.describe(), nil
}

// sessionClose is for everybody who is admitted: whoever runs the daemon must
// be able to end what a crashed client left.
func (s *Server) sessionClose(ctx context.Context, _ *api.Request, p *api.SessionRef) (api.Empty, error) {
	if !s.end(ctx, p.SessionID, api.ClosedByClient) {
		return api.Empty{}, api.NewError(api.CodeSessionNotFound, "close session: there is no session "+clip(p.SessionID), "sessionId", clip(p.SessionID))
	}
	return api.Empty{}, nil
}

func (s *Server) sessionList(context.Context, *api.Request, *api.Empty) (api.SessionListResult, error) {
	type one struct {
		x     *Session
		state api.SessionState
	}
	s.mu.Lock()
	all := make([]one, 0, len(s.sessions))
	for _, h := range s.sessions {
		all = append(all, one{h.session, h.state()})
	}
	s.mu.Unlock()
	out := api.SessionListResult{Sessions: make([]api.SessionInfo, 0, len(all))}
	for _, o := range all {
		out.Sessions = append(out.Sessions, o.x.info(o.state))
	}
	sortOldestFirst(out.Sessions)
	return out, nil
}

func (h *holding) state() api.SessionState {
	if h.holder == nil {
		return api.SessionDetached
	}
	return api.SessionAttached
}

func (s *Server) sessionGet(_ context.Context, _ *api.Request, p *api.SessionRef) (api.SessionGetResult, error) {
	s.mu.Lock()
	h := s.sessions[p.SessionID]
	var state api.SessionState
	if h != nil {
		state = h.state()
	}
	s.mu.Unlock()
	if h == nil {
		return api.SessionGetResult{}, api.NewError(api.CodeSessionNotFound, "there is no session "+clip(p.SessionID), "sessionId", clip(p.SessionID))
	}
	return api.SessionGetResult{SessionInfo: h.session.info(state), Fence: h.session.Fence().View()}, nil
}

func (s *Server) sessionSetMode(_ context.Context, r *api.Request, p *api.SessionSetModeParams) (fence.View, error) {
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return fence.View{}, err
	}
	if p.Mode == "" {
		return fence.View{}, api.InvalidParams("/mode", "a mode is needed")
	}
	return x.SetMode(p.Mode)
}

func (s *Server) sessionGrant(_ context.Context, r *api.Request, p *api.SessionGrantParams) (fence.View, error) {
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return fence.View{}, err
	}
	switch {
	case p.Path == "":
		return fence.View{}, api.InvalidParams("/path", "a path is needed")
	case p.Access == "":
		return fence.View{}, api.InvalidParams("/access", "an access is needed")
	case p.Scope == "":
		return fence.View{}, api.InvalidParams("/scope", "once or session is needed")
	}
	return x.Grant(*p)
}

func (s *Server) turnBegin(_ context.Context, r *api.Request, p *api.SessionRef) (api.TurnBeginResult, error) {
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return api.TurnBeginResult{}, err
	}
	t, err := x.BeginTurn()
	return api.TurnBeginResult{TurnID: t}, err
}

func (s *Server) turnEnd(ctx context.Context, r *api.Request, p *api.TurnEndParams) (api.TurnEndResult, error) {
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return api.TurnEndResult{}, err
	}
	if p.Outcome == "" {
		return api.TurnEndResult{}, api.InvalidParams("/outcome", "completed, failed or aborted is needed")
	}
	// An end that has begun goes on although its client went away.
	return x.EndTurn(context.WithoutCancel(ctx), p.TurnID, p.Outcome)
}

func (s *Server) fenceStatus(_ context.Context, r *api.Request, p *api.SessionRef) (api.FenceStatusResult, error) {
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return api.FenceStatusResult{}, err
	}
	f := x.Fence()
	return api.FenceStatusResult{Fence: f.View(), Enforcement: s.host.runner.EnforcementOf(f)}, nil
}

func (s *Server) fenceExplain(_ context.Context, r *api.Request, p *api.FenceExplainParams) (api.FenceExplainResult, error) {
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return api.FenceExplainResult{}, err
	}
	if p.Access == "" {
		return api.FenceExplainResult{}, api.InvalidParams("/access", "an access is needed")
	}
	return Explain(x.Fence(), x.workspace, p.Path, p.Access)
}

func (s *Server) status(context.Context, *api.Request, *api.Empty) (api.ServerStatusResult, error) {
	s.mu.Lock()
	sessions, conns := make([]*Session, 0, len(s.sessions)), len(s.conns)
	for _, h := range s.sessions {
		sessions = append(sessions, h.session)
	}
	s.mu.Unlock()
	running := 0
	for _, x := range sessions {
		for _, c := range x.Commands() {
			if c.running() {
				running++
			}
		}
	}
	return api.ServerStatusResult{
		Server: implementation(), Epoch: s.log.Epoch(), PID: os.Getpid(), StartedAt: s.started.UTC(),
		UptimeMs: time.Since(s.started).Milliseconds(), Sessions: len(sessions), Connections: conns, Processes: running,
		Counters: s.counters.Snapshot(),
		Sizes:    map[string]int64{"eventLogBytes": int64(s.log.Bytes()), "goroutines": int64(runtime.NumGoroutine())},
	}, nil
}
