package daemon

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
)

// Session is a workspace with a fence, and everything that lives in it:
// commands, scratch, watches, observations, a turn. Make it with [Host.Open], end it with Close. Any
// number of goroutines may use one at once.
type Session struct {
	host      *Host
	id        string
	token     string // resume token, a secret
	workspace string // canonical
	docs      []policies.Document
	roots     []string
	network   fence.Network
	opened    time.Time
	scratch   *scratch.Dir  // nil when none can be had
	noScratch error         // why there is none
	temp      *sandbox.Temp // of commands when there is none, else nil
	prompt    string
	// seen is what the session has observed; nil unless it asked for that.
	seen *provider.Observations
	// footers are those of its reads of lines.
	footers footers
	// life ends when the session is closed.
	life    context.Context
	endLife context.CancelFunc

	// turning serialises the begin and end of turns, changes of the fence and
	// the end of the session. Taken before starts and mu.
	turning sync.Mutex
	// starts is held for reading while a command is started, and for writing
	// while a turn or the session ends: what has started by then is on record
	// and is ended, what comes later belongs to what comes after. Taken before
	// mu.
	starts sync.RWMutex

	mu       sync.Mutex // after Server.mu, before Log.mu
	mode     fence.Mode
	fence    *fence.Fence
	files    struct{ of, fence *fence.Fence } // forFiles of the fence
	granted  []api.SessionGrantParams         // for the session
	once     []api.SessionGrantParams         // for one call
	turn     string
	turns    int
	commands map[string]*Command
	order    []string // of commands, oldest first
	watches  map[string]*watch
	closed   bool
}

// ID names the session. Workspace is canonical.
func (s *Session) ID() string        { return s.id }
func (s *Session) Workspace() string { return s.workspace }

// Mode is the mode of the next call.
func (s *Session) Mode() fence.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// Fence is the fence of the next call.
func (s *Session) Fence() *fence.Fence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fence
}

// Prompt is the section about scratch for a model: the same bytes for the life
// of the session.
func (s *Session) Prompt() string { return s.prompt }

// emit publishes an event of this session.
func emit[D any](s *Session, turn string, t api.EventType[D], data D) {
	e, err := t.New(s.id, turn, data)
	if err != nil {
		s.host.log.Error().Err(err).Msg("event lost")
		return
	}
	s.host.publish(e)
}

func (s *Session) currentTurn() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// compile makes a fence of the session's documents for a mode and a workspace,
// with what has been granted. It looks at the disk.
func (s *Session) compile(mode fence.Mode, ws string, grants []api.SessionGrantParams) (*fence.Fence, error) {
	h := s.host
	c := policies.Context{Home: h.places.Home, Workspace: ws, Cache: h.places.WorkspaceCache(s.workspace),
		Own: h.own, Env: environMap(h.environ), Scratch: s.tempDir()}
	p, err := policies.Build(c, mode, s.docs...)
	if err != nil {
		return nil, err
	}
	// In read-only too the variables name the caches: the start of a command
	// points those that it cannot write into its own temporary directory.
	if p.Env, err = policies.Environment(c, s.docs...); err != nil {
		return nil, err
	}
	if s.scratch == nil {
		p.Scratch = ""
		p.Caches = append(p.Caches, fence.Entry{Path: c.Scratch, Source: "mode"})
	} else {
		p.Hidden = append(p.Hidden, hiddenScratch(filepath.Dir(s.scratch.Path())))
	}
	for _, w := range s.roots {
		p.Writable = append(p.Writable, fence.Entry{Path: w, Source: "session"})
	}
	if s.network != "" {
		p.Network = s.network
	}
	for _, g := range grants {
		e := fence.Entry{Path: g.Path, Source: "session"}
		switch g.Access {
		case fence.Read, fence.Execute:
			p.Visible = append(p.Visible, e)
			if p.ReadableRoots != nil {
				p.ReadableRoots = append(p.ReadableRoots, e)
			}
		case fence.Connect:
			p.UnixSockets = append(p.UnixSockets, e)
		default:
			p.Writable = append(p.Writable, e)
		}
	}
	if err := h.closeTrash(&p); err != nil {
		return nil, err
	}
	if err := makePrivate(c.Cache); err != nil {
		return nil, fmt.Errorf("prepare the workspace's cache: %w", err)
	}
	return fence.New(p)
}

func environMap(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

// fenceFor is the fence of one call: the session's, or one of another mode and
// root for that call alone.
func (s *Session) fenceFor(sp *api.SandboxPolicy) (*fence.Fence, error) {
	s.mu.Lock()
	f, grants := s.fence, s.granted
	s.mu.Unlock()
	if sp == nil || sp.Mode == f.Mode() && sp.WorkspaceRoot == "" {
		return f, nil
	}
	ws := s.workspace
	if sp.WorkspaceRoot != "" {
		var err error
		if ws, err = workspace(sp.WorkspaceRoot); err != nil {
			return nil, err
		}
	}
	return s.compile(sp.Mode, ws, grants)
}

// SetMode changes the mode of later calls and commands.
func (s *Session) SetMode(mode fence.Mode) (fence.View, error) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	prev, grants := s.mode, s.granted
	s.mu.Unlock()
	f, err := s.compile(mode, s.workspace, grants)
	if err != nil {
		return fence.View{}, err
	}
	s.mu.Lock()
	s.mode = mode
	s.mu.Unlock()
	s.use(f)
	if mode != prev {
		emit(s, s.currentTurn(), api.EventSessionModeChanged, api.SessionModeChangedData{Mode: mode, Previous: prev})
	}
	return f.View(), nil
}

// use makes f the fence of the next call and gives back what was kept for the
// one before. Called with turning held.
func (s *Session) use(f *fence.Fence) {
	s.mu.Lock()
	old := s.fence
	s.fence = f
	s.mu.Unlock()
	s.host.runner.Forget(old)
}

func (s *Session) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return api.NewError(api.CodeSessionNotFound, "the session is closed")
	}
	return nil
}

// BeginTurn begins a turn. TURN_ACTIVE: another one is under way.
func (s *Session) BeginTurn() (string, error) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return "", api.NewError(api.CodeSessionNotFound, "the session is closed")
	}
	if s.turn != "" {
		t := s.turn
		s.mu.Unlock()
		return "", api.NewError(api.CodeTurnActive, "begin turn: turn "+t+" has not ended", "turnId", t)
	}
	s.turns++
	t := fmt.Sprintf("t%d-%s", s.turns, newID()[:8])
	s.turn = t
	s.mu.Unlock()
	emit(s, t, api.EventTurnBegan, api.Empty{})
	return t, nil
}

// EndTurn ends the commands that the turn started, then cleans scratch when
// that is its time. TURN_NOT_FOUND: this turn is not under way.
func (s *Session) EndTurn(ctx context.Context, turn string, outcome api.TurnOutcome) (api.TurnEndResult, error) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	if s.turn != turn || turn == "" {
		s.mu.Unlock()
		return api.TurnEndResult{}, api.NewError(api.CodeTurnNotFound, "end turn: turn "+turn+" is not under way", "turnId", turn)
	}
	s.mu.Unlock()
	s.starts.Lock()
	defer s.starts.Unlock()
	return s.endTurn(ctx, outcome), nil
}

// endTurn is called with turning and starts held and a turn under way.
func (s *Session) endTurn(ctx context.Context, outcome api.TurnOutcome) api.TurnEndResult {
	turn := s.currentTurn()
	s.endCommands(func(c *Command) bool { return c.turn == turn })
	var r api.TurnEndResult
	if s.scratch != nil {
		var err error
		r.Cleaned, err = s.scratch.EndTurn(ctx)
		r.Warning = s.cleaned(turn, r.Cleaned, err)
	}
	s.mu.Lock()
	s.turn = ""
	s.mu.Unlock()
	emit(s, turn, api.EventTurnEnded, api.TurnEndedData{Outcome: outcome, Cleaned: r.Cleaned, Warning: r.Warning})
	return r
}

// Close ends a session: its streams and watches, its turn as aborted, its
// commands, its scratch unless that is to stay. Again has no effect.
func (s *Session) Close(ctx context.Context, why api.CloseReason) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	inTurn := s.turn != ""
	s.mu.Unlock()
	s.endLife()
	s.endWatches()
	s.starts.Lock()
	defer s.starts.Unlock()
	if inTurn {
		s.endTurn(ctx, api.TurnAborted)
	}
	s.endCommands(func(*Command) bool { return true })
	if s.scratch != nil {
		c, err := s.scratch.Close(ctx)
		s.cleaned("", c, err)
	}
	s.dropTemp()
	s.host.runner.Forget(s.Fence())
	emit(s, "", api.EventSessionClosed, api.SessionClosedData{Reason: why})
}

// info describes the session.
func (s *Session) info(state api.SessionState) api.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for c := range maps.Values(s.commands) {
		if c.running() {
			n++
		}
	}
	return api.SessionInfo{SessionID: s.id, Workspace: s.workspace, Mode: s.mode, State: state,
		OpenedAt: s.opened, Scratch: s.scratchInfo(), TurnID: s.turn, Processes: n}
}
