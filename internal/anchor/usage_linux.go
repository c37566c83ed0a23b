//go:build !portable

package anchor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUsageDepth bounds the handles that [Dir.Usage] holds: two a level.
const maxUsageDepth = 256

// Usage is how many bytes of the disk the entry and everything beneath it take
// (st_blocks of stat(2)). It follows no link and enters no other mount. Names of one
// file are counted each. It needs to read every directory; what goes meanwhile
// is not counted. Deeper than 256 directories is ENAMETOOLONG.
func (d *Dir) Usage(ctx context.Context, name string) (int64, error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	return d.usage(ctx, Entry{Name: name}, 0)
}

func (d *Dir) usage(ctx context.Context, e Entry, depth int) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var st unix.Stat_t
	err := d.use("stat", e.Name, func(fd int) error {
		return unix.Fstatat(fd, e.Name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	})
	if errors.Is(err, fs.ErrNotExist) && depth > 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	total := st.Blocks * 512
	if st.Mode&TypeMask != TypeDir {
		return total, nil
	}
	if depth >= maxUsageDepth {
		return 0, &fs.PathError{Op: "measure", Path: filepath.Join(d.path, e.Name), Err: syscall.ENAMETOOLONG}
	}
	mounted, err := d.IsMountPoint(e.Name)
	if err != nil || mounted {
		return 0, err
	}
	sub, err := d.Walk(e.Name)
	if err != nil {
		return 0, err
	}
	defer sub.Close()
	s, err := sub.Stream()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for {
		es, err := s.Next(1024)
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return 0, err
		}
		for _, e := range es {
			n, err := sub.usage(ctx, e, depth+1)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
}
