//go:build !linux || portable

package dirlock

import (
	"context"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// Held is a directory.
type Held struct{ d *anchor.Dir }

// Lock locks nothing here: without an exchange of names there is nothing to
// exchange back.
func Lock(ctx context.Context, d *anchor.Dir, _ time.Duration) (*Held, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &Held{d: d}, nil
}

// Unlock and Close do nothing.
func (h *Held) Unlock() {}
func (h *Held) Close()  {}

// Sync makes the directory's entries durable where the system can.
func (h *Held) Sync() error { return h.d.Sync() }
