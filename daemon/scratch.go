package daemon

import (
	"context"
	"errors"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
)

// prepareScratch finds a place for the session's scratch. Where there is none
// (the workspace's parent cannot be written) the session works without: its
// commands get a temporary directory in the workspace's private cache, and the
// scratch actions say why they refuse.
func (s *Session) prepareScratch(o scratch.Overrides) error {
	c, err := scratch.DefaultConfig().With(o)
	if err != nil {
		return err
	}
	d, err := s.host.scratch.New(s.id, s.workspace, c)
	var e *scratch.Error
	switch {
	case err == nil:
		s.scratch = d
		s.prompt = d.Prompt()
	case errors.As(err, &e) && e.Code == scratch.CodeRefused:
		s.noScratch = e
		if s.temp, err = sandbox.MakeTemp(s.host.places.TempRoot()); err != nil {
			return err
		}
	default:
		return err
	}
	return nil
}

// tempDir is what {scratch} stands for in policies.
func (s *Session) tempDir() string {
	if s.scratch != nil {
		return s.scratch.Path()
	}
	return s.temp.Path()
}

// ensureTemp makes the temporary directory of commands: a turn's end, or the
// command before, may have removed it.
func (s *Session) ensureTemp() (string, error) {
	if s.scratch != nil {
		return s.scratch.TempDir()
	}
	return s.temp.Path(), nil
}

// dropTemp removes the temporary directory that stood for scratch.
func (s *Session) dropTemp() {
	if s.temp != nil {
		s.temp.Remove()
	}
}

// cleaned publishes what a clean did. A failure is a warning, never more
// (facts/scratch section 4).
func (s *Session) cleaned(turn string, c *scratch.Cleaned, err error) (warning string) {
	if c != nil {
		emit(s, turn, api.EventScratchCleaned, *c)
	}
	if err == nil {
		return ""
	}
	emit(s, turn, api.EventScratchCleanFailed, api.ScratchCleanFailedData{Path: s.scratch.Path(), Code: api.ErrorOf(err).Stable(), Reason: err.Error()})
	return err.Error()
}

func (s *Session) scratchInfo() *api.SessionScratch {
	if s.scratch == nil {
		return nil
	}
	return &api.SessionScratch{Path: s.scratch.Path(), AutoClean: s.scratch.AutoClean()}
}

func (s *Session) describe() api.SessionOpenResult {
	f := s.Fence()
	return api.SessionOpenResult{SessionID: s.id, ResumeToken: s.token, Workspace: s.workspace, Mode: f.Mode(),
		Fence: f.View(), Scratch: s.scratchInfo(), Prompt: s.prompt}
}

// actor is in which mode a scratch action is asked for, or why there is no
// scratch.
func (s *Session) actor() (scratch.Caller, error) {
	if err := s.alive(); err != nil {
		return scratch.Caller{}, err
	}
	if s.scratch == nil {
		return scratch.Caller{}, s.noScratch
	}
	f := s.Fence()
	return scratch.Caller{Mode: f.Mode(), InReadOnly: f.Policy().ScratchInReadOnly}, nil
}

// CreateScratch makes the directory, or one in it. See [scratch.Dir] for this
// and the following: a session adds its mode and its events.
func (s *Session) CreateScratch(name string) (scratch.Created, error) {
	a, err := s.actor()
	if err != nil {
		return scratch.Created{}, err
	}
	c, err := s.scratch.Create(a, name)
	if err == nil {
		emit(s, s.currentTurn(), api.EventScratchCreated, c)
	}
	return c, err
}

// WriteScratch writes a file in scratch.
func (s *Session) WriteScratch(name string, data []byte) (scratch.Written, error) {
	a, err := s.actor()
	if err != nil {
		return scratch.Written{}, err
	}
	w, err := s.scratch.Write(a, name, data)
	if err == nil {
		emit(s, s.currentTurn(), api.EventScratchWritten, w)
	}
	return w, err
}

// ListScratch lists at most 200 files.
func (s *Session) ListScratch(ctx context.Context) (scratch.ListResult, error) {
	a, err := s.actor()
	if err != nil {
		return scratch.ListResult{}, err
	}
	return s.scratch.List(ctx, a)
}

// CleanScratch removes the directory now; absent is success.
func (s *Session) CleanScratch(ctx context.Context) (scratch.Cleaned, error) {
	a, err := s.actor()
	if err != nil {
		return scratch.Cleaned{}, err
	}
	c, err := s.scratch.Clean(ctx, a)
	if err == nil {
		emit(s, s.currentTurn(), api.EventScratchCleaned, c)
	}
	return c, err
}

func (s *Server) scratchHandlers() {
	api.On(s.mux, api.ScratchCreate, func(_ context.Context, r *api.Request, p *api.ScratchCreateParams) (scratch.Created, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return scratch.Created{}, err
		}
		return x.CreateScratch(p.Name)
	})
	api.On(s.mux, api.ScratchWrite, func(_ context.Context, r *api.Request, p *api.ScratchWriteParams) (scratch.Written, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return scratch.Written{}, err
		}
		if p.Content != nil {
			return x.WriteScratch(p.Name, []byte(*p.Content))
		}
		return x.WriteScratch(p.Name, *p.Data)
	})
	api.On(s.mux, api.ScratchList, func(ctx context.Context, r *api.Request, p *api.SessionRef) (scratch.ListResult, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return scratch.ListResult{}, err
		}
		return x.ListScratch(ctx)
	})
	api.On(s.mux, api.ScratchClean, func(ctx context.Context, r *api.Request, p *api.SessionRef) (scratch.Cleaned, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return scratch.Cleaned{}, err
		}
		return x.CleanScratch(context.WithoutCancel(ctx))
	})
}
