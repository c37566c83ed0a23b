package daemon

import (
	"context"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

func (s *Server) fileHandlers() {
	api.On(s.mux, api.FSResolve, func(ctx context.Context, r *api.Request, p *api.FSResolveParams) (provider.Target, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return provider.Target{}, err
		}
		return x.Resolve(ctx, p.Path, p.Cwd)
	})
	api.On(s.mux, api.FSStat, func(ctx context.Context, r *api.Request, p *api.FileRef) (*provider.Info, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return nil, err
		}
		return x.Stat(ctx, p)
	})
	api.On(s.mux, api.FSLstat, func(ctx context.Context, r *api.Request, p *api.FileRef) (*provider.PathInfo, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return nil, err
		}
		return x.Lstat(ctx, p)
	})
	api.On(s.mux, api.FSListDir, func(ctx context.Context, r *api.Request, p *api.FileRef) (api.FSListDirResult, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return api.FSListDirResult{}, err
		}
		list, err := x.ListDir(ctx, p)
		return api.FSListDirResult{Entries: list}, err
	})
	api.On(s.mux, api.FSReadText, func(ctx context.Context, r *api.Request, p *api.FSReadTextParams) (provider.TextContent, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return provider.TextContent{}, err
		}
		return x.ReadText(ctx, p)
	})
	api.On(s.mux, api.FSWriteText, func(ctx context.Context, r *api.Request, p *api.FSWriteTextParams) (provider.WriteOutcome, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return provider.WriteOutcome{}, err
		}
		return x.WriteText(ctx, p)
	})
	api.On(s.mux, api.FSEditText, func(ctx context.Context, r *api.Request, p *api.FSEditTextParams) (provider.EditOutcome, error) {
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return provider.EditOutcome{}, err
		}
		return x.EditText(ctx, p)
	})
}

// cwd is what a relative path of a call is relative to.
func (s *Session) cwd(asked string) provider.ResolveOptions {
	if asked == "" {
		asked = s.workspace
	}
	return provider.ResolveOptions{Cwd: asked}
}

// target finds the file of a call.
func (s *Session) target(ctx context.Context, f *fence.Fence, ref *api.FileRef) (provider.Target, error) {
	if ref.Target != nil {
		return *ref.Target, nil
	}
	return s.host.files.Resolve(ctx, f, ref.Path, s.cwd(ref.Cwd))
}

// Resolve gives the identity of a path. See [provider.Provider] for this and
// the following: a session adds its fence, its grants and its events.
func (s *Session) Resolve(ctx context.Context, path, cwd string) (provider.Target, error) {
	return guarded(s, nil, path, func(f *fence.Fence) (provider.Target, error) {
		return s.host.files.Resolve(ctx, f, path, s.cwd(cwd))
	})
}

// Stat describes a file, following links; nil when nothing is there.
func (s *Session) Stat(ctx context.Context, ref *api.FileRef) (*provider.Info, error) {
	return guarded(s, nil, ref.Path, func(f *fence.Fence) (*provider.Info, error) {
		t, err := s.target(ctx, f, ref)
		if err != nil {
			return nil, err
		}
		return s.host.files.Stat(ctx, f, t)
	})
}

// Lstat describes a path without following a link in the last place.
func (s *Session) Lstat(ctx context.Context, ref *api.FileRef) (*provider.PathInfo, error) {
	return guarded(s, nil, ref.Path, func(f *fence.Fence) (*provider.PathInfo, error) {
		path := ref.Path
		if ref.Target != nil {
			path = s.host.files.ProcessPath(*ref.Target)
		}
		return s.host.files.Lstat(ctx, f, path, s.cwd(ref.Cwd))
	})
}

// ListDir lists a directory.
func (s *Session) ListDir(ctx context.Context, ref *api.FileRef) ([]provider.DirEntry, error) {
	return guarded(s, nil, ref.Path, func(f *fence.Fence) ([]provider.DirEntry, error) {
		t, err := s.target(ctx, f, ref)
		if err != nil {
			return nil, err
		}
		return s.host.files.ListDir(ctx, f, t, provider.ListOptions{})
	})
}

// maxRead is the largest file that is read whole (DESIGN section 10: larger
// content is FS_TOO_LARGE).
const maxRead = 16 << 20

// ReadText reads a whole text file. One above maxRead is FS_TOO_LARGE before it
// is read.
func (s *Session) ReadText(ctx context.Context, p *api.FSReadTextParams) (provider.TextContent, error) {
	return guarded(s, nil, p.Path, func(f *fence.Fence) (provider.TextContent, error) {
		t, err := s.target(ctx, f, &p.FileRef)
		if err != nil {
			return provider.TextContent{}, err
		}
		o := p.ReadOptions
		if o.MaxBytes == 0 || o.MaxBytes > maxRead {
			o.MaxBytes = maxRead
		}
		return s.host.files.ReadText(ctx, f, t, o)
	})
}

// WriteText makes a file or replaces it whole.
func (s *Session) WriteText(ctx context.Context, p *api.FSWriteTextParams) (provider.WriteOutcome, error) {
	var at provider.Target
	out, err := guarded(s, p.SandboxPolicy, p.Path, func(f *fence.Fence) (provider.WriteOutcome, error) {
		t, err := s.target(ctx, f, &p.FileRef)
		if err != nil {
			return provider.WriteOutcome{}, err
		}
		at = t
		return s.host.files.WriteText(ctx, f, t, p.Content, p.WriteOptions)
	})
	if err == nil {
		op := api.OpUpdate
		if out.Operation == provider.OperationCreate {
			op = api.OpCreate
		}
		emit(s, s.currentTurn(), api.EventFSChanged, api.FSChangedData{Op: op, Path: s.host.files.ProcessPath(at), Version: out.Version})
	}
	return out, err
}

// EditText replaces literal text in a file.
func (s *Session) EditText(ctx context.Context, p *api.FSEditTextParams) (provider.EditOutcome, error) {
	var at provider.Target
	out, err := guarded(s, p.SandboxPolicy, p.Path, func(f *fence.Fence) (provider.EditOutcome, error) {
		t, err := s.target(ctx, f, &p.FileRef)
		if err != nil {
			return provider.EditOutcome{}, err
		}
		at = t
		return s.host.files.EditText(ctx, f, t, p.Edit, p.EditOptions)
	})
	if err == nil {
		emit(s, s.currentTurn(), api.EventFSChanged, api.FSChangedData{Op: api.OpEdit, Path: s.host.files.ProcessPath(at), Version: out.Version})
	}
	return out, err
}
