package trash

import "github.com/wattle-dev/wattle/internal/anchor"

// typeOf is the word for what something is, as entries have it.
func typeOf(i anchor.Info) string {
	switch {
	case i.IsRegular():
		return "file"
	case i.IsDir():
		return "directory"
	case i.IsSymlink():
		return "symlink"
	}
	return "other"
}
