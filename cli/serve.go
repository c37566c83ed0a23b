package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
)

func newServe(w *world) *cobra.Command {
	var socket, policyDir, level, config string
	c := action("serve", "run the daemon for agents", `  wattle serve --log-level debug`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			if level == "" {
				level = w.getenv("WATTLE_LOG")
			}
			if level == "" {
				level = "info"
			}
			l, err := zerolog.ParseLevel(level)
			if err != nil || l == zerolog.NoLevel {
				return usage(cmd, "--log-level: %q is none of debug, info, warn, error", level)
			}
			dir, err := absolute(policyDir)
			if err != nil {
				return err
			}
			return w.serve(cmd.Context(), socket, dir, config, w.logger(l))
		})
	c.Long = `Run the daemon for agents until SIGTERM, SIGINT or SIGHUP. It then tells its clients,
ends their sessions and commands and cleans their scratch; a second signal ends
the commands and nothing else. The log goes to stderr, as JSON when that is no
terminal.`
	c.Flags().StringVar(&socket, "socket", "", "listen at `PATH`, else WATTLE_SOCKET, else the usual place")
	c.Flags().StringVar(&policyDir, "policy-dir", "", "look for policies in `D` first")
	c.Flags().StringVar(&config, "config", "", "read this configuration `FILE` alone, else WATTLE_CONFIG, else the usual places")
	c.Flags().StringVar(&level, "log-level", "", "`L` is debug, info, warn or error; else WATTLE_LOG, else info")
	complete(c, "log-level", "debug", "info", "warn", "error")
	return c
}

// stopLimit is how long an orderly stop may take, above what the server allows
// itself: a connection that does not end must not keep the daemon.
const stopLimit = 20 * time.Second

// softMemory is what the daemon tries to stay below, in bytes. More is used when
// more is needed.
const softMemory = 64 << 20

// logger is the log of the daemon: for people on a terminal, for programs
// otherwise.
func (w *world) logger(l zerolog.Level) zerolog.Logger {
	if !isTerminal(w.stderr) {
		return zerolog.New(w.stderr).Level(l).With().Timestamp().Logger()
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: w.stderr, NoColor: !w.coloured(w.stderr), TimeFormat: time.TimeOnly}).
		Level(l).With().Timestamp().Logger()
}

// serve runs the daemon. The socket is taken first: a second daemon must not
// sweep beside the first one.
func (w *world) serve(ctx context.Context, socketFlag, policyDir, config string, log zerolog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	places, err := daemon.FindPlaces(w.getenv)
	if err != nil {
		return err
	}
	conf, err := places.LoadConfig(config, w.getenv)
	if err != nil {
		return err
	}
	socket, err := places.Socket(socketFlag, w.getenv)
	if err != nil {
		return err
	}
	l, err := daemon.Listen(socket)
	if err != nil {
		return err
	}
	defer l.Close()
	if w.getenv("GOMEMLIMIT") == "" {
		// Above it garbage is collected at once instead of when it has become as
		// much as what is in use, which large texts would double.
		debug.SetMemoryLimit(softMemory)
	}
	events := daemon.NewLog(0, 0)
	h, err := daemon.NewHost(places, daemon.HostOptions{Socket: socket, PolicyDir: policyDir, Logger: &log, Publish: events.Publish, TrashOff: !conf.Trash.Enabled})
	if err != nil {
		return err
	}
	defer h.Close()
	// A write to a log whose reader is gone must not end the daemon.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // the terminal went away, and this is not nohup(1)
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	sweepAtStart(ctx, h, events, log)
	server := daemon.NewServer(h, events, daemon.ServerOptions{MaxConnections: conf.Limits.Connections, MaxSessions: conf.Limits.Sessions})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }() // ends after cancel, or with the program
	log.Info().Str("version", daemon.Version).Int("pid", os.Getpid()).Str("socket", socket).Str("epoch", events.Epoch()).
		Int("landlockAbi", h.Enforcement().LandlockABI).Msg("ready")
	stopping := false
	var late <-chan time.Time
	for {
		select {
		case err := <-served:
			if err != nil {
				return err
			}
			log.Info().Msg("stopped")
			return nil
		case s := <-signals:
			switch {
			case s == syscall.SIGPIPE:
			case stopping:
				log.Warn().Msg("stopping at once")
				return exitStatus(statusFailed) // the deferred Close ends the commands
			default:
				log.Info().Str("signal", signalName(s)).Msg("stopping")
				stopping, late = true, time.After(stopLimit)
				cancel()
			}
		case <-late:
			log.Error().Msg("not stopped in time")
			return exitStatus(statusFailed)
		}
	}
}

// sweepAtStart removes what killed daemons left, and tells it.
func sweepAtStart(ctx context.Context, h *daemon.Host, events *daemon.Log, log zerolog.Logger) {
	rep, err := h.Sweep(ctx)
	if err != nil {
		log.Warn().Err(err).Msg("sweep scratch")
	}
	for _, k := range rep.Kept {
		log.Info().Str("path", k.Path).Str("reason", string(k.Reason)).Str("detail", k.Detail).Msg("scratch left")
	}
	log.Info().Int("swept", rep.SweptCount).Int64("files", rep.Files).Int64("bytes", rep.Bytes).Int("left", rep.KeptCount).Msg("scratch swept")
	e, err := api.EventScratchSwept.New("", "", rep)
	if err != nil {
		log.Error().Err(fmt.Errorf("publish sweep: %w", err)).Msg("event lost")
		return
	}
	events.Publish(e)
}
