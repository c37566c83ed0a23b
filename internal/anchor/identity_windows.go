package anchor

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

func fromSys(fs.FileInfo, *Info) {}

// identify asks the open file for its identity: Windows gives it to handles
// only, so entries that are not opened have none.
func identify(f *os.File, i *Info) {
	var h windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &h) == nil {
		i.Dev = uint64(h.VolumeSerialNumber)
		i.Ino = uint64(h.FileIndexHigh)<<32 | uint64(h.FileIndexLow)
		i.Nlink = uint64(h.NumberOfLinks)
	}
}

// syncDir: directories cannot be flushed here.
func syncDir(*os.File) error { return nil }

// errStale: the file is another one than expected.
const errStale = windows.ERROR_FILE_INVALID
