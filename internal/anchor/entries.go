package anchor

import (
	"errors"
	"io"
)

// ReadDir returns the first n entries, or all of them when n < 1, in the
// directory's own order. Each call begins anew. For a directory of any size,
// without holding it in memory, use [Dir.Stream].
func (d *Dir) ReadDir(n int) ([]Entry, error) {
	s, err := d.Stream()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var all []Entry
	for n < 1 || len(all) < n {
		ask := 1024
		if n > 0 {
			ask = min(ask, n-len(all))
		}
		es, err := s.Next(ask)
		all = append(all, es...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
