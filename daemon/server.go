package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/api"
)

// Version is the version of this program. Set at link time for a release.
var Version = "0.1.0-dev"

// Bounds of the daemon when the options do not say.
const (
	defaultConnections = 1024
	defaultSessions    = 16384
	defaultTTL         = 30 * time.Second
	// stopGrace is how long an orderly stop may take.
	stopGrace = 10 * time.Second
)

// ServerOptions configure a Server. Zero values mean the defaults.
type ServerOptions struct {
	Limits         api.Limits
	MaxConnections int
	MaxSessions    int
	// DetachedTTL is how long a session outlives its connection when it does
	// not say itself.
	DetachedTTL time.Duration
}

// Server serves clients on top of a [Host]. Make it with NewServer and run it
// with Serve.
type Server struct {
	host     *Host
	log      *Log
	opts     ServerOptions
	mux      *api.Mux
	counters api.Counters
	started  time.Time

	mu       sync.Mutex // before Session.mu and Log.mu
	conns    map[*api.Conn]*client
	open     int // connections, also those that are being upgraded
	sessions map[string]*holding
	closing  bool
	wg       sync.WaitGroup // connections
}

// holding is a session and who holds it.
type holding struct {
	session *Session
	keep    bool // onDisconnect
	ttl     time.Duration
	holder  *client     // nil while detached
	timer   *time.Timer // runs while detached
}

// client is a connection and what it holds.
type client struct {
	server *Server
	conn   *api.Conn

	// held is guarded by Server.mu.
	held map[string]*Session

	subMu sync.Mutex
	unsub context.CancelFunc // ends the subscription, nil without one
	subWG sync.WaitGroup

	streamMu sync.Mutex // innermost
	streams  map[string]*stream
	streamWG sync.WaitGroup
}

// NewServer makes a server; the host must publish to the log.
func NewServer(h *Host, l *Log, o ServerOptions) *Server {
	if o.MaxConnections <= 0 {
		o.MaxConnections = defaultConnections
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = defaultSessions
	}
	if o.DetachedTTL <= 0 {
		o.DetachedTTL = defaultTTL
	}
	s := &Server{host: h, log: l, opts: o, mux: api.NewMux(), started: time.Now(),
		conns: map[*api.Conn]*client{}, sessions: map[string]*holding{}}
	s.handlers()
	return s
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// enter counts a connection; false when there are too many or when the server
// stops.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.open >= s.opts.MaxConnections {
		return false
	}
	s.open++
	s.wg.Add(1)
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	s.wg.Done()
}

func (s *Server) addClient(c *api.Conn, cl *client) {
	s.mu.Lock()
	s.conns[c] = cl
	s.mu.Unlock()
}

func (s *Server) dropClient(c *api.Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// caller finds the client of a request.
func (s *Server) caller(r *api.Request) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.conns[r.Conn]
	if cl == nil {
		return nil, api.ErrClosed
	}
	return cl, nil
}

// held finds a session that the caller holds. SESSION_NOT_HELD: it is another
// connection's.
func (s *Server) held(r *api.Request, id string) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.sessions[id]
	if h == nil {
		return nil, api.NewError(api.CodeSessionNotFound, "there is no session "+clip(id), "sessionId", clip(id))
	}
	if h.holder == nil || h.holder.conn != r.Conn {
		return nil, api.NewError(codeNotHeld, "session "+clip(id)+" is not held by this connection; resume it with its token", "sessionId", clip(id))
	}
	return h.session, nil
}

// command finds a command of a session that the caller holds.
func (s *Server) command(r *api.Request, id string) (*Command, error) {
	s.mu.Lock()
	cl := s.conns[r.Conn]
	var mine []*Session
	if cl != nil {
		for _, x := range cl.held {
			mine = append(mine, x)
		}
	}
	s.mu.Unlock()
	for _, x := range mine {
		x.mu.Lock()
		c := x.commands[id]
		x.mu.Unlock()
		if c != nil {
			return c, nil
		}
	}
	return nil, api.NewError(api.CodeProcessNotFound, "there is no command "+clip(id)+" in a session of this connection", "processId", clip(id))
}

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

// adopt gives a new session to a client.
func (s *Server) adopt(cl *client, x *Session, keep bool, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.conns[cl.conn] == nil {
		return api.ErrClosed
	}
	if len(s.sessions) >= s.opts.MaxSessions {
		return api.NewError(api.CodeSessionLimit, "open session: the daemon has too many sessions", "limit", s.opts.MaxSessions)
	}
	s.sessions[x.id] = &holding{session: x, keep: keep, ttl: ttl, holder: cl}
	cl.held[x.id] = x
	return nil
}

// resume gives a session to another connection, whoever held it: that one is
// closed. SESSION_TOKEN_INVALID does not tell whether the session exists to
// somebody without its token.
func (s *Server) resume(cl *client, id, token string) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.sessions[id]
	if h == nil {
		return nil, api.NewError(api.CodeSessionNotFound, "resume session: there is no session "+clip(id)+" in this life of the daemon", "sessionId", clip(id), "epoch", s.log.Epoch())
	}
	want, got := sha256.Sum256([]byte(h.session.token)), sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return nil, api.NewError(api.CodeSessionToken, "resume session: the token does not fit", "sessionId", clip(id))
	}
	if s.closing || s.conns[cl.conn] == nil {
		return nil, api.ErrClosed
	}
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if old := h.holder; old != nil && old != cl {
		delete(old.held, id)
		old.conn.Close(closeTakenOver, "session "+id+" was taken over")
	}
	h.holder = cl
	cl.held[id] = h.session
	return h.session, nil
}

// closeTakenOver is the close code of a connection whose session another one
// has taken over (facts/conventions section 9, rule 10).
const closeTakenOver = 4001

// end closes a session, once.
func (s *Server) end(ctx context.Context, id string, why api.CloseReason) bool {
	s.mu.Lock()
	h := s.sessions[id]
	if h != nil {
		delete(s.sessions, id)
		if h.timer != nil {
			h.timer.Stop()
		}
		if h.holder != nil {
			delete(h.holder.held, id)
		}
	}
	s.mu.Unlock()
	if h == nil {
		return false
	}
	h.session.Close(context.WithoutCancel(ctx), why)
	return true
}

// gone lets go of what a connection held: sessions are detached, or end.
func (cl *client) gone() {
	cl.unsubscribe()
	cl.endStreams()
	s := cl.server
	s.mu.Lock()
	var end []string
	var detached []*holding
	for id := range cl.held {
		h := s.sessions[id]
		if h == nil || h.holder != cl {
			continue
		}
		h.holder = nil
		if s.closing {
			continue // drain ends it
		}
		if !h.keep || h.ttl == 0 {
			end = append(end, id)
			continue
		}
		h.timer = time.AfterFunc(h.ttl, func() { s.expire(id, h) })
		detached = append(detached, h)
	}
	cl.held = map[string]*Session{}
	s.mu.Unlock()
	for _, h := range detached {
		ms := h.ttl.Milliseconds()
		emit(h.session, h.session.currentTurn(), api.EventSessionDetached, api.SessionDetachedData{TTLMs: &ms})
	}
	for _, id := range end {
		s.end(context.Background(), id, api.ClosedDisconnect)
	}
}

// expire ends a session that nobody has resumed in time.
func (s *Server) expire(id string, h *holding) {
	s.mu.Lock()
	now := s.sessions[id]
	still := now == h && h.holder == nil
	s.mu.Unlock()
	if still {
		s.end(context.Background(), id, api.ClosedExpired)
	}
}

// drain ends everything in order: clients are told, sessions end (their
// commands, their scratch), connections are closed.
func (s *Server) drain() {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return
	}
	s.closing = true
	var ids []string
	for id := range s.sessions {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	if e, err := api.EventServerStopping.New("", "", api.ServerStoppingData{GraceMs: stopGrace.Milliseconds()}); err == nil {
		s.log.Publish(e)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	slices.Sort(ids)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	for _, id := range ids {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			s.end(ctx, id, api.ClosedByServer)
		}()
	}
	wg.Wait()
	s.tell()
	s.mu.Lock()
	for c := range s.conns {
		c.Close(api.CloseGoingAway, "the daemon stops")
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { defer close(ended); s.wg.Wait() }()
	select {
	case <-ended:
	case <-time.After(stopGrace): // a call that does not end must not keep the daemon
		s.host.log.Error().Msg("connections did not end in time")
	}
}

// tellTime is how long subscribers have to take the last events.
const tellTime = time.Second

// tell waits until the subscribers have been handed the last events.
func (s *Server) tell() {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for end := time.Now().Add(tellTime); !s.log.followed() && time.Now().Before(end); {
		<-t.C
	}
}
