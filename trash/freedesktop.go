//go:build unix && !darwin

package trash

import (
	"context"
	"path/filepath"
	"strconv"
	"time"
)

// freedesktop is the trash of Linux and BSD.
type freedesktop struct {
	// home is the configured data directory, as it was given.
	home string
	uid  uint32
	now  func() time.Time
	sync bool
	// sizes measures directories.
	sizes *sizer
	// at is called between every two steps; a test stops there.
	at func(point string)
	// plainRename, for tests: as if nothing here could rename without replacing.
	plainRename bool
}

func newBackend(c Config) backend { return newFreedesktop(c) }

func newFreedesktop(c Config) *freedesktop {
	return &freedesktop{
		home: c.DataHome, uid: uint32(c.UID), now: c.Now, sync: !c.NoSync,
		sizes: newSizer(), at: func(string) {},
	}
}

// topNames are where our trash may be in a top directory, T6 and T8.
func (f *freedesktop) topNames() []string {
	uid := strconv.FormatUint(uint64(f.uid), 10)
	return []string{filepath.Join(".Trash", uid), ".Trash-" + uid}
}

func (f *freedesktop) close(ctx context.Context) { f.sizes.close(ctx) }
