package trash

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The numbers are those of ShObjIdl_core.h and ShlObj_core.h.
const (
	fofNoUI                = 0x0614 // silent, no questions, no error windows
	fofNoConnectedElements = 0x2000 // "page.html" does not take "page_files" along
	fofxRecycleOnDelete    = 0x0008_0000
	fofxEarlyFailure       = 0x0010_0000

	clsctxInprocServer  = 1
	sigdnFileSystemPath = 0x8005_8000
	sigdnParsingPath    = 0x8002_8000 // SIGDN_DESKTOPABSOLUTEPARSING

	hrAbort        = 0x8000_4004
	hrNoInterface  = 0x8000_4002
	hrPointer      = 0x8000_4003
	hrAccessDenied = 0x8007_0005
)

var (
	clsidFileOperation = windows.GUID{Data1: 0x3ad05575, Data2: 0x8857, Data3: 0x4850, Data4: [8]byte{0x92, 0x77, 0x11, 0xb8, 0x5b, 0xdb, 0x8e, 0x09}}
	iidFileOperation   = windows.GUID{Data1: 0x947aab5f, Data2: 0x0a5c, Data3: 0x4c13, Data4: [8]byte{0xb4, 0xd6, 0x4b, 0xf7, 0x83, 0x6f, 0xc9, 0xf8}}
	iidShellItem       = windows.GUID{Data1: 0x43826d1e, Data2: 0xe718, Data3: 0x42ee, Data4: [8]byte{0xbc, 0x55, 0xa1, 0xe2, 0x61, 0xc3, 0x7b, 0xfe}}

	procCoCreateInstance = windows.NewLazySystemDLL("ole32.dll").NewProc("CoCreateInstance")
	procShellItem        = windows.NewLazySystemDLL("shell32.dll").NewProc("SHCreateItemFromParsingName")
)

// The places of methods in their tables.
const (
	unknownRelease = 2

	itemGetDisplayName = 5

	operationSetFlags = 5
	operationDelete   = 18
	operationPerform  = 21
	operationAborted  = 22
)

// object is a COM object: a pointer to its table of methods.
type object struct{ table *[32]uintptr }

// call calls a method. What pointers in args lead to must be on the heap and
// kept alive by the caller.
func (o *object) call(method int, args ...uintptr) hresult {
	r, _, _ := syscall.SyscallN(o.table[method], append([]uintptr{uintptr(unsafe.Pointer(o))}, args...)...)
	return hresult(r)
}

func (o *object) release() { o.call(unknownRelease) }

// hresult is negative for a failure.
type hresult int32

func (h hresult) failed() bool { return h < 0 }

func (h hresult) err(what string) error {
	e := &systemError{text: fmt.Sprintf("%s: HRESULT 0x%08x", what, uint32(h))}
	switch uint32(h) {
	case hrAccessDenied:
		e.is = fs.ErrPermission
	case 0x8007_0002, 0x8007_0003: // ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND
		e.is = fs.ErrNotExist
	}
	return e
}

// perform has the shell recycle what is at a path. It takes a thread of its own
// and returns when the shell has answered.
func perform(path string) (landing string, err error) {
	// A COM apartment belongs to a thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = windows.CoInitializeEx(0, windows.COINIT_APARTMENTTHREADED|windows.COINIT_DISABLE_OLE1DDE)
	if err != nil && !errors.Is(err, syscall.Errno(1)) { // S_FALSE: it was one already
		return "", &systemError{text: fmt.Sprintf("CoInitializeEx: %v", err)}
	}
	defer windows.CoUninitialize()

	item, err := shellItem(path)
	if err != nil {
		return "", err
	}
	defer item.release()
	operation := new(out[*object])
	r, _, _ := procCoCreateInstance.Call(uintptr(unsafe.Pointer(&clsidFileOperation)), 0, clsctxInprocServer,
		uintptr(unsafe.Pointer(&iidFileOperation)), uintptr(unsafe.Pointer(operation.keep())))
	o := operation.take()
	if h := hresult(r); h.failed() || o == nil {
		return "", h.err("CoCreateInstance(FileOperation)")
	}
	defer o.release()
	if h := o.call(operationSetFlags, fofNoUI|fofNoConnectedElements|fofxRecycleOnDelete|fofxEarlyFailure); h.failed() {
		return "", h.err("IFileOperation::SetOperationFlags")
	}
	s := newSink()
	defer s.release()
	if h := o.call(operationDelete, uintptr(unsafe.Pointer(item)), uintptr(unsafe.Pointer(s))); h.failed() {
		return "", h.err("IFileOperation::DeleteItem")
	}
	h := o.call(operationPerform)
	aborted := new(out[uint32])
	a := o.call(operationAborted, uintptr(unsafe.Pointer(aborted.keep())))
	return s.answer(h, a.failed() || aborted.take() != 0)
}

// answer is what became of it.
func (s *sink) answer(performed hresult, aborted bool) (string, error) {
	switch {
	case s.vetoed:
		return "", &systemError{is: errors.ErrUnsupported, text: "the shell would erase it outright"}
	case performed.failed():
		return "", performed.err("IFileOperation::PerformOperations")
	case s.deleted && s.result.failed():
		return "", s.result.err("delete")
	case aborted || !s.deleted:
		return "", &systemError{text: "the shell did not do it"}
	}
	return s.landing, nil
}

// shellItem makes the shell's item of a path, and makes sure that the shell
// means the same one.
func shellItem(path string) (*object, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	item := new(out[*object])
	r, _, _ := procShellItem.Call(uintptr(unsafe.Pointer(p)), 0, uintptr(unsafe.Pointer(&iidShellItem)), uintptr(unsafe.Pointer(item.keep())))
	o := item.take()
	if h := hresult(r); h.failed() || o == nil {
		return nil, h.err("SHCreateItemFromParsingName")
	}
	if shown, ok := displayName(o, sigdnFileSystemPath); !ok || !strings.EqualFold(shown, path) {
		o.release()
		return nil, &systemError{text: fmt.Sprintf("the shell takes it for another thing: %q", shown)}
	}
	return o, nil
}

// displayName is a name of an item, here its path.
func displayName(item *object, which uintptr) (string, bool) {
	name := new(out[*uint16])
	h := item.call(itemGetDisplayName, which, uintptr(unsafe.Pointer(name.keep())))
	p := name.take()
	if h.failed() || p == nil {
		return "", false
	}
	defer windows.CoTaskMemFree(unsafe.Pointer(p))
	return windows.UTF16PtrToString(p), true
}

// out is a place that a method writes to. It is on the heap while it is: a
// stack moves when a callback needs more of it.
type out[T any] struct{ v T }

var outs sync.Map

func (o *out[T]) keep() *T {
	outs.Store(o, nil)
	return &o.v
}

func (o *out[T]) take() T {
	outs.Delete(o)
	return o.v
}

// sink is an IFileOperationProgressSink. The shell calls it on the thread of
// perform, so that its fields need no lock; it holds references, and the sink
// is in sinks, on the heap, until it has given back the last.
type sink struct {
	table *[19]uintptr // must be first
	refs  int32

	vetoed  bool // preDelete
	deleted bool // postDelete came
	result  hresult
	landing string // "" when the shell named none
}

var sinks sync.Map

func newSink() *sink {
	s := &sink{table: sinkTable(), refs: 1}
	sinks.Store(s, nil)
	return s
}

func (s *sink) release() uintptr {
	s.refs--
	if s.refs == 0 {
		sinks.Delete(s)
	}
	return uintptr(s.refs)
}

// sinkTable makes the methods once: callbacks are never given back.
var sinkTable = sync.OnceValue(func() *[19]uintptr {
	// The others have nothing to do; each takes itself and as many arguments as
	// its name says.
	zero := windows.NewCallback(func(*sink) uintptr { return 0 })
	one := windows.NewCallback(func(*sink, uintptr) uintptr { return 0 })
	two := windows.NewCallback(func(*sink, uintptr, uintptr) uintptr { return 0 })
	three := windows.NewCallback(func(*sink, uintptr, uintptr, uintptr) uintptr { return 0 })
	four := windows.NewCallback(func(*sink, uintptr, uintptr, uintptr, uintptr) uintptr { return 0 })
	five := windows.NewCallback(func(*sink, uintptr, uintptr, uintptr, uintptr, uintptr) uintptr { return 0 })
	six := windows.NewCallback(func(*sink, uintptr, uintptr, uintptr, uintptr, uintptr, uintptr) uintptr { return 0 })
	seven := windows.NewCallback(func(*sink, uintptr, uintptr, uintptr, uintptr, uintptr, uintptr, uintptr) uintptr { return 0 })
	return &[19]uintptr{
		windows.NewCallback(querySink),
		windows.NewCallback(func(s *sink) uintptr { s.refs++; return uintptr(s.refs) }),
		windows.NewCallback(func(s *sink) uintptr { return s.release() }),
		zero,                            // StartOperations
		one,                             // FinishOperations
		three,                           // PreRenameItem
		five,                            // PostRenameItem
		four,                            // PreMoveItem
		six,                             // PostMoveItem
		four,                            // PreCopyItem
		six,                             // PostCopyItem
		windows.NewCallback(preDelete),  // PreDeleteItem
		windows.NewCallback(postDelete), // PostDeleteItem
		three,                           // PreNewItem
		seven,                           // PostNewItem
		two,                             // UpdateProgress
		zero,                            // ResetTimer
		zero,                            // PauseTimer
		zero,                            // ResumeTimer
	}
})

func querySink(s *sink, id *windows.GUID, to **sink) uintptr {
	if to == nil || id == nil {
		return hrPointer
	}
	switch *id {
	case windows.GUID{Data4: [8]byte{0xc0, 7: 0x46}}, // IUnknown
		windows.GUID{Data1: 0x04b0f1a7, Data2: 0x9490, Data3: 0x44bc, Data4: [8]byte{0x96, 0xe1, 0x42, 0x96, 0xa3, 0x12, 0x52, 0xe2}}:
		s.refs++
		*to = s
		return 0
	}
	*to = nil
	return hrNoInterface
}

// preDelete stops what the shell would not recycle: then it does not say
// TSF_DELETE_RECYCLE_IF_POSSIBLE.
func preDelete(s *sink, flags, item uintptr) uintptr {
	const recycleIfPossible = 0x80
	if flags&recycleIfPossible == 0 {
		s.vetoed = true
		return hrAbort
	}
	return 0
}

// postDelete learns where the thing is now. No new item means that there is
// none: it was erased.
func postDelete(s *sink, flags uintptr, item *object, result uintptr, created *object) uintptr {
	s.deleted, s.result = true, hresult(result)
	if created == nil {
		return 0
	}
	for _, which := range []uintptr{sigdnFileSystemPath, sigdnParsingPath} {
		if path, ok := displayName(created, which); ok {
			s.landing = filepath.Clean(path)
			break
		}
	}
	return 0
}
