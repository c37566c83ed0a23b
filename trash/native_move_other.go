//go:build !darwin && !windows

package trash

import "github.com/wattle-dev/wattle/internal/anchor"

// moveNoReplace renames without replacing anything: fs.ErrExist when the new
// name is taken. On this system it serves the tests.
func moveNoReplace(from *anchor.Dir, name string, to *anchor.Dir, newName string) error {
	return from.Rename(name, to, newName, anchor.NoReplace)
}
