package daemon

import (
	"context"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

func refSession(p *api.FileRef) string { return p.SessionID }

func (s *Server) pathHandlers() {
	onFile(s, api.FSProcessPath, refSession, func(ctx context.Context, x *Session, p *api.FileRef) (api.FSProcessPathResult, error) {
		t, err := x.Target(ctx, p)
		if err != nil {
			return api.FSProcessPathResult{}, err
		}
		return api.FSProcessPathResult{Path: s.host.files.ProcessPath(t)}, nil
	})
	onFile(s, api.FSProcessPathFromHostPath, func(p *api.FSHostPathParams) string { return p.SessionID },
		func(_ context.Context, _ *Session, p *api.FSHostPathParams) (api.FSHostPathResult, error) {
			if path, ok := s.host.files.ProcessPathFromHostPath(p.Path); ok {
				return api.FSHostPathResult{Path: &path}, nil
			}
			return api.FSHostPathResult{}, nil
		})
	onFile(s, api.FSFileURL, refSession, func(ctx context.Context, x *Session, p *api.FileRef) (api.FSFileURLResult, error) {
		t, err := x.Target(ctx, p)
		if err != nil {
			return api.FSFileURLResult{}, err
		}
		return api.FSFileURLResult{URL: s.host.files.FileURL(t)}, nil
	})
	onFile(s, api.FSContains, func(p *api.FSContainsParams) string { return p.SessionID },
		func(_ context.Context, _ *Session, p *api.FSContainsParams) (api.FSContainsResult, error) {
			return api.FSContainsResult{Contains: s.host.files.Contains(p.Parent, p.Child)}, nil
		})
	onFile(s, api.FSStat, refSession, func(ctx context.Context, x *Session, p *api.FileRef) (*provider.Info, error) {
		return x.Stat(ctx, p)
	})
	onFile(s, api.FSLstat, refSession, func(ctx context.Context, x *Session, p *api.FileRef) (*provider.PathInfo, error) {
		return x.Lstat(ctx, p)
	})
	onFile(s, api.FSListDir, func(p *api.FSListDirParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSListDirParams) (api.FSListDirResult, error) {
			r, err := x.ListDir(ctx, p)
			if err == nil && sizeOf(r.Entries) > maxListing {
				return api.FSListDirResult{}, &provider.Error{Code: provider.CodeTooLarge, Op: "listDir", Path: p.Path,
					Detail: "the listing does not fit into one reply; list it in pages, with limit and after"}
			}
			return r, err
		})
	onFile(s, api.FSObserved, refSession, func(ctx context.Context, x *Session, p *api.FileRef) (api.FSObservedResult, error) {
		return x.Observed(ctx, p)
	})
}

// maxListing is what a listing may take in a reply before text is escaped. One
// that grows beyond the limit of a reply all the same is refused there.
const maxListing = 32 << 20

// sizeOf is what a listing takes in a reply, about.
func sizeOf(entries []provider.DirEntry) int {
	const names = 120 // of the members, and the digits of the size
	n := 0
	for i := range entries {
		e := &entries[i]
		n += len(e.Name) + len(e.Target.TargetKey) + len(e.Target.DisplayPath) + len(e.Version) + names
	}
	return n
}

// Target is the target of a call: the one that it brought, or that of its path.
func (s *Session) Target(ctx context.Context, ref *api.FileRef) (provider.Target, error) {
	if ref.Target != nil {
		return *ref.Target, s.alive()
	}
	return s.Resolve(ctx, ref.Path, ref.Cwd)
}

// Stat describes a file, following links; nil when nothing is there.
func (s *Session) Stat(ctx context.Context, ref *api.FileRef) (*provider.Info, error) {
	at, info, err := onTarget(ctx, s, nil, ref, func(f *fence.Fence, t provider.Target) (*provider.Info, error) {
		return s.host.files.Stat(ctx, f, t)
	})
	if err == nil && info == nil {
		s.observed(at, "")
	}
	return info, err
}

// Lstat describes a path without following a link in the last place.
func (s *Session) Lstat(ctx context.Context, ref *api.FileRef) (*provider.PathInfo, error) {
	return guarded(s, nil, ref.Path, func(f *fence.Fence) (*provider.PathInfo, error) {
		return s.host.files.Lstat(ctx, f, s.path(ref), s.cwd(ref.Cwd))
	})
}

// ListDir lists a directory, or a page of it.
func (s *Session) ListDir(ctx context.Context, p *api.FSListDirParams) (api.FSListDirResult, error) {
	o := p.ListOptions
	var ok bool
	if o.After, ok = api.NameOfPage(p.After); !ok {
		return api.FSListDirResult{}, api.InvalidParams("/after", "neither a name nor the end of a page")
	}
	_, list, err := onTarget(ctx, s, nil, &p.FileRef, func(f *fence.Fence, t provider.Target) ([]provider.DirEntry, error) {
		return s.host.files.ListDir(ctx, f, t, o)
	})
	if err != nil {
		return api.FSListDirResult{}, err
	}
	r := api.FSListDirResult{Entries: list}
	if n := len(list); o.Limit > 0 && n == o.Limit {
		r.Next = api.PageAfter(list[n-1].Name)
	}
	return r, nil
}

// Observed tells what the session knows of a file.
func (s *Session) Observed(ctx context.Context, ref *api.FileRef) (api.FSObservedResult, error) {
	t, err := s.Target(ctx, ref)
	if err != nil {
		return api.FSObservedResult{}, err
	}
	if s.seen == nil {
		return api.FSObservedResult{State: provider.Unseen}, nil
	}
	state, v := s.seen.State(t)
	return api.FSObservedResult{State: state, Version: v}, nil
}
