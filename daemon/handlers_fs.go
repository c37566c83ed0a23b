package daemon

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

// The file methods of a session add to those of [provider.Provider] its fence,
// its grants, its observations and its events. They are the same for a client
// of the daemon and for a command line in one process.

func (s *Server) fileHandlers() {
	onFile(s, api.FSResolve, func(p *api.FSResolveParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSResolveParams) (provider.Target, error) {
			return x.Resolve(ctx, p.Path, p.Cwd)
		})
	s.pathHandlers()
	s.readHandlers()
	s.writeHandlers()
	s.moveHandlers()
	s.watchHandlers()
}

// onFile serves a method that works on a session which the caller holds.
func onFile[P, R any](s *Server, m api.Method[P, R], session func(*P) string, do func(context.Context, *Session, *P) (R, error)) {
	api.On(s.mux, m, func(ctx context.Context, r *api.Request, p *P) (R, error) {
		x, err := s.held(r, session(p))
		if err != nil {
			var none R
			return none, err
		}
		return do(ctx, x, p)
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

// path is the path of a call that must not follow a link in the last place.
func (s *Session) path(ref *api.FileRef) string {
	if ref.Target != nil {
		return s.host.files.ProcessPath(*ref.Target)
	}
	return ref.Path
}

// onTarget runs a call on one file, and gives the target that it worked on.
func onTarget[R any](ctx context.Context, s *Session, sp *api.SandboxPolicy, ref *api.FileRef,
	do func(*fence.Fence, provider.Target) (R, error)) (at provider.Target, out R, err error) {
	out, err = guarded(s, sp, ref.Path, func(f *fence.Fence) (R, error) {
		t, err := s.target(ctx, f, ref)
		if err != nil {
			var none R
			return none, err
		}
		at = t
		return do(f, t)
	})
	return at, out, err
}

// place is the canonical path of a name itself, whatever it is: of a link the
// link's. It is for events; where it cannot be found, it is the path as asked.
func (s *Session) place(ctx context.Context, f *fence.Fence, path, cwd string) string {
	o := s.cwd(cwd)
	if !filepath.IsAbs(path) {
		path = o.Cwd + string(filepath.Separator) + path
	}
	dir, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		dir, name = path, ""
	}
	t, err := s.host.files.Resolve(context.WithoutCancel(ctx), f, dir, o)
	if err != nil {
		return filepath.Clean(path)
	}
	return filepath.Join(s.host.files.ProcessPath(t), name)
}

// observed records what a call has shown of a target; without observation it
// does nothing.
func (s *Session) observed(t provider.Target, v provider.Version) {
	if s.seen != nil && t.TargetKey != "" {
		s.seen.Observed(t, provider.Observation{Version: v})
	}
}

// looked records a read: the version, or that nothing is there. A path that
// could not be resolved has no target.
func (s *Session) looked(t provider.Target, v provider.Version, err error) {
	var e *provider.Error
	switch {
	case err == nil && v != "":
		s.observed(t, v)
	case errors.As(err, &e) && e.Code == provider.CodeNotFound:
		s.observed(t, "")
	}
}

// editGuard is the guard of a call that changes what is there: the call's own,
// else what has been observed.
func (s *Session) editGuard(t provider.Target, own *provider.VersionGuard, op string) (*provider.VersionGuard, error) {
	if own != nil || s.seen == nil {
		return own, nil
	}
	g, err := s.seen.EditIntent(t)
	return g, named(err, op)
}

// writeGuard is the guard of a call that makes or replaces a file.
func (s *Session) writeGuard(t provider.Target, own *provider.WriteIntent) (*provider.WriteIntent, error) {
	if own != nil || s.seen == nil {
		return own, nil
	}
	return s.seen.WriteIntent(t)
}

// named gives a refusal the name of the call that met it.
func named(err error, op string) error {
	var e *provider.Error
	if errors.As(err, &e) {
		e.Op = op // made for this call alone
	}
	return err
}

// changed tells that a call changed a file.
func (s *Session) changed(op api.FSOp, path string, v provider.Version, from string) {
	emit(s, s.currentTurn(), api.EventFSChanged, api.FSChangedData{Op: op, Path: path, Version: v, From: from})
}

// trashed tells that something went to the trash; nil tells nothing.
func (s *Session) trashed(e *record.Entry) {
	if e != nil {
		emit(s, s.currentTurn(), api.EventTrashPut, *e)
	}
}

// Resolve gives the identity of a path.
func (s *Session) Resolve(ctx context.Context, path, cwd string) (provider.Target, error) {
	return guarded(s, nil, path, func(f *fence.Fence) (provider.Target, error) {
		return s.host.files.Resolve(ctx, f, path, s.cwd(cwd))
	})
}

func opOf(o provider.Operation) api.FSOp {
	if o == provider.OperationCreate {
		return api.OpCreate
	}
	return api.OpUpdate
}
