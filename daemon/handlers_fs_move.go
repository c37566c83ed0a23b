package daemon

import (
	"context"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

func (s *Server) moveHandlers() {
	onFile(s, api.FSDeleteFile, func(p *api.FSDeleteFileParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSDeleteFileParams) (provider.DeleteOutcome, error) {
			return x.DeleteFile(ctx, p)
		})
	onFile(s, api.FSDeletePath, func(p *api.FSDeletePathParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSDeletePathParams) (provider.DeleteOutcome, error) {
			return x.DeletePath(ctx, p)
		})
	onFile(s, api.FSMoveFile, func(p *api.FSMoveFileParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSMoveFileParams) (provider.MoveOutcome, error) {
			return x.MoveFile(ctx, p)
		})
	onFile(s, api.FSMovePath, func(p *api.FSMovePathParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSMovePathParams) (provider.MovePathOutcome, error) {
			return x.MovePath(ctx, p)
		})
	onFile(s, api.FSCopyPath, func(p *api.FSCopyPathParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSCopyPathParams) (provider.CopyPathOutcome, error) {
			return x.CopyPath(ctx, p)
		})
	onFile(s, api.FSMakeDir, func(p *api.FSMakeDirParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSMakeDirParams) (provider.MakeDirOutcome, error) {
			return x.MakeDir(ctx, p)
		})
}

// DeleteFile removes a regular file.
func (s *Session) DeleteFile(ctx context.Context, p *api.FSDeleteFileParams) (provider.DeleteOutcome, error) {
	at, out, err := onTarget(ctx, s, p.SandboxPolicy, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.DeleteOutcome, error) {
		o := p.DeleteOptions
		if o.Expected == nil && s.seen != nil {
			var err error
			if o.Expected, err = s.seen.DeleteIntent(t); err != nil {
				return provider.DeleteOutcome{}, named(err, "deleteFile")
			}
		}
		return s.host.files.DeleteFile(ctx, f, t, o)
	})
	if err == nil {
		s.observed(at, "")
		s.changed(api.OpDelete, s.host.files.ProcessPath(at), "", "")
		s.trashed(out.Trashed)
	}
	return out, err
}

// DeletePath removes a file, a directory or a link itself. It asks nothing of
// the observations: what is no file has none.
func (s *Session) DeletePath(ctx context.Context, p *api.FSDeletePathParams) (provider.DeleteOutcome, error) {
	path := s.path(&p.FileRef)
	var at string
	out, err := guarded(s, p.SandboxPolicy, p.Path, func(f *fence.Fence) (provider.DeleteOutcome, error) {
		at = s.place(ctx, f, path, p.Cwd)
		return s.host.files.DeletePath(ctx, f, path, provider.DeletePathOptions{
			Cwd: s.cwd(p.Cwd).Cwd, Expected: p.Expected, Permanent: p.Permanent,
			Recursive: p.Recursive, CopyAcross: p.CopyAcross, Links: p.Links,
		})
	})
	if err != nil {
		return out, err
	}
	// A link and what it leads to have different keys: this is the link's own.
	s.observed(provider.Target{TargetKey: provider.TargetKey(at)}, "")
	if out.Outcome != record.AlreadyAbsent {
		s.changed(api.OpDelete, at, "", "")
		s.trashed(out.Trashed)
	}
	return out, nil
}

// destination finds the target where a file goes.
func (s *Session) destination(ctx context.Context, f *fence.Fence, d api.Destination, cwd string) (provider.Target, error) {
	if d.Target != nil {
		return *d.Target, nil
	}
	return s.host.files.Resolve(ctx, f, d.Path, s.cwd(cwd))
}

// MoveFile publishes a file at another place and removes it at the first.
func (s *Session) MoveFile(ctx context.Context, p *api.FSMoveFileParams) (provider.MoveOutcome, error) {
	var to provider.Target
	from, out, err := onTarget(ctx, s, p.SandboxPolicy, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.MoveOutcome, error) {
		var none provider.MoveOutcome
		var err error
		if to, err = s.destination(ctx, f, p.Destination, p.Cwd); err != nil {
			return none, err
		}
		o := provider.MoveOptions{Hunks: p.Hunks, OverrideReadOnly: p.OverrideReadOnly}
		if o.ExpectedSource, err = s.editGuard(t, p.ExpectedSource, "moveFile"); err != nil {
			return none, err
		}
		if o.ExpectedDestination, err = s.writeGuard(to, p.ExpectedDestination); err != nil {
			return none, err
		}
		return s.host.files.MoveFile(ctx, f, t, to, o)
	})
	if err != nil {
		return out, err
	}
	v := out.Destination.Version
	s.observed(to, v)
	if !out.SourceDeleted { // two files now
		s.changed(opOf(out.Destination.Operation), s.host.files.ProcessPath(to), v, "")
		return out, nil
	}
	s.observed(from, "")
	s.changed(api.OpMove, s.host.files.ProcessPath(to), v, s.host.files.ProcessPath(from))
	return out, nil
}

// MovePath moves a file, a directory or a link itself.
func (s *Session) MovePath(ctx context.Context, p *api.FSMovePathParams) (provider.MovePathOutcome, error) {
	path := s.path(&p.FileRef)
	var from string
	out, err := guarded(s, p.SandboxPolicy, p.Path, func(f *fence.Fence) (provider.MovePathOutcome, error) {
		from = s.place(ctx, f, path, p.Cwd)
		return s.host.files.MovePath(ctx, f, path, p.Destination, provider.MovePathOptions{Cwd: s.cwd(p.Cwd).Cwd, Overwrite: p.Overwrite})
	})
	if err == nil {
		s.observed(provider.Target{TargetKey: provider.TargetKey(from)}, "")
		s.forgotten(out.Path)
		s.changed(api.OpMove, out.Path, "", from)
		s.trashed(out.Trashed)
	}
	return out, err
}

// forgotten: what is at the path now is not what was observed there. Its
// version was not told, so it must be read.
func (s *Session) forgotten(path string) {
	if s.seen != nil {
		s.seen.Forget(provider.Target{TargetKey: provider.TargetKey(path)})
	}
}

// CopyPath copies a file, a link itself, or a directory.
func (s *Session) CopyPath(ctx context.Context, p *api.FSCopyPathParams) (provider.CopyPathOutcome, error) {
	path := s.path(&p.FileRef)
	var from string
	out, err := guarded(s, p.SandboxPolicy, p.Path, func(f *fence.Fence) (provider.CopyPathOutcome, error) {
		from = s.place(ctx, f, path, p.Cwd)
		return s.host.files.CopyPath(ctx, f, path, p.Destination,
			provider.CopyPathOptions{Cwd: s.cwd(p.Cwd).Cwd, Overwrite: p.Overwrite, Recursive: p.Recursive})
	})
	if err == nil {
		s.forgotten(out.Path)
		s.changed(api.OpCopy, out.Path, "", from)
		s.trashed(out.Trashed)
	}
	return out, err
}

// MakeDir makes a directory. Every one that was made is told.
func (s *Session) MakeDir(ctx context.Context, p *api.FSMakeDirParams) (provider.MakeDirOutcome, error) {
	out, err := guarded(s, p.SandboxPolicy, p.Path, func(f *fence.Fence) (provider.MakeDirOutcome, error) {
		return s.host.files.MakeDir(ctx, f, s.path(&p.FileRef), provider.MakeDirOptions{Cwd: s.cwd(p.Cwd).Cwd, Parents: p.Parents})
	})
	for _, d := range out.Made {
		s.changed(api.OpMkdir, d, "", "")
	}
	return out, err
}
