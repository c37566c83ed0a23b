package daemon

import (
	"errors"
	"path/filepath"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
)

// maxGrants bounds the grants of one session.
const maxGrants = 256

// Grant allows one more path: for the session, or for the next call that needs
// it. POLICY_GRANT_REFUSED: the path cannot be granted (it is protected, does
// not exist, or opens too much).
func (s *Session) Grant(g api.SessionGrantParams) (fence.View, error) {
	refuse := func(why string) (fence.View, error) {
		return fence.View{}, api.NewError(codeGrant, "grant "+g.Path+": "+why, "path", g.Path)
	}
	if !filepath.IsAbs(g.Path) {
		g.Path = filepath.Join(s.workspace, g.Path)
	}
	r, err := s.Fence().Resolve(g.Path)
	if err != nil {
		return refuse(rootCause(err))
	}
	if !r.Exists {
		return refuse("it does not exist; grant the directory that it is to be made in")
	}
	g.Path = r.Path
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	mode, granted, once := s.mode, s.granted, s.once
	s.mu.Unlock()
	if len(granted)+len(once) >= maxGrants {
		return refuse("the session has too many grants")
	}
	next := append(append([]api.SessionGrantParams{}, granted...), g)
	f, err := s.compile(mode, s.workspace, next)
	if err != nil {
		return fence.View{}, err
	}
	if d := f.Check(g.Path, g.Access); d != nil {
		return refuse("it stays closed (" + d.RuleText() + ")")
	}
	s.mu.Lock()
	if g.Scope == api.ScopeOnce {
		s.once = append(s.once, g)
	} else {
		s.granted = next
	}
	s.mu.Unlock()
	if g.Scope != api.ScopeOnce {
		s.use(f)
	}
	emit(s, s.currentTurn(), api.EventSessionGranted, api.SessionGrantedData{Path: g.Path, Access: g.Access, Scope: g.Scope})
	return f.View(), nil
}

// takeOnce removes and returns the grants for one call that cover a denial, or
// all of them when d is nil.
func (s *Session) takeOnce(d *fence.Denial) []api.SessionGrantParams {
	s.mu.Lock()
	defer s.mu.Unlock()
	var take, keep []api.SessionGrantParams
	for _, g := range s.once {
		if d == nil || fence.PathCovers(g.Path, d.Path) && g.Access.Mutates() == d.Access.Mutates() {
			take = append(take, g)
		} else {
			keep = append(keep, g)
		}
	}
	s.once = keep
	return take
}

// guarded runs a file operation under the fence of the call. What the fence
// refuses is tried once more when a grant for one call covers it, and is
// published otherwise. asked is the path as the client spelled it, or "".
func guarded[R any](s *Session, sp *api.SandboxPolicy, asked string, do func(*fence.Fence) (R, error)) (R, error) {
	var none R
	if err := s.alive(); err != nil {
		return none, err
	}
	f, err := s.fenceFor(sp)
	if err != nil {
		return none, err
	}
	if f, err = s.forFiles(f); err != nil {
		return none, err
	}
	r, err := do(f)
	var d *fence.Denial
	if !errors.As(err, &d) {
		return r, err
	}
	if grants := s.takeOnce(d); len(grants) > 0 {
		s.mu.Lock()
		all := append(append([]api.SessionGrantParams{}, s.granted...), grants...)
		s.mu.Unlock()
		wider, cerr := s.compile(f.Mode(), f.Workspace(), all)
		if cerr == nil {
			wider, cerr = s.forFiles(wider)
		}
		if cerr != nil {
			return none, cerr
		}
		if r, err = do(wider); !errors.As(err, &d) {
			return r, err
		}
	}
	if asked != "" {
		d.Requested = asked // made for this call alone
	}
	emit(s, s.currentTurn(), api.EventFSDenied, *d)
	return r, err
}

// processSecrets are what a process keeps from others through ptrace rules.
// This process may read its own, and a client must not through it: the
// environment holds what is never passed to a command. Commands are held by
// the kernel (ptrace(2), Landlock).
var processSecrets = []fence.Entry{
	{Path: "/proc/*/environ", Source: "mode"}, {Path: "/proc/*/task/*/environ", Source: "mode"},
	{Path: "/proc/*/mem", Source: "mode"}, {Path: "/proc/*/task/*/mem", Source: "mode"},
}

// forFiles is a fence for file calls. The one of the session is kept.
func (s *Session) forFiles(f *fence.Fence) (*fence.Fence, error) {
	s.mu.Lock()
	kept := s.files
	s.mu.Unlock()
	if kept.of == f {
		return kept.fence, nil
	}
	g, err := f.WithHidden(processSecrets...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.fence == f {
		s.files.of, s.files.fence = f, g
	}
	s.mu.Unlock()
	return g, nil
}
