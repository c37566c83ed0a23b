package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// interrupt is the signal that ended a context.
type interrupt struct{ signal syscall.Signal }

func (i *interrupt) Error() string { return "ended by " + i.signal.String() }
func (i *interrupt) Unwrap() error { return context.Canceled }

// interruptible gives a context that ends with the first SIGINT, SIGTERM or
// SIGHUP, so that a call can take back what it has begun. The second one ends
// the process as ever. A signal that our caller ignores stays ignored
// (nohup(1)). stop gives the signals back.
func interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			cancel(&interrupt{s.(syscall.Signal)})
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	return ctx, func() { cancel(nil); <-done }
}

// signalled is the exit status for the signal that ended a context, 0 when none
// did.
func signalled(ctx context.Context) int {
	var i *interrupt
	if errors.As(context.Cause(ctx), &i) {
		return statusSignal + int(i.signal)
	}
	return 0
}
