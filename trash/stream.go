package trash

import (
	"context"
	"errors"
	"io"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// stream calls visit with every entry of a directory, in its own order, until it
// fails; of no directory (nil) there are none.
func stream(ctx context.Context, d *anchor.Dir, visit func(anchor.Entry) error) error {
	if d == nil {
		return nil
	}
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		es, err := s.Next(256)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range es {
			if err := visit(e); err != nil {
				return err
			}
		}
	}
}
