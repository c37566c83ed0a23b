package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/sandbox"
)

// Waits of clients, so that none holds a call for ever by mistake.
const (
	maxReadWait  = time.Minute
	defaultGrace = 2 * time.Second
)

func (s *Server) processHandlers() {
	api.On(s.mux, api.ProcessStart, s.processStart)
	api.On(s.mux, api.ProcessRead, s.processRead)
	api.On(s.mux, api.ProcessWrite, s.processWrite)
	api.On(s.mux, api.ProcessCloseStdin, s.processCloseStdin)
	api.On(s.mux, api.ProcessResize, s.processResize)
	api.On(s.mux, api.ProcessSignal, s.processSignal)
	api.On(s.mux, api.ProcessTerminate, s.processTerminate)
	api.On(s.mux, api.ProcessWait, s.processWait)
	api.On(s.mux, api.ProcessList, s.processList)
}

func (s *Server) processStart(ctx context.Context, r *api.Request, p *api.ProcessStartParams) (api.ProcessStartResult, error) {
	var none api.ProcessStartResult
	x, err := s.held(r, p.SessionID)
	if err != nil {
		return none, err
	}
	if p.ProcessID != "" {
		if _, err := s.command(r, p.ProcessID); err == nil {
			return none, api.NewError(api.CodeProcessExists, "start command: there is a command "+clip(p.ProcessID)+" already", "processId", clip(p.ProcessID))
		}
	}
	req := StartRequest{
		ID: p.ProcessID, Argv: p.Argv, Cwd: p.Cwd, Env: p.Env, TTY: p.TTY, Stdin: p.Stdin,
		Timeout: time.Duration(p.TimeoutMs) * time.Millisecond, MaxOutput: int(min(p.MaxOutputBytes, maxKeptOutput)),
		Network: p.Network, OnExit: p.OnExit, Policy: p.SandboxPolicy,
	}
	if p.Command != "" {
		req.Argv = []string{"/bin/sh", "-c", p.Command}
	}
	c, err := x.Start(ctx, req)
	if err != nil {
		return none, err
	}
	return api.ProcessStartResult{ProcessID: c.id, PID: c.process.PID(), Enforcement: c.process.Enforcement()}, nil
}

func (s *Server) processRead(ctx context.Context, r *api.Request, p *api.ProcessReadParams) (sandbox.Output, error) {
	c, err := s.command(r, p.ProcessID)
	if err != nil {
		return sandbox.Output{}, err
	}
	wait := min(time.Duration(p.WaitMs)*time.Millisecond, maxReadWait)
	return c.process.Read(ctx, p.AfterSeq, int(min(p.MaxBytes, maxKeptOutput)), wait), nil
}

func (s *Server) processWrite(_ context.Context, r *api.Request, p *api.ProcessWriteParams) (api.ProcessWriteResult, error) {
	c, err := s.command(r, p.ProcessID)
	if err != nil {
		return api.ProcessWriteResult{}, err
	}
	duplicate, err := c.process.Write(p.Data, p.WriteID)
	if errors.Is(err, sandbox.ErrStdinFull) {
		return api.ProcessWriteResult{}, api.NewError("PROCESS_STDIN_FULL", err.Error())
	}
	return api.ProcessWriteResult{Duplicate: duplicate}, err
}

func (s *Server) processCloseStdin(_ context.Context, r *api.Request, p *api.ProcessRef) (api.Empty, error) {
	c, err := s.command(r, p.ProcessID)
	if err != nil {
		return api.Empty{}, err
	}
	return api.Empty{}, c.process.CloseStdin()
}

func (s *Server) processResize(_ context.Context, r *api.Request, p *api.ProcessResizeParams) (api.Empty, error) {
	c, err := s.command(r, p.ProcessID)
	if err != nil {
		return api.Empty{}, err
	}
	return api.Empty{}, c.process.Resize(p.TTY)
}

func (s *Server) processSignal(_ context.Context, r *api.Request, p *api.ProcessSignalParams) (api.Empty, error) {
	c, err := s.command(r, p.ProcessID)
	if err != nil {
		return api.Empty{}, err
	}
	return api.Empty{}, c.process.Signal(p.Signal)
}

func (s *Server) processTerminate(_ context.Context, r *api.Request, p *api.ProcessTerminateParams) (api.Empty, error) {
	c, err := s.command(r, p.ProcessID)
	if err != nil {
		return api.Empty{}, err
	}
	grace := defaultGrace
	if p.GraceMs != nil {
		grace = time.Duration(*p.GraceMs) * time.Millisecond
	}
	c.process.Terminate(grace)
	return api.Empty{}, nil
}

func (s *Server) processWait(ctx context.Context, r *api.Request, p *api.ProcessWaitParams) (sandbox.State, error) {
	c, err := s.command(r, p.ProcessID)
	if err != nil {
		return sandbox.State{}, err
	}
	wait := ctx
	if p.TimeoutMs != nil {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, time.Duration(*p.TimeoutMs)*time.Millisecond)
		defer cancel()
	}
	st, err := c.process.Wait(wait)
	if err != nil && ctx.Err() == nil {
		return sandbox.State{}, api.NewError(api.CodeProcessTimeout, "wait for command: it has not ended in that time", "processId", c.id)
	}
	return st, err
}

func (s *Server) processList(_ context.Context, r *api.Request, p *api.SessionRef) (api.ProcessListResult, error) {
	s.mu.Lock()
	h := s.sessions[p.SessionID]
	s.mu.Unlock()
	if h == nil {
		return api.ProcessListResult{}, api.NewError(api.CodeSessionNotFound, "there is no session "+clip(p.SessionID), "sessionId", clip(p.SessionID))
	}
	out := api.ProcessListResult{Processes: []api.ProcessInfo{}}
	for _, c := range h.session.Commands() {
		out.Processes = append(out.Processes, c.info())
	}
	return out, nil
}
