package daemon

import (
	"context"
	"errors"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

func (s *Server) writeHandlers() {
	onFile(s, api.FSWriteText, func(p *api.FSWriteTextParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSWriteTextParams) (provider.WriteOutcome, error) {
			return x.WriteText(ctx, p)
		})
	onFile(s, api.FSEditText, func(p *api.FSEditTextParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSEditTextParams) (provider.EditOutcome, error) {
			return x.EditText(ctx, p)
		})
	onFile(s, api.FSPatchText, func(p *api.FSPatchTextParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSPatchTextParams) (provider.PatchOutcome, error) {
			return x.PatchText(ctx, p)
		})
	onFile(s, api.FSApplyPatch, func(p *api.FSApplyPatchParams) string { return p.SessionID },
		func(ctx context.Context, x *Session, p *api.FSApplyPatchParams) (provider.PatchReport, error) {
			return x.ApplyPatch(ctx, p)
		})
}

// WriteText makes a file or replaces it whole. A text that ends with the footer
// of a read of this session is written, with a warning.
func (s *Session) WriteText(ctx context.Context, p *api.FSWriteTextParams) (provider.WriteOutcome, error) {
	at, out, err := onTarget(ctx, s, p.SandboxPolicy, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.WriteOutcome, error) {
		o := p.WriteOptions
		var err error
		if o.Expected, err = s.writeGuard(t, o.Expected); err != nil {
			return provider.WriteOutcome{}, err
		}
		return s.host.files.WriteText(ctx, f, t, p.Content, o)
	})
	if err == nil {
		s.observed(at, out.Version)
		s.changed(opOf(out.Operation), s.host.files.ProcessPath(at), out.Version, "")
		out.Warning = s.footers.warn(p.Content)
	}
	return out, err
}

// EditText replaces literal text in a file.
func (s *Session) EditText(ctx context.Context, p *api.FSEditTextParams) (provider.EditOutcome, error) {
	at, out, err := onTarget(ctx, s, p.SandboxPolicy, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.EditOutcome, error) {
		o := p.EditOptions
		var err error
		if o.Expected, err = s.editGuard(t, o.Expected, "editText"); err != nil {
			return provider.EditOutcome{}, err
		}
		return s.host.files.EditText(ctx, f, t, p.Edit, o)
	})
	if err == nil {
		s.observed(at, out.Version)
		s.changed(api.OpEdit, s.host.files.ProcessPath(at), out.Version, "")
	}
	return out, err
}

// PatchText applies hunks to one file.
func (s *Session) PatchText(ctx context.Context, p *api.FSPatchTextParams) (provider.PatchOutcome, error) {
	at, out, err := onTarget(ctx, s, p.SandboxPolicy, &p.FileRef, func(f *fence.Fence, t provider.Target) (provider.PatchOutcome, error) {
		o := provider.PatchOptions{EditOptions: p.EditOptions}
		var err error
		if o.Expected, err = s.editGuard(t, o.Expected, "patchText"); err != nil {
			return provider.PatchOutcome{}, err
		}
		return s.host.files.PatchText(ctx, f, t, p.Hunks, o)
	})
	if err == nil {
		s.observed(at, out.Version)
		s.changed(api.OpPatch, s.host.files.ProcessPath(at), out.Version, "")
	}
	return out, err
}

// ApplyPatch applies a patch of any number of files. What was really changed is
// told, also when the patch failed in the end.
func (s *Session) ApplyPatch(ctx context.Context, p *api.FSApplyPatchParams) (provider.PatchReport, error) {
	o := p.ApplyOptions
	o.Cwd = s.cwd(o.Cwd).Cwd
	if s.seen != nil {
		o.Guards = s.seen
	}
	var used *fence.Fence
	out, err := guarded(s, p.SandboxPolicy, "", func(f *fence.Fence) (provider.PatchReport, error) {
		used = f
		return s.host.files.ApplyPatch(ctx, f, p.Patch, o)
	})
	report := out
	var failed *provider.PatchError
	if errors.As(err, &failed) {
		report = failed.Report
	}
	for i := range report.Operations {
		s.applied(ctx, used, &report.Operations[i], o.Cwd)
	}
	return out, err
}

// applied tells what one operation of a patch changed. One that was undone, or
// not done, changed nothing.
func (s *Session) applied(ctx context.Context, f *fence.Fence, op *provider.ApplyOperation, cwd string) {
	if op.State != provider.ApplyDone && op.State != provider.ApplyLeft {
		return
	}
	where := func(path string) string {
		t, err := s.host.files.Resolve(context.WithoutCancel(ctx), f, path, provider.ResolveOptions{Cwd: cwd})
		if err != nil {
			return s.place(ctx, f, path, cwd)
		}
		return s.host.files.ProcessPath(t)
	}
	switch op.Kind {
	case "add":
		s.changed(api.OpCreate, where(op.Path), op.Version, "")
	case "delete":
		s.changed(api.OpDelete, where(op.Path), "", "")
	case "move":
		s.changed(api.OpMove, where(op.Destination), op.Version, where(op.Path))
	case "replace":
		s.changed(api.OpUpdate, where(op.Path), op.Version, "")
	default:
		s.changed(api.OpPatch, where(op.Path), op.Version, "")
	}
	s.trashed(op.Trashed)
}
