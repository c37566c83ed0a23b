package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/wattle-dev/wattle/api"
)

// ErrRunning: another daemon serves this socket.
var ErrRunning = errors.New("a daemon is already running")

// Listen makes the control socket, 0600 in a directory 0700, and holds a lock
// beside it for the life of the returned listener. A socket that a killed
// daemon left is replaced; one that is served is ErrRunning. The directory is
// made if it is missing; one that is open to others is refused.
func Listen(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := privateDir(dir); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// Under the lock nobody serves it: what is there is left over.
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode()&os.ModeSocket == 0 {
			_ = lock.Close()
			return nil, fmt.Errorf("listen on %s: it is there and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			_ = lock.Close()
			return nil, fmt.Errorf("listen on %s: %w", path, err)
		}
	}
	l, err := listenPrivately(path)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &lockedListener{Listener: l, lock: lock}, nil
}

// lockedListener keeps the lock as long as the socket.
type lockedListener struct {
	net.Listener
	lock *os.File
}

func (l *lockedListener) Close() error {
	return errors.Join(l.Listener.Close(), l.lock.Close())
}

// connKey finds the net.Conn of a request.
type connKey struct{}

// Serve answers on a listener until the context ends, then drains: it tells
// the clients, closes the sessions and waits for the connections. It returns
// nil after an orderly end. It may be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	hs := &http.Server{
		Handler:           s.routes(ctx),
		ReadHeaderTimeout: 5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:          nil,
	}
	stopped := make(chan error, 1)
	go func() { // ends with the listener
		stopped <- hs.Serve(l)
	}()
	select {
	case err := <-stopped:
		s.drain()
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.drain()
	_ = hs.Close()
	if err := <-stopped; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// routes checks who asks before anything else happens (facts/conventions
// section 9, rule 2). On a unix socket the Host header means nothing. Every
// refusal has the same body; the reason is in the log.
func (s *Server) routes(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.stopping() {
			plain(w, http.StatusServiceUnavailable, "stopping\n")
			return
		}
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /v1", func(w http.ResponseWriter, r *http.Request) {
		if err := admit(r); err != nil {
			s.host.log.Warn().Err(err).Msg("connection refused")
			plain(w, http.StatusForbidden, "forbidden\n")
			return
		}
		if !s.enter() {
			plain(w, http.StatusServiceUnavailable, "stopping or full\n")
			return
		}
		defer s.leave()
		sock, err := api.Upgrade(w, r)
		if err != nil {
			return // the client has been answered
		}
		// Not ctx itself: drain tells the clients before it closes them.
		s.serveConn(context.WithoutCancel(ctx), sock)
	})
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// admit checks a request for an upgrade: no Origin at all (a browser's page
// sends one), no cross-site fetch, and a peer that may connect.
func admit(r *http.Request) error {
	if r.Header.Values("Origin") != nil {
		return errors.New("the request has an Origin")
	}
	if f := r.Header.Get("Sec-Fetch-Site"); f != "" && f != "none" {
		return errors.New("the request comes from another site")
	}
	c, ok := r.Context().Value(connKey{}).(*net.UnixConn)
	if !ok {
		return errors.New("the connection is no unix socket")
	}
	return checkPeer(c)
}

func (s *Server) serveConn(ctx context.Context, sock api.Socket) {
	cl := &client{server: s, held: map[string]*Session{}}
	defer func() {
		// A panic here is a defect of ours and must not end the daemon: net/http
		// would recover it too, but the sessions must be let go in any case.
		if v := recover(); v != nil {
			s.host.log.Error().Any("panic", v).Msg("connection panicked")
		}
		cl.gone()
	}()
	conn := api.NewConn(sock, s.mux, api.Options{Limits: s.opts.Limits, Logger: s.host.log, Counters: &s.counters})
	cl.conn = conn
	s.addClient(conn, cl)
	defer s.dropClient(conn)
	err := conn.Serve(ctx)
	s.host.log.Debug().Err(err).Msg("connection ended")
}

// nopLogger is for hosts that log nothing.
var nopLogger = zerolog.Nop()
