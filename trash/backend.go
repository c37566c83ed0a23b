package trash

import (
	"context"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// backend is the trash of one kind of system. The methods promise what those of
// [Bin] say. Any number of goroutines use one at once.
type backend interface {
	put(ctx context.Context, dir *anchor.Dir, name, path string, want anchor.Info, copyAcross bool) (record.Entry, error)
	holds(path string) bool
	list(ctx context.Context) (Listing, error)
	restore(ctx context.Context, id string, o RestoreOptions) (Restored, error)
	empty(ctx context.Context, o EmptyOptions) (Emptied, error)
	dirs() []string
	guard(roots []string) []string
	// close ends what runs in the background, at the latest when ctx ends.
	close(ctx context.Context)
}
