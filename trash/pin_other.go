//go:build unix && !linux && !darwin

package trash

import "github.com/wattle-dev/wattle/internal/anchor"

// pin remembers an identity: without O_PATH it cannot be held, and a number
// that is given out again is not noticed.
type pin struct{ info anchor.Info }

func pinEntry(d *anchor.Dir, name string) (*pin, error) {
	i, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	return &pin{i}, nil
}

func (p *pin) stat() (anchor.Info, error) { return p.info, nil }

func (p *pin) close() {}
