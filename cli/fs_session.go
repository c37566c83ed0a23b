package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/policies"
)

// files is the session of one command, for all its calls: one of the daemon, or
// one in this process.
type files struct {
	id     string
	remote *remote         // nil in this process
	local  *daemon.Session // nil on the daemon
	// changes are the events of watches of the session in this process.
	changes chan api.Event
}

// maxEarly is room for the changes that a watch tells before its start returns,
// when nobody takes them yet: more than the daemon keeps until then.
const maxEarly = 128

// ref names a file for a call. A relative path is taken from the current
// directory, not from the workspace: that is what a shell completes.
func (s *files) ref(path string) api.FileRef {
	return api.FileRef{SessionID: s.id, Path: path, Cwd: here()}
}

// here is the current directory, or "": an absolute path needs none, another
// one fails in the call.
func here() string {
	wd, err := os.Getwd()
	if err != nil {
		return ""
	}
	return wd
}

// ask makes one call of a session. Both ways give the same result and the same
// error; local is the method of [daemon.Session] that serves m.
func ask[P, R any](ctx context.Context, s *files, m api.Method[P, R], p P, local func(*daemon.Session, context.Context, *P) (R, error)) (R, error) {
	if s.remote != nil {
		return call(ctx, s.remote, m, p)
	}
	return local(s.local, ctx, &p)
}

// anywhere opens a session of its own for as long as use runs: on the daemon
// when one runs, in this process otherwise. The context of use ends with the
// first signal; an error is then reported with the status of that signal.
func (w *world) anywhere(ctx context.Context, f *fileFlags, use func(context.Context, *files) error) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	err := wrap(w.onSession(ctx, f, use))
	var own *failed
	if code := signalled(ctx); code != 0 && errors.As(err, &own) {
		own.code = code
		if wire(own.err).Stable() == api.CodeCancelled {
			own.hint = "it may have happened all the same; look before you try again"
		}
	}
	return err
}

func (w *world) onSession(ctx context.Context, f *fileFlags, use func(context.Context, *files) error) error {
	r, err := w.dial(ctx, f.socket)
	if errors.Is(err, client.ErrNoDaemon) && f.socket == "" {
		return w.onOwnSession(ctx, f, use)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	places, err := daemon.FindPlaces(w.getenv)
	if err != nil {
		return err
	}
	open, err := f.fence.params(policies.Library{Dirs: places.PolicyDirs})
	if err != nil {
		return err
	}
	s, err := client.Do(ctx, r.Client, api.SessionOpen, open)
	if err != nil {
		return err
	}
	// The daemon ends the session with the connection in any case; asked for
	// it, it has ended when we return.
	defer func() {
		_, _ = client.Do(context.WithoutCancel(ctx), r.Client, api.SessionClose, api.SessionRef{SessionID: s.SessionID})
	}()
	return use(ctx, &files{id: s.SessionID, remote: r})
}

func (w *world) onOwnSession(ctx context.Context, f *fileFlags, use func(context.Context, *files) error) error {
	x := &files{changes: make(chan api.Event, maxEarly)}
	// Whoever publishes a change may wait here until it is taken: the watch
	// collects meanwhile. Nobody waits longer than use runs.
	watching, over := context.WithCancel(ctx)
	defer over()
	publish := func(e api.Event) {
		if !strings.HasPrefix(e.Type, watchEvents) {
			return
		}
		e.Time = time.Now().UTC() // as a daemon's log would
		select {
		case x.changes <- e:
		case <-watching.Done():
		}
	}
	return w.ownSession(ctx, &f.fence, publish, func(s *daemon.Session) error {
		defer over()
		x.id, x.local = s.ID(), s
		return use(ctx, x)
	})
}

// one makes one call on a session of its own.
func one[R any](ctx context.Context, w *world, f *fileFlags, do func(context.Context, *files) (R, error)) (R, error) {
	var out R
	err := w.anywhere(ctx, f, func(ctx context.Context, s *files) (err error) {
		out, err = do(ctx, s)
		return err
	})
	return out, err
}
