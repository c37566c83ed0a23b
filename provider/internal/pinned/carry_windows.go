package pinned

import (
	"io/fs"
	"os"

	"github.com/wattle-dev/wattle/internal/anchor"
)

const nonblock = 0

// carry keeps the read-only attribute; the new file has the access list that
// its directory gives it.
func carry(from anchor.Info, to *os.File) (lost []string, err error) {
	return []string{"acl"}, to.Chmod(fs.FileMode(from.Perm() & 0o777))
}
