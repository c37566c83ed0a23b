package trash

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// renameInformation is FILE_RENAME_INFORMATION with room for one name.
type renameInformation struct {
	replaceIfExists uint32
	root            windows.Handle
	nameLength      uint32
	name            [windows.MAX_PATH]uint16
}

// moveNoReplace renames without replacing anything, NtSetInformationFile with
// both directories by handle: fs.ErrExist when the new name is taken. It follows
// no link.
func moveNoReplace(from *anchor.Dir, name string, to *anchor.Dir, newName string) error {
	fail := func(err error) error {
		return &fs.PathError{Op: "rename", Path: filepath.Join(from.Path(), name), Err: err}
	}
	for _, n := range []string{name, newName} {
		if err := anchor.CheckName(n); err != nil {
			return err
		}
	}
	units, err := windows.UTF16FromString(newName)
	if err != nil {
		return fail(err)
	}
	units = units[:len(units)-1]
	var info renameInformation
	if len(units) > len(info.name) {
		return fail(syscall.ENAMETOOLONG)
	}
	a, err := from.File()
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := to.File()
	if err != nil {
		return err
	}
	defer b.Close()
	thing, err := openToMove(windows.Handle(a.Fd()), name)
	if err != nil {
		return fail(err)
	}
	defer windows.CloseHandle(thing)
	info.root = windows.Handle(b.Fd())
	info.nameLength = uint32(2 * copy(info.name[:], units))
	var status windows.IO_STATUS_BLOCK
	err = windows.NtSetInformationFile(thing, &status, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), windows.FileRenameInformation)
	if err != nil {
		return fail(errnoOf(err))
	}
	return nil
}

// openToMove opens an entry of a directory itself, with the right to rename it.
func openToMove(dir windows.Handle, name string) (windows.Handle, error) {
	s, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, err
	}
	o := windows.OBJECT_ATTRIBUTES{RootDirectory: dir, ObjectName: s, Attributes: windows.OBJ_DONT_REPARSE}
	o.Length = uint32(unsafe.Sizeof(o))
	var h windows.Handle
	var status windows.IO_STATUS_BLOCK
	err = windows.NtCreateFile(&h, windows.SYNCHRONIZE|windows.DELETE|windows.FILE_READ_ATTRIBUTES, &o, &status, nil, 0,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, windows.FILE_OPEN,
		windows.FILE_OPEN_REPARSE_POINT|windows.FILE_OPEN_FOR_BACKUP_INTENT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
	if err != nil {
		return 0, errnoOf(err)
	}
	return h, nil
}

// errnoOf gives an error of the kernel the number that fs errors are known by.
func errnoOf(err error) error {
	if s, ok := err.(windows.NTStatus); ok {
		return s.Errno()
	}
	return err
}
