//go:build !linux

package pinned

import (
	"errors"
	"os"
)

// CopyRange is errors.ErrUnsupported: nothing is copied in the kernel here.
func (p *File) CopyRange(*os.File, int64, int) (int, error) { return 0, errors.ErrUnsupported }

// NextData knows of no holes.
func (p *File) NextData(off int64) (int64, error) { return off, nil }

// NoDefaultACL does nothing: access lists are not looked at on this system.
func NoDefaultACL(*os.File) error { return nil }

// SyncTree does nothing: each file was made durable with [SyncAlone].
func SyncTree(*os.File) error { return nil }

// SyncAlone makes one file of a tree durable.
func SyncAlone(f *os.File) error { return f.Sync() }
