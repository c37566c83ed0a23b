package daemon_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
)

// remote is the provider of a daemon, as the suite wants one: for each fence it
// opens a session with the same policy, and makes the calls there.
type remote struct {
	t     *testing.T
	house *house
	c     *client.Client
	slots chan struct{} // a connection has 64 calls at most

	mu       sync.Mutex
	sessions map[*fence.Fence]*client.Files

	// mute is told of a test that wants something to travel that cannot.
	mute func(test string)
}

var _ provider.Provider = (*remote)(nil)

func newRemote(t *testing.T, h *house, mute func(string)) *remote {
	t.Helper()
	r := &remote{t: t, house: h, slots: make(chan struct{}, 48), sessions: map[*fence.Fence]*client.Files{}, mute: mute}
	c, err := client.Dial(h.ctx(), h.socket, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Initialize(h.ctx(), api.Implementation{Name: "suite", Version: "1"}); err != nil {
		t.Fatal(err)
	}
	r.c = c
	return r
}

// files is the session of a fence. It is closed with the connection.
func (r *remote) files(op string, f *fence.Fence) (*client.Files, error) {
	if f == nil {
		return nil, &provider.Error{Code: provider.CodeSandboxDenied, Op: op, Detail: "no session"}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[f]; s != nil {
		return s, nil
	}
	s, err := client.Do(context.Background(), r.c, api.SessionOpen, paramsOf(r.t, f.Policy()))
	if err != nil {
		r.t.Errorf("open a session like the fence: %v", err)
		return nil, err
	}
	r.sessions[f] = client.NewFiles(r.c, s.SessionID)
	return r.sessions[f], nil
}

// paramsOf opens a session with a policy and without the presets.
func paramsOf(t *testing.T, p fence.Policy) api.SessionOpenParams {
	out := api.SessionOpenParams{Workspace: p.Workspace, Mode: p.Mode, OnDisconnect: api.DisconnectTerminate}
	bare := policies.Document{Hide: []policies.Item{}}
	for _, d := range policies.Defaults() {
		for _, q := range d.Protected {
			bare.Unprotected = append(bare.Unprotected, policies.Item{Text: q.Match})
		}
	}
	like := policies.Document{}
	for _, q := range p.Protected {
		like.Protected = append(like.Protected, policies.Protected{Match: q.Match, NotUnder: q.NotUnder})
	}
	like.KeepOverwritten = &p.KeepOverwritten
	like.Hide, like.Visible, like.Caches = items(p.Hidden), items(p.Visible), items(p.Caches)
	if p.ReadableRoots != nil {
		like.Readable = &policies.Readable{Paths: items(p.ReadableRoots)}
	}
	for _, d := range []policies.Document{bare, like} {
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		out.Policies = append(out.Policies, api.PolicyRef{Inline: raw})
	}
	for _, w := range p.Writable {
		out.WritableRoots = append(out.WritableRoots, w.Path)
	}
	return out
}

func items(entries []fence.Entry) []policies.Item {
	var out []policies.Item
	for _, e := range entries {
		out = append(out, policies.Item{Text: e.Path})
	}
	return out
}

// on makes one call in the session of a fence.
func on[R any](r *remote, op string, f *fence.Fence, do func(*client.Files) (R, error)) (R, error) {
	s, err := r.files(op, f)
	if err != nil {
		var none R
		return none, err
	}
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	out, err := do(s)
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		r.mute(r.t.Name())
		r.t.Skip("SKIP: it cannot travel: ", err)
	}
	return out, err
}

// pure makes a call that has no fence in any session.
func pure[R any](r *remote, do func(*client.Files) (R, error)) R {
	r.t.Helper()
	f, err := fence.New(fence.Policy{Mode: fence.FullAccess, Workspace: r.house.ws})
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	for f = range r.sessions {
		break
	}
	r.mu.Unlock()
	out, err := on(r, "pure", f, do)
	if err != nil {
		r.t.Errorf("a pure call: %v", err)
	}
	return out
}

func (r *remote) Resolve(ctx context.Context, f *fence.Fence, path string, o provider.ResolveOptions) (provider.Target, error) {
	return on(r, "resolve", f, func(s *client.Files) (provider.Target, error) { return s.Resolve(ctx, path, o) })
}

func (r *remote) Stat(ctx context.Context, f *fence.Fence, t provider.Target) (*provider.Info, error) {
	return on(r, "stat", f, func(s *client.Files) (*provider.Info, error) { return s.Stat(ctx, t) })
}

func (r *remote) Lstat(ctx context.Context, f *fence.Fence, path string, o provider.ResolveOptions) (*provider.PathInfo, error) {
	return on(r, "lstat", f, func(s *client.Files) (*provider.PathInfo, error) { return s.Lstat(ctx, path, o) })
}

func (r *remote) ListDir(ctx context.Context, f *fence.Fence, t provider.Target, o provider.ListOptions) ([]provider.DirEntry, error) {
	return on(r, "listDir", f, func(s *client.Files) ([]provider.DirEntry, error) { return s.ListDir(ctx, t, o) })
}

func (r *remote) ReadText(ctx context.Context, f *fence.Fence, t provider.Target, o provider.ReadOptions) (provider.TextContent, error) {
	return on(r, "readText", f, func(s *client.Files) (provider.TextContent, error) { return s.ReadText(ctx, t, o) })
}

func (r *remote) StreamText(ctx context.Context, f *fence.Fence, t provider.Target) (provider.TextStream, error) {
	return on(r, "streamText", f, func(s *client.Files) (provider.TextStream, error) { return s.StreamText(ctx, t) })
}

func (r *remote) ReadBytes(ctx context.Context, f *fence.Fence, t provider.Target, most int64) (provider.ByteContent, error) {
	return on(r, "readBytes", f, func(s *client.Files) (provider.ByteContent, error) { return s.ReadBytes(ctx, t, most) })
}

func (r *remote) ReadByteRange(ctx context.Context, f *fence.Fence, t provider.Target, b provider.ByteRange) (provider.ByteContent, error) {
	return on(r, "readByteRange", f, func(s *client.Files) (provider.ByteContent, error) { return s.ReadByteRange(ctx, t, b) })
}

func (r *remote) ReadLines(ctx context.Context, f *fence.Fence, t provider.Target, w provider.LineWindow) (provider.ReadOutcome, error) {
	return on(r, "readLines", f, func(s *client.Files) (provider.ReadOutcome, error) { return s.ReadLines(ctx, t, w) })
}

func (r *remote) WriteText(ctx context.Context, f *fence.Fence, t provider.Target, content string, o provider.WriteOptions) (provider.WriteOutcome, error) {
	return on(r, "writeText", f, func(s *client.Files) (provider.WriteOutcome, error) { return s.WriteText(ctx, t, content, o) })
}

func (r *remote) EditText(ctx context.Context, f *fence.Fence, t provider.Target, e provider.EditRequest, o provider.EditOptions) (provider.EditOutcome, error) {
	return on(r, "editText", f, func(s *client.Files) (provider.EditOutcome, error) { return s.EditText(ctx, t, e, o) })
}

func (r *remote) PatchText(ctx context.Context, f *fence.Fence, t provider.Target, hunks []patch.Hunk, o provider.PatchOptions) (provider.PatchOutcome, error) {
	return on(r, "patchText", f, func(s *client.Files) (provider.PatchOutcome, error) { return s.PatchText(ctx, t, hunks, o) })
}

func (r *remote) ApplyPatch(ctx context.Context, f *fence.Fence, text string, o provider.ApplyOptions) (provider.PatchReport, error) {
	return on(r, "applyPatch", f, func(s *client.Files) (provider.PatchReport, error) { return s.ApplyPatch(ctx, text, o) })
}

func (r *remote) DeleteFile(ctx context.Context, f *fence.Fence, t provider.Target, o provider.DeleteOptions) (provider.DeleteOutcome, error) {
	return on(r, "deleteFile", f, func(s *client.Files) (provider.DeleteOutcome, error) { return s.DeleteFile(ctx, t, o) })
}

func (r *remote) DeletePath(ctx context.Context, f *fence.Fence, path string, o provider.DeletePathOptions) (provider.DeleteOutcome, error) {
	return on(r, "deletePath", f, func(s *client.Files) (provider.DeleteOutcome, error) { return s.DeletePath(ctx, path, o) })
}

func (r *remote) MoveFile(ctx context.Context, f *fence.Fence, from, to provider.Target, o provider.MoveOptions) (provider.MoveOutcome, error) {
	return on(r, "moveFile", f, func(s *client.Files) (provider.MoveOutcome, error) { return s.MoveFile(ctx, from, to, o) })
}

func (r *remote) MovePath(ctx context.Context, f *fence.Fence, from, to string, o provider.MovePathOptions) (provider.MovePathOutcome, error) {
	return on(r, "movePath", f, func(s *client.Files) (provider.MovePathOutcome, error) { return s.MovePath(ctx, from, to, o) })
}

func (r *remote) CopyPath(ctx context.Context, f *fence.Fence, from, to string, o provider.CopyPathOptions) (provider.CopyPathOutcome, error) {
	return on(r, "copyPath", f, func(s *client.Files) (provider.CopyPathOutcome, error) { return s.CopyPath(ctx, from, to, o) })
}

func (r *remote) MakeDir(ctx context.Context, f *fence.Fence, path string, o provider.MakeDirOptions) (provider.MakeDirOutcome, error) {
	return on(r, "makeDir", f, func(s *client.Files) (provider.MakeDirOutcome, error) { return s.MakeDir(ctx, path, o) })
}

func (r *remote) Watch(ctx context.Context, f *fence.Fence, t provider.Target, changed func(provider.Change)) (provider.Watch, error) {
	return on(r, "watch", f, func(s *client.Files) (provider.Watch, error) { return s.Watch(ctx, t, changed) })
}

func (r *remote) Contains(parent, child provider.Target) bool {
	return pure(r, func(s *client.Files) (bool, error) { return s.Contains(context.Background(), parent, child) })
}

func (r *remote) ProcessPath(t provider.Target) string {
	return pure(r, func(s *client.Files) (string, error) { return s.ProcessPath(context.Background(), t) })
}

func (r *remote) FileURL(t provider.Target) string {
	return pure(r, func(s *client.Files) (string, error) { return s.FileURL(context.Background(), t) })
}

func (r *remote) ProcessPathFromHostPath(host string) (string, bool) {
	type answer struct {
		path string
		ok   bool
	}
	a := pure(r, func(s *client.Files) (answer, error) {
		p, ok, err := s.ProcessPathFromHostPath(context.Background(), host)
		return answer{p, ok}, err
	})
	return a.path, a.ok
}
