//go:build unix && (!linux || portable)

package anchor

import (
	"io/fs"
	"os"
	"syscall"
)

// fromSys adds what the system's own stat has.
func fromSys(fi fs.FileInfo, i *Info) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		i.Dev, i.Ino, i.Nlink = uint64(st.Dev), uint64(st.Ino), uint64(st.Nlink)
		i.UID, i.GID = st.Uid, st.Gid
		i.Ctime = changed(st)
	}
}

func identify(*os.File, *Info) {}

func syncDir(f *os.File) error { return f.Sync() }

const errStale = syscall.ESTALE
