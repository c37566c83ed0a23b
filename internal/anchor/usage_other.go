//go:build !linux || portable

package anchor

import (
	"context"
	"errors"
)

// Usage is errors.ErrUnsupported: it is not measured here.
func (d *Dir) Usage(_ context.Context, name string) (int64, error) {
	return 0, d.one("measure", name, func() error { return errors.ErrUnsupported })
}
