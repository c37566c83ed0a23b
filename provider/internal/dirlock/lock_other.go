//go:build !linux

package dirlock

import (
	"context"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// Lock does nothing here: without an exchange of names there is nothing to
// exchange back.
func Lock(ctx context.Context, _ *anchor.Dir, _ time.Duration) (unlock func(), held bool, err error) {
	return func() {}, false, ctx.Err()
}
