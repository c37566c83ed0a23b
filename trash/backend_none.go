//go:build !unix || darwin

package trash

import (
	"context"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// none refuses: this system's own trash is not the freedesktop one, and there
// is no other back end.
type none struct{}

func newBackend(Config) backend { return none{} }

func (none) put(_ context.Context, _ *anchor.Dir, _, path string, _ anchor.Info, _ bool) (record.Entry, error) {
	return record.Entry{}, unavailable("trash", path)
}
func (none) holds(string) bool                     { return false }
func (none) list(context.Context) (Listing, error) { return Listing{}, nil }
func (none) dirs() []string                        { return nil }
func (none) guard([]string) []string               { return nil }
func (none) close(context.Context)                 {}
func (none) restore(_ context.Context, id string, _ RestoreOptions) (Restored, error) {
	return Restored{}, failure(record.CodeNotFound, record.ReasonBackend, "restore", "", "no entry "+id, nil)
}
func (none) empty(context.Context, EmptyOptions) (Emptied, error) {
	return Emptied{}, unavailable("empty", "")
}

func unavailable(op, path string) *record.Error {
	return failure(record.CodeUnavailable, record.ReasonBackend, op, path, "there is no trash on this system; delete it permanently", nil)
}
