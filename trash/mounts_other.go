//go:build unix && !linux && !darwin

package trash

import "github.com/wattle-dev/wattle/internal/anchor"

// listsMounts: the mount table is not read here, so a listing would not find
// what lies in the trash of another file system. There is the home trash only.
const listsMounts = false

type mount struct {
	point, root string
	auto        bool
	network     bool
}

func mounts() ([]mount, error) { return nil, nil }

func remote(*anchor.Dir) bool { return false }
