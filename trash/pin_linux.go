package trash

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// pin holds one inode without opening it (O_PATH), a link itself.
type pin struct{ file *os.File }

func pinEntry(d *anchor.Dir, name string) (*pin, error) {
	f, err := d.Open(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	return &pin{f}, nil
}

// stat describes the pinned thing as it is now, whatever its name.
func (p *pin) stat() (anchor.Info, error) { return anchor.StatFile(p.file) }

func (p *pin) close() { p.file.Close() }
