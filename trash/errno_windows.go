package trash

import "golang.org/x/sys/windows"

// errnoName: the numbers here have no names that anybody would look for.
func errnoName(error) string { return "" }

// errOtherVolume: a rename cannot lead to another volume.
const errOtherVolume = windows.ERROR_NOT_SAME_DEVICE
