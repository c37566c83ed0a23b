package anchor

import (
	"fmt"
	"io/fs"
)

// RemoveOptions narrows what [Dir.RemoveTree] removes.
type RemoveOptions struct {
	// Last is one name directly in the tree that is removed after everything
	// else, and only if nothing else stayed; "" for none. It must not be a
	// directory, and it is not counted.
	Last string
	// Expect, when set, is what the tree's own directory must be: same file,
	// same mount. Otherwise nothing is touched and the error is ESTALE.
	Expect *Info
}

// maxFailures ends a removal in which this many entries could not be removed:
// a tree like that needs a person, not a longer list.
const maxFailures = 1000

// leftovers collects why entries stayed.
type leftovers struct {
	first error
	count int
}

func (l *leftovers) add(path string, err error) {
	if l.count++; l.count == 1 {
		l.first = &fs.PathError{Op: "remove tree", Path: path, Err: err}
	}
}

func (l *leftovers) err() error {
	if l.count > 1 {
		return fmt.Errorf("%w (and %d more)", l.first, l.count-1)
	}
	return l.first
}
