package daemon

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// The trash is the user's, not a session's. Whoever may use the socket is the
// user: a call without a session is held by no fence, only by the permissions
// of the files, and never replaces anything. A call with a session is for its
// agent, and the fence decides where something may come back to, and whether it
// may have been the session's at all.

func (s *Server) trashHandlers() {
	api.On(s.mux, api.TrashList, func(ctx context.Context, r *api.Request, p *api.TrashListParams) (trash.Listing, error) {
		if p.SessionID == "" {
			return s.host.ListTrash(ctx)
		}
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return trash.Listing{}, err
		}
		return x.ListTrash(ctx, p)
	})
	api.On(s.mux, api.TrashRestore, func(ctx context.Context, r *api.Request, p *api.TrashRestoreParams) (api.TrashRestoreResult, error) {
		if p.SessionID == "" {
			return s.host.RestoreTrash(ctx, p)
		}
		x, err := s.held(r, p.SessionID)
		if err != nil {
			return api.TrashRestoreResult{}, err
		}
		return x.RestoreTrash(ctx, p)
	})
	api.On(s.mux, api.TrashEmpty, func(ctx context.Context, _ *api.Request, p *api.TrashEmptyParams) (api.TrashEmptyResult, error) {
		return s.host.EmptyTrash(ctx, p)
	})
}

// ListTrash lists everything in the user's trash.
func (h *Host) ListTrash(ctx context.Context) (trash.Listing, error) { return h.bin.List(ctx) }

// RestoreTrash brings something back, as the user.
func (h *Host) RestoreTrash(ctx context.Context, p *api.TrashRestoreParams) (api.TrashRestoreResult, error) {
	r, err := h.restoreTrash(ctx, p, nil)
	for _, d := range cameBack(p, r) {
		tell(h, api.EventTrashRestored, d)
	}
	return r, err
}

// cameBack is what there is to tell of a restore.
func cameBack(p *api.TrashRestoreParams, r api.TrashRestoreResult) []api.TrashRestoredData {
	var out []api.TrashRestoredData
	for _, one := range r.Restored {
		out = append(out, api.TrashRestoredData{Path: one.Path, Entry: &one.Entry})
	}
	if g := r.Group; g != nil && g.Files+g.Directories > 0 {
		out = append(out, api.TrashRestoredData{ProcessID: p.ProcessID, Files: g.Files, Directories: g.Directories, NotRestored: g.NotRestored})
	}
	return out
}

func (h *Host) restoreTrash(ctx context.Context, p *api.TrashRestoreParams, allow func(record.Entry, string) error) (api.TrashRestoreResult, error) {
	none := api.TrashRestoreResult{Restored: []trash.Restored{}}
	o := trash.RestoreOptions{Destination: p.Destination, Parents: p.Parents, CopyAcross: p.CopyAcross, Allow: allow}
	if p.ProcessID != "" {
		g, err := h.bin.RestoreGroup(ctx, p.ProcessID, o)
		// After an error it may be that something has come back.
		none.Group = &g
		return none, err
	}
	one, err := h.bin.Restore(ctx, p.ID, o)
	if err != nil {
		return none, err
	}
	return api.TrashRestoreResult{Restored: []trash.Restored{one}}, nil
}

// EmptyTrash removes things in the trash for good. What cannot be removed is in
// the result.
func (h *Host) EmptyTrash(ctx context.Context, p *api.TrashEmptyParams) (api.TrashEmptyResult, error) {
	o := trash.EmptyOptions{IDs: p.IDs, Orphans: p.Orphans}
	if p.OlderThanDays != nil {
		o.OlderThan = time.Duration(*p.OlderThanDays) * 24 * time.Hour
	}
	done, err := h.bin.Empty(ctx, o)
	r := api.TrashEmptyResult{Entries: done.Entries, Files: done.Files, Bytes: done.Bytes}
	for _, l := range done.Left {
		r.Left = append(r.Left, api.TrashLeft{Entry: l.Entry, Error: api.ErrorOf(l.Err)})
	}
	if len(r.Entries)+len(r.Left) > 0 {
		tell(h, api.EventTrashEmptied, api.TrashEmptiedData{Entries: len(r.Entries), Files: r.Files, Bytes: r.Bytes, Left: len(r.Left)})
	}
	return r, err
}

// tell publishes an event of no session.
func tell[D any](h *Host, t api.EventType[D], data D) {
	e, err := t.New("", "", data)
	if err != nil {
		h.log.Error().Err(err).Msg("event lost")
		return
	}
	h.publish(e)
}

// ListTrash lists what came from the workspace, or all.
func (s *Session) ListTrash(ctx context.Context, p *api.TrashListParams) (trash.Listing, error) {
	if err := s.alive(); err != nil {
		return trash.Listing{}, err
	}
	l, err := s.host.ListTrash(ctx)
	if err != nil || p.All {
		return l, err
	}
	return Below(l, s.workspace), nil
}

// Below is what of a listing came from a directory or what it contains. dir is
// canonical. Problems are kept: nobody knows what they conceal.
func Below(l trash.Listing, dir string) trash.Listing {
	own := l
	own.Entries = []record.Entry{}
	places := map[string]string{} // directories and where they are
	for _, e := range l.Entries {
		if e.OriginalPath == "" {
			continue
		}
		// Other programs write down the path as they were told it.
		in, known := places[filepath.Dir(e.OriginalPath)]
		if !known {
			in = filepath.Dir(e.OriginalPath)
			if r, err := fence.Canonical(in); err == nil {
				in = r.Path
			}
			places[filepath.Dir(e.OriginalPath)] = in
		}
		if fence.PathCovers(dir, filepath.Join(in, filepath.Base(e.OriginalPath))) {
			own.Entries = append(own.Entries, e)
		}
	}
	return own
}

// RestoreTrash brings something back where the session's fence allows it.
func (s *Session) RestoreTrash(ctx context.Context, p *api.TrashRestoreParams) (api.TrashRestoreResult, error) {
	o := *p
	if o.Destination != "" && !filepath.IsAbs(o.Destination) {
		o.Destination = filepath.Join(s.workspace, o.Destination)
	}
	r, err := guarded(s, nil, p.Destination, func(f *fence.Fence) (api.TrashRestoreResult, error) {
		return s.host.restoreTrash(ctx, &o, func(e record.Entry, path string) error {
			err := mayRestore(ctx, f, e, path, p.Destination)
			if d := (*fence.Denial)(nil); p.ProcessID != "" && errors.As(err, &d) {
				// One of many things, that stays: it is in the result.
				return &record.Error{Code: d.Code, Outcome: record.Rejected, Reason: record.ReasonProtected, Op: "restore", Path: path, Cause: d}
			}
			return err
		})
	})
	for _, d := range cameBack(p, r) {
		if d.Path != "" {
			s.forgotten(d.Path)
		}
		emit(s, s.currentTurn(), api.EventTrashRestored, d)
	}
	return r, err
}

// mayRestore asks the fence. What comes back must be such that the session could
// have deleted it where it was: the trash is no way to files that are hidden.
// And it must be such that the session could make it where it goes, with all
// that is in it. asked is the place as the client spelled it.
func mayRestore(ctx context.Context, f *fence.Fence, e record.Entry, path, asked string) error {
	if f.Mode() == fence.FullAccess {
		return nil
	}
	if asked == "" {
		asked = e.OriginalPath
	}
	if e.OriginalPath == "" {
		return &record.Error{Code: record.CodeRejected, Outcome: record.Rejected, Reason: record.ReasonInspection, Op: "restore", Path: asked,
			Detail: "nobody knows where it was, so that no fence can allow it; the user can restore it with wattle trash restore"}
	}
	from, err := inPlace(e.OriginalPath)
	if err != nil {
		return &record.Error{Code: record.CodeRejected, Outcome: record.Rejected, Reason: record.ReasonInspection, Op: "restore", Path: e.OriginalPath,
			Detail: "where it was cannot be resolved", Cause: err}
	}
	if d := f.CheckAs(from, e.OriginalPath, fence.Delete); d != nil {
		return d
	}
	if e.Type != "directory" {
		return denied(f.CheckAs(path, asked, fence.Create))
	}
	if e.TrashDir == "" { // made again for what a command removed
		return denied(f.CheckDirectory(path, asked, fence.Mkdir))
	}
	// With the name of a directory goes what may be protected in it.
	for _, a := range []fence.Access{fence.Mkdir, fence.Rename} {
		if d := f.CheckDirectory(path, asked, a); d != nil {
			return d
		}
	}
	files, err := anchor.OpenDir(filepath.Join(e.TrashDir, "files"))
	if err != nil {
		return unseen(e, err)
	}
	defer files.Close()
	t := tree{f: f, at: path, asked: asked}
	if err := t.look(ctx, files, e.Name, ""); err != nil {
		if d := (*fence.Denial)(nil); errors.As(err, &d) {
			return d
		}
		return unseen(e, err)
	}
	return nil
}

// denied makes nil of no denial.
func denied(d *fence.Denial) error {
	if d == nil {
		return nil
	}
	return d
}

// unseen: what is in a directory is not known, so it does not come back.
func unseen(e record.Entry, err error) error {
	return &record.Error{Code: record.CodeRejected, Outcome: record.Rejected, Reason: record.ReasonInspection, Op: "restore", Path: e.OriginalPath,
		Detail: "what is in it cannot be looked at", Cause: err}
}

// tree looks at all that is in a directory of the trash: no fenced command can
// change it there.
type tree struct {
	f         *fence.Fence
	at, asked string
	depth     int
}

// maxTreeDepth bounds the directories that are open at once.
const maxTreeDepth = 512

// look asks about what is in the directory called name of in, and in those
// within. rel is the way from the top.
func (t *tree) look(ctx context.Context, in *anchor.Dir, name, rel string) error {
	if t.depth++; t.depth > maxTreeDepth {
		return errors.New("too many directories in one another")
	}
	defer func() { t.depth-- }()
	d, err := in.Walk(name)
	if err != nil {
		return err
	}
	defer d.Close()
	entries, err := d.Stream()
	if err != nil {
		return err
	}
	defer entries.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		es, err := entries.Next(1024)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range es {
			below := filepath.Join(rel, e.Name)
			access := fence.Create
			if e.IsDir() {
				access = fence.Mkdir
			}
			if d := t.f.CheckAs(filepath.Join(t.at, below), t.asked, access); d != nil {
				return d
			}
			if !e.IsDir() {
				continue
			}
			if err := t.look(ctx, d, e.Name, below); err != nil {
				return err
			}
		}
	}
}
