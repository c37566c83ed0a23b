//go:build !portable

package anchor

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// noStatx latches like noOpenat2, for the same kinds of filters.
var noStatx atomic.Bool

const statxMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE

// Stat describes the directory itself.
func (d *Dir) Stat() (Info, error) {
	var i Info
	err := d.use("stat", ".", func(fd int) (err error) {
		i, err = statAt(fd, "")
		return err
	})
	return i, err
}

// Lstat describes an entry without following it if it is a link. For a mount
// point it describes what is mounted there.
func (d *Dir) Lstat(name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	var i Info
	err := d.use("stat", name, func(fd int) (err error) {
		i, err = statAt(fd, name)
		return err
	})
	return i, err
}

// StatFile describes an open file.
func StatFile(f *os.File) (Info, error) {
	var i Info
	var inner error
	conn, err := f.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { i, inner = statAt(int(fd), "") })
	}
	if err = errors.Join(err, inner); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return i, nil
}

// IsMountPoint tells whether another mount than this directory's own begins at
// the entry.
func (d *Dir) IsMountPoint(name string) (bool, error) {
	self, err := d.Stat()
	if err != nil {
		return false, err
	}
	i, err := d.Lstat(name)
	if err != nil {
		return false, err
	}
	return !self.SameMount(i), nil
}

// CanWrite tells whether names can be made in the directory: nil, or what the
// kernel would say (EACCES, EROFS). It is an early answer, not a promise.
func (d *Dir) CanWrite() error {
	return d.use("write to", ".", func(fd int) error {
		return unix.Faccessat(fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	})
}

// statAt describes name below fd, or fd itself when name is empty.
func statAt(fd int, name string) (Info, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	if !noStatx.Load() {
		var x unix.Statx_t
		_, err := retry(func() (int, error) { return 0, unix.Statx(fd, name, flags, statxMask, &x) })
		switch {
		case err == nil:
			return fromStatx(&x), nil
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			// stat has no EPERM of its own: a filter said it.
			noStatx.Store(true)
		default:
			return Info{}, err
		}
	}
	return statSlow(fd, name)
}

func fromStatx(x *unix.Statx_t) Info {
	i := Info{
		Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino, Mode: uint32(x.Mode),
		Nlink: uint64(x.Nlink), UID: x.Uid, GID: x.Gid, Size: int64(x.Size),
		Mtime: nanos(x.Mtime), Ctime: nanos(x.Ctime),
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		i.Btime = nanos(x.Btime)
	}
	// Asked for both, Linux 6.8 and later set the bit of the unique one only,
	// older ones that of the reusable one only.
	if x.Mask&(unix.STATX_MNT_ID|unix.STATX_MNT_ID_UNIQUE) != 0 {
		i.MountID = x.Mnt_id
	}
	return i
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// statSlow pins the file first, so that its mount and its metadata are those
// of one file.
func statSlow(fd int, name string) (Info, error) {
	if name != "" {
		n, err := retry(func() (int, error) {
			return unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
		if err != nil {
			return Info{}, err
		}
		defer unix.Close(n)
		fd = n
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, err
	}
	return Info{
		Dev: uint64(st.Dev), Ino: st.Ino, Mode: st.Mode, Nlink: uint64(st.Nlink),
		UID: st.Uid, GID: st.Gid, Size: st.Size,
		Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), MountID: mountOf(fd),
	}, nil
}

// mountOf reads proc(5) fdinfo; 0 when /proc is not there. One is added, since
// an identity may be 0.
func mountOf(fd int) uint64 {
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(b, []byte("mnt_id:"))
	if !ok {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0
	}
	return n + 1
}
